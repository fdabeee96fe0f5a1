"""Draws that each design takes by gradients, for the same error and the same radius, as features grow.

Networks with two hidden layers, trained on made-up data of d features; six rows each, eight seeds. For each σ and
number of draws: the error of iid draws over that of the design, squared (how many times fewer draws the same error
takes), and the same for the 95% radius, which is what stopping goes by. The table behind `sampling/defaults.py`.

    python benchmarks/bench_designs.py
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
from typing import Any

import numpy as np
import torch

import smoothlime as sl

NETWORKS = ((5, 10), (8, 10), (11, 10), (16, 10), (32, 32), (64, 128))
SIGMAS, DRAWS, SEEDS, REFERENCE = (0.1, 0.316, 1.0), (256, 1_024, 4_096), 8, 2**16
DESIGNS = ("orthogonal", "sobol", "aligned")


def trained(d: int, width: int) -> tuple[torch.nn.Module, np.ndarray]:
    """A network of d features and the rows to explain."""
    torch.manual_seed(d)
    rng = np.random.default_rng(d)
    rows = rng.standard_normal((4_000, d)).astype(np.float32)
    along = rows @ (rng.standard_normal((3, d)) / np.sqrt(d) * 1.5).T
    labels = torch.from_numpy((along[:, 0] * np.tanh(along[:, 1]) + np.sin(2 * along[:, 2]) > 0).astype(np.int64))
    layers = [torch.nn.Linear(d, width), torch.nn.ELU(), torch.nn.Linear(width, width), torch.nn.ELU()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(150):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.from_numpy(rows)), labels).backward()
        optimiser.step()
    return net.double().eval(), rows[:6].astype(float)


def measure(net: torch.nn.Module, rows: np.ndarray, sigma: float, n: int) -> dict[str, Any]:
    model = sl.as_model(net, output="probability")
    question: dict[str, Any] = {"sigma": sigma, "target": 1, "method": "smoothgrad", "progress": False}
    truth = sl.explain(model, rows, n_samples=REFERENCE, design="aligned", **question).standardised
    errors, radii = {}, {}
    for design in ("iid", *DESIGNS):
        runs = [sl.explain(model, rows, n_samples=n, design=design, seed=seed + 1, **question) for seed in range(SEEDS)]
        errors[design] = np.mean([((e.standardised - truth) ** 2).sum(axis=1) for e in runs], axis=0)
        radii[design] = np.median([e.radius**2 for e in runs], axis=0)
    return {
        design: {what: float(np.median(of["iid"] / of[design])) for what, of in (("error", errors), ("radius", radii))}
        for design in DESIGNS
    }


def main() -> None:
    facts = machine("torch")
    records = []
    for d, width in NETWORKS:
        net, rows = trained(d, width)
        records += [
            {"d": d, "sigma": sigma, "draws": n, **measure(net, rows, sigma, n)} for sigma in SIGMAS for n in DRAWS
        ]
    path = write_lines("designs", [{**facts, **record} for record in records])
    header = ("d", "σ", "draws", *(f"{what}, {design}" for what in ("error", "radius") for design in DESIGNS))
    print(
        markdown(
            header,
            [
                (
                    each["d"], each["sigma"], f"{each['draws']:,}",
                    *(f"{each[design][what]:.1f}" for what in ("error", "radius") for design in DESIGNS),
                )
                for each in records
            ],
        )
    )  # fmt: skip
    ratios = [each["sobol"]["radius"] / each["orthogonal"]["radius"] for each in records if each["d"] > 10]
    low, middle, high = np.quantile(ratios, (0.05, 0.5, 0.95))
    print("\nbeyond 10 features, draws of orthogonal over those of sobol for the same radius:")
    print(f"median {middle:.2f}, 5 to 95% {low:.2f} to {high:.2f}; written to {path.name}")


if __name__ == "__main__":
    main()
