"""Rows that say they have converged keep the promise: at most 5% of them are further off than they were asked to be.

Repeats are identical rows with draws of their own. The full matrix is in benchmarks/bench_stopping.py.
"""

import warnings

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.uncertainty.jackknife import standard_error

RTOL, CAP, REPEATS = 0.1, 8_192, 1_000
LIMIT = 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)


def direction(d):
    v = np.cos(1.0 + 2.0 * np.arange(d))
    return v / np.linalg.norm(v)


def case(name, d):
    """A function of s = v·a with s ~ N(c, 1) near x = 0."""
    v = direction(d)
    return {
        "smooth": known.Sine(v, 0.3),
        "steep": known.Probit(8 * v, 2.0),
        "rare": known.Relu(v, -2.054),  # 2% of the draws have all of the gradient
        "step": known.Step(v, 0.4),
        "flat": known.Sine(v, np.pi / 2),  # w = 0 although f varies
    }[name]


def misses(function, d, **more):
    """Share of converged rows that are further off than promised, and the explanation."""
    neighbourhood = sl.Neighbourhood(1.0)
    rows = np.zeros((REPEATS, d))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.errors.NotConverged)  # rows at the cap do not count
        e = sl.explain(function, rows, rtol=RTOL, max_samples=CAP, draws="independent", **more)
    truth = function.slopes(rows[:1], neighbourhood)
    draws = np.random.default_rng(0).standard_normal((200_000, d))
    spread = function.values(draws).std()
    promised = max(RTOL * np.linalg.norm(truth), 0.01 * spread)
    errors = np.linalg.norm(e.values - truth, axis=1)
    return (errors[e.converged] > promised).mean() if e.converged.any() else 0.0, e


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 5, 16])
@pytest.mark.parametrize("name", ["smooth", "steep", "rare", "flat"])
def test_gradients_keep_their_promise(name, d):
    share, _ = misses(case(name, d), d, method="smoothgrad", design="iid")
    assert share <= LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smooth", "steep", "rare", "flat"])
def test_the_default_design_keeps_its_promise(name):
    share, e = misses(case(name, 5), 5, method="smoothgrad")
    assert share <= LIMIT
    if name == "flat":  # stops by atol, not by the cap
        assert e.converged.mean() > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 5, 16])
@pytest.mark.parametrize("name", ["smooth", "steep", "rare", "step", "flat"])
def test_predictions_keep_their_promise(name, d):
    share, e = misses(case(name, d), d, method="differences")
    assert share <= LIMIT
    if name == "flat":  # 1% of a spread is asked for, which differences in one dimension may find to be near 0
        assert e.converged.mean() >= 0.99


class Probability:
    """A ridge function that is known to lie between 0 and 1."""

    outputs, output_range = ("p",), (0.0, 1.0)

    def __init__(self, function):
        self.values = lambda points: function.values(points)


class WithGradients(Probability):
    def __init__(self, function):
        super().__init__(function)
        self.values_and_gradients = lambda points, weights: function.values_and_gradients(points, weights)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize(("steep", "away"), [(2, 2.5), (2, 2.75), (8, 2.25), (8, 2.75)])
def test_probabilities_that_are_nearly_sure_keep_their_promise(steep, away, d):
    """1 beyond some standard deviations, 0 before: all there is to say is said by few draws, or by none."""
    function = known.Probit(steep * direction(d), -steep * away)
    truth = function.slopes(np.zeros((1, d)), sl.Neighbourhood(1.0))
    promised = max(RTOL * np.linalg.norm(truth), 0.005)
    assert promised == 0.005
    rows = np.zeros((400 if d == 1 else 100, d))
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(rows))
    models = [(WithGradients, "auto"), (Probability, "auto"), (Probability, "differences")]
    for kind, method in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.errors.NotConverged)
            e = sl.explain(kind(function), rows, method=method, rtol=RTOL, max_samples=CAP, draws="independent")
        errors = np.linalg.norm(e.values - truth, axis=1)[e.converged]
        assert (errors > promised).sum() <= limit * max(20, len(errors))


@pytest.mark.slow
def test_stopping_when_the_error_bar_looks_small_enough_does_not():
    """The rule that people use, 1.96·SE < eps from the first few draws on, on the case that fools it."""
    function, d = case("rare", 1), 1
    rows = np.zeros((REPEATS, d))
    truth = function.slopes(rows[:1], sl.Neighbourhood(1.0))[0]
    stopped = np.full(REPEATS, np.nan)
    for n in 16 * 2 ** np.arange(10):
        e = sl.explain(function, rows, method="smoothgrad", design="iid", n_samples=int(n), draws="independent")
        error = 1.96 * np.linalg.norm(standard_error(e.groups.pseudo, e.groups.sizes), axis=1)
        small = error < np.maximum(RTOL * np.linalg.norm(e.values, axis=1), 1e-12)
        newly = np.isnan(stopped) & (small | (error == 0))
        stopped[newly] = np.linalg.norm(e.values[newly] - truth, axis=1)
    missed = (stopped > RTOL * np.linalg.norm(truth)).mean()
    assert missed > 0.3


@pytest.mark.slow
def test_intervals_after_stopping_still_cover():
    function = case("smooth", 5)
    truth = function.slopes(np.zeros((1, 5)), sl.Neighbourhood(1.0))
    for method, design in (("smoothgrad", "iid"), ("differences", "auto")):
        _, e = misses(function, 5, method=method, design=design)
        lower, upper = e.interval(0.95)
        assert ((lower <= truth) & (truth <= upper)).mean(axis=0).min() >= 0.925


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 5, 16])
def test_the_cost_is_near_that_of_knowing_the_error(d):
    """Draws spent against an oracle: the same t-radius with the true standard error, looking once."""
    from scipy.stats import t

    function = case("smooth", d)
    for method, design in (("smoothgrad", "iid"), ("clime", "antithetic")):
        _, e = misses(function, d, method=method, design=design)
        big = sl.explain(
            function, np.zeros((200, d)), method=method, design=design, n_samples=4_096, draws="independent"
        )
        per_draw = np.sqrt(4_096 * big.values.var(axis=0, ddof=1).sum())
        size = np.linalg.norm(function.slopes(np.zeros((1, d)), sl.Neighbourhood(1.0)))
        looks = 6
        oracle = (t.ppf(1 - 0.025 / looks, 31) * per_draw / (RTOL * size)) ** 2
        assert e.n_samples.mean() <= 3.5 * max(oracle, 256)
