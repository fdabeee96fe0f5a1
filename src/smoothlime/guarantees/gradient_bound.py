"""gradient_bound: how long a model's gradient can be, anywhere, from its weights. Never from a sampled maximum."""

from __future__ import annotations

import sys
from math import exp, isfinite, log1p, sqrt
from typing import Any

import numpy as np

from .._core.forks import survives_fork
from ..errors import InvalidArgument, WrongType
from ..models.adapt import is_torch_module
from ..models.frameworks import framework_of
from ..models.torch_layers import check_ready

SLOPES = {
    "ReLU": 1.0,
    "ReLU6": 1.0,
    "Tanh": 1.0,
    "Sigmoid": 0.25,
    "Softsign": 1.0,
    "LogSigmoid": 1.0,
    "Hardtanh": 1.0,
    "Hardsigmoid": 0.1666667,
    "Hardswish": 1.5,
    "SELU": 1.7581,
    "SiLU": 1.0999,
    "GELU": 1.13,
    "Mish": 1.089,
    "Identity": 1.0,
    "Flatten": 1.0,
    "Dropout": 1.0,
}
"""Largest slope of each activation, rounded up; dropout is the identity in evaluation mode."""

ROUNDED_SHARE = 4
"""A softplus jumps where it goes over into a line, which gradients do not see; by a quarter of the relative spacing of
its own value, or less, that is lost in rounding."""

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
"""Of torch modules; those of all modules at once are called `_global` and so on."""

ROUNDED_UP = 1 + 1e-12
"""What norms, products and roots may lose of a bound in their last digits."""

PREDICTS = ("predict", "predict_proba", "decision_function")

SIGMOID = 0.25
SOFTMAX = sqrt(2) / 4
"""Largest length of the gradient of one softmax probability with respect to the logits."""


@survives_fork
def gradient_bound(model: Any, *, output: str | None = None) -> float:
    """Bound on the length of the gradient of any single output, everywhere.

    Exact for linear models and binary logistic regression. For a torch `Sequential` the product of the layers'
    spectral norms and the activations' largest slopes: valid, and loose for deep networks. It holds for the weights
    as they are, computed without rounding; `certify` adds the effect of rounding.

    Parameters
    ----------
    output
        `"probability"` or `"margin"` for classifiers; for a torch module `"probability"` puts a softmax or sigmoid on
        top. By default what `explain` explains by default. For the result of `as_model` it was set when that was made.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 3.0, 4.0])
    >>> round(gradient_bound(model), 6)
    5.0
    """
    if output not in (None, "probability", "margin"):
        msg = f"output must be 'probability' or 'margin'; got {output!r}"
        raise InvalidArgument(msg)
    from ..models.torch import TorchModel

    if isinstance(model, TorchModel) and is_torch_module(model.module):
        _check_autocast(model)
        _check_told(model, output)
        return ROUNDED_UP * _network(model.module, is_probability=model.is_probability)
    if is_torch_module(model) and not framework_of(model):
        return ROUNDED_UP * _network(model, is_probability=output == "probability")
    if hasattr(model, "coef_"):
        return ROUNDED_UP * _linear(model, output)
    msg = (
        f"no bound is known for a {type(model).__name__}: linear models, logistic regression and torch Sequential"
        " networks have one. Give gradient_bound= yourself if you can prove one"
    )
    raise WrongType(msg)


def _linear(model: Any, output: str | None) -> float:
    kind = type(model).__name__ if type(model).__module__.startswith("sklearn.") else f"own {type(model).__name__}"
    coefficients = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    weights = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    check_own(model, weights)
    longest = float(np.linalg.norm(weights, axis=1).max())
    if kind in LINEAR_REGRESSORS or (kind in LINEAR_CLASSIFIERS and output == "margin"):
        return longest
    if kind in ("LogisticRegression", "LogisticRegressionCV"):
        if len(weights) > 1:
            return SOFTMAX * float(np.linalg.norm(weights, ord=2))
        # before scikit-learn 1.8, "multinomial" made of one margin d the softmax of (−d, d)
        return (2 if getattr(model, "multi_class", None) == "multinomial" else 1) * SIGMOID * longest
    if kind in LINEAR_CLASSIFIERS:
        msg = f"the probabilities of a {kind} are not known to be logistic; use output='margin', or give your own bound"
    else:
        msg = f"a {kind} has coefficients, but its output may not be linear in the features; give your own bound"
    raise WrongType(msg)


LINEAR_REGRESSORS = (
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "Lars",
    "LassoLars",
    "BayesianRidge",
    "ARDRegression",
    "HuberRegressor",
    "SGDRegressor",
    "TheilSenRegressor",
    "QuantileRegressor",
    "LinearSVR",
)
LINEAR_CLASSIFIERS = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
    "Perceptron",
    "LinearSVC",
    "LinearDiscriminantAnalysis",
)


def _check_autocast(model: Any) -> None:
    if model.autocast is not None:
        msg = (
            f"under autocast the network computes with weights and activations rounded to {model.autocast}, which may"
            " be steeper than the weights it was given: no bound is known. Leave autocast out of as_model, or give your"
            " own gradient_bound"
        )
        raise WrongType(msg)


def _check_told(model: Any, output: str | None) -> None:
    """Refuse to bound another output than the one a model was made for: a margin is steeper than its probability."""
    if output is not None and (output == "probability") != model.is_probability:
        made = "output='probability'" if model.is_probability else "its outputs as they come"
        msg = (
            f"output={output!r} is not what this model was made for: {made}. Leave output out, or make another by"
            f" as_model(module{', output=' + repr(output) if output == 'probability' else ''})"
        )
        raise InvalidArgument(msg)


def check_own(model: Any, weights: Any) -> None:
    """Refuse an estimator that predicts otherwise than its coefficients say."""
    replaced = [name for name in PREDICTS if name in vars(model)]
    if replaced:
        msg = (
            f"this {type(model).__name__} has a {replaced[0]} that was replaced, and may compute anything;"
            " give your own gradient_bound"
        )
        raise WrongType(msg)
    if not (np.isfinite(weights).all() and np.isfinite(getattr(model, "intercept_", 0.0)).all()):
        msg = f"the coefficients of this {type(model).__name__} are not finite: no bound is known. Fit it again"
        raise WrongType(msg)


def _network(module: Any, *, is_probability: bool) -> float:
    check_unchanged(module)
    rounded = [each.dtype for each in module.parameters() if each.dtype.itemsize < np.dtype(np.float32).itemsize]
    if rounded:
        msg = (
            f"the network computes in {rounded[0]}, whose rounding may make it steeper than its weights say: no bound"
            " is known. Use module.float(), or give your own gradient_bound"
        )
        raise WrongType(msg)
    bound = _bound(module, is_probability=is_probability)
    if not isfinite(bound):
        msg = "the network's bound is not finite: a layer divides by zero, or weights are too large. Check its layers"
        raise WrongType(msg)
    return bound


def check_unchanged(module: Any) -> None:
    """Refuse a network that computes something else than its layers say, or whose weights are no numbers.

    In training mode it does so, too: dropout and batch norm then depend on chance or on the rest of a batch.
    """
    check_ready(sys.modules["torch"], module)
    _check_hooks(module)
    replaced = [type(part).__name__ for part in module.modules() if "forward" in vars(part)]
    if replaced:
        msg = (
            f"the network has a {replaced[0]} whose forward was replaced, and may compute anything;"
            " give your own gradient_bound"
        )
        raise WrongType(msg)
    _check_finite(module)


def _check_hooks(module: Any) -> None:
    """Refuse hooks, of its own or of all modules: they may change outputs, or gradients."""
    hooked = [type(part).__name__ for part in module.modules() if any(getattr(part, each, None) for each in HOOKS)]
    everywhere = sys.modules["torch.nn.modules.module"]
    if any(getattr(everywhere, f"_global{each}", None) for each in HOOKS):
        hooked.append("module of any kind")
    if hooked:
        msg = f"the network has hooks (on a {hooked[0]}) that may change what it computes; give your own gradient_bound"
        raise WrongType(msg)


def _check_finite(module: Any) -> None:
    """Refuse weights and statistics that are no numbers to bound."""
    for name, each in (*module.named_parameters(), *module.named_buffers()):
        if not bool(each.detach().isfinite().all()):
            msg = f"the network's {name} holds numbers that are not finite: no bound is known. Train it again"
            raise WrongType(msg)


def _bound(module: Any, *, is_probability: bool) -> float:
    """Product of what each layer lengthens a vector by; one output sees less of the last."""
    layers = layers_of(module)
    if not any(is_torchs(layer, "Linear") for layer in layers):
        for layer in layers:
            slope_of(layer, 1.0)  # one that is not known may hold what seems to be missing: it is named instead
        msg = "the network has no linear layer to bound"
        raise WrongType(msg)
    finest = min(float(np.finfo(str(each.dtype).removeprefix("torch.")).eps) for each in module.parameters())
    bound = 1.0
    for layer in layers[:-1]:
        bound *= slope_of(layer, finest)
    last = layers[-1]
    if is_torchs(last, "Linear"):
        weights = last.weight.detach().cpu().double().numpy()
        if is_probability:
            return bound * (SIGMOID if len(weights) == 1 else SOFTMAX) * float(np.linalg.norm(weights, ord=2))
        return bound * float(np.linalg.norm(weights, axis=1).max())  # one output sees one row of the last layer
    if is_probability:  # whether a sigmoid or a softmax comes on top: a softmax of several is the steeper one
        return bound * slope_of(last, finest) * SOFTMAX
    slope = slope_of(last, finest)
    return bound * (SOFTMAX if is_torchs(last, "Softmax") else slope)


def layers_of(module: Any) -> list[Any]:
    """The layers of nested Sequentials in order; anything else is a layer of its own."""
    if is_torchs(module, "Sequential"):
        return [layer for part in module for layer in layers_of(part)]
    return [module]


def is_torchs(layer: Any, kind: str) -> bool:
    """Whether a layer is torch's own of that name; a class of the same name may do anything."""
    return type(layer).__name__ == kind and type(layer).__module__.startswith("torch.nn.modules")


def slope_of(layer: Any, epsilon: float) -> float:
    """Largest factor by which a layer can lengthen a vector, in numbers of relative spacing `epsilon`."""
    kind = type(layer).__name__
    home = type(layer).__module__
    if not home.startswith("torch.nn.modules"):
        msg = f"the network has a {kind} of its own making, whose slope is not known; give your own gradient_bound"
        raise WrongType(msg)
    if kind == "Linear":
        return float(np.linalg.norm(layer.weight.detach().cpu().double().numpy(), ord=2))
    if kind == "BatchNorm1d":
        if layer.running_var is None:
            msg = "a BatchNorm1d without running statistics depends on the whole batch; it has no gradient bound"
            raise WrongType(msg)
        return _batch_norm_slope(layer)
    if kind == "Softplus":
        return _softplus_slope(float(layer.beta), float(layer.threshold), epsilon)
    if kind == "CELU":
        return _celu_slope(float(layer.alpha))
    if kind == "ELU":
        return max(1.0, abs(float(layer.alpha)))
    if kind == "LeakyReLU":
        return max(1.0, abs(float(layer.negative_slope)))
    if kind == "Softmax" and layer.dim not in (None, 1, -1):
        msg = f"a Softmax over dimension {layer.dim} mixes rows, so that none has an output of its own; use dim=1"
        raise WrongType(msg)
    if kind == "Softmax":
        return 0.5  # of all outputs together
    if kind == "Flatten" and layer.start_dim != 1:
        msg = f"a Flatten from dimension {layer.start_dim} on may mix rows; use start_dim=1"
        raise WrongType(msg)
    if kind in SLOPES:
        return SLOPES[kind]
    msg = f"the largest slope of a {kind} layer is not known; give your own gradient_bound"
    raise WrongType(msg)


def _softplus_slope(beta: float, threshold: float, epsilon: float) -> float:
    """A sigmoid, and 1 where beta·x exceeds the threshold: there it jumps by ln(1 + exp(−threshold))/beta.

    Its value there is threshold/beta, whose rounding hides jumps that are smaller.
    """
    is_lost = threshold > 0 and log1p(exp(-threshold)) <= epsilon * threshold / ROUNDED_SHARE
    if not isfinite(beta) or beta == 0 or not is_lost:
        enough = 20 if epsilon > np.finfo(np.float64).eps else 40
        msg = (
            f"a Softplus with beta={beta:g} and threshold={threshold:g} jumps where it becomes a line, so that no bound"
            f" on its gradient bounds its explanations. Raise the threshold: nn.Softplus(beta, threshold={enough}) is"
            f" enough for numbers of {'float32' if enough == 20 else 'float64'}"
        )
        raise WrongType(msg)
    return 1.0


def _batch_norm_slope(layer: Any) -> float:
    """Largest gain over standard deviation; infinite, or no number, where there is nothing to divide by."""
    gain = 1.0 if layer.weight is None else layer.weight.detach().abs().cpu().double().numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = gain / np.sqrt(layer.running_var.cpu().double().numpy() + layer.eps)
    return float(np.max(slopes))


def _celu_slope(alpha: float) -> float:
    """exp(x/alpha) for negative x, which is at most 1 if alpha is positive."""
    if alpha <= 0:
        msg = f"a CELU with alpha={alpha:g} grows without bound for negative inputs; give alpha > 0"
        raise WrongType(msg)
    return 1.0
