"""How does the cost of `explain` grow with rows, with features and with draws? Slopes in double logarithms.

One of the three grows while the other two stay: 1 to 1,024 rows of 16 features at 256 draws, 4 to 256 features at 4
rows and 2,048 draws, 256 to 65,536 draws of 4 rows and 16 features. The model is an ELU network with two hidden layers
of 32, float32. CPU time of a whole call, one thread, medians of interleaved rounds; beside it the bare network on as
many points, and the difference: what `explain` adds. Slopes are fitted to the upper half of the sizes, where fixed
costs no longer count: 1 is proportional.

    python benchmarks/bench_scaling.py [--quick]
"""

from __future__ import annotations

from common import interleaved, is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tables import scaling_long
from workloads import ValuesOnly, untrained

import smoothlime as sl

METHODS = ("smoothgrad", "clime", "differences")
ROUNDS = 5
POINTS_PER_CALL = 8_192
SWEEPS: dict[str, tuple[dict[str, int], tuple[int, ...]]] = {
    "rows": ({"features": 16, "draws": 256}, (1, 4, 16, 64, 256, 1_024)),
    "features": ({"rows": 4, "draws": 2_048}, (4, 8, 16, 32, 64, 128, 256)),
    "draws": ({"rows": 4, "features": 16}, (256, 1_024, 4_096, 16_384, 65_536)),
}


def bare(net: torch.nn.Module, points: torch.Tensor, *, gradients: bool) -> Callable[[], None]:
    """The network on points made ready, forward, or forward and backward."""

    def job() -> None:
        for part in points.split(POINTS_PER_CALL):
            if gradients:
                leaf = part.detach().requires_grad_(True)
                torch.autograd.grad(net(leaf)[:, 1].sum(), leaf)
            else:
                with torch.no_grad():
                    net(part)

    return job


def measure(sweep: str, size: int, rounds: int) -> list[dict[str, Any]]:
    """A record per method: seconds in total, of the bare network, and beyond it."""
    about = {**SWEEPS[sweep][0], sweep: size}
    rows, d, draws = about["rows"], about["features"], about["draws"]
    net = untrained(d)
    x = np.random.default_rng(0).standard_normal((rows, d))

    def explain(method: str) -> Callable[[], Any]:
        model = net if method == "smoothgrad" else ValuesOnly(net)
        return lambda: sl.explain(model, x, method=method, sigma=0.3, target=1, n_samples=draws, progress=False)

    points = torch.randn(rows * draws, d)
    jobs: dict[Any, Callable[[], Any]] = {method: explain(method) for method in METHODS}
    jobs |= {("bare", gradients): bare(net, points, gradients=gradients) for gradients in (True, False)}
    seconds = interleaved(jobs, rounds)
    records = []
    for method in METHODS:
        alone = seconds["bare", method == "smoothgrad"]
        beyond = [total - own for total, own in zip(seconds[method], alone, strict=True)]
        made = jobs[method]().n_evaluations[0] * rows
        records.append(
            {
                "what": "time", "sweep": sweep, **about, "method": method, "evaluations": int(made),
                "seconds": statistics.median(seconds[method]), "bare": statistics.median(alone),
                "beyond": statistics.median(beyond), "rounds": rounds,
            }
        )  # fmt: skip
    return records


def slopes(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A record per sweep and method: how the time grows over the upper half of the sizes."""
    found = []
    for sweep, method in dict.fromkeys((each["sweep"], each["method"]) for each in records):
        curve = [each for each in records if (each["sweep"], each["method"]) == (sweep, method)]
        upper = curve[len(curve) // 2 :]

        def slope(what: str, upper: list[dict[str, Any]] = upper, sweep: str = sweep) -> float:
            times = [max(each[what], 1e-9) for each in upper]
            return float(np.polyfit(np.log([each[sweep] for each in upper]), np.log(times), 1)[0])

        found.append(
            {
                "what": "slope", "sweep": sweep, "method": method, "sizes": [each[sweep] for each in upper],
                "total": slope("seconds"), "bare": slope("bare"), "beyond": slope("beyond"),
                "last": curve[-1]["seconds"] / curve[-1]["bare"],
            }
        )  # fmt: skip
    return found


def main() -> None:
    quick = is_quick(__doc__ or "", "the first four sizes of each, two rounds")
    torch.set_num_threads(1)
    records: list[dict[str, Any]] = []
    for sweep, (_, sizes) in SWEEPS.items():
        for size in sizes[:4] if quick else sizes:
            records += measure(sweep, size, 2 if quick else ROUNDS)
    records += slopes(records)
    publish("scaling", records, machine("torch") | {"seed": 0}, scaling_long(records), quick=quick)


if __name__ == "__main__":
    main()
