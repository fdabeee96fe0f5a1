"""What do second slopes cost beside slopes? One call of `interactions` against one of `explain`, on the same draws.

Networks of 15 features, from gradients: the points are the same, so that all that differs is what is added up of them.
The goal is 1.5 times the slopes alone. One thread, CPU time, interleaved; ratios are medians over rounds. Slopes stand
there twice: by plain gradients in the design that `interactions` takes, and as `explain` has them by itself.

    python benchmarks/bench_interactions.py [--quick]
"""

from __future__ import annotations

from common import interleaved, machine, write_lines  # before NumPy: it sets one thread

# isort: split
import argparse
from itertools import pairwise

import numpy as np
import torch

import smoothlime as sl

NETWORKS = ((15, 10, 10, 2), (15, 128, 128, 2))
ROWS, DRAWS, SIGMA, TARGET = 200, 1_024, 0.3, 1


def network(widths):
    torch.manual_seed(0)
    layers = []
    for inputs, outputs in pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ELU()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def measure(widths, rounds):
    net = network(widths)
    rows = np.random.default_rng(0).normal(size=(ROWS, widths[0])).astype(np.float32)
    options = {"sigma": SIGMA, "target": TARGET, "n_samples": DRAWS, "progress": False}
    plain = options | {"method": "smoothgrad", "design": "orthogonal"}
    jobs = {
        "slopes": lambda: sl.explain(net, rows, **plain),
        "slopes by default": lambda: sl.explain(net, rows, **options),
        "interactions and slopes": lambda: sl.interactions(net, rows, **plain),
    }
    times = interleaved(jobs, rounds)
    seconds = {name: float(np.median(each)) for name, each in times.items()}
    ratio = float(np.median(np.array(times["interactions and slopes"]) / np.array(times["slopes"])))
    against = float(np.median(np.array(times["interactions and slopes"]) / np.array(times["slopes by default"])))
    name = "-".join(map(str, widths))
    print(f"{name}: {ratio:.2f} × slopes, {against:.2f} × slopes by default; seconds {seconds}")
    return {"network": name, "rows": ROWS, "draws": DRAWS, "seconds": seconds, "ratio": ratio, "by_default": against}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, nothing written")
    quick = parser.parse_args().quick
    found = [measure(widths, 3 if quick else 15) for widths in NETWORKS]
    if not quick:
        write_lines("interactions", [{**each, **machine()} for each in found])


if __name__ == "__main__":
    main()
