"""Models that other processes import."""

import multiprocessing
import os
import signal
import time

import numpy as np


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


def slow_wave(a):
    time.sleep(0.001)
    return wave(a)


class DiesOnce:
    """Kills its process at a row of the table, unless a file says that it has done so."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, a):
        is_child = multiprocessing.parent_process() is not None
        if is_child and not os.path.exists(self.mark):
            with open(self.mark, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return wave(a)
