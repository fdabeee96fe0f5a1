"""Two models on the same rows: changed, unchanged, or cannot tell; how often wrongly, and how it is said."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import smoothlime as sl
from smoothlime.errors import InvalidArgument
from smoothlime.testing import Sine

ROWS = np.random.default_rng(0).normal(size=(8, 3))


def linear(coefficients):
    return lambda a: a @ np.array(coefficients)


def test_the_difference_is_that_of_the_slopes():
    found = sl.compare(linear([1.0, 2.0, 0.0]), linear([1.0, 2.5, 0.0]), ROWS)
    np.testing.assert_allclose(found.difference, np.tile([0.0, 0.5, 0.0], (8, 1)), atol=1e-9)
    np.testing.assert_allclose(found.size, 0.5, atol=1e-9)
    np.testing.assert_allclose(found.allowed, 0.05 * np.sqrt(5), rtol=1e-9)
    assert found.changed == (True,) * 8
    assert found.verdict == "changed"


def test_the_same_model_is_unchanged():
    def model(a):
        return np.tanh(a @ [1.0, -1.0, 0.5])

    found = sl.compare(model, model, ROWS)
    assert found.verdict == "unchanged"
    assert (found.p_value == 1).all()
    assert (found.difference == 0).all()


@pytest.mark.parametrize(("factor", "verdict"), [(1.04, "unchanged"), (1.06, "changed")])
def test_exact_answers_are_judged_by_the_margin_alone(factor, verdict):
    old = LinearRegression().fit(ROWS, ROWS @ [1.0, 2.0, 3.0])
    new = LinearRegression().fit(ROWS, ROWS @ (factor * np.array([1.0, 2.0, 3.0])))
    found = sl.compare(old, new, ROWS)
    assert found.explanation.is_exact
    assert found.verdict == verdict
    assert set(found.p_value) == {0.0 if verdict == "changed" else 1.0}


def test_probabilities_may_differ_by_half_a_percent_whatever_their_slopes():
    x = np.random.default_rng(1).normal(size=(300, 3))
    y = (x @ [1.0, 1.0, 0.0] + np.random.default_rng(2).logistic(size=300) > 0).astype(int)
    old, new = (LogisticRegression(C=c).fit(x, y) for c in (1.0, 0.95))
    found = sl.compare(old, new, 6 * np.ones((1, 3)), target=1)
    assert found.allowed.tolist() == [0.005]
    assert found.verdict == "unchanged"


def test_pairing_makes_small_changes_visible():
    """Slopes of a wave have errors of 5% here; a change of 2% in the wave is seen all the same."""
    old = Sine([2.0, 1.0, 0.0])

    def new(a):
        return 1.02 * old.values(a)[:, 0]

    found = sl.compare(lambda a: old.values(a)[:, 0], new, ROWS * 0.1, sigma=0.5, margin=0.01, n_samples=1_024)
    assert found.verdict == "changed"
    share = np.nanmax(found.standard_error, axis=1) / np.nanmax(found.old.standard_error, axis=1)
    assert (share < 0.1).all()


@pytest.mark.parametrize("method", ["clime", "differences", "stein"])
def test_changes_within_the_margin_are_seldom_called_changes(method):
    """The change is just the margin: a row is called changed in at most 5% of the tables, by chance."""
    repeats, wrong = 120, 0
    for seed in range(repeats):

        def old(a):
            return np.sin(a[:, 0]) + a[:, 1]

        def new(a):
            return 1.05 * np.sin(a[:, 0]) + 1.05 * a[:, 1]

        found = sl.compare(old, new, ROWS[:3], margin=0.0499, n_samples=256, seed=seed, method=method)
        del old, new
        truth = np.abs(found.size - found.allowed) < 0.2 * found.allowed
        assert truth.all()
        wrong += True in found.changed
    # the margin is a share of the old slopes as estimated, which err together with the change
    assert wrong <= binom.ppf(1 - 1e-6, repeats, 0.05)


@pytest.mark.parametrize("draws", [256, 1_024])
def test_noise_is_seldom_a_change(draws):
    """Models whose smoothed slopes are equal, though their outputs are not: they differ by an even wave."""

    def old(a):
        return a[:, 0] + a[:, 1]

    def new(a):
        return a[:, 0] + a[:, 1] + np.cos(3 * a[:, 2])

    x = np.zeros((3, 3))
    changed = [
        True in sl.compare(old, new, x, margin=0.0, n_samples=draws, seed=seed, method="clime", design="iid").changed
        for seed in range(200)
    ]
    assert np.mean(changed) <= binom.ppf(1 - 1e-6, 200, 0.05) / 200


def test_more_draws_are_made_while_a_row_is_undecided():
    old = Sine([1.0, 0.0, 0.0])

    def new(a):
        return old.values(a)[:, 0] + 0.09 * np.sin(a[:, 1]) + np.cos(4 * a[:, 2])

    asked = {"margin": 0.05, "sigma": 1.0, "method": "clime", "design": "iid"}
    few = sl.compare(lambda a: old.values(a)[:, 0], new, ROWS[:2] * 0.1, n_samples=256, **asked)
    assert few.verdict == "cannot tell"
    many = sl.compare(lambda a: old.values(a)[:, 0], new, ROWS[:2] * 0.1, max_samples=1_048_576, **asked)
    assert many.verdict == "changed"
    assert many.old.n_samples.max() > 1_024


def test_a_closed_form_is_sampled_beside_a_model_that_has_none():
    x = np.random.default_rng(1).normal(size=(200, 3))
    y = (x[:, 0] > 0).astype(int)
    forest = RandomForestClassifier(20, random_state=0).fit(x, y)
    found = sl.compare(forest, forest.predict_proba, x[:3], target=1)
    assert found.old.method == found.new.method != "exact"
    assert found.verdict == "unchanged"
    assert (found.difference == 0).all()


def test_predicted_is_what_the_old_model_predicts():
    x = np.random.default_rng(1).normal(size=(200, 3))
    old = LogisticRegression().fit(x, np.where(x[:, 0] > 0, "yes", "no"))
    new = LogisticRegression().fit(x, np.where(x[:, 1] > 0, "yes", "no"))
    rows = np.array([[2.0, -2.0, 0.0], [-2.0, 2.0, 0.0]])
    found = sl.compare(old, new, rows, target="predicted")
    assert found.old.row_outputs == found.new.row_outputs == ("yes", "no")


def test_it_is_told_in_sentences_and_as_a_frame():
    found = sl.compare(linear([1.0, 2.0, 0.0]), linear([1.0, 3.0, 0.0]), ROWS)
    text = str(found)
    assert text.startswith("Changed around 8 of 8 rows, by more than 5% of the old slopes.")
    assert "Largest mean change per neighbourhood standard deviation: x1 (1)" in text
    assert "shared draws; level 0.05" in text
    assert len(found) == 8
    assert list(found.to_frame()["feature"][:3]) == ["x0", "x1", "x2"]
    same = sl.compare(linear([1.0, 2.0, 0.0]), linear([1.0, 2.0, 0.0]), ROWS)
    assert str(same).startswith("Unchanged around all 8 rows, within 5% of the old slopes.")


def test_bad_input():
    import pandas as pd

    table = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    old = LinearRegression().fit(table, ROWS[:, 0])
    new = LinearRegression().fit(table[["b", "a", "c"]], ROWS[:, 0])
    with pytest.raises(InvalidArgument, match="X and the model have different columns"):
        sl.compare(old, new, table)
    with pytest.raises(InvalidArgument, match="old and new have different features: a, b, c and b, a, c"):
        sl.compare(old, new, ROWS)
    with pytest.raises(InvalidArgument, match="alpha must lie strictly between 0 and 1"):
        sl.compare(old, old, table, alpha=2)
    with pytest.raises(InvalidArgument, match="margin"):
        sl.compare(old, old, table, margin=-1)
