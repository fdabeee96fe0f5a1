"""F along one feature: closed forms, the band, means over rows, scales, tables, and what is refused."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom, norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import smoothlime as sl
from smoothlime.errors import InvalidArgument, NotConverged, WrongType
from smoothlime.testing import Probit

MODEL = Probit([1.0, -0.5, 0.0], 0.2)
ROWS = np.random.default_rng(0).normal(size=(5, 3))


def truth(rows, j, grid, around):
    moved = np.repeat(rows, len(grid), axis=0)
    moved[:, j] = np.tile(grid, len(rows))
    return MODEL.smoothed(moved, around).reshape(len(rows), len(grid))


def test_the_band_holds_the_closed_form():
    grid, around = np.linspace(-2, 2, 5), sl.Neighbourhood(0.8)
    repeats, hits, seen = 150, np.zeros(5), []
    for seed in range(repeats):
        found = sl.curve(MODEL, ROWS[0], 0, grid=grid, sigma=around, n_samples=256, seed=seed)
        lower, upper = found.interval()
        hits += (lower <= truth(ROWS[:1], 0, grid, around)[0]) & (truth(ROWS[:1], 0, grid, around)[0] <= upper)
        seen.append((found.values, found.standard_error))
    low, high = binom.ppf([1e-6, 1 - 1e-6], repeats, [0.925, 0.975])
    assert ((low <= hits) & (hits <= high)).all()
    values, errors = np.array(seen).swapaxes(0, 1)
    ratio = np.sqrt((errors**2).mean(axis=0)) / values.std(axis=0)
    assert (np.abs(np.log(ratio)) < 5 / np.sqrt(2 * repeats)).all()  # what a scatter of so many is known to


def test_many_rows_give_their_mean():
    grid, around = np.linspace(-1, 1, 4), sl.Neighbourhood(0.5)
    found = sl.curve(MODEL, ROWS, 1, grid=grid, sigma=around, n_samples=2_048)
    each = truth(ROWS, 1, grid, around)
    assert np.abs(found.by_row - each).max() < 0.02
    np.testing.assert_allclose(found.by_row.mean(axis=0), found.values)
    assert (np.abs(found.values - each.mean(axis=0)) < 6 * found.standard_error).all()
    one = sl.curve(MODEL, ROWS[2], 1, grid=grid, sigma=around, n_samples=2_048)
    np.testing.assert_allclose(found.by_row[2], one.values, rtol=1e-12)


def test_a_feature_that_the_model_ignores_has_a_level_curve():
    found = sl.curve(MODEL, ROWS[0], 2, sigma=0.5)
    np.testing.assert_allclose(found.values, found.values[0], rtol=1e-12)


def test_draws_are_made_until_the_band_is_narrow():
    found = sl.curve(MODEL, ROWS[0], 0, sigma=1.0, atol=0.01, rtol=0.0)
    assert found.converged
    assert found.n_samples > 256
    lower, upper = found.interval()
    assert (upper - lower).max() / 2 < 0.01
    with pytest.warns(NotConverged, match="the curve along 'x0' did not reach its tolerance within 512 draws"):
        found = sl.curve(MODEL, ROWS[0], 0, sigma=1.0, atol=1e-6, rtol=0.0, max_samples=512)
    assert not found.converged


def test_trees_are_exact():
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(ROWS, ROWS[:, 0])
    grid = [-1.0, 0.3]
    found = sl.curve(forest, ROWS[0], "x0", grid=grid, sigma=0.5)
    assert found.is_exact
    moved = np.repeat(ROWS[:1], 2, axis=0)
    moved[:, 0] = grid
    z = np.random.default_rng(0).standard_normal((200_000, 3))
    drawn = [forest.predict(row + 0.5 * z) for row in moved]
    for mean, seen in zip(found.values, drawn, strict=True):
        assert abs(mean - seen.mean()) < 5 * seen.std() / np.sqrt(len(seen))


def test_the_slope_of_the_curve_is_the_slope():
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(ROWS, ROWS[:, 0])
    h = 1e-5
    x = ROWS[0]
    found = sl.curve(forest, x, 0, grid=[x[0] - h, x[0] + h], sigma=0.5)
    slope = sl.explain(forest, x, sigma=0.5).values[0, 0]
    assert abs(np.diff(found.values)[0] / (2 * h) - slope) < 1e-6


@pytest.mark.parametrize("scale", ["linear", "log", "ranks"])
def test_scales_choose_the_grid_and_smooth_in_their_own_units(scale):
    data = np.exp(np.random.default_rng(0).normal(size=(500, 2)))
    found = sl.curve(
        lambda a: np.log(np.maximum(a[:, 0], 1e-3)), data[0], 0, background=data, scale=scale, sigma=0.01, fixed=[1]
    )
    assert data[:, 0].min() * 0.999 <= found.grid[0] < found.grid[-1] <= data[:, 0].max() * 1.001
    if scale == "linear":
        return
    middle = slice(5, -5)
    np.testing.assert_allclose(found.values[middle], np.log(found.grid[middle]), atol=0.02)
    gaps = np.diff(np.log(found.grid)) if scale == "log" else np.diff(norm.ppf(np.searchsorted(
        np.sort(data[:, 0]), found.grid[middle]) / 500))  # fmt: skip
    assert gaps.max() < 3 * np.median(gaps)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_keep_their_other_columns(library):
    frame = pd.DataFrame({"age": [30, 50], "debt": [1.0, 2.0], "city": ["York", "Bath"]})

    def model(table):
        table = pd.DataFrame(table) if library == "pandas" else table.to_pandas()
        return table["age"] / 10 + (table["city"] == "York") * table["debt"]

    given = frame
    if library == "polars":
        import polars

        given = polars.from_pandas(frame)
    elif library == "pyarrow":
        import pyarrow

        given = pyarrow.Table.from_pandas(frame)
    # the loop hands frames of the rows' own library to a function
    found = sl.curve(model, given, "age", grid=[20.0, 40.0], sigma=sl.Neighbourhood(1.0), n_samples=4_096)
    np.testing.assert_allclose(found.by_row, [[3, 5], [2, 4]], atol=0.1)
    assert found.x.tolist() == [30, 50]


def test_a_feature_that_is_held_takes_the_values_given():
    found = sl.curve(lambda a: a[:, 0] * a[:, 1] ** 2, [1.0, 1.0], 0, grid=[0, 1, 2], sigma=0.5, fixed=[0])
    lower, upper = found.interval(0.999999)
    assert ((lower <= [0, 1.25, 2.5]) & (upper >= [0, 1.25, 2.5])).all()
    with pytest.raises(InvalidArgument, match=r"held fixed, and nothing says how far it goes"):
        sl.curve(lambda a: a[:, 0], [1.0, 1.0], 0, fixed=[0])


def test_predicted_is_what_is_predicted_at_the_row():
    def model(a):
        p = 1 / (1 + np.exp(-a[:, 0]))
        return np.column_stack([1 - p, p])

    found = sl.curve(model, [-1.0, 0.0], 0, grid=[-3.0, 3.0], sigma=0.1, target="predicted")
    assert found.values[0] > 0.9 > 0.1 > found.values[1]


def test_frames_pictures_and_words():
    found = sl.curve(MODEL, ROWS, 0, sigma=0.5, n_samples=64, grid=7)
    assert list(found.to_frame().columns) == ["value", "smoothed", "standard_error", "lower", "upper"]
    assert "7 points, 5 rows, 64 draws" in repr(found)
    axes = found.plot()
    assert axes.get_xlabel() == "x0"
    assert len(axes.lines) == 5 + 1 + 1
    np.testing.assert_allclose(axes.lines[5].get_ydata(), found.values)
    plt.close("all")


@pytest.mark.parametrize(
    ("feature", "more", "kind", "words"),
    [
        ("x9", {}, InvalidArgument, "feature names 'x9'"),
        (7, {}, InvalidArgument, "a position from 0 to 2; got 7"),
        (0, {"grid": [0.0, np.nan]}, InvalidArgument, "grid must be"),
        (0, {"grid": 1}, InvalidArgument, "grid"),
        (0, {"rtol": 2.0}, InvalidArgument, "rtol"),
    ],
)
def test_bad_input(feature, more, kind, words):
    with pytest.raises(kind, match=words):
        sl.curve(MODEL, ROWS, feature, **more)


def test_dates_have_no_curve():
    frame = pd.DataFrame({"age": [30.0], "day": pd.to_datetime(["2020-01-01"])})
    with pytest.raises((InvalidArgument, WrongType), match="holds no"):
        sl.curve(lambda t: t["age"], frame, "day", sigma=sl.Neighbourhood(1.0))


def towns(n=60):
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    table["city"] = rng.choice(["Bath", "Leeds", "York"], n)
    return table


def of_towns(frame):
    lift = frame["city"].map({"Bath": 0.0, "Leeds": 1.0, "York": -2.0, "Rome": 5.0}).to_numpy(float)
    return np.sin(frame["a"].to_numpy()) * (1 + lift) + lift


def test_a_category_has_a_point_for_each_level():
    """E sin(a) = sin(x)·exp(−σ²/2), with the level's own factor and lift."""
    table = towns()
    found = sl.curve(of_towns, table[:20], "city", background=table, sigma=0.5, n_samples=2_048)
    assert found.levels == ("Bath", "Leeds", "York")
    smooth = np.sin(table["a"][:20]).mean() * np.exp(-((0.5 * table["a"].std(ddof=1)) ** 2) / 2)
    wanted = [smooth, 2 * smooth + 1, -smooth - 2]
    assert (np.abs(found.values - wanted) <= 5 * found.standard_error + 1e-12).all()
    assert (found.standard_error < 0.05).all()
    assert list(found.to_frame()["value"]) == ["Bath", "Leeds", "York"]
    np.testing.assert_array_equal(found.x, [found.levels.index(each) for each in table["city"][:20]])
    ax = found.plot()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Bath", "Leeds", "York"]
    plt.close(ax.figure)


def test_differences_of_levels_are_the_switches():
    table = towns()
    columns = make_column_transformer((OneHotEncoder(), ["city"]), ("passthrough", ["a", "b"]))
    model = make_pipeline(columns, RandomForestRegressor(5, max_depth=4, random_state=0))
    model.fit(table, of_towns(table))
    around = {"background": table, "sigma": 0.5}
    found = sl.curve(model, table[:1], "city", **around)
    assert found.is_exact
    e = sl.explain(model, table[:1], **around)
    effects = dict(zip(e.switches.levels, e.switches.effect[0], strict=True))
    own = table["city"][0]
    for level, value in zip(found.levels, found.values, strict=True):
        wanted = 0.0 if level == own else effects[level]
        assert abs(value - e.smoothed[0] - wanted) < 1e-10


@pytest.mark.parametrize("kind", ["pandas", "categorical", "polars", "pyarrow"])
def test_levels_that_are_listed_in_every_kind_of_table(kind):
    table = towns()
    if kind == "categorical":
        table["city"] = table["city"].astype("category")
    given = {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}.get(kind, lambda frame: frame)(table)

    def model(frame):
        return of_towns(frame if kind in ("pandas", "categorical") else frame.to_pandas())

    found = sl.curve(model, given, "city", grid=["York", "Rome"], sigma=0.1, n_samples=64)
    assert found.levels == ("Rome", "York")
    assert found.values[0] > 4
    assert np.isnan(found.x).sum() == (table["city"] != "York").sum()


def test_what_a_category_lacks_is_said():
    table = towns()
    with pytest.raises(InvalidArgument, match=r"Give background=, or list them: grid=\[\.\.\.\]"):
        sl.curve(of_towns, table, "city")
    with pytest.raises(InvalidArgument, match="grid must list levels of 'city'; got 'York'"):
        sl.curve(of_towns, table, "city", grid="York")
    with pytest.raises(InvalidArgument, match=r"grid.*lists the level 3 of 'city', a column of text"):
        sl.curve(of_towns, table, "city", grid=[3])
