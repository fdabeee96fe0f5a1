"""What does `explain` cost beyond the model's own evaluations? A whole call, against the bare network.

The bare network is evaluated on as many points, made ready beforehand: forward for methods that use predictions,
forward and backward for those that use gradients, at whichever batch size suits it best. One thread, float32, CPU time,
everything interleaved; the table shows the ratio to the bare network: its median over rounds, that of the fastest
rounds of the two, and its interquartile range.

Beside `explain`, in the same run and at their own best batch sizes:

- a careful loop written by hand: `torch.randn`, batched over rows, a running sum, no error bars; and its counterpart
  for predictions, batched normal equations;
- captum's NoiseTunnel over Saliency: row by row with everything else by default; batched over rows; and that again with
  a forward function that returns the sum over the batch, a trick that spares captum a Python loop over points;
- the lime package with least squares, row by row, without feature selection or discretisation.

Row by row, captum and lime are timed on 10 rows, captum batched on 32, and scaled up: their cost is proportional.

    python benchmarks/bench_overhead.py [--quick]
"""

from __future__ import annotations

from common import fastest, interleaved, machine, write_lines  # before NumPy: it sets one thread

# isort: split
import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from captum.attr import NoiseTunnel, Saliency
from lime.lime_tabular import LimeTabularExplainer
from sklearn.linear_model import LinearRegression
from tables import overhead_long

import smoothlime as sl

NETWORKS = ((15, 10, 10, 2), (64, 128, 128, 2))
ROUNDS = (15, 21)
ROWS, DRAWS, SIGMA, TARGET, SEED = 200, 1_024, 0.3, 1, 0
BARE = "bare network"
POINTS_PER_CALL = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768)

Plan = Callable[[], Any]


def network(widths: tuple[int, ...]) -> torch.nn.Sequential:
    torch.manual_seed(SEED)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ELU()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def gradient(net: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    points.requires_grad_(True)
    (found,) = torch.autograd.grad(net(points)[:, TARGET].sum(), points)
    return found


def bare_gradients(net: torch.nn.Module, points: torch.Tensor, size: int) -> Plan:
    def job() -> None:
        for part in points.split(size):
            gradient(net, part.detach())

    return job


def bare_values(net: torch.nn.Module, points: torch.Tensor, size: int) -> Plan:
    @torch.no_grad()
    def job() -> None:
        for part in points.split(size):
            net(part)

    return job


def by_hand_gradients(net: torch.nn.Module, x: torch.Tensor, n: int, size: int) -> Plan:
    """Mean gradient over fresh noise for every row, `size` points per call."""
    rows, d = x.shape
    per_call = max(1, size // n)  # rows
    draws = min(n, size)

    def job() -> torch.Tensor:
        total = torch.zeros(rows, d, dtype=torch.float64)
        for start in range(0, rows, per_call):
            part = x[start : start + per_call]
            for _ in range(0, n, draws):
                points = part[:, None, :] + SIGMA * torch.randn(len(part), draws, d)
                total[start : start + per_call] += gradient(net, points.reshape(-1, d)).reshape(-1, draws, d).sum(1)
        return total / n

    return job


def by_hand_values(net: torch.nn.Module, x: torch.Tensor, n: int, size: int) -> Plan:
    """Least-squares slopes from fresh noise for every row, by normal equations in float64."""
    rows, d = x.shape
    per_call = max(1, size // n)

    @torch.no_grad()
    def job() -> torch.Tensor:
        slopes = []
        for start in range(0, rows, per_call):
            part = x[start : start + per_call]
            z = torch.randn(len(part), n, d)
            values = net((part[:, None, :] + SIGMA * z).reshape(-1, d))[:, TARGET].reshape(-1, n, 1).double()
            z = z.double()
            z = z - z.mean(1, keepdim=True)
            across = z.transpose(1, 2)
            slopes.append(torch.linalg.solve(across @ z, across @ (values - values.mean(1, keepdim=True))) / SIGMA)
        return torch.cat(slopes)

    return job


def captum_by_row(net: torch.nn.Module, x: torch.Tensor, n: int) -> Plan:
    tunnel = NoiseTunnel(Saliency(net))

    def job() -> None:
        for row in x:
            tunnel.attribute(row[None], nt_samples=n, stdevs=SIGMA, target=TARGET, abs=False)

    return job


def captum_batched(net: Any, x: torch.Tensor, n: int, size: int, target: int | None = TARGET) -> Plan:
    tunnel = NoiseTunnel(Saliency(net))
    batch = max(1, size // len(x))
    return lambda: tunnel.attribute(
        x, nt_samples=n, nt_samples_batch_size=batch, stdevs=SIGMA, target=target, abs=False
    )


def captum_summed(net: torch.nn.Module, x: torch.Tensor, n: int, size: int) -> Plan:
    """Points do not see each other, so the gradient of the sum holds the gradient of each."""
    return captum_batched(lambda points: net(points)[:, TARGET].sum().reshape(1), x, n, size, target=None)


def lime_by_row(net: torch.nn.Module, x: torch.Tensor, n: int) -> Plan:
    rows = x.double().numpy()
    explainer = LimeTabularExplainer(
        np.stack([np.full(x.shape[1], SIGMA), np.full(x.shape[1], -SIGMA)]),
        feature_selection="none",
        discretize_continuous=False,
        sample_around_instance=True,
        random_state=SEED,
    )

    @torch.no_grad()
    def predict(points: np.ndarray) -> np.ndarray:
        return net(torch.from_numpy(points.astype(np.float32))).numpy()

    def job() -> None:
        with warnings.catch_warnings():
            # ours are logits; lime would rather have probabilities, and says so at every call
            warnings.filterwarnings("ignore", message="\\s*Prediction probabilties do not sum to 1")
            for row in rows:
                explainer.explain_instance(
                    row, predict, labels=(TARGET,), num_samples=n, model_regressor=LinearRegression()
                )

    return job


def explain(net: torch.nn.Module, x: torch.Tensor, n: int, **settings: Any) -> Plan:
    rows = x.double().numpy()
    return lambda: sl.explain(net, rows, sigma=SIGMA, target=TARGET, n_samples=n, progress=False, **settings)


@dataclass(frozen=True, eq=False)
class Contestant:
    """A way to explain, the batch size it likes best, and the share of the work that is timed."""

    kind: str
    name: str
    job: Plan
    batch_size: int | None = None
    share: float = 1.0


def contestants(net: torch.nn.Module, x: torch.Tensor) -> list[Contestant]:
    """Everyone, at their best; the bare network at every batch size, as all else is measured by it."""
    rows, d = x.shape
    points = torch.randn(rows * DRAWS, d)
    sizes = [size for size in POINTS_PER_CALL if size <= rows * DRAWS]

    def best(kind: str, name: str, make: Callable[[torch.Tensor, int], Plan]) -> Contestant:
        size = fastest(lambda size: make(x[:64], size), sizes)
        return Contestant(kind, name, make(x, size), size)

    def ours(kind: str, name: str, **settings: Any) -> Contestant:
        return Contestant(kind, f"smoothlime {name}", explain(net, x, DRAWS, **settings))

    few, some = min(rows, 10), min(rows, 32)
    field = [
        *(Contestant("gradients", BARE, bare_gradients(net, points, size), size) for size in sizes),
        *(Contestant("values", BARE, bare_values(net, points, size), size) for size in sizes),
        ours("gradients", "by default"),
        ours("gradients", "smoothgrad, iid", method="smoothgrad", design="iid"),
        best("gradients", "loop by hand", lambda x, size: by_hand_gradients(net, x, DRAWS, size)),
        best("gradients", "captum, outputs summed", lambda x, size: captum_summed(net, x, DRAWS, size)),
        Contestant("gradients", "captum, row by row", captum_by_row(net, x[:few], DRAWS), share=few / rows),
        ours("values", "clime", method="clime"),
        ours("values", "differences", method="differences"),
        ours("values", "clime, iid", method="clime", design="iid"),
        best("values", "least squares by hand", lambda x, size: by_hand_values(net, x, DRAWS, size)),
        Contestant("values", "lime, row by row", lime_by_row(net, x[:few], DRAWS), share=few / rows),
    ]
    if rows > 1:
        size = fastest(lambda size: captum_batched(net, x[:some], DRAWS, size), sizes, rounds=1)
        job = captum_batched(net, x[:some], DRAWS, size)
        field.append(Contestant("gradients", "captum, batched", job, size, share=some / rows))
    return sorted(field, key=lambda each: each.kind)


def measure(widths: tuple[int, ...], rows: int, rounds: int) -> list[dict[str, Any]]:
    """One record per way to explain `rows` rows of one network."""
    net = network(widths)
    x = torch.randn(rows, widths[0])
    field = contestants(net, x)
    times = interleaved({each: each.job for each in field}, rounds)
    seconds = {each: np.array(times[each]) / each.share for each in field}
    bare = {
        kind: min(
            (each for each in field if (each.kind, each.name) == (kind, BARE)), key=lambda e: np.median(seconds[e])
        )
        for kind in ("gradients", "values")
    }
    records = []
    for each in field:
        if each.name == BARE and each is not bare[each.kind]:
            continue
        own, reference = seconds[each], seconds[bare[each.kind]]
        ratio = own / reference
        low, high = np.percentile(ratio, [25, 75])
        records.append(
            {
                "network": "-".join(map(str, widths)),
                "rows": rows,
                "draws": DRAWS,
                "kind": each.kind,
                "name": each.name,
                "batch_size": each.batch_size,
                "share_timed": each.share,
                "rounds": rounds,
                "seconds_median": float(np.median(own)),
                "seconds_min": float(own.min()),
                "ratio_median": float(np.median(ratio)),
                "ratio_min": float(ratio.min()),
                "ratio_of_minima": float(own.min() / reference.min()),
                "ratio_spread": float(high - low),
            }
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows, three rounds")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    facts = machine("torch", "captum", "lime", "scikit-learn") | {"seed": SEED}
    records = []
    for widths, rounds in zip(NETWORKS, ROUNDS, strict=True):
        records += measure(widths, ROWS // 5 if quick else ROWS, rounds=3 if quick else rounds)
    # a single row shows what a call costs before it does anything
    for widths in NETWORKS:
        records += measure(widths, 1, rounds=3 if quick else 31)
    path = write_lines("overhead_quick" if quick else "overhead", [each | facts for each in records])
    print(overhead_long(records))
    print(f"\n{facts['cpu']}, one thread of {facts['cores']} cores; {facts['versions']}; written to {path.name}")


if __name__ == "__main__":
    main()
