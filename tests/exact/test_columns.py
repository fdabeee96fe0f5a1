"""Thresholds moved through functions that never fall, to the last float; and ensembles joined with weights."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from smoothlime.errors import NoClosedForm
from smoothlime.exact.trees.columns import is_last_below, join_ensembles, last_below, widened
from smoothlime.exact.trees.read.recognise import read_trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
FUNCTIONS = {
    "line": lambda a: (a - 0.3) / 7.1,
    "far line": lambda a: (a - 1e6) / 1e-3,
    "exp": np.exp,
    "steps": np.floor,
    "clipped": lambda a: np.clip(a, -1.0, 1.0),
    "single": lambda a: a.astype(np.float32),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_last_number_below_is_within_and_the_next_is_not(name):
    rising, limits = FUNCTIONS[name], RNG.normal(size=(50, 2)) * [1.0, 0.1]
    limits[0] = 0.0
    limits[-1, 1] = np.nan
    found = last_below(rising, limits)
    assert np.isnan(found[-1, 1])
    there = np.isfinite(found)
    assert there.sum() > 40
    with np.errstate(over="ignore"):
        assert (rising(found)[there] <= limits[there]).all()
        assert (rising(np.nextafter(found, np.inf))[there] > limits[there]).all()
    assert is_last_below(rising, limits, found)
    for other in (np.nextafter(found, np.inf), np.nextafter(found, -np.inf)):
        assert not is_last_below(rising, limits, np.where(there, other, found))


def test_limits_that_are_never_or_always_kept_are_infinite():
    limits = np.array([[-2.0, 2.0]])
    assert last_below(FUNCTIONS["clipped"], limits).tolist() == [[-np.inf, np.inf]]


def test_a_guess_changes_nothing():
    rising, limits = FUNCTIONS["far line"], RNG.normal(size=(50, 2))
    blind = last_below(rising, limits)
    for guess in (limits * 1e-3 + 1e6, np.zeros_like(limits), np.full_like(limits, np.nan)):
        np.testing.assert_array_equal(last_below(rising, limits, guess, np.full_like(limits, 1e-8)), blind)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_joined_ensembles_add_up(k):
    y = np.digitize(Y, [0.0, 1.0][: max(k - 1, 1)])
    forest = RandomForestClassifier(5, random_state=0).fit(X, y) if k > 1 else RandomForestRegressor(5).fit(X, Y)
    boosted = GradientBoostingClassifier(n_estimators=4).fit(X, np.digitize(Y, [0.0, 1.0]))
    one, other = read_trees(forest), read_trees(boosted, "margin")
    turns = RNG.normal(size=(k, one.k)), RNG.normal(size=(k, other.k))
    offset = RNG.normal(size=k)
    found = join_ensembles([(one, turns[0]), (other, turns[1])], offset, 3)
    expected = offset + one.predict(X) @ turns[0].T + other.predict(X) @ turns[1].T
    np.testing.assert_allclose(found.predict(X), expected, rtol=1e-12, atol=1e-12)
    wider = widened(found, 5)
    np.testing.assert_array_equal(wider.predict(np.column_stack([X, X[:, :2]])), found.predict(X))


def test_trees_that_serve_one_output_each_still_do():
    boosted = read_trees(GradientBoostingClassifier(n_estimators=4).fit(X, np.digitize(Y, [0.0, 1.0])), "margin")
    found = join_ensembles([(boosted, np.diag([2.0, 1.0, -1.0]))], np.zeros(3), 3)
    assert found.value.shape[1] == 1
    np.testing.assert_allclose(found.predict(X), boosted.predict(X) * [2.0, 1.0, -1.0], rtol=1e-12, atol=1e-12)


def test_zeros_that_are_missing_to_some_only_are_refused():
    import lightgbm

    zeros = np.where(RNG.random(X.shape) < 0.3, 0.0, X)
    model = lightgbm.LGBMRegressor(n_estimators=3, zero_as_missing=True, verbose=-1).fit(zeros, Y)
    forest = RandomForestRegressor(3).fit(X, Y)
    one = np.eye(1)
    with pytest.raises(NoClosedForm, match="take 0 for a missing value, and others do not"):
        join_ensembles([(read_trees(model), one), (read_trees(forest), one)], np.zeros(1), 3)
