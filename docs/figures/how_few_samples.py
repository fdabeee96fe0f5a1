"""The figures and the numbers of how-few-samples.md; run me from anywhere.

Writes how_few_gradients.svg and how_few_predictions.svg beside this file and prints a table. About a minute.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from sklearn.datasets import load_breast_cancer

import smoothlime as sl

HERE = Path(__file__).parent
SIGMA, SEEDS, ROWS = 0.5, 12, 12
DRAWS = (64, 128, 256, 512, 1_024, 2_048, 4_096)
BLUE, SKY, ORANGE, GREEN, GREY = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#777777"


def network():
    """A network on standardised measurements of tumours, 30 features, and rows of it."""
    data = load_breast_cancer()
    rows = torch.tensor((data.data - data.data.mean(axis=0)) / data.data.std(axis=0), dtype=torch.float32)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(30, 16), torch.nn.ELU(), torch.nn.Linear(16, 16), torch.nn.ELU(), torch.nn.Linear(16, 2)
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=1e-3)
    for _ in range(200):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), torch.tensor(data.target)).backward()
        optimiser.step()
    model = sl.as_model(net.double().eval(), output="probability")
    p = model.values(rows.double().numpy())[:, 1]
    unsure = np.argsort(np.abs(p - 0.5))[: 10 * ROWS : 10]  # rows where there is a slope to speak of
    return model, rows.double().numpy()[unsure]


def errors(model, rows, truth, **settings):
    """Evaluations, median error and median said error, relative, at each number of draws."""
    size = np.linalg.norm(truth, axis=1)
    found = []
    for n in DRAWS:
        try:
            runs = [
                sl.explain(model, rows, target=1, sigma=SIGMA, n_samples=n, seed=seed + 1, **settings)
                for seed in range(SEEDS)
            ]
        except sl.errors.TooFewDraws:
            continue
        off = np.mean([((e.standardised - truth) ** 2).sum(axis=1) for e in runs], axis=0)
        said = np.mean([((e.standard_error * e.std) ** 2).sum(axis=1) for e in runs], axis=0)
        found.append((runs[0].n_evaluations[0], *(np.median(np.sqrt(each) / size) for each in (off, said))))
    return np.array(found).T


def draw(path, title, curves):
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for label, (evaluations, off, said), colour, marker in curves:
        axes.loglog(evaluations, 100 * off, color=colour, marker=marker, ms=4, label=label)
        if label == curves[-1][0]:
            axes.loglog(evaluations, 100 * said, color=colour, ls=":", label="its own standard error")
    axes.set_xlabel("model evaluations per row, pilot included")
    axes.set_ylabel("error, % of the slope's length")
    axes.set_title(title, fontsize=10)
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main():
    plt.rcParams["svg.hashsalt"] = "smoothlime"
    model, rows = network()
    plain = {"method": "smoothgrad", "design": "aligned"}
    truth = sl.explain(model, rows, target=1, sigma=SIGMA, n_samples=2**16, **plain).standardised
    values = sl.from_functions(values=model.values)
    of_gradients = [
        ("independent draws", errors(model, rows, truth, design="iid"), GREY, "o"),
        ("pairs in random bases", errors(model, rows, truth, design="orthogonal"), ORANGE, "s"),
        ("eight Sobol' nets", errors(model, rows, truth, design="sobol"), GREEN, "^"),
        ("aligned", errors(model, rows, truth, **plain), SKY, "v"),
        ("aligned, with the values", errors(model, rows, truth, design="aligned"), BLUE, "D"),
    ]
    with_curves = sl.CLime(curves=True)
    of_values = [
        ("C-LIME, independent draws", errors(values, rows, truth, method="clime", design="iid"), GREY, "o"),
        ("differences", errors(values, rows, truth, method="differences"), ORANGE, "s"),
        ("C-LIME, aligned", errors(values, rows, truth, method="clime", design="aligned"), GREEN, "^"),
        ("C-LIME, aligned, curves", errors(values, rows, truth, method=with_curves, design="aligned"), SKY, "v"),
        ("C-LIME, aligned pairs, odd curves", errors(values, rows, truth, method=with_curves), BLUE, "D"),
    ]
    draw(HERE / "how_few_gradients.svg", "From gradients (SmoothGrad)", of_gradients)
    draw(HERE / "how_few_predictions.svg", "From predictions", of_values)
    for curves in (of_gradients, of_values):
        for label, (evaluations, off, said), *_ in curves:
            shown = ", ".join(f"{n:.0f}: {100 * each:.2g}%" for n, each in zip(evaluations, off, strict=True))
            print(f"{label}: {shown}; says {np.median(said / off):.1f} times its error")


if __name__ == "__main__":
    main()
