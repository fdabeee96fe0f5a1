"""Intervals of switches cover, also where the data decided when to stop; those that stopped are as good as asked.

Repeats are identical rows with draws of their own.
"""

import numpy as np
import pytest
from scipy.special import ndtr

import smoothlime as sl
from smoothlime.result.switches import SwitchedColumn
from smoothlime.sampling.options import Options
from smoothlime.sampling.route import prepare, resolve
from smoothlime.sampling.switches import Choices, _sampled

REPEATS = 2_000
X = np.array([0.3, -0.2, 0.0])


def smooth(a):
    return np.sin(a[:, 0] + a[:, 2]) + 0.5 * a[:, 1] * a[:, 2]


def kinked(a):
    return np.maximum(a[:, 0] - 0.5 * a[:, 2], 0) + 0.2 * a[:, 2] * np.abs(a[:, 1])


def atomic(a):
    """What a level changes in 11.5% of the neighbourhood, and nowhere else."""
    return (a[:, 0] > 1.5) * a[:, 2]


def positive_part(m):
    return m * ndtr(m) + np.exp(-(m**2) / 2) / np.sqrt(2 * np.pi)


def folded(m):
    return 2 * positive_part(m) - m


def effects(function):
    """Of levels 1 and 2, at sigma 1."""
    x, b, c = X[0], X[1], np.array([1.0, 2.0])
    if function is smooth:
        return np.exp(-0.5) * (np.sin(x + c) - np.sin(x)) + 0.5 * b * c
    if function is kinked:
        return positive_part(x - 0.5 * c) - positive_part(x) + 0.2 * c * folded(b)
    return c * ndtr(x - 1.5)


def switches(function, **asked):
    """Of many rows."""
    rows = np.tile(X, (REPEATS, 1))
    asked = {"sigma": 1.0, "fixed": [2], "switches": {"x2": [1, 2]}, "draws": "independent", "method": "stein"} | asked
    return sl.explain(function, rows, **asked).switches


def stopped(function, known):
    """The same without slopes, which take longer."""
    problem = prepare(function, np.tile(X, (REPEATS, 1)), sigma=1.0, fixed=[2], switches={"x2": [1, 2]})
    plan = resolve(problem, Options(draws="independent", output_range=known), is_drawn=False, method="stein")
    (found,) = _sampled(plan, Choices.of(problem.switchable), plan.resolve(None), known, progress=False)
    return found.of((SwitchedColumn("x2", ("1", "2"), ("0",)),), np.full((REPEATS, 1), 2), "")


@pytest.mark.parametrize("function", [smooth, kinked, atomic])
def test_intervals_cover_at_a_fixed_number_of_draws(function):
    s, truth = switches(function, n_samples=1_024), effects(function)
    lower, upper = s.interval()
    share = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    assert (share >= 0.925).all()
    assert (share <= 0.975).all()
    off = (s.effect.mean(axis=0) - truth) / (s.effect.std(axis=0) / np.sqrt(REPEATS))
    assert (np.abs(off) < 4.5).all()
    ratio = np.sqrt((s.standard_error**2).mean(axis=0)) / np.sqrt(((s.effect - truth) ** 2).mean(axis=0))
    assert (np.abs(ratio - 1) < 0.08).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "known"), [(smooth, (-2, 3)), (smooth, (-4, 6)), (kinked, (0, 5)), (atomic, (0, 4)), (atomic, None)]
)
def test_those_that_stopped_are_as_good_as_asked(function, known):
    s, truth = stopped(function, known), effects(function)
    assert s.converged.mean() > 0.95
    assert len(np.unique(s.n_samples)) > 1
    lower, upper = s.interval()
    is_missed = ~((lower <= truth) & (truth <= upper))
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)
    assert (is_missed.mean(axis=0) <= limit).all()
    spread = function(
        X + np.append(np.random.default_rng(0).normal(size=(100_000, 2)), np.zeros((100_000, 1)), 1)
    ).std()
    floor = 0.01 * spread if known is None else 0.005 * (known[1] - known[0])
    promised = np.maximum(0.05 * np.abs(truth), floor)
    # the error that is promised is a standard error: twice that is passed by one in twenty
    assert ((np.abs(s.effect - truth) > 2 * promised).mean(axis=0) <= limit).all()
    assert (np.sqrt(((s.effect - truth) ** 2).mean(axis=0)) <= promised).all()
