"""The methods of the paper's related work, each from its own package, asked the same question as ours.

An answer depends on its row and its seed alone: methods that draw are seeded anew for every row, so that a row and its
neighbours are explained from the same draws in every package, as they are in ours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from .._core.optional import require
from .._core.types import Array
from .._core.version import __version__
from ..draws.designs import DESIGNS
from ..draws.rotation import pilot_size
from ..explain import explain
from ..models.torch import TorchModel
from ..sampling.defaults import choose_design, choose_method

BACKGROUND = 50
"""Training rows that stand for a feature that is left out; both kinds of SHAP use the same ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What every method is asked: which features drive the probability of one class at a row."""

    model: TorchModel
    x_train: Array
    background: Array
    target: int
    sigma: float
    feature_names: tuple[str, ...]
    n_samples: int

    def probability(self, points: Array) -> Array:
        """Of the class (n,) at points (n, d), as float64."""
        return np.asarray(self.model.values(points)[:, self.target], dtype=np.float64)

    def probability_of_tensor(self, points: Any) -> Any:
        """Of the class (n,) as a tensor that gradients flow through."""
        out = self.model.forward(points)
        return out if out.ndim == 1 else out[:, self.target]

    def tensor(self, array: Array) -> Any:
        """Rows as the network takes them, ready for gradients: captum warns where it has to see to that itself."""
        tensor = self.model.torch.as_tensor(array, dtype=self.model.tensor_dtype, device=self.model.device)
        return tensor.detach().clone().requires_grad_(True)


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A way to answer, what it was set to, and whether answers are slopes or contributions."""

    name: str
    settings: str
    kind: str
    attribute: Callable[[Array, int], Array]
    """Rows (r, d) and a seed to attributions (r, d)"""


@dataclass(slots=True, eq=False)
class Counted:
    """A module that counts the points it is asked about."""

    module: Any
    points: int = 0

    def __call__(self, points: Any) -> Any:
        """What the module says."""
        self.points += len(points)
        return self.module(points)


def pose(
    model: TorchModel,
    x_train: Array,
    *,
    target: int,
    sigma: float,
    feature_names: tuple[str, ...],
    n_samples: int,
    seed: int,
) -> tuple[Question, Counted]:
    """The question, with a background drawn from the training rows, and the count of what answering it takes."""
    counted = Counted(model.module)
    source = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4,)))
    chosen = source.choice(len(x_train), size=min(BACKGROUND, len(x_train)), replace=False)
    question = Question(
        replace(model, module=counted), x_train, x_train[np.sort(chosen)], target, sigma, feature_names, n_samples
    )
    return question, counted


def everyone(question: Question) -> tuple[Method, ...]:
    """Every method, the oldest idea first and ours last."""
    return (
        gradient(question),
        integrated_gradients(question),
        gradient_shap(question),
        kernel_shap(question),
        lime(question),
        ours(question, "smoothgrad", "SmoothGrad"),
        ours(question, "clime", "C-LIME"),
    )


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Global random states of numpy and torch start from `seed` inside, and are what they were afterwards.

    shap and captum take no seed: shap's coalitions, and the baselines and the places on the way to them in captum's
    GradientShap, come from numpy's global state, captum's noise from torch's.
    """
    torch = require("torch", extra="torch", to="compare with other libraries")
    before = np.random.get_state()  # noqa: NPY002  # the state that shap and captum draw from
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        try:
            np.random.seed(_short(seed))  # noqa: NPY002
            torch.manual_seed(_short(seed))
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


def gradient(question: Question) -> Method:
    """Gradient of the probability at the row."""
    saliency = _captum().Saliency(question.probability_of_tensor)

    def attribute(rows: Array, seed: int) -> Array:
        return _array(saliency.attribute(question.tensor(rows), abs=False))

    return Method("gradient", f"captum {version('captum')}: Saliency(abs=False)", "slope", attribute)


def integrated_gradients(question: Question) -> Method:
    """Mean gradient on the way from the training mean to the row, times that way."""
    integrated = _captum().IntegratedGradients(question.probability_of_tensor)

    def attribute(rows: Array, seed: int) -> Array:
        return _array(integrated.attribute(question.tensor(rows), baselines=0.0, n_steps=50))

    settings = (
        f"captum {version('captum')}: IntegratedGradients(n_steps=50, method='gausslegendre'), baseline zero, the"
        " training mean of normalised features"
    )
    return Method("integrated gradients", settings, "contribution", attribute)


def gradient_shap(question: Question) -> Method:
    """Expected gradients: the same, from random training rows and at random places on the way."""
    expected = _captum().GradientShap(question.probability_of_tensor)

    def attribute(rows: Array, seed: int) -> Array:
        found = []
        for row in rows:  # one at a time, so that a row's draws do not depend on the rows beside it
            with global_seed(seed):
                baselines = question.tensor(question.background)
                found.append(
                    expected.attribute(question.tensor(row[None]), baselines=baselines, n_samples=question.n_samples)
                )
        return np.concatenate([_array(each) for each in found])

    settings = (
        f"captum {version('captum')}: GradientShap(n_samples={question.n_samples}, stdevs=0), baselines drawn from"
        f" {len(question.background)} training rows; seeds numpy's and torch's global state for the call"
    )
    return Method("gradient SHAP", settings, "contribution", attribute)


def kernel_shap(question: Question) -> Method:
    """Shapley values by weighted least squares over coalitions of features."""
    explainer = _shap().KernelExplainer(question.probability, question.background)

    def attribute(rows: Array, seed: int) -> Array:
        found = []
        for row in rows:
            with global_seed(seed):
                found.append(explainer.shap_values(row, nsamples=question.n_samples, l1_reg=False, silent=True))
        return np.stack(found)

    coalitions = min(question.n_samples, 2 ** len(question.feature_names) - 2)
    settings = (
        f"shap {version('shap')}: KernelExplainer(nsamples={coalitions}{', all there are' * _is_full(question)},"
        f" l1_reg=False), background {len(question.background)} training rows, which are also evaluated once at the"
        " start (not counted); l1_reg=False keeps every feature, where shap's default keeps ten; seeds numpy's global"
        " state for the call"
    )
    return Method("kernel SHAP", settings, "contribution", attribute)


def lime(question: Question) -> Method:
    """Weights of the quartile bins that the row lies in, by ridge regression under a kernel."""
    source = np.random.RandomState(0)  # lime knows no other kind; this one is ours, seeded before every use
    explainer = _lime().LimeTabularExplainer(
        question.x_train, feature_names=list(question.feature_names), discretize_continuous=True, random_state=source
    )

    def both_classes(points: Array) -> Array:
        wanted = question.probability(points)
        return np.column_stack([1 - wanted, wanted])

    def attribute(rows: Array, seed: int) -> Array:
        found = np.zeros(rows.shape)
        for row, weights in zip(rows, found, strict=True):
            source.seed(_short(seed))
            answer = explainer.explain_instance(
                row, both_classes, labels=(1,), num_features=len(row), num_samples=question.n_samples
            )
            for feature, weight in answer.as_map()[1]:
                weights[feature] = weight
        return found

    settings = (
        f"lime {version('lime')}: LimeTabularExplainer(discretize_continuous=True) in quartiles, kernel width 0.75·√d,"
        f" num_samples={question.n_samples}, num_features={len(question.feature_names)}; a random state of its own"
    )
    return Method("LIME", settings, "contribution", attribute)


def ours(question: Question, method: str, name: str) -> Method:
    """Slopes of the smoothed probability, from gradients or from values."""

    def attribute(rows: Array, seed: int) -> Array:
        return explain(
            question.model, rows, method=method, sigma=question.sigma, target=question.target,
            n_samples=question.n_samples, seed=seed, progress=False,
        ).values  # fmt: skip

    d = len(question.feature_names)
    estimator = choose_method(method, has_gradients=True, d=d)
    design = choose_design("auto", estimator, d=d, n=question.n_samples)
    size = pilot_size(estimator.needs, d, question.n_samples)
    pilot = f" and a pilot of {size} points" if DESIGNS[design].is_aligned else ""
    settings = (
        f"smoothlime {__version__}: method={method!r}, sigma={question.sigma:g}, n_samples={question.n_samples} rounded"
        f" up to whole blocks, design {design!r} (the default here), draws shared between rows; f(x) is evaluated"
        f" twice more{pilot}"
    )
    return Method(name, settings, "slope", attribute)


def _short(seed: int) -> int:
    """Old random states take 32 bits; ours take any seed, and so must a run that asks both."""
    return seed % 2**32


def _is_full(question: Question) -> bool:
    return question.n_samples >= 2 ** len(question.feature_names) - 2


def check_installed() -> None:
    """Say at once what is missing, before the long part of a run."""
    for library in (_captum, _shap, _lime):
        library()


def _captum() -> Any:
    return require("captum.attr", extra="peers", to="compare with gradient methods")


def _shap() -> Any:
    with warnings.catch_warnings():  # shap 0.51 sets colours in a way that matplotlib means to retire
        warnings.filterwarnings("ignore", message="The set_bad|The set_over|The set_under")
        return require("shap", extra="peers", to="compare with kernel SHAP")


def _lime() -> Any:
    return require("lime.lime_tabular", extra="peers", to="compare with LIME")


def _array(tensor: Any) -> Array:
    return tensor.detach().cpu().double().numpy()
