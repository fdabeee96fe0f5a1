"""How often do the 95% intervals of the defaults hold the truth? On the workloads of the error benchmark, row by row.

Networks, trees by draws and the two functions made to be hard; σ² = 0.01, 0.1 and 1; from gradients and from
predictions; 1,024 and 4,096 draws, all else left to `explain`. Rows have draws of their own, and every seed is a new
explanation of all of them.

- coverage: share of the intervals, over seeds, rows and features, that hold the slope;
- worst row: the same over seeds and features for the row where it is least. As the least of twelve noisy numbers it
  lies below what that row would show in the long run; its standard error, from seeds, is in the record;
- bars / errors: root mean square of a row's standard errors over that of its errors, the median over rows; honest
  ones are at 1;
- width: length of an interval over the L2 norm of the row's slopes, the median over seeds, rows and features.

Asked of every line: 93% on average, 90% on the worst row.

The truth of a network is a large run from gradients at turned draws, with an error of its own. How far a run of Sobol'
draws that were not turned is from it, in their standard errors, is in the record (root mean square over a row, then the
median over rows: about 0.7 if all errors of a row go together, and 1 if none do). A row is judged only where the error
of its truth is at most a fifth of the standard errors under test: an honest 95% interval then shows as 94.5%, and as
93% should the truth be two of its standard errors off. Lines whose rows are not all judged say how many are.

    python benchmarks/bench_intervals.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import tables
import torch
import workloads
from workloads import VARIANCES, Truth, Workload

import smoothlime as sl

CONFIDENCE = 0.95
SEEDS = {1_024: 128, 4_096: 64}
"""Seeds at each number of draws."""
MORE = 4
"""Times as many for the hard functions, which cost little: errors of a row's slopes go together there, so that one seed
says hardly more than one slope would. (With 128 of them the worst row showed 92.9% ± 1.2%.)"""
WITNESS_DRAWS, WITNESS_SEED = 2**18, 10_000
"""Gradients, not turned, that the truth of a network is compared with."""
TRUTH_SHARE = 0.2
"""Most that the error of the truth may be, in standard errors under test."""


@dataclass(frozen=True, eq=False)
class Runs:
    """What `explain` said of one workload, seed after seed, less the truth: arrays of (seeds, r, d)."""

    error: np.ndarray
    standard_error: np.ndarray
    half_width: np.ndarray
    choice: str
    """Method and design"""
    evaluations: int

    @property
    def holds(self) -> np.ndarray:
        """Whether each interval holds the truth."""
        return np.abs(self.error) <= self.half_width


def witnessed(workload: Workload, variance: float, quick: bool) -> tuple[Truth, float | None]:
    """The truth, and how far draws that were not turned are from it, in standard errors; None for closed forms."""
    truth = workload.truth(variance)
    if not truth.standard_error.any():
        return truth, None
    e = sl.explain(
        workload.with_gradients, workload.rows, method="smoothgrad", design="sobol",
        n_samples=2**13 if quick else WITNESS_DRAWS, sigma=variance**0.5, seed=WITNESS_SEED, progress=False,
        **(workload.arguments or {}),
    )  # fmt: skip
    error = np.hypot(_length(e.standard_error), _length(truth.standard_error))
    return truth, float(np.median(_length(e.values - truth.slopes) / error))


def _length(of: np.ndarray) -> np.ndarray:
    return np.linalg.norm(of, axis=-1)


def explain(workload: Workload, model: Any, variance: float, truth: np.ndarray, draws: int, seeds: int) -> Runs:
    """Explanations of all rows, a seed each, with every choice left to `explain`."""
    rounding = 1e-12 * np.linalg.norm(
        truth, axis=1, keepdims=True
    )  # both ends of an exact answer may round to one side
    error, standard_error, half_width = np.empty((3, seeds, *truth.shape))
    for i in range(seeds):
        e = sl.explain(
            model, workload.rows, sigma=variance**0.5, n_samples=draws, seed=i + 1, draws="independent",
            confidence=CONFIDENCE, progress=False, **(workload.arguments or {}),
        )  # fmt: skip
        lower, upper = e.interval(CONFIDENCE)
        error[i], standard_error[i], half_width[i] = e.values - truth, e.standard_error, (upper - lower) / 2 + rounding
    return Runs(error, standard_error, half_width, f"{e.method}, {e.design}", int(np.ceil(e.n_evaluations.mean())))


def judged(runs: Runs, truth: Truth) -> dict[str, Any]:
    """Coverage, bars and widths of the rows whose truth is known well enough; None where there are no such rows."""
    bars = _root_mean_square(runs.standard_error)
    share = np.sqrt((truth.standard_error**2).mean(axis=1)) / bars
    kept = np.flatnonzero(share <= TRUTH_SHARE)
    found = {"truth": truth.how, "truth_share": share.tolist(), "rows_judged": len(kept)}
    if not len(kept):
        return found | dict.fromkeys(("coverage", "worst", "bars", "bars_least", "width"))
    by_seed = runs.holds[:, kept].mean(axis=2)  # (seeds, rows)
    by_row = by_seed.mean(axis=0)
    least = int(by_row.argmin())
    ratio = bars[kept] / _root_mean_square(runs.error)[kept]
    width = 2 * runs.half_width[:, kept] / _length(truth.slopes[kept])[:, None]
    return found | {
        "coverage": float(by_row.mean()), "coverage_error": _standard_error(by_seed.mean(axis=1)),
        "worst": float(by_row[least]), "worst_error": _standard_error(by_seed[:, least]), "worst_at": int(kept[least]),
        "bars": float(np.median(ratio)), "bars_least": float(ratio.min()), "width": float(np.median(width)),
    }  # fmt: skip


def _root_mean_square(of: np.ndarray) -> np.ndarray:
    """(r,) over seeds and features."""
    return np.sqrt((of**2).mean(axis=(0, 2)))


def _standard_error(by_seed: np.ndarray) -> float:
    return float(by_seed.std(ddof=1) / np.sqrt(len(by_seed)))


def measure(workload: Workload, variance: float, plan: dict[int, int], quick: bool) -> list[dict[str, Any]]:
    """A record for each kind of access and number of draws."""
    truth, apart = witnessed(workload, variance, quick)
    records = []
    for kind, model in (("gradients", workload.with_gradients), ("values", workload.with_values)):
        for draws, seeds in plan.items() if model is not None else ():
            runs = explain(workload, model, variance, truth.slopes, draws, seeds)
            records.append(
                {
                    "workload": workload.name, "d": workload.rows.shape[1], "variance": variance,
                    "rows": len(workload.rows), "from": kind, "choice": runs.choice, "draws": draws,
                    "evaluations": runs.evaluations, "seeds": seeds, "confidence": CONFIDENCE,
                    **judged(runs, truth), "truth_apart": apart,
                }
            )  # fmt: skip
    return records


def main() -> None:
    quick = is_quick(__doc__ or "", "two networks, small trees, σ² = 0.1, eight seeds, 1,024 draws")
    torch.set_num_threads(1)
    plan, variances = ({1_024: 8}, (0.1,)) if quick else (SEEDS, VARIANCES)
    records = []
    more = plan if quick else {draws: MORE * seeds for draws, seeds in plan.items()}
    asked = [(each, plan) for each in [*workloads.networks(quick), *workloads.trees(quick)]]
    for workload, its_plan in [*asked, *((each, more) for each in workloads.hard_functions())]:
        print(workload.name, file=sys.stderr, flush=True)
        for variance in variances:
            records += measure(workload, variance, its_plan, quick)
    facts = machine("torch", "scikit-learn", "xgboost-cpu") | {"seed": workloads.SEED}
    publish("intervals", records, facts, tables.intervals(records), quick=quick)


if __name__ == "__main__":
    main()
