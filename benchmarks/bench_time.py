"""How long does an explanation with 3% or 1% error take? Ours by default, against captum and lime.

The evaluations that each needs come from results/error.jsonl, where captum and lime stand with the textbook methods
that they compute; this script measures the time. Everyone is run at that number, up to 8,192 evaluations per row: above
that, the time per evaluation measured at 8,192 is multiplied, and the number is marked. Trees are exact for us: there
is one time, and no error. Twelve rows, wall time, one thread, everything interleaved, medians; lime works row by row
and is timed on two rows. All at the settings in `rivals.py`.

    python benchmarks/bench_time.py [--quick]
"""

from __future__ import annotations

from common import interleaved, is_quick, machine, publish, read_lines  # before NumPy: it sets one thread

# isort: split
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import rivals
import torch
import workloads
from tables import OURS, TEXTBOOK, time_table
from workloads import TARGET, Workload

import smoothlime as sl

VARIANCE = 0.1
TARGETS = (0.03, 0.01)
MOST = 8_192
ROUNDS = 5
FEW = 2
"""Rows on which lime is timed."""


@dataclass(frozen=True, eq=False)
class Timed:
    """One library, one target: what is run, for how many rows and evaluations, and how many are needed."""

    who: str
    kind: str
    target: float
    needed: float
    how: str
    """'measured', 'below' or 'beyond' what results/error.jsonl has measured."""
    run_at: int
    rows: int
    job: Callable[[], Any]


def contestants(workload: Workload, needed: dict[tuple[Any, ...], dict[str, Any]]) -> list[Timed]:
    """Everyone who explains the workload, at each target."""
    sigma = VARIANCE**0.5

    def explain(model: Any, rows: np.ndarray, draws: int) -> Callable[[], Any]:
        return lambda: sl.explain(
            model, rows, sigma=sigma, n_samples=draws, progress=False, **(workload.arguments or {})
        )

    def answer(attribute: rivals.Attribute, rows: np.ndarray, draws: int) -> Callable[[], Any]:
        return lambda: attribute(rows, draws, 1)

    asked: list[tuple[str, str, str, Any, int]] = []
    rows, few = workload.rows, workload.rows[:FEW]
    if workload.module is not None:
        for summed in (False, True):
            who = "captum, outputs summed" if summed else "captum"
            tunnel = rivals.captum(workload.module, TARGET, sigma, summed=summed)
            asked.append((who, "gradients", TEXTBOOK["gradients"], lambda n, t=tunnel: answer(t, rows, n), len(rows)))
        asked.append((OURS, "gradients", OURS, lambda n: explain(workload.with_gradients, rows, n), len(rows)))
        asked.append((OURS, "values", OURS, lambda n: explain(workload.with_values, rows, n), len(rows)))
        predict = rivals.predictions(workload.module)
    else:
        predict = workload.with_values.predict_proba
    explainer = rivals.lime(predict, TARGET, sigma, rows.shape[1])
    asked.append(("lime", "values", TEXTBOOK["values"], lambda n: answer(explainer, few, n), len(few)))
    found = []
    for target in TARGETS:
        for who, kind, counted, make, count in asked:
            about = needed[workload.name, kind, counted, target]
            at = min(MOST, int(np.ceil(about["needed"])))
            found.append(Timed(who, kind, target, about["needed"], about["how"], at, count, make(at)))
    return found


def exact(workload: Workload) -> Timed:
    """Trees need no draws, and no target."""
    job = lambda: sl.explain(
        workload.with_values, workload.rows, sigma=VARIANCE**0.5, progress=False, **(workload.arguments or {})
    )
    return Timed(OURS, "trees", 0.0, 0.0, "exact", 0, len(workload.rows), job)


def measure(workload: Workload, needed: dict[tuple[Any, ...], dict[str, Any]], rounds: int) -> list[dict[str, Any]]:
    """A record per contestant and target."""
    field = contestants(workload, needed) + ([exact(workload)] if workload.is_tree else [])
    seconds = interleaved({each: each.job for each in field}, rounds, clock=time.perf_counter)
    records = []
    for each in field:
        per_row = np.array(seconds[each]) / each.rows
        scale = each.needed / each.run_at if each.run_at and each.needed > MOST else 1.0
        low, middle, high = np.quantile(per_row * scale, (0.25, 0.5, 0.75))
        records.append(
            {
                "workload": workload.name, "variance": VARIANCE, "from": each.kind, "who": each.who,
                "target": each.target, "needed": each.needed, "how": each.how, "run_at": each.run_at,
                "rows": each.rows, "is_scaled": scale != 1, "seconds_per_row": middle, "quartiles": [low, high],
                "seconds_per_evaluation": float(np.median(per_row) / each.run_at) if each.run_at else None,
            }
        )  # fmt: skip
    return records


def main() -> None:
    quick = is_quick(__doc__ or "", "two networks, one round, with the numbers of bench_error --quick")
    torch.set_num_threads(1)
    needed = {
        (each["workload"], each["from"], each["who"], each["target"]): each
        for each in read_lines("error_quick" if quick else "error")
        if each["what"] == "evaluations" and each["variance"] == VARIANCE
    }
    chosen = [*workloads.networks(quick), workloads.trees(quick)[1]]
    records = [each for workload in chosen for each in measure(workload, needed, 1 if quick else ROUNDS)]
    facts = machine("torch", "captum", "lime", "scikit-learn") | {"seed": workloads.SEED}
    publish("time", records, facts, time_table(records), quick=quick)


if __name__ == "__main__":
    main()
