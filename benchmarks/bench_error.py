"""How far off is an explanation after so many model evaluations? Ours by default, against plain draws and others.

Networks shaped like the paper's and a larger one, boosted trees, a forest, and two functions made to be hard; σ² =
0.01, 0.1 and 1. For each number of evaluations, all of ours charged, the error is ‖ŵ − w‖ / ‖w‖: its root mean square
over seeds, then the median over rows, which have draws of their own. From this follow the evaluations that 10%, 3% and
1% take: between two measured numbers on a straight line in logarithms, beyond the last at n^(-1/2), which is exact for
independent draws and cautious for others; such numbers are marked.

Contestants: ours with every choice left to `explain`; the textbook methods, SmoothGrad and C-LIME from independent
draws (`design="iid"`); on one network also captum and lime, at the settings in `rivals.py`. Both draw independently and
compute the textbook estimates, so that elsewhere the textbook column stands for them: the ratio of errors on that
network, with three times the seeds, shows whether this is fair. Trees are exact for us unless draws are asked for;
their other lines here show what draws would do.

Last, the worst case: by how much ours may be worse than independent draws at 256 evaluations or more, with many more
seeds on the hard functions. Those are measured with 64 draws, too, and with 2,048: `goals.py` asks for both.

    python benchmarks/bench_error.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import rivals
import tables
import torch
import workloads
from tables import OURS, TARGETS, TEXTBOOK
from workloads import TARGET, VARIANCES, Workload

import smoothlime as sl
from smoothlime.benchmarking.benchmark import crossing
from smoothlime.errors import TooFewDraws

DRAWS = (16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096)
SEEDS = 16
RIVAL_DRAWS, RIVAL_SEEDS = (64, 256, 1_024), 48
RIVALS_ON = ("15-10-10-2", 0.1)
WORST_DRAWS, WORST_SEEDS = (64, 256, 1_024, 2_048), 100
RESAMPLES = 400

Runs = Callable[[int, int], tuple[np.ndarray, int, str]]
"""Draws and a seed to slopes (r, d), the evaluations per row, and the design."""


@dataclass(frozen=True, eq=False)
class Contestant:
    """Who estimates, from what, and how."""

    who: str
    kind: str
    runs: Runs


@dataclass(frozen=True, eq=False)
class Errors:
    """Squared relative errors (seeds, rows) of one contestant at one number of draws."""

    who: str
    kind: str
    draws: int
    evaluations: int
    design: str
    squared: np.ndarray

    @property
    def by_row(self) -> np.ndarray:
        """Root mean square over seeds, (r,)."""
        return np.sqrt(self.squared.mean(axis=0))

    @property
    def middle(self) -> float:
        """The median over rows."""
        return float(np.median(self.by_row))


def ours(workload: Workload, variance: float, **settings: Any) -> Callable[[Any], Runs]:
    """Runs of `explain` on one of the workload's models."""

    def on(model: Any) -> Runs:
        def run(draws: int, seed: int) -> tuple[np.ndarray, int, str]:
            e = sl.explain(
                model, workload.rows, sigma=variance**0.5, n_samples=draws, seed=seed, draws="independent",
                progress=False, **(workload.arguments or {}), **settings,
            )  # fmt: skip
            return e.values, int(np.ceil(e.n_evaluations.mean())), f"{e.method}, {e.design}"

        return run

    return on


def contestants(workload: Workload, variance: float) -> list[Contestant]:
    """Ours and the textbook, from gradients and from predictions where the model has them."""
    default, clime = ours(workload, variance), ours(workload, variance, method="clime")
    found = textbook(workload, variance)
    if workload.with_gradients is not None:
        found.append(Contestant(OURS, "gradients", default(workload.with_gradients)))
    if workload.with_values is not None:
        found.append(Contestant(OURS, "values", default(workload.with_values)))
        found.append(Contestant("smoothlime clime", "values", clime(workload.with_values)))
    return found


def textbook(workload: Workload, variance: float) -> list[Contestant]:
    """SmoothGrad and C-LIME from independent draws."""
    asked = (("gradients", "smoothgrad", workload.with_gradients), ("values", "clime", workload.with_values))
    return [
        Contestant(TEXTBOOK[kind], kind, ours(workload, variance, method=method, design="iid")(model))
        for kind, method, model in asked
        if model is not None
    ]


def exactly(workload: Workload, variance: float) -> dict[str, Any]:
    """What `explain` does with trees when nothing is asked of it."""
    e = sl.explain(
        workload.with_values, workload.rows, sigma=variance**0.5, progress=False, **(workload.arguments or {})
    )
    assert e.is_exact
    return {
        "what": "exact", "workload": workload.name, "d": workload.rows.shape[1], "variance": variance,
        "rows": len(workload.rows), "from": "trees", "who": OURS, "evaluations": int(np.ceil(e.n_evaluations.mean())),
        "error": 0.0, "radius": float(e.radius.max()),
    }  # fmt: skip


def others(workload: Workload, variance: float) -> list[Contestant]:
    """captum and lime, at settings that make them ask our question."""
    sigma, d = variance**0.5, workload.rows.shape[1]
    asked = {
        ("captum", "gradients"): rivals.captum(workload.module, TARGET, sigma),
        ("lime", "values"): rivals.lime(rivals.predictions(workload.module), TARGET, sigma, d),
    }

    def runs(attribute: rivals.Attribute) -> Runs:
        return lambda draws, seed: (attribute(workload.rows, draws, seed), draws, "its own")

    return [Contestant(who, kind, runs(attribute)) for (who, kind), attribute in asked.items()]


def measure(
    workload: Workload, variance: float, field: list[Contestant], counts: Iterable[int], seeds: int
) -> list[Errors]:
    """Errors of everyone at every number of draws; a method that finds a number too small is left out there."""
    truth = workload.truth(variance).slopes
    length = (truth**2).sum(axis=1)
    found = []
    for each in field:
        for draws in counts:
            squared = []
            try:
                for seed in range(1, seeds + 1):
                    slopes, evaluations, design = each.runs(draws, seed)
                    squared.append(((slopes - truth) ** 2).sum(axis=1) / length)
            except TooFewDraws:
                continue
            found.append(Errors(each.who, each.kind, draws, evaluations, design, np.stack(squared)))
    return found


def evaluations_to(curve: list[Errors], target: float) -> tuple[float, str]:
    """Evaluations at which the error falls to the target, and whether this was measured, 'below' or 'beyond' it."""
    at, error = [each.evaluations for each in curve], [each.middle for each in curve]
    found = crossing(at, error, target)
    if found is not None:
        return found, "below" if error[0] <= target else "measured"
    constant = np.exp(np.mean(np.log(np.array(error[-3:]) * np.sqrt(at[-3:]))))
    return float(max(at[-1], (constant / target) ** 2)), "beyond"


def ratio(one: Errors, other: Errors, rng: np.random.Generator) -> tuple[float, float]:
    """Error of one over that of another, the median over rows, and its standard error by resampling seeds."""

    def middle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.median(np.sqrt(a / b), axis=-1)

    picks = [rng.integers(len(each.squared), size=(RESAMPLES, len(each.squared))) for each in (one, other)]
    again = [each.squared[pick].mean(axis=1) for each, pick in zip((one, other), picks, strict=True)]
    value = middle(one.squared.mean(axis=0), other.squared.mean(axis=0))
    return float(value), float(middle(*again).std())


def records_of(workload: Workload, variance: float, found: list[Errors]) -> list[dict[str, Any]]:
    """Errors, evaluations to each target, and ratios to the textbook, as plain data."""
    truth = workload.truth(variance)
    about = {"workload": workload.name, "d": workload.rows.shape[1], "variance": variance, "rows": len(workload.rows)}
    rng = np.random.default_rng(workloads.SEED)
    records: list[dict[str, Any]] = []
    for each in found:
        low, high = np.quantile(each.by_row, (0.25, 0.75))
        records.append(
            {
                "what": "error", **about, "from": each.kind, "who": each.who, "design": each.design,
                "draws": each.draws, "evaluations": each.evaluations, "error": each.middle, "quartiles": [low, high],
                "seeds": len(each.squared), "truth": truth.how, "truth_error": truth.relative_error,
            }
        )  # fmt: skip
        plain = [e for e in found if (e.who, e.draws) == (TEXTBOOK[each.kind], each.draws)]
        if plain and each.who != TEXTBOOK[each.kind]:
            value, error = ratio(each, plain[0], rng)
            records.append(
                {
                    "what": "ratio", **about, "from": each.kind, "who": each.who, "draws": each.draws,
                    "evaluations": each.evaluations, "to": plain[0].who, "ratio": value, "standard_error": error,
                    "seeds": len(each.squared),
                }
            )  # fmt: skip
    for kind in ("gradients", "values"):
        for who in dict.fromkeys(each.who for each in found if each.kind == kind):
            curve = [each for each in found if (each.who, each.kind) == (who, kind)]
            for target in TARGETS if len(curve) > 3 else ():
                needed, how = evaluations_to(curve, target)
                records.append(
                    {"what": "evaluations", **about, "from": kind, "who": who, "target": target, "needed": needed,
                     "how": how}
                )  # fmt: skip
    return records


def shown(records: list[dict[str, Any]]) -> str:
    """Three tables: evaluations to each error, captum and lime against the textbook, and the worst cases."""
    return "\n\n".join([tables.error_long(records), tables.peers(records), tables.worst(records)])


def main() -> None:
    quick = is_quick(__doc__ or "", "two networks, small trees, σ² = 0.1, four seeds, up to 256 draws")
    torch.set_num_threads(1)
    counts, seeds = (DRAWS[:5], 4) if quick else (DRAWS, SEEDS)
    variances = (RIVALS_ON[1],) if quick else VARIANCES
    records = []
    for workload in [*workloads.networks(quick), *workloads.trees(quick)]:
        print(workload.name, file=sys.stderr)
        for variance in variances:
            found = measure(workload, variance, contestants(workload, variance), counts, seeds)
            records += records_of(workload, variance, found)
            if (workload.name, variance) == RIVALS_ON:
                field = [*textbook(workload, variance), *others(workload, variance)]
                found = measure(workload, variance, field, RIVAL_DRAWS, 4 if quick else RIVAL_SEEDS)
                records += [each for each in records_of(workload, variance, found) if each["who"] in rivals.SETTINGS]
            if workload.is_tree:
                records.append(exactly(workload, variance))
    for workload in workloads.hard_functions():
        for variance in variances:
            field = contestants(workload, variance)
            found = measure(workload, variance, field, WORST_DRAWS, 8 if quick else WORST_SEEDS)
            # these numbers of draws are too far apart to tell the evaluations to an error
            records += [each for each in records_of(workload, variance, found) if each["what"] != "evaluations"]
    facts = machine("torch", "captum", "lime", "scikit-learn", "xgboost-cpu") | {"seed": workloads.SEED}
    publish("error", records, facts, shown(records), quick=quick)


if __name__ == "__main__":
    main()
