"""Whether draws stay with the data: shares without a draw, the warning, and what scale="auto" makes of columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.ensemble import HistGradientBoostingRegressor

import smoothlime as sl
from smoothlime.errors import DrawsOffData, OutsideBackground

RNG = np.random.default_rng(4)
DATA = np.column_stack(
    [RNG.normal(size=2_000), RNG.exponential(size=2_000), RNG.poisson(0.4, 2_000), RNG.random(2_000)]
)
X = DATA[:20]


def line(a):
    return a @ [1.0, 0.5, 2.0, -1.0]


def explain(x=X, **more):
    return sl.explain(line, x, **{"sigma": 0.5, "background": DATA, "n_samples": 256, **more})


class TestShares:
    def test_they_are_those_of_the_draws(self):
        with pytest.warns(DrawsOffData):
            e = explain(method="stein", design="iid", n_samples=20_000)
        for row in range(3):
            there = e.perturbations(row)
            beyond = ((there < DATA.min(axis=0)) | (there > DATA.max(axis=0))).mean(axis=0)
            error = np.sqrt(e.off_data[row] * (1 - e.off_data[row]) / 20_000)
            assert (np.abs(beyond - e.off_data[row]) <= 5 * error + 1e-9).all()

    def test_at_an_edge_half_of_them_are_gone(self):
        e = explain(np.array([[0.0, DATA[:, 1].min(), 1.0, 0.5]]), sigma=0.01)
        assert e.off_data[0, 1] == pytest.approx(0.5, abs=1e-6)

    def test_ranks_never_leave_but_to_the_row_itself(self):
        x = X[:3].copy()
        x[1, 1], x[2, 2] = 99.0, -4.0
        with pytest.warns(OutsideBackground, match=r"row 1 has 99 at 'x1', where the largest.*row 2 has -4 at 'x2'"):
            e = explain(x, scale="ranks", method="stein", design="iid", n_samples=20_000)
        assert (e.off_data[0] == 0).all()
        for row, j in ((1, 1), (2, 2)):
            there = e.perturbations(row)[:, j]
            beyond = ((there < DATA[:, j].min()) | (there > DATA[:, j].max())).mean()
            assert e.off_data[row, j] == pytest.approx(beyond, abs=5 * 0.5 / np.sqrt(20_000))
            assert 0.2 < beyond < 0.9

    def test_logarithms_may_leave_it_above_and_below(self):
        data = np.exp(RNG.normal(size=(500, 1)))
        e = sl.explain(lambda a: a[:, 0], [[1.0]], background=data, scale="log", sigma=1.0, n_samples=256)
        wide = np.log(data).std(ddof=1)
        wanted = ndtr(np.log(data.min()) / wide) + ndtr(-np.log(data.max()) / wide)
        assert e.off_data[0, 0] == pytest.approx(wanted, rel=1e-9)

    def test_where_nothing_is_known_or_drawn_they_are_nan(self):
        assert np.isnan(sl.explain(line, X, sigma=0.5, n_samples=256).off_data).all()
        assert np.isnan(sl.explain(line, np.abs(X) + 1, sigma=0.5, scale="log", n_samples=256).off_data).all()
        assert np.isnan(explain(fixed=[1, 2]).off_data[:, 1:3]).all()

    @pytest.mark.parametrize("suffix", ["json", "parquet"])
    @pytest.mark.filterwarnings("ignore:many draws")
    def test_files_keep_them(self, tmp_path, suffix):
        e = explain()
        e.save(tmp_path / f"e.{suffix}")
        np.testing.assert_array_equal(sl.load(tmp_path / f"e.{suffix}").off_data, e.off_data)


class TestWarning:
    def test_it_names_the_worst_columns_and_the_way_out(self):
        with pytest.warns(DrawsOffData, match=r"\d\d% of those of 'x2'.*scale='ranks'") as found:
            e = explain()
        mean = e.off_data.mean(axis=0)
        told = str(found[0].message)
        assert f"{mean[2]:.0%} of those of 'x2'" in told
        assert [f"'x{j}'" in told for j in range(4)] == (mean > 0.25).tolist()

    def test_of_many_columns_three_are_named(self):
        data = np.abs(RNG.normal(size=(200, 6))) * (RNG.random((200, 6)) < 0.4)
        with pytest.warns(DrawsOffData, match=r"%.*%.*%.*, and of 3 more\."):
            sl.explain(lambda a: a.sum(axis=1), data[:30], background=data, sigma=0.5, n_samples=256)

    def test_a_neighbourhood_from_data_knows_as_much(self):
        with pytest.warns(DrawsOffData):
            sl.explain(line, X, sigma=sl.Neighbourhood.from_data(DATA, 0.5), n_samples=256)
        with pytest.warns(DrawsOffData):
            sl.explain_outputs(line, X, background=DATA, sigma=0.5, n_samples=256)

    @pytest.mark.parametrize(
        "more", [{"scale": "ranks"}, {"scale": {2: "ranks", 1: "ranks"}}, {"fixed": [1, 2]}, {"background": None}]
    )
    def test_nothing_is_said_where_there_is_nothing_to_say(self, more):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            explain(**more)

    def test_a_handful_of_rows_does_not_say_where_data_end(self):
        """Of 7 rows the next one lies beyond with a chance of a quarter, whatever the law."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sl.explain(line, X, sigma=0.5, background=DATA[:7] * np.arange(1, 5), n_samples=256)


class TestAuto:
    TABLE = pd.DataFrame(
        {
            "measured": DATA[:, 0],
            "spent": DATA[:, 1],
            "visits": DATA[:, 2].astype(int),
            "flag": RNG.integers(0, 2, 2_000),
            "yes": RNG.random(2_000) < 0.3,
            "city": RNG.choice(["u", "v"], 2_000),
            "level": pd.Categorical(RNG.choice(["low", "high"], 2_000)),
            "same": np.ones(2_000),
        }
    )

    def test_it_chooses_by_column_and_says_so(self):
        model = sl.as_model(lambda t: (t["measured"] + t["spent"] * t["visits"]).to_numpy(), takes="table")
        e = sl.explain(model, self.TABLE[:3], background=self.TABLE, scale="auto", sigma=0.5, n_samples=256)
        words = ("linear", "ranks", "ranks", "category", "category", "category", "category", "fixed")
        assert e.neighbourhood.scales == words
        assert e.neighbourhood.categories == ("flag", "yes", "city", "level")
        assert "linear (measured), ranks (spent, visits)" in repr(e.neighbourhood)
        assert "linear (measured), ranks (spent, visits); held as categories: flag, yes, city, level" in str(e)
        assert np.isfinite(e.values).tolist() == [[word in ("linear", "ranks") for word in words]] * 3

    def test_the_share_is_the_mean_over_the_rows_of_the_background(self):
        column = RNG.normal(size=(1_000, 1))
        for sigma in (0.2, 0.5, 1.0, 1.5):
            step = sigma * column.std(ddof=1)
            share = (ndtr((column.min() - column) / step) + ndtr((column - column.max()) / step)).mean()
            found = sl.Neighbourhood.from_data(column, sigma, scale="auto")
            assert found.scales == ("linear" if share < 0.05 else "ranks",)
        assert {sl.Neighbourhood.from_data(column, s, scale="auto").scales[0] for s in (0.2, 3.0)} == {
            "linear",
            "ranks",
        }

    def test_codes_that_the_model_declares_are_categories(self):
        code = RNG.integers(0, 9, 2_000).astype(float)
        data = np.column_stack([code, DATA[:, :2]])
        model = HistGradientBoostingRegressor(max_iter=5, categorical_features=[0]).fit(data, line(DATA) + code % 3)
        e = sl.explain(model, data[:2], background=data, scale="auto", sigma=0.5)
        assert e.neighbourhood.categories == (0,)
        assert e.neighbourhood.scales == ("category", "linear", "ranks")


class TestPrint:
    X = np.array([[0.2, 0.8, 0.0, 0.5], [0.1, 1.2, 1.5, 0.3]])

    def test_a_step_says_where_it_leads(self):
        e = explain(self.X, scale={1: "ranks", 2: "ranks", 3: "log"})
        text = str(e)
        down, up = e.step_ends
        assert "one step" in text
        for row in range(2):
            assert f"{down[row, 1]:.3g} → {up[row, 1]:.3g}" in text
        assert (down[:, 1] < self.X[:, 1]).all()
        assert (up[:, 1] > self.X[:, 1]).all()
        np.testing.assert_allclose(np.log(up[:, 3] / self.X[:, 3]), e.std[3])
        np.testing.assert_allclose(up[:, 0] - self.X[:, 0], e.std[0])
        assert "log (x3), ranks (x1, x2)" in text

    def test_where_it_leads_nowhere_the_share_of_draws_that_move(self):
        e = explain(self.X, scale="ranks", sigma=0.3)
        share = 1 - ndtr((e.row_scales.scales[2].upper[0] - e.scores[0, 2]) / 0.3)
        assert f"{share:.1%} of draws above 0" in str(e)
        moved = (explain(self.X, scale="ranks", sigma=0.3, n_samples=16_384).perturbations(0)[:, 2] > 0).mean()
        assert moved == pytest.approx(share, abs=0.01)

    def test_values_that_nobody_had_are_named(self):
        e = explain(self.X, scale="ranks")
        assert "never seen in the background: x2 = 1.5 at row 1; draws take the values on either side" in str(e)
        assert "one step" in e._repr_html_()
        assert "one step" not in str(explain(self.X, sigma=0.01))

    def test_frames_have_the_ends(self):
        e = explain(self.X, scale="ranks")
        frame = e.to_frame()
        np.testing.assert_array_equal(frame["step_up"], e.step_ends[1].ravel())
        assert "step_up" not in explain(self.X, sigma=0.01).to_frame()
