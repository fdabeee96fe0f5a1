"""Results of statsmodels, of arrays or of a formula: what their predict returns. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import InvalidArgument, WrongType
from .fitted import attribute, kinds_of
from .protocol import as_columns

RESULTS = {"statsmodels.ResultsWrapper", "statsmodels.Results"}

PROBABILITIES = {"Logit", "Probit", "MNLogit", "OrderedModel", "ConditionalLogit"}
"""Models that predict probabilities; so do generalised linear ones of the binomial family."""

LINEAR_PREDICTORS = {"GLM", "Logit", "Probit", "Poisson", "NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson"}
"""Models whose predict can return the sum before the curve."""


@dataclass(frozen=True, slots=True)
class StatsmodelsModel:
    """Results of a fit; points are columns as the model was given them, or the frame that its formula reads."""

    results: Any
    outputs: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    output_range: tuple[float, float] | None
    is_margin: bool
    constants: tuple[int, ...]
    """Positions of columns of ones, which are not perturbed"""
    n_features: int | None

    is_pure: ClassVar[bool] = True

    @property
    def hint(self) -> str:
        """What may help where it raises an error: counts with too many zeros have two tables of columns."""
        if not type(self.results.model).__name__.startswith("ZeroInflated"):
            return ""
        how = "lambda a: results.predict(a, exog_infl=np.ones((len(a), 1)))"
        return f" (columns beside the first, exog_infl, are held in a function of points: {how})"

    @property
    def wants_table(self) -> bool:
        """Whether a formula reads the columns by their names."""
        return has_formula(self.results)

    @property
    def takes(self) -> str:
        """A formula reads data frames only."""
        return "table" if self.wants_table else ""

    def values(self, points: Any) -> Any:
        """Outputs at each point, (n, k)."""
        if hasattr(points, "to_pandas"):  # what formulas are read by knows no other frames for certain
            points = points.to_pandas()
        how = {"which": "linear"} if self.is_margin else {}
        return as_columns(np.asarray(self.results.predict(points, **how), dtype=np.float64), len(points))


def has_formula(results: Any) -> bool:
    """Whether the model was given as a formula."""
    return attribute(results.model, "formula") is not None


def from_statsmodels(
    results: Any, *, output: str | None, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...]
) -> StatsmodelsModel:
    """Adapter for results of a fit."""
    _check_results(results)
    model, by_formula = results.model, has_formula(results)
    kind = type(model).__name__
    if output == "margin" and kind not in LINEAR_PREDICTORS:
        msg = f"output='margin' needs the sum before a curve, which a {kind} has not; leave output out"
        raise InvalidArgument(msg, argument="output")
    is_binomial = type(attribute(model, "family")).__name__ == "Binomial"
    is_probability = output != "margin" and (kind in PROBABILITIES or is_binomial)
    columns = None if by_formula else _columns(model)
    at = attribute(model.data, "const_idx")
    return StatsmodelsModel(
        results=results,
        outputs=outputs or _outputs(model),
        feature_names=feature_names or columns,
        output_range=(0.0, 1.0) if is_probability else None,
        is_margin=output == "margin",
        constants=() if by_formula or at is None else (int(at),),
        n_features=None if columns is None else len(columns),
    )


def _check_results(obj: Any) -> None:
    """Refuse a model that is not fitted, and forecasts, which are no function of rows."""
    name = type(obj).__name__
    if not RESULTS.intersection(kinds_of(obj)):
        way = "it is not fitted; give the results of its fit(): explain(model.fit(), X)"
        msg = f"model is a {name} of statsmodels: {way}" if hasattr(obj, "fit") else f"model is a {name} of statsmodels"
        raise WrongType(msg)
    if any(".tsa." in cls.__module__ for cls in type(attribute(obj, "model")).__mro__):
        msg = (
            f"model is a {name} of statsmodels, which forecasts from its own past: no function of rows. Explain a"
            " regression on lagged columns, or a function of points that makes the forecast"
        )
        raise WrongType(msg)
    if "statsmodels.PHRegResults" in kinds_of(obj):
        msg = (
            f"model is a {name} of statsmodels, whose predict returns more than numbers; give a function of points:"
            " lambda a: results.predict(a).predicted_values"
        )
        raise WrongType(msg)
    if not hasattr(obj, "predict") or attribute(obj, "model") is None:
        msg = f"model is a {name} of statsmodels, which does not predict"
        raise WrongType(msg)


def _columns(model: Any) -> tuple[str, ...]:
    """Names of the columns; of an array statsmodels makes them up: const, x1, x2."""
    if model.exog_names is None:
        msg = (
            "the results of statsmodels have lost their data, and with it the names of columns (remove_data). Give a"
            " function of points: lambda a: results.predict(a)"
        )
        raise WrongType(msg)
    names = [str(each) for each in model.exog_names]
    exog = attribute(model, "exog")
    return tuple(names if exog is None else names[: np.shape(exog)[1]])


def _outputs(model: Any) -> tuple[str, ...]:
    """Names of the classes of several, else of what is predicted."""
    classes = attribute(model, "_ynames_map")
    if classes and int(attribute(model, "J") or 0) > 2:
        return tuple(str(classes[j]) for j in sorted(classes))
    if type(model).__name__ == "OrderedModel":
        return tuple(str(each) for each in model.labels)
    name = attribute(model, "endog_names")
    return (name,) if isinstance(name, str) else ()
