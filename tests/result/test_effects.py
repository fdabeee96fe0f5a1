"""Means of slopes over rows: closed forms, both kinds of error, groups and their differences."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import smoothlime as sl
from smoothlime.errors import InvalidArgument


def wave(a):
    """Slopes of the smoothed model, of σ = 1: (cos(x0)·e^(−1/2), x2, x1)."""
    return np.sin(a[:, 0]) + a[:, 1] * a[:, 2]


def slopes(x):
    return np.column_stack([np.cos(x[:, 0]) * np.exp(-0.5), x[:, 2], x[:, 1]])


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(0.5, 1.0, (n, 3))


def explained(x, seed=0, **settings):
    asked = {"method": "clime", "design": "iid", "n_samples": 256, **settings}
    return sl.explain(wave, x, seed=seed, **asked)


def within(hits, repeats):
    """Whether as many of the 95% intervals hold as chance allows, at one in a million."""
    low, high = binom.ppf([1e-6, 1 - 1e-6], repeats, [0.925, 0.975])
    return low <= hits <= high


def test_means_are_those_of_the_slopes():
    e = explained(rows(40))
    found = e.effects()
    np.testing.assert_allclose(found.values, e.values.mean(axis=0))
    np.testing.assert_allclose(found.absolute, np.abs(e.values).mean(axis=0))
    np.testing.assert_allclose(found.positive, (e.values > 0).mean(axis=0))
    np.testing.assert_allclose(found.standardised, e.standardised.mean(axis=0))
    weights = np.random.default_rng(1).uniform(size=40)
    np.testing.assert_allclose(e.effects(weights).values, np.average(e.values, axis=0, weights=weights))
    np.testing.assert_allclose(e.effects(7 * weights).standard_error, e.effects(weights).standard_error)


@pytest.mark.parametrize("settings", [{}, {"draws": "independent"}, {"design": "aligned"}, {"design": "sobol"}])
def test_intervals_of_the_mean_over_these_rows_hold(settings):
    repeats, x = 150, rows(12)
    truth, hits = slopes(x).mean(axis=0), np.zeros(3)
    for seed in range(repeats):
        lower, upper = explained(x, seed, **settings).effects().interval()
        hits += (lower <= truth) & (truth <= upper)
    # runs of a sequence agree better than their own scatter says, so its intervals may hold more often
    assert within(hits.sum(), 3 * repeats) or (settings.get("design") and hits.mean() > 0.925 * repeats)


def test_rows_that_share_draws_err_together():
    """One row over and over has the error of one row; with draws of its own each, that over the root of 16."""
    x = np.repeat(rows(1), 16, axis=0)
    shared, independent = explained(x), explained(x, draws="independent")
    np.testing.assert_allclose(shared.effects().standard_error, shared.standard_error[0], rtol=1e-9)
    np.testing.assert_allclose(
        independent.effects().standard_error, np.sqrt((independent.standard_error**2).sum(axis=0)) / 16, rtol=1e-9
    )


@pytest.mark.parametrize("noise", [128, 1024])
def test_intervals_of_the_mean_over_a_population_hold(noise):
    """Whether the slopes' own errors are large or small: how much the rows differ is told apart from them."""
    repeats, truth, hits = 300, np.array([np.cos(0.5) * np.exp(-1.0), 0.5, 0.5]), np.zeros(3)
    ratio = []
    for seed in range(repeats):
        found = explained(rows(30, seed), seed, n_samples=noise).effects(rows="sample")
        lower, upper = found.interval()
        hits += (lower <= truth) & (truth <= upper)
        ratio.append(found.standard_error)
        assert (found.standard_error >= found.drawing_error).all()
    assert within(hits.sum(), 3 * repeats)
    assert np.allclose(np.mean(ratio, axis=0)[1:], 1 / np.sqrt(30), rtol=0.35)


def test_exact_slopes_have_no_error_of_drawing():
    from sklearn.linear_model import LogisticRegression

    x = rows(50)
    model = LogisticRegression().fit(x, x[:, 0] + x[:, 1] > 1)
    e = sl.explain(model, x, target=1)
    assert e.is_exact
    these, sample = e.effects(), e.effects(rows="sample")
    assert (these.standard_error == 0).all()
    np.testing.assert_allclose(sample.standard_error, e.values.std(axis=0, ddof=1) / np.sqrt(50))
    assert (these.absolute_bias == 0).all()


def test_bias_of_mean_absolute_slopes_is_told():
    """A slope of 0: all of the mean |slope| is noise, and is told to be so."""
    e = sl.explain(lambda a: np.cos(7 * a[:, 0]) + a[:, 1], rows(200) * 0, method="clime", design="iid",
                   n_samples=128, draws="independent")  # fmt: skip
    found = e.effects()
    assert abs(found.values[0]) < 5 * found.standard_error[0]
    assert found.absolute[0] > 5 * abs(found.values[0])
    # E|ŵ| is √(2/π) of an error; the bound that is told is below it, as ŵ itself is taken for the truth, but no trifle
    assert 0.2 * found.absolute[0] < found.absolute_bias[0] < found.absolute[0]


def test_groups_are_means_over_their_rows():
    x = rows(60)
    labels = np.where(x[:, 0] > 0.5, "high", "low")
    e = explained(x)
    found = e.effects(by=labels)
    assert set(found.groups) == {"high", "low"}
    for label, each in found.groups.items():
        np.testing.assert_allclose(each.values, e.values[labels == label].mean(axis=0))
        np.testing.assert_allclose(each.standard_error, e[labels == label].effects().standard_error)
        assert each.count.tolist() == [(labels == label).sum()] * 3
    difference = found.difference("high", "low")
    np.testing.assert_allclose(difference.values, found.groups["high"].values - found.groups["low"].values)
    np.testing.assert_allclose(found.difference("low", "high").values, -difference.values)


def test_differences_of_groups_share_their_draws():
    """Two groups of equal rows differ by nothing, and that is certain: every draw says so."""
    x = np.tile(rows(5), (2, 1))
    difference = explained(x).effects(by=["a"] * 5 + ["b"] * 5).difference("a", "b")
    np.testing.assert_allclose(difference.values, 0, atol=1e-12)
    np.testing.assert_allclose(difference.standard_error, 0, atol=1e-12)
    independent = explained(x, draws="independent").effects(by=["a"] * 5 + ["b"] * 5)
    parts = [independent.groups[label].standard_error for label in "ab"]
    np.testing.assert_allclose(independent.difference("a", "b").standard_error, np.hypot(*parts), rtol=1e-9)


def test_intervals_of_differences_hold():
    repeats, x = 150, rows(16)
    labels = [bool(each) for each in x[:, 1] > 0.5]
    truth = slopes(x)[labels].mean(axis=0) - slopes(x)[~np.array(labels)].mean(axis=0)
    hits = np.zeros(3)
    for seed in range(repeats):
        lower, upper = explained(x, seed).effects(by=labels).difference(True, False).interval()
        hits += (lower <= truth) & (truth <= upper)
    assert within(hits.sum(), 3 * repeats)


def test_rows_that_stopped_at_other_numbers_of_draws_are_added_in_absolute_value():
    e = sl.explain(wave, rows(40) * 3, rtol=0.1, method="clime", design="iid")
    counts = np.unique(e.n_samples)
    assert len(counts) > 1
    parts = [e[e.n_samples == n].effects().standard_error * (e.n_samples == n).mean() for n in counts]
    np.testing.assert_allclose(e.effects().standard_error, np.sum(parts, axis=0), rtol=1e-9)


def test_features_that_are_held_have_no_effect_and_by_takes_their_name():
    x = np.column_stack([rows(20)[:, :2], np.arange(20) % 2])
    e = sl.explain(wave, x, sigma=sl.Neighbourhood(1.0, fixed=[2]), n_samples=64)
    found = e.effects(by="x2")
    assert set(found.groups) == {0, 1}
    assert np.isnan(found.values[2])
    assert np.isnan(found.difference(0, 1).standard_error[2])
    assert found.count.tolist() == [20, 20, 0]


def test_frames_and_text():
    e = explained(rows(30))
    frame = e.effects(by=["a", "b"] * 15).to_frame()
    assert list(frame["group"]) == ["a"] * 3 + ["b"] * 3
    assert {"feature", "effect", "lower", "upper", "absolute", "positive", "rows"} <= set(frame.columns)
    assert "group" not in e.effects().to_frame(library="polars").columns
    text = str(e.effects(by=["<a>", "b"] * 15))
    assert "over 15 rows, <a>" in text
    assert "mean |slope|" in text
    assert "of drawing and of sampling" in str(e.effects(rows="sample"))
    assert repr(e.effects()) == "<Effects on 'output': 3 features over 30 rows>"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"by": "x9"}, "by names 'x9', which is not a feature"),
        ({"by": ["a"]}, "one label for each of the 30 rows; got 1"),
        ({"by": 3}, "the name of a feature, or a label for each row"),
        ({"weights": [1.0]}, "one number for each of the 30 rows"),
        ({"weights": [-1.0] * 30}, "finite numbers >= 0"),
        ({"rows": "all"}, "rows must be one of 'these', 'sample'"),
        ({"by": ["a", "b"] * 15, "weights": [1.0, 0.0] * 15}, "all rows of group 'b' have a weight of 0"),
    ],
)
def test_bad_input_is_told(asked, words):
    with pytest.raises(InvalidArgument, match=words):
        explained(rows(30)).effects(**asked)


def test_too_many_groups_and_unknown_ones():
    e = explained(rows(120))
    with pytest.raises(InvalidArgument, match="by makes 120 groups"):
        e.effects(by="x0")
    found = e.effects(by=["a", "b"] * 60)
    with pytest.raises(InvalidArgument, match="there is no group 'c'"):
        found.difference("a", "c")
    with pytest.raises(InvalidArgument, match="two different groups"):
        found.difference("a", "a")


def test_one_row_says_nothing_of_a_population():
    found = explained(rows(1)).effects(rows="sample")
    assert np.isinf(found.standard_error).all()


@pytest.mark.parametrize("draws", ["shared", "independent"])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_what_rows_differ_by_is_told_apart_from_noise(draws, spread):
    """Slopes for x1 scatter by `spread` over the population, and each has an error of about a quarter."""
    found = []
    for seed in range(40):
        x = np.full((30, 3), 0.5)
        x[:, 2] += spread * np.random.default_rng(seed).standard_normal(30)
        each = explained(x, seed, draws=draws, n_samples=64).effects(rows="sample")
        found.append(each.standard_error[1] ** 2 - each.drawing_error[1] ** 2)
    # errors of independent draws scatter like rows do: some is left of them where the rows do not differ at all
    slack = 0.3 * 0.25**2 / 30 if draws == "independent" else 1e-12
    assert abs(np.mean(found) - spread**2 / 30) < slack + 0.25 * spread**2 / 30


class TestGaps:
    """Rows that miss a feature do not count for it, and rows with other gaps stand on draws of their own."""

    ROWS = np.array([[0.5, 1.0, 0.2], [0.4, np.nan, 0.7], [np.nan, 0.25, -0.3], [0.1, 0.3, 0.2], [0.6, np.nan, 0.1]])

    def test_means_are_over_the_rows_that_have_it(self):
        e = sl.explain(lambda a: np.tanh(np.nan_to_num(a)).sum(axis=1), self.ROWS, sigma=0.5, n_samples=512)
        found = e.effects()
        np.testing.assert_allclose(found.values, np.nanmean(e.values, axis=0))
        assert found.count.tolist() == [4, 3, 5]

    @pytest.mark.slow
    def test_errors_hold(self):
        smooth = sl.from_functions(
            values=lambda a: np.sin(np.nan_to_num(a).sum(axis=1)),
            gradients=lambda a: np.cos(np.nan_to_num(a).sum(axis=1))[:, None, None] * np.ones((1, 1, 3)),
        )
        gaps = np.isnan(self.ROWS)
        width = np.exp(-0.5 * (~gaps).sum(axis=1) * 0.25)
        truth = np.where(gaps, np.nan, (np.cos(np.nan_to_num(self.ROWS).sum(axis=1)) * width)[:, None])
        truth = np.nanmean(truth, axis=0)
        holds = 0
        for seed in range(400):
            e = sl.explain(smooth, self.ROWS, sigma=0.5, method="clime", design="iid", n_samples=256, seed=seed)
            lower, upper = e.effects().interval(0.95)
            holds += ((lower <= truth) & (truth <= upper)).mean() / 400
        assert holds >= 0.925


def test_by_takes_the_name_of_a_column_of_text_where_its_levels_are_known():
    table = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "city": ["Bath", "York", "Bath", "Leeds"]})
    model = lambda frame: frame["a"].to_numpy() * (1 + (frame["city"] == "York").to_numpy())
    e = sl.explain(sl.as_model(model, feature_names=["a", "city"]), table, background=table, sigma=0.5)
    found, labelled = e.effects(by="city"), e.effects(by=table["city"])
    assert set(found.groups) == {"Bath", "York", "Leeds"}
    for name, group in found.groups.items():
        np.testing.assert_array_equal(group.values, labelled.groups[name].values)
    bare = sl.explain(
        sl.as_model(model, feature_names=["a", "city"]), table, background=table, sigma=0.5, switches=False
    )
    with pytest.raises(InvalidArgument, match="whose values are no numbers"):
        bare.effects(by="city")


def test_text_says_what_slopes_are_per():
    table = np.random.default_rng(0).exponential(size=(50, 2))
    model = lambda a: a[:, 0] + a[:, 1] ** 2
    for scale, words in (("linear", "per unit of each feature;"), ("ranks", "per normal score (ranks);"),
                         ({"x0": "log"}, "per unit of each feature or e-fold (log);")):  # fmt: skip
        e = sl.explain(model, table[:4], background=table, scale=scale, n_samples=256)
        assert words in str(e.effects())


@pytest.mark.parametrize("unknown", [np.inf, np.nan])
def test_endless_and_unknown_errors_of_a_row_are_endless_for_the_mean(unknown):
    e = dataclasses.replace(explained(rows(6)), groups=None)
    error = e.standard_error.copy()
    error[0, 1] = unknown
    broken = dataclasses.replace(e, standard_error=error)
    sound, found = e.effects(rows="sample"), broken.effects(rows="sample", by=list("aabbcc"))
    for name in ("standard_error", "drawing_error", "absolute_bias"):
        told = getattr(found, name)
        assert told[1] == np.inf
        np.testing.assert_array_equal(told[[0, 2]], getattr(sound, name)[[0, 2]])
    np.testing.assert_array_equal(found.values, sound.values)
    assert found.interval()[0][1] == -np.inf
    assert np.isfinite(found.groups["b"].standard_error).all()  # the row is not in it
    np.testing.assert_array_equal(np.isinf(found.difference("a", "b").standard_error), [False, True, False])
    np.testing.assert_array_equal(np.isinf(found.difference("b", "c").standard_error), [False, False, False])
    assert "± inf" in str(found)
    assert "e+308" not in found._repr_html_() + str(found)
    weights = np.arange(6)
    assert np.isfinite(broken.effects(weights, rows="sample").standard_error).all()  # of no weight


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT], ids=["None", "NaN", "NA", "NaT"])
def test_rows_without_a_label_are_a_group(nothing):
    e = sl.explain(lambda a: a[:, 0] ** 2, [[1.0], [2.0], [4.0], [3.0]], sigma=0.1, n_samples=64)
    found = e.effects(by=pd.Series(["York", nothing, nothing, "York"], dtype=object))
    assert list(found.groups) == ["York", "(missing)"]
    assert found.groups["(missing)"].values[0] == pytest.approx(6.0)
