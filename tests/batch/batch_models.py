"""Models that other processes import."""

import os
import signal

import numpy as np
from sklearn.linear_model import LinearRegression


def wave(a):
    a = np.asarray(a, dtype=float)
    return np.sin(a[:, 0]) * a[:, 1] + 0.1 * a[:, 2] ** 2


def deadly(a):
    """Kills its process where it sees 77."""
    if (np.asarray(a)[:, 2] == 77).any():
        os.kill(os.getpid(), signal.SIGKILL)
    return wave(a)


def picky(a):
    """Raises on negative values of the third feature, and has no answer above 5."""
    a = np.asarray(a, dtype=float)
    if (a[:, 2] < -9).any():
        raise ValueError("below -9")
    return np.where(a[:, 2] > 9, np.nan, wave(a))


def line():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 3))
    return LinearRegression().fit(x, x @ [1.0, -2.0, 0.5])
