"""What data says of columns, the odd ones among them: a right answer or a clear error."""

import numpy as np
import pandas as pd
import pytest

import smoothlime as sl
from smoothlime.errors import InvalidArgument, LostPrecision

RNG = np.random.default_rng(2)
N = 500
ODD = pd.DataFrame(
    {
        "plain": RNG.normal(size=N),
        "constant": np.full(N, 3.0),
        "nearly": np.append(np.full(N - 1, 7.0), 8.0),
        "gone": np.full(N, np.nan),
        "gaps": np.where(RNG.random(N) < 0.3, np.nan, RNG.exponential(size=N)),
        "level": ["only"] * N,
        "huge": RNG.normal(size=N) * 1e100,
        "tiny": RNG.random(N) * 1e-100,
        "alone": np.append(np.full(N - 1, np.nan), 1.0),
    }
)


def total(frame):
    return np.nan_to_num(frame[["plain", "nearly", "gaps"]].to_numpy(dtype=float)).sum(axis=1)


MODEL = sl.as_model(total, takes="table")


@pytest.mark.parametrize("scale", ["ranks", "auto"])
def test_a_table_of_odd_columns_is_explained(scale):
    rows = ODD.iloc[[0, 1]].copy()
    rows["gaps"] = [1.0, 2.0]
    e = sl.explain(MODEL, rows, background=ODD, scale=scale, sigma=0.5, n_samples=512)
    words = dict(zip(e.feature_names, e.neighbourhood.scales, strict=True))
    assert [words[name] for name in ("constant", "gone", "alone", "level")] == ["fixed", "fixed", "fixed", "category"]
    held = ["constant", "gone", "alone", "level"]
    assert np.isnan(e.values[:, [e.feature_names.index(name) for name in held]]).all()
    if scale == "ranks":
        there = e.perturbations(0)
        assert set(there[:, e.feature_names.index("nearly")]) <= {7.0, 8.0}
        for name in ("huge", "tiny", "gaps"):
            moved = there[:, e.feature_names.index(name)]
            assert ODD[name].min() <= moved.min() < moved.max() <= ODD[name].max()
    np.testing.assert_array_equal(e.prediction, total(rows))


def test_a_million_different_values():
    column = RNG.permutation(10**6)[:, None] / 3.0
    known = sl.Neighbourhood.from_data(column, 0.5, scale="ranks")
    e = sl.explain(lambda a: a[:, 0], [[1e5]], sigma=known, n_samples=512)
    assert e.perturbations().min() >= 0
    assert e.prediction[0] == 1e5


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("scale", ["linear", "log", "ranks", "auto"])
def test_infinite_values_are_refused(bad, scale):
    data = np.abs(RNG.normal(size=(20, 2))) + 0.1
    data[3, 1] = bad
    with pytest.raises(InvalidArgument, match=r"X must be finite; got -?inf at row 3, feature 1"):
        sl.Neighbourhood.from_data(data, scale=scale)


def test_codes_beyond_what_floats_hold():
    codes = pd.DataFrame({"id": RNG.integers(2**53, 2**62, 200), "a": RNG.normal(size=200)})
    f = lambda a: a[:, 1]
    with pytest.raises(InvalidArgument, match=r"'id' goes up to .*beyond 2\*\*53.*list it in fixed"):
        sl.explain(f, codes[:2], background=codes, scale="ranks")
    with pytest.warns(LostPrecision, match=r"row 0 has \d+ at 'id', and the model is given \d+"):
        e = sl.explain(f, codes[:2], background=codes, scale="ranks", fixed=["id"], n_samples=128)
    assert np.isfinite(e.values[:, 1]).all()


def test_log_of_what_is_held_is_not_looked_at():
    data = np.column_stack([np.exp(RNG.normal(size=50)), -np.ones(50), RNG.normal(size=50)])
    known = sl.Neighbourhood.from_data(data, scale="log", fixed=[2])
    assert known.scales == ("log", "fixed", "fixed")
    with pytest.raises(InvalidArgument, match="scale='log' is for numbers >= 0, and column 2 goes down to"):
        sl.Neighbourhood.from_data(data, scale="log")


def test_a_column_that_is_zero_or_positive_is_shifted():
    data = np.append(np.zeros(5), np.exp(RNG.normal(size=50)))[:, None]
    known = sl.Neighbourhood.from_data(data, scale="log")
    least = data[data > 0].min()
    e = sl.explain(lambda a: a[:, 0], [[0.0]], sigma=known, n_samples=512)
    assert e.prediction[0] == 0
    assert e.scores[0, 0] == pytest.approx(np.log(least / 2))
    assert e.perturbations().min() > -least / 2


def test_gaps_do_not_count_in_ranks():
    column = np.append(RNG.normal(size=400), np.full(600, np.nan))[:, None]
    one, other = (sl.Neighbourhood.from_data(each, scale="ranks") for each in (column, column[:400]))
    np.testing.assert_array_equal(one.background.scales[0].middle, other.background.scales[0].middle)


def test_correlations_need_whole_rows():
    data = RNG.normal(size=(40, 2))
    data[1, 0] = np.nan
    with pytest.raises(InvalidArgument, match=r"X has 1 missing values.*correlations need whole rows"):
        sl.Neighbourhood.from_data(data, full=True, scale="ranks")


def test_neighbourhoods_differ_by_their_scales():
    data = np.exp(RNG.normal(size=(40, 2)))
    kinds = [sl.Neighbourhood.from_data(data, scale=scale) for scale in ("linear", "log", "ranks", {0: "ranks"})]
    assert [[one == other for other in kinds] for one in kinds] == np.eye(4, dtype=bool).tolist()
    assert kinds[2] == sl.Neighbourhood.from_data(data.copy(), scale="ranks")
    assert kinds[2] != sl.Neighbourhood.from_data(data * 2, scale="ranks")
    assert sl.Neighbourhood(0.5).scales == sl.Neighbourhood(0.5).categories == ()


def test_positions_and_names_of_columns_may_be_mixed():
    table = pd.DataFrame(np.exp(RNG.normal(size=(40, 3))), columns=["a", "b", "c"])
    known = sl.Neighbourhood.from_data(table, scale={"a": "log", 2: "ranks"}, fixed=["b"])
    assert known.scales == ("log", "fixed", "ranks")


def test_a_neighbourhood_of_other_columns_is_refused():
    known = sl.Neighbourhood.from_data(np.exp(RNG.normal(size=(40, 3))), scale="ranks")
    with pytest.raises(InvalidArgument, match="3 entries but the rows have 2 features"):
        sl.explain(lambda a: a[:, 0], [[1.0, 2.0]], sigma=known)


def test_columns_of_an_array_are_named_as_they_are_in_results():
    data = np.random.default_rng(0).lognormal(size=(200, 2))
    for scale in ({"x1": "log"}, {1: "log"}):
        assert sl.Neighbourhood.from_data(data, scale=scale).scales == ("linear", "log")
        assert sl.explain(lambda a: a[:, 0], data[:2], scale=scale).neighbourhood.scales == ("linear", "log")
