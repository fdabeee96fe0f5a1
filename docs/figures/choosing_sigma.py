"""The figure and the measured numbers of choosing-sigma.md; run me from anywhere.

Writes choosing_sigma.svg beside this file, and into the page how many draws an error of 5% takes at several σ. A name
with another ending than .svg as argument writes that kind of picture instead. About two minutes.
"""

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import torch
from pages import put
from sklearn.datasets import load_diabetes

import smoothlime as sl

ROW = 2


def overtrained():
    """A network that has learnt its 442 patients by heart, and its standardised rows; as on the page."""
    data = load_diabetes(as_frame=True, scaled=False)
    rows = ((data.data - data.data.mean()) / data.data.std()).to_numpy()
    wanted = ((data.target - data.target.mean()) / data.target.std()).to_numpy()
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(10, 32),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 32),
        torch.nn.Tanh(),
        torch.nn.Linear(32, 1),
    ]
    network = torch.nn.Sequential(*layers).double()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(300):
        optimiser.zero_grad()
        loss = ((network(torch.tensor(rows))[:, 0] - torch.tensor(wanted)) ** 2).mean()
        loss.backward()
        optimiser.step()
    print(f"mean squared error {loss.item():.3f} of a variance of 1")
    return sl.as_model(network.eval(), feature_names=list(data.feature_names), outputs=["progression"]), rows


def figure(path):
    """Slopes and fidelity of one patient against σ."""
    model, rows = overtrained()
    found = sl.sigma_path(model, rows[ROW], np.geomspace(0.02, 3, 40), n_samples=8_192)
    print(found[::3])
    plt.rcParams.update({"svg.hashsalt": "smoothlime", "font.size": 10})
    axes = found.plot()
    canvas = axes[0].figure
    canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, facecolor="white", dpi=110)
    plt.close(canvas)


def cost():
    """Draws until the error is within 5% of the slopes, by method and σ; median over ten patients."""
    model, rows = overtrained()
    sigmas = (0.01, 0.1, 0.3, 1.0, 3.0)
    rows_of_table = [["σ", *(f"{sigma:g}" for sigma in sigmas)]]
    for method in ("smoothgrad", "clime", "differences", "stein"):
        found = []
        for sigma in sigmas:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sl.errors.NotConverged)
                e = sl.explain(model, rows[:10], sigma=sigma, method=method, atol=0, max_samples=400_000)
            found.append(f"{int(np.median(e.n_samples)):,}" + ("" if e.converged.mean() > 0.5 else " (not reached)"))
        rows_of_table.append([method, *found])
    put("choosing-sigma.md", "cost", rows_of_table)


if __name__ == "__main__":
    figure(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg"))
    cost()
