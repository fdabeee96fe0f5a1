"""The paper's related work beside SmoothGrad and C-LIME: on the same rows, how far apart, how steady, at what cost.

Gradient methods give slopes; integrated gradients, SHAP and LIME give contributions, which carry a factor of about
x − baseline. They answer different questions and need not agree. They are compared by what remains when units are
taken away: the ranks of |attribution|, and the attribution scaled to L1 norm one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array
from .._core.validate import check_count, check_names, check_number, check_rows
from ..errors import InvalidArgument, WrongType
from ..models.torch import TorchModel
from .curves import NEIGHBOURS, SPREAD
from .peers import Counted, Method, everyone, pose

NOTES = (
    "Slopes (gradient, SmoothGrad, C-LIME) and contributions (integrated gradients, SHAP, LIME) answer different"
    " questions: a contribution carries a factor of about x − baseline, and so its sign. That the two kinds differ is"
    " no error of either.",
    "Compared without units: the rank of |attribution|, and the attribution scaled to L1 norm 1, whose distances lie"
    " between 0 and 2.",
    "Agreement is that of the first seed's answers. Rows and neighbours are explained from the same seed, so robustness"
    " shows how a method moves with its row; stability shows how it moves with its draws.",
    "Background rows of SHAP and the training data of LIME are the same for every seed.",
    "Evaluations are points the network was asked about per explanation; one forward and backward pass through a point"
    " counts as one.",
    "Seconds are wall clock per explanation after one to warm up; gradient, integrated gradients and ours explain all"
    " rows in one call, the others one row at a time.",
    "Neighbours move every feature. A feature with few values then lies between them, in a bin of LIME that may hold no"
    " training row: its weight rests on one point, and LIME's robustness on such data says more about the bins than"
    " about the network.",
    "Rows whose attribution is zero in every feature have no shape; they are left out, and counted in flat_rows.",
)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What one method said, and what it took."""

    by_seed: Array
    """(s, r, d) of the rows"""
    nearby: Array
    """(r, m, d) of their neighbours, from the first seed"""
    evaluations: float
    seconds: float


def side_by_side(
    model: Any,
    x_train: Any,
    rows: Any,
    *,
    target: int,
    sigma: float,
    feature_names: Sequence[str] | None,
    seeds: int,
    n_samples: int,
    neighbours: int = NEIGHBOURS,
    spread: float = SPREAD,
    seed: int = 0,
    progress: Any = False,
) -> dict[str, Any]:
    """Agreement, stability, robustness and cost of seven methods, as plain data.

    Parameters
    ----------
    model
        A torch network as `as_model(network, output="probability")`.
    x_train
        Normalised training rows: background of SHAP, bins of LIME; their mean, zero, is the baseline of integrated
        gradients.
    rows
        At least two rows (r, d), normalised likewise.
    target
        Position of the class whose probability is explained.
    sigma
        Standard deviation of our neighbourhoods; the other packages have no use for it.
    seeds
        Answers per row, at least two, from `seed`, `seed + 1`, ...
    n_samples
        Draws of ours, of GradientShap and of LIME, coalitions of KernelSHAP: each of those asks about every
        background row.
    neighbours, spread
        Of each row: N(x, spread²·I).

    Returns
    -------
    Lists run over `methods`, and matrices over pairs of them. `agreement_rank`: Spearman correlation of |attribution|.
    `agreement_l1`: L1 distance of unit-L1 attributions. `stability`: their standard deviation over seeds, summed over
    features. `top1_changes`: share of pairs of seeds that name another top feature. `robustness`: largest L1 distance
    to a neighbour. All are means over rows, with standard errors in `..._se`; None where no row has an answer.
    """
    x, train, names = _checked(model, x_train, rows, feature_names)
    count, near = check_count(seeds, "seeds", at_least=2), check_count(neighbours, "neighbours")
    first, width = check_count(seed, "seed", at_least=0), check_number(sigma, "sigma")
    question, counted = pose(
        model, train, target=_output(model, x, target), sigma=width, feature_names=names,
        n_samples=check_count(n_samples, "n_samples"), seed=first,
    )  # fmt: skip
    around = _neighbours(x, near, check_number(spread, "spread"), first)
    methods = everyone(question)
    with Progress(progress, len(methods) * len(x) * (count + near)) as bar:
        answers = [ask(method, x, around, counted, range(first, first + count), bar) for method in methods]
    return {
        "methods": [method.name for method in methods],
        "kinds": [method.kind for method in methods],
        **measures(answers),
        "evaluations": [each.evaluations for each in answers],
        "seconds": [each.seconds for each in answers],
        "settings": {method.name: f"{method.settings}; {len(x)} rows" for method in methods},
        "notes": list(NOTES),
        "rows": len(x),
        "seeds": count,
        "neighbours": near,
        "spread": float(spread),
        "sigma": width,
        "n_samples": question.n_samples,
        "features": list(names),
    }


def ask(method: Method, rows: Array, around: Array, counted: Counted, seeds: range, bar: Progress) -> Answers:
    """Answers of one method for every seed, and from the first for neighbours (r, m, d)."""
    method.attribute(rows[:1], seeds[0])  # compilers and caches warm up outside the clock
    counted.points, started = 0, time.perf_counter()
    by_seed = []
    for each in seeds:
        by_seed.append(method.attribute(rows, each))
        bar.advance(len(rows))
    nearby = []
    for k in range(around.shape[1]):
        nearby.append(method.attribute(around[:, k], seeds[0]))
        bar.advance(len(rows))
    explanations = len(rows) * (len(by_seed) + len(nearby))
    seconds = time.perf_counter() - started
    return Answers(np.stack(by_seed), np.stack(nearby, axis=1), counted.points / explanations, seconds / explanations)


def measures(answers: Sequence[Answers]) -> dict[str, Any]:
    """Every measure with its standard error over rows, by name; undefined numbers as None."""
    first = np.stack([each.by_seed[0] for each in answers])
    shapes = unit_l1(first)
    steady, changes, moved = zip(*(_of_one_method(each) for each in answers), strict=True)
    by_row = {
        "agreement_rank": rank_correlations(np.abs(first)),
        "agreement_l1": np.abs(shapes[:, None] - shapes[None, :]).sum(axis=3),
        "stability": np.stack(steady),
        "top1_changes": np.stack(changes),
        "robustness": np.stack(moved),
    }
    found: dict[str, Any] = {}
    for name, values in by_row.items():
        mean, error = _over_rows(values)
        found |= {name: _plain(mean), f"{name}_se": _plain(error)}
    return found | {"flat_rows": np.isnan(shapes[..., 0]).sum(axis=1).tolist()}


def unit_l1(attributions: Array) -> Array:
    """Attributions (..., d) scaled to L1 norm one; NaN where they are zero in every feature."""
    norms = np.abs(attributions).sum(axis=-1, keepdims=True)
    return attributions / np.where(norms > 0, norms, np.nan)


def rank_correlations(sizes: Array) -> Array:
    """Spearman correlations (m, m, r) over the features of sizes (m, r, d); NaN where all are the same."""
    from scipy.stats import rankdata

    ranks = rankdata(sizes, axis=2)
    ranks -= ranks.mean(axis=2, keepdims=True)
    norms = np.sqrt((ranks**2).sum(axis=2, keepdims=True))
    scaled = ranks / np.where(norms > 0, norms, np.nan)
    return np.einsum("ird,jrd->ijr", scaled, scaled)


def _of_one_method(answers: Answers) -> tuple[Array, Array, Array]:
    """Stability, changes of the top feature and robustness of each row, (r,) each."""
    shapes, nearby = unit_l1(answers.by_seed), unit_l1(answers.nearby)
    tops = np.abs(answers.by_seed).argmax(axis=2)
    one, other = np.triu_indices(len(tops), k=1)
    changes = (tops[one] != tops[other]).mean(axis=0)
    return (
        shapes.std(axis=0, ddof=1).sum(axis=1),
        np.where(np.isnan(shapes).any(axis=(0, 2)), np.nan, changes),
        np.abs(nearby - shapes[0][:, None]).sum(axis=2).max(axis=1),
    )


def _over_rows(values: Array) -> tuple[Array, Array]:
    """Mean and standard error over the last axis, of what is defined."""
    is_defined = np.isfinite(values)
    n = is_defined.sum(axis=-1)
    mean = np.where(is_defined, values, 0).sum(axis=-1) / np.where(n > 0, n, np.nan)
    squares = np.where(is_defined, (values - mean[..., None]) ** 2, 0).sum(axis=-1)
    return mean, np.sqrt(squares / np.where(n > 1, n * (n - 1), np.nan))


def _plain(values: Array) -> Any:
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def _neighbours(rows: Array, count: int, spread: float, seed: int) -> Array:
    """(r, m, d); with seed 0, ten of them are those of `curves.robustness`."""
    source = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    return rows[:, None] + spread * source.standard_normal((len(rows), count, rows.shape[1]))


def _checked(
    model: Any, x_train: Any, rows: Any, feature_names: Sequence[str] | None
) -> tuple[Array, Array, tuple[str, ...]]:
    if not isinstance(model, TorchModel):
        msg = f"model must be as_model(network, output='probability') of a torch network; got a {type(model).__name__}"
        raise WrongType(msg)
    if not model.is_probability:
        msg = "model gives raw outputs; the methods are compared on probabilities: as_model(..., output='probability')"
        raise InvalidArgument(msg)
    x, train = check_rows(rows, "rows"), check_rows(x_train, "x_train")
    if len(x) < 2 or x.shape[1] < 2:
        msg = f"rows must hold at least two rows and two features, for standard errors and ranks; got shape {x.shape}"
        raise InvalidArgument(msg)
    if train.shape[1] != x.shape[1]:
        msg = f"x_train has {train.shape[1]} features but rows have {x.shape[1]}"
        raise InvalidArgument(msg)
    return x, train, check_names(feature_names, x.shape[1])


def _output(model: TorchModel, rows: Array, target: int) -> int:
    position, k = check_count(target, "target", at_least=0), model.values(rows[:1]).shape[1]
    if position >= k:
        msg = f"target must be the position of one of the network's outputs, 0 to {k - 1}; got {target!r}"
        raise InvalidArgument(msg)
    return position


def panels(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What `side_by_side` found, as panels to draw: two heatmaps and three charts of bars."""
    return [
        _heatmap(data, "agreement_rank", "Agreement of ranks", "rank correlation of |attribution|", (-1, 1)),
        _heatmap(data, "agreement_l1", "Distance of shapes", "L1 distance of unit-L1 attributions", (0, 2)),
        _bars(data, "stability", "Change with the seed", "L1 standard deviation over seeds"),
        _bars(data, "robustness", "Change with the row", "largest L1 distance to a neighbour"),
        _bars(data, "evaluations", "Cost", "model evaluations per explanation", y_scale="log"),
    ]


def _heatmap(data: dict[str, Any], measure: str, title: str, label: str, limits: tuple[float, float]) -> dict[str, Any]:
    names = list(data["methods"])
    return {
        "kind": "heatmap", "title": title, "rows": names, "columns": names, "values": data[measure], "label": label,
        "low": float(limits[0]), "high": float(limits[1]),
    }  # fmt: skip


def _bars(data: dict[str, Any], measure: str, title: str, y_label: str, *, y_scale: str = "linear") -> dict[str, Any]:
    """Bars reach two standard errors up and down where the measure has any."""
    values, errors = data[measure], data.get(f"{measure}_se")
    low = high = None
    if errors is not None:
        low, high = (
            [None if v is None or e is None else max(0.0, v + side * e) for v, e in zip(values, errors, strict=True)]
            for side in (-2, 2)
        )
    series = {"label": y_label, "values": values, "low": low, "high": high, "role": "a"}
    return {
        "kind": "bars", "title": title, "y_label": y_label, "groups": list(data["methods"]), "series": [series],
        "y_scale": y_scale,
    }  # fmt: skip
