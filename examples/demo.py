"""Explain a small network, with error bars: run this file, read what it prints, open the picture.

A torch network learns to tell malignant from benign tumours (the breast cancer data that come with
scikit-learn). We ask how fast its probability of malignancy changes with each measurement around a few
test rows, once from gradients and once from predictions alone, and see whether the two answers agree.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # the picture goes to a file, also where there is no screen

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import smoothlime as sl

torch.set_num_threads(1)  # the network is tiny: threads would only wait for each other

SEED = 0
SIGMA = 0.5  # half a standard deviation of each measurement: near, but not only at, the row


class Standardise(torch.nn.Module):
    """First layer: measurements in their own units come in, standardised ones go out."""

    def __init__(self, X):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(X.mean(axis=0), dtype=torch.float32))
        self.register_buffer("std", torch.as_tensor(X.std(axis=0), dtype=torch.float32))

    def forward(self, x):
        """Standardised measurements."""
        return (x - self.mean) / self.std


def train(X, y, epochs=40):
    """A network of two hidden layers with one logit: that of malignancy."""
    torch.manual_seed(SEED)
    net = torch.nn.Sequential(
        Standardise(X),
        torch.nn.Linear(X.shape[1], 16),
        torch.nn.ELU(),
        torch.nn.Linear(16, 16),
        torch.nn.ELU(),
        torch.nn.Linear(16, 1),
    )
    rows = torch.as_tensor(X, dtype=torch.float32)
    labels = torch.as_tensor(y, dtype=torch.float32)[:, None]
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-2)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows)).split(32):
            optimiser.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(net(rows[batch]), labels[batch]).backward()
            optimiser.step()
    return net.eval()


def compare(one, other):
    """One line on whether two explanations differ by more than their error bars allow."""
    (lower, upper), (other_lower, other_upper) = (e.interval(0.95, simultaneous=True) for e in (one, other))
    overlap = (lower <= other_upper) & (other_lower <= upper)
    gap = (one.values - other.values) / np.hypot(one.standard_error, other.standard_error)
    return (
        f"{one.method} (gradients) and {other.method} (predictions only): simultaneous 95% intervals overlap for"
        f" {overlap.sum()} of {overlap.size} slopes, which differ by {np.sqrt((gap**2).mean()):.1f} standard errors"
        " in the root mean square (about 1 is chance)."
    )


def load():
    """Training rows, test rows and test labels; malignant is 1."""
    data = load_breast_cancer()
    X, test_X, y, test_y = train_test_split(
        data.data, data.target == 0, test_size=0.25, stratify=data.target, random_state=SEED
    )
    return data.feature_names, X, y, test_X, test_y


def __getattr__(name):
    """`demo:model` trains the network when somebody asks for it, as `smoothlime check` does."""
    if name != "model":
        raise AttributeError(name)
    names, X, y, _, _ = load()
    return sl.as_model(train(X, y), output="probability", feature_names=names, outputs=["malignant"])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=Path, default=Path("demo.png"), help="where the picture goes [%(default)s]")
    out = arguments.parse_args().out

    names, X, y, test_X, test_y = load()
    model = sl.as_model(train(X, y), output="probability", feature_names=names, outputs=["malignant"])
    probability = model.values(test_X)[:, 0]
    print(f"Test accuracy {((probability > 0.5) == test_y).mean():.1%} on {len(test_y)} rows.")
    print("Below are slopes of the network's probability of malignancy.\n")

    # test rows to which the network gives about 10%, 50% and 90%; at 0% and 100% there is little slope to explain
    rows = test_X[[np.abs(probability - wanted).argmin() for wanted in (0.1, 0.5, 0.9)]]
    by_gradients = sl.explain(model, rows, sigma=SIGMA, background=X, method="smoothgrad")
    by_predictions = sl.explain(model, rows, sigma=SIGMA, background=X, method="differences")
    print(by_gradients, end="\n\n")
    print(compare(by_gradients, by_predictions), end="\n\n")

    by_gradients.plot(row=1).figure.savefig(out, dpi=150)
    print(f"A picture of row 1, with error bars, is in {out}")
    table = out.with_suffix(".csv")
    np.savetxt(table, test_X, delimiter=",", header=",".join(names), comments="", fmt="%.8g")
    print(f"The test rows are in {table}. Can the explanations be trusted? Ask:")
    print(f"    smoothlime check demo:model {table} --path examples --sigma {SIGMA}")


if __name__ == "__main__":
    main()
