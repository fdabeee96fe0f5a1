"""What does a whole table cost at the defaults? The web shop's visits, and the purchase probabilities of a network.

The first 1,000 rows of the test part, ten numeric columns that the paper names in training standard deviations, and the
paper's good network (10-10, ELU, float64). `explain(model, rows, target="purchase", sigma=σ)`, nothing else chosen;
σ = 1 is the default. Counted: rows per second of CPU time on one thread (best of three), model evaluations per row, the
rows that converged, and of these the share whose error is above max(0.005, 5% of ‖w‖). The truth is 32,768 draws from
another seed; its own standard error is 0.3% of ‖w‖ (median, σ = 1).

The data are not shipped: SMOOTHLIME_DATA names the folder of the file, as `smoothlime.paper.datasets.shopping` says.
Records of the other label are kept, so that two versions of the code stand side by side:

    python benchmarks/bench_table.py before|after
"""

from __future__ import annotations

from common import HERE, machine, read_lines, write_lines  # before NumPy: it sets one thread

# isort: split
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch
from tables import whole_table

import smoothlime as sl
from smoothlime.paper import datasets, networks

ROWS, TRUTH, ROUNDS = 1_000, 32_768, 3
SIGMAS = (1.0, 0.3, 0.1)
RTOL, ATOL = 0.05, 0.005


def measure(model: Any, rows: np.ndarray, sigma: float) -> dict[str, Any]:
    """One σ: cost, and misses against a long run."""
    ask = {"sigma": sigma, "target": "purchase", "progress": False}
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        e = sl.explain(model, rows, **ask)
        seconds.append(time.process_time() - start)
    truth = sl.explain(model, rows, n_samples=TRUTH, seed=1, **ask).standardised
    errors, size = np.linalg.norm(e.standardised - truth, axis=1), np.linalg.norm(truth, axis=1)
    return {
        "sigma": sigma,
        "rows": len(rows),
        "rows_per_second": len(rows) / min(seconds),
        "evaluations": float(e.n_evaluations.mean()),
        "most": int(e.n_evaluations.max()),
        "converged": float(e.converged.mean()),
        "missed": float((errors > np.maximum(ATOL, RTOL * size))[e.converged].mean()),
        "relative_error": float(np.median(errors / size)),
        "size": float(np.median(size)),
    }


def main() -> None:
    if sys.argv[1:] not in (["before"], ["after"]):
        sys.exit("say which version of the code this is: bench_table.py before|after")
    label = sys.argv[1]
    torch.set_num_threads(1)
    facts = machine("torch")
    data = datasets.shopping()
    model = networks.train(data, **networks.RECIPES["shopping"]["good"]).model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.errors.NotConverged)
        found = [{"label": label, **measure(model, data.x_test[:ROWS], sigma), **facts} for sigma in SIGMAS]
    is_there = (HERE / "results" / "table.jsonl").is_file()
    kept = [each for each in read_lines("table") if each["label"] != label] if is_there else []
    write_lines("table", [*kept, *found] if label == "after" else [*found, *kept])
    print(whole_table([*kept, *found]))


if __name__ == "__main__":
    main()
