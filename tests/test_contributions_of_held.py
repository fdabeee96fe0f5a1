"""Held columns that differ from a baseline, where it is easy to go wrong: rows alone, acting together, gaps."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, roots_legendre
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import smoothlime as sl
from smoothlime.errors import InvalidArgument

TABLE = pd.DataFrame({"a": [0.1, 1.0, 2.0], "c": ["x", "y", "x"], "d": ["u", "u", "v"]})
HELD = sl.Neighbourhood(0.5, fixed=["c", "d"])


def answers(table):
    a = table["a"].to_numpy(dtype=float)
    return np.sin(a) + (table["c"] == "x").to_numpy() * a + (table["d"] == "u").to_numpy()


MODEL = sl.as_model(answers, feature_names=["a", "c", "d"])


@pytest.mark.parametrize("n", [None, 512])
@pytest.mark.parametrize("by_row", [False, True])
def test_a_row_alone_has_the_same_bits_as_among_rows_that_differ_in_other_columns(n, by_row):
    b = TABLE.iloc[[1, 2, 0]] if by_row else TABLE.iloc[[1]]
    together = sl.contributions(MODEL, TABLE, baseline=b, sigma=HELD, n_samples=n)
    for row in range(3):
        alone = sl.contributions(
            MODEL, TABLE.iloc[[row]], baseline=b.iloc[[row]] if by_row else b, sigma=HELD, n_samples=n
        )
        for name in ("values", "standard_error", "total", "base", "residual", "residual_error", "n_samples"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(together, name)[row])


def are_both(table):
    return (table == "y").all(axis=1).to_numpy(dtype=float)[:, None]


def test_text_that_acts_only_together_is_seen_by_closed_forms():
    """f = a + 3·[both are y]: alone, neither column changes anything at a row of two n."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"a": rng.normal(size=200), "e": rng.choice(["y", "n"], 200), "g": rng.choice(["y", "n"], 200)}
    )
    wanted = table["a"] + 3 * ((table["e"] == "y") & (table["g"] == "y"))
    columns = make_column_transformer(("passthrough", ["a"]), (FunctionTransformer(are_both), ["e", "g"]))
    rows = pd.DataFrame({"a": [0.0, 1.0], "e": ["n", "n"], "g": ["n", "y"]})
    b = pd.DataFrame({"a": [0.5], "e": ["y"], "g": ["y"]})
    found = sl.contributions(make_pipeline(columns, LinearRegression()).fit(table, wanted), rows, baseline=b, sigma=0.5)
    assert found.is_exact
    np.testing.assert_allclose(found.values, [[-0.5, -1.5, -1.5], [0.5, -3.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(found.base, 3.5)

    model = make_pipeline(columns, LogisticRegression()).fit(table, wanted > 1)
    found = sl.contributions(model, rows, baseline=b, sigma=0.5, target=1)
    assert found.is_exact
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    (slope, both), shift = model[-1].coef_[0], model[-1].intercept_[0]
    smoothed = lambda a, z: expit(slope * (a + 0.5 * nodes) + both * z + shift) @ weights / weights.sum()
    t, w = roots_legendre(30)
    t, w = (1 + t) / 2, w / 2
    # at a fraction t of the line, the other column is as in the baseline with chance 1 − t
    changes = [smoothed(0.5 * (1 - s), 0) - smoothed(0.5 * (1 - s), 1) for s in t]
    of_text = (w * (1 - t)) @ changes
    np.testing.assert_allclose(found.values[0, 1:], of_text, atol=1e-9)
    np.testing.assert_allclose(found.residual, 0, atol=1e-12)


def test_gaps_of_text_on_both_sides_add_nothing():
    rows, b = TABLE.copy(), TABLE.assign(c=["y", None, "x"])
    rows.loc[1, "c"] = None
    found = sl.contributions(MODEL, rows, baseline=b, sigma=HELD, n_samples=512)
    assert found.held_apart == ("c",)
    assert found.values[0, 1] != 0
    assert not found.values[1:, 1].any()
    with pytest.raises(InvalidArgument, match="'c' is held, and is 'y' in row 1 and missing in its baseline"):
        sl.contributions(MODEL, TABLE, baseline=b, sigma=HELD, n_samples=512)


def test_what_a_held_column_cannot_hold_is_said_of_the_baseline():
    with pytest.raises(InvalidArgument, match="baseline has inf for 'x1', a column of finite numbers") as caught:
        sl.contributions(lambda a: a[:, 0] + a[:, 1], [[1.0, 2.0]], baseline=[0.0, np.inf], fixed=[1])
    assert caught.value.argument == "baseline"


def test_an_empty_column_of_a_background_leaves_others_their_parts():
    background = pd.concat([TABLE] * 4, ignore_index=True).assign(c=None)
    found = sl.contributions(MODEL, TABLE, background=background, sigma=HELD, n_samples=512)
    assert found.held_apart == ("d",)
    assert found.held_alike == ()


def test_what_pandas_has_for_missing_is_a_gap_of_the_baseline():
    with pytest.raises(InvalidArgument, match="'c' is held, and is 'x' in row 0 and missing in its baseline"):
        sl.contributions(MODEL, TABLE, baseline={"a": 0.0, "c": pd.NA, "d": "u"}, sigma=HELD, n_samples=512)
