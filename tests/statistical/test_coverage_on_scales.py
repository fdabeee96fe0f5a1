"""Intervals on scales hold their slopes as often as they say: 2,000 rows, each with draws of its own."""

import numpy as np
import pytest

import smoothlime as sl

RNG = np.random.default_rng(31)
N, ROWS, DRAWS, SIGMA = 4_000, 2_000, 1_024, 0.5
DATA = np.column_stack([RNG.lognormal(0, 1, N), RNG.gamma(2, 1, N), RNG.poisson(1.5, N), RNG.normal(size=N)])
KINDS = {0: "log", 1: "ranks", 2: "ranks"}
X = np.array([1.3, 1.0, 1.0, 0.2])


def smooth(a):
    """In scores: exp(u/2), which is a curve, and a quantile curve."""
    return np.sqrt(a[:, 0]) + a[:, 1] + np.sin(a[:, 3])


def atomic(a):
    """Counts jump from one to the next, and a limit is a kink."""
    return a[:, 2] + np.maximum(a[:, 0] - 1.5, 0)


def truth():
    """Slopes per score, feature by feature."""
    known = sl.Neighbourhood.from_data(DATA, SIGMA, scale=KINDS)
    std, scales = known.factor(4).std, known.background.scales
    of = lambda j: scales[j].moments(scales[j].scores(X[j : j + 1]), std[j]).slope[0]
    z = np.linspace(-9, 9, 400_001)
    weigh = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    at = np.exp(scales[0].scores(X[:1])[0] + std[0] * z) - scales[0].shift
    kink = (weigh * z * np.maximum(at - 1.5, 0)).sum() / std[0]
    root = (weigh * z * np.sqrt(at)).sum() / std[0]
    return {
        "smooth": np.array([root, of(1), 0.0, np.cos(X[3]) * np.exp(-(std[3] ** 2) / 2)]),
        "atomic": np.array([kink, 0.0, of(2), 0.0]),
    }


@pytest.mark.parametrize(
    ("f", "estimator", "placed"),
    [
        (smooth, "clime", "iid"),
        (smooth, "stein", "iid"),
        (smooth, "differences", "auto"),
        (atomic, "clime", "iid"),
        (atomic, "stein", "iid"),
        (atomic, "differences", "auto"),
        (atomic, "auto", "auto"),
    ],
)
def test_intervals_cover(f, estimator, placed):
    e = sl.explain(
        f, np.tile(X, (ROWS, 1)), method=estimator, design=placed, sigma=SIGMA, background=DATA, scale=KINDS,
        n_samples=DRAWS, draws="independent",
    )  # fmt: skip
    lower, upper = e.interval()
    wanted = truth()[f.__name__]
    share = ((lower <= wanted) & (wanted <= upper)).mean(axis=0)
    assert (share >= 0.925).all(), share
    if f is smooth:
        assert (share <= 0.975).all(), share
    error = np.abs(e.values.mean(axis=0) - wanted)
    assert (error <= 5 * e.values.std(axis=0) / np.sqrt(ROWS) + 1e-3 * np.abs(wanted).max()).all()
