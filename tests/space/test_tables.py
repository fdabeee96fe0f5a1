"""Data frames in: names, types and text columns from pandas, polars and pyarrow."""

import warnings
from datetime import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lightgbm import LGBMRegressor
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, WrongType
from smoothlime.space.tables import as_table

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def loans(n=200):
    """A mixed table: two numbers (one with gaps), a count, text with gaps, a yes or no."""
    rng = np.random.default_rng(0)
    income = rng.gamma(4.0, 9_000.0, n)
    age = rng.uniform(18, 80, n)
    years = rng.integers(0, 30, n)
    city = rng.choice(["Bath", "Leeds", "York"], n)
    owner = rng.random(n) < 0.4
    bad = rng.random(n) < 1 / (1 + np.exp((income - 30_000) / 9_000 - (city == "York")))
    return {"income": income, "age": age, "years": years, "city": city, "owner": owner}, bad.astype(int)


COLUMNS, LABELS = loans()
GAPS = {**COLUMNS, "age": [None if i % 7 == 0 else float(each) for i, each in enumerate(COLUMNS["age"])]}
WHOLE = [1, 2, 3]
NUMERIC, TEXT = ["income", "age", "years"], ["city", "owner"]


def pipeline():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    prepare = ColumnTransformer(
        [("numbers", numbers, NUMERIC), ("words", words, ["city"]), ("rest", "passthrough", ["owner"])]
    )
    return make_pipeline(prepare, GradientBoostingClassifier(n_estimators=20, random_state=0))


@pytest.fixture(scope="module")
def fitted():
    return pipeline().fit(pd.DataFrame(GAPS), LABELS)


def take(frame, rows):
    return (
        frame.iloc[rows]
        if isinstance(frame, pd.DataFrame)
        else frame.take(rows)
        if isinstance(frame, pa.Table)
        else frame[rows]
    )


class TestPipelines:
    @pytest.mark.parametrize("library", FRAMES)
    def test_a_mixed_table_is_explained_in_raw_units_in_one_call(self, fitted, library):
        frame = FRAMES[library](GAPS)
        e = sl.explain(fitted, take(frame, WHOLE), sigma=0.3, background=frame, target="1", n_samples=512)
        reference = sl.explain(
            fitted, pd.DataFrame(GAPS).iloc[WHOLE], sigma=0.3, background=pd.DataFrame(GAPS), target="1", n_samples=512
        )
        assert e.feature_names == ("income", "age", "years", "city", "owner")
        assert e.neighbourhood.fixed == ("city", "owner")
        assert np.isnan(e.values[:, 3:]).all()
        assert np.isfinite(e.values[:, :3]).all()
        np.testing.assert_allclose(e.values, reference.values, rtol=1e-12)
        np.testing.assert_array_equal(e.prediction, fitted.predict_proba(pd.DataFrame(GAPS).iloc[WHOLE])[:, 1])
        assert e.provenance.backend == library

    def test_fitting_on_polars_gives_the_same_numbers(self, fitted):
        frame = pl.DataFrame(GAPS)
        other = pipeline().fit(frame, LABELS)
        kwargs = {"sigma": 0.3, "target": "1", "n_samples": 512}
        ours = sl.explain(other, frame[WHOLE], background=frame, **kwargs)
        theirs = sl.explain(fitted, pd.DataFrame(GAPS).iloc[WHOLE], background=pd.DataFrame(GAPS), **kwargs)
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-12)

    def test_slopes_in_raw_units_are_those_of_the_function_behind(self):
        frame = pd.DataFrame(COLUMNS)
        line = make_pipeline(
            ColumnTransformer([("numbers", StandardScaler(), NUMERIC), ("words", OneHotEncoder(), TEXT)]),
            LinearRegression(),
        )
        truth = 3e-4 * frame["income"] - 2.0 * frame["age"] + 7.0 * (frame["city"] == "York")
        line.fit(frame, truth)
        e = sl.explain(line, frame.iloc[:3], sigma=0.5, background=frame, n_samples=64)
        np.testing.assert_allclose(e.values[:, :3], [[3e-4, -2.0, 0.0]] * 3, atol=1e-9)

    def test_the_guarantees_see_tables_too(self, fitted):
        frame = pd.DataFrame(GAPS)
        rows, around = frame.iloc[WHOLE], sl.Neighbourhood.from_data(frame, 0.3)
        certificate = sl.certify(fitted, rows, sigma=around, target="1", n_samples=400)
        assert certificate.lipschitz.shape == (3,)
        found = sl.robustness(fitted, rows, sigma=around, target="1", neighbours=2, n_samples=64)
        assert 0 < found.mean <= found.ceiling.max()
        assert sl.certify(None, rows, sigma=around, output_range=(0, 1)).lipschitz.shape == (3,)

    def test_the_model_sees_the_columns_and_types_of_the_table(self):
        frame = pd.DataFrame(
            {
                "whole": pd.array([1, 2], dtype="int64"),
                "half": np.array([0.5, 1.5], dtype=np.float32),
                "gappy": pd.array([1.5, 2.5], dtype="Float64"),
                "kind": pd.Categorical(["a", "b"], categories=["a", "b", "c"]),
                "day": pd.to_datetime(["2020-01-01", "2021-01-01"]),
                "held": pd.array([2**60 + 1, 2], dtype="int64"),
            },
            index=["one", "one"],
        )
        seen = []

        def model(table):
            seen.append(table)
            return table["whole"].to_numpy(dtype=float)

        around = sl.Neighbourhood(0.1, fixed=["held"])
        e = sl.explain(model, frame, sigma=around, n_samples=64)
        assert e.neighbourhood.fixed == ("held", "kind", "day")
        for table in seen:
            assert list(table.columns) == list(frame.columns)
            kept = ["half", "gappy", "kind", "day", "held"]
            assert (table[kept].dtypes == frame[kept].dtypes).all()
            assert table["whole"].dtype == np.float64  # moved by fractions: whole numbers become floats
            assert set(table["held"]) <= {2**60 + 1, 2}
            pairs = set(zip(table["kind"], table["held"], strict=True))
            assert pairs <= {("a", 2**60 + 1), ("b", 2)}  # cells stay with their row
        np.testing.assert_allclose(e.values[:, 0], 1.0)

    @pytest.mark.parametrize(
        "labels",
        [
            ["a", "b", "c", "d"],
            [2, 0, 1, 3],
            pd.RangeIndex(4),
            ["a", 1, None, ("b", 2)],
            pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["u", "v"]),
            pd.date_range("2020", periods=4, name="day"),
        ],
        ids=["text", "numbers", "range", "mixed", "pairs", "dates"],
    )
    def test_a_frame_of_pandas_keeps_its_labels_objects_and_class(self, labels):
        class Own(pd.DataFrame):
            @property
            def _constructor(self):
                return Own

        days = np.array([datetime(2020, 1, 1), datetime(2021, 1, 1)], dtype=object)
        words = np.array(["one", "two"], dtype=object)  # a guess would make dates of the former and text of these
        gappy = pd.array([1.5, None], dtype="Float64")
        cells = [days, np.array([1.0, 2.0]), words, gappy]
        frame = Own({j: pd.Series(each, dtype=each.dtype) for j, each in enumerate(cells)})
        frame.index = pd.Index([7, 7], name="id")
        frame.columns = labels
        table = as_table(frame)
        free = np.array([1])
        points = table.coded(table.numbers(), free)[[1, 0, 1]] + [[0.0, 0.5, 0.0, 0.0]]
        found = table.to_frame(points, free)
        wanted = frame.iloc[[1, 0, 1]].reset_index(drop=True)
        wanted.isetitem(1, [2.5, 1.5, 2.5])
        assert type(found) is Own
        pd.testing.assert_frame_equal(
            found, wanted, check_index_type="exact", check_column_type="exact", check_exact=True
        )

    def test_the_rows_themselves_reach_the_model_unchanged(self):
        frame = pl.DataFrame({"a": [0.1, 0.2], "b": ["u", "v"]})
        seen = []
        sl.explain(lambda t: seen.append(t) or t["a"].to_numpy(), frame, n_samples=16)
        assert seen[0].equals(frame)


class TestFunctions:
    def test_numbers_alone_reach_a_function_as_an_array(self):
        frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
        e = sl.explain(lambda a: a[:, 0] - a[:, 1], frame, n_samples=64)
        assert e.feature_names == ("a", "b")
        np.testing.assert_allclose(e.values, [[1, -1], [1, -1]], atol=1e-9)

    @pytest.mark.parametrize("library", FRAMES)
    def test_a_function_that_takes_tables_gets_tables(self, library):
        frame = FRAMES[library]({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        model = sl.as_model(lambda t: np.asarray(t["a"]) - np.asarray(t["b"]), takes="table")
        np.testing.assert_allclose(sl.explain(model, frame, n_samples=64).values, [[1, -1], [1, -1]], atol=1e-9)

    def test_a_function_that_takes_tables_refuses_arrays(self):
        with pytest.raises(WrongType, match="the model takes tables, but X is a ndarray"):
            sl.explain(sl.as_model(lambda t: t["a"], takes="table"), np.ones((1, 2)))

    def test_takes_is_for_functions(self):
        with pytest.raises(InvalidArgument, match="takes is for functions; a LinearRegression is asked in its own way"):
            sl.as_model(LinearRegression(), takes="table")
        with pytest.raises(InvalidArgument, match="takes must be one of 'array', 'table'; got 'frame'"):
            sl.as_model(len, takes="frame")

    @pytest.mark.parametrize("function", [lambda t: t["a"] * 2, lambda t: t.a * 2, lambda t: t.loc[:, "a"]])
    def test_a_function_that_wants_tables_is_told_how_to_get_them(self, function):
        frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
        with pytest.raises(ModelError, match=r"was given an array \(n, d\); as_model\(function, takes='table'\)"):
            sl.explain(function, frame)
        assert sl.explain(sl.as_model(function, takes="table"), frame, n_samples=64).prediction.shape == (1,)
        with pytest.raises(ModelError) as caught:
            sl.explain(function, frame.to_numpy())
        assert "takes=" not in str(caught.value)

    def test_columns_of_objects_name_the_way_to_their_types(self):
        frame = pd.DataFrame({"a": [1, 2.5], "b": [1.0, 2.0]}, dtype=object)
        with pytest.raises(WrongType, match=r"all columns of X are of type object.*infer_objects\(\).*astype\(float\)"):
            sl.explain(lambda a: a[:, 0], frame)
        assert sl.explain(lambda a: a[:, 0], frame.infer_objects(), n_samples=64).values.shape == (2, 2)

    def test_a_model_of_arrays_refuses_text(self):
        frame = pd.DataFrame({"a": [1.0], "b": ["x"]})
        with pytest.raises(
            WrongType, match=r"X has columns that hold no numbers \('b'\), but this model is asked with arrays"
        ):
            sl.explain(sl.testing.Linear([1.0, 0.0]), frame)


class TestArrowFromPandas:
    """Arrow tables that note which types their columns had in pandas, where whole numbers have several."""

    @pytest.mark.parametrize("dtype", ["Int64", "UInt8", "int32", "int64[pyarrow]", "Float32"])
    def test_whole_numbers_move_like_any_others(self, dtype):
        frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "k": pd.array([3, 4, 7], dtype=dtype)})
        linear = LinearRegression().fit(frame.astype(float), [0.0, 1.0, 5.0])
        e = sl.explain(linear, pa.Table.from_pandas(frame), method="clime", sigma=0.5, n_samples=64)
        np.testing.assert_allclose(e.values, np.tile(linear.coef_, (3, 1)), atol=1e-5)

    def test_functions_may_make_pandas_of_them(self):
        held, moved = pd.array([True, None], dtype="boolean"), pd.array([3, 4], dtype="Int64")
        arrow = pa.Table.from_pandas(pd.DataFrame({"held": held, "moved": moved}, index=["u", "v"]))
        seen = []

        def model(table):
            frame = table.to_pandas()
            seen.append(frame.dtypes.astype(str).to_dict())
            return 2.0 * frame["moved"]

        e = sl.explain(model, arrow, n_samples=64)
        np.testing.assert_allclose(e.values[:, 1], [2.0, 2.0])
        assert seen[0] == {"held": "boolean", "moved": "float64"}


class TestSparse:
    """Columns that pandas keeps as sparse arrays."""

    FRAME = pd.DataFrame({
        "a": pd.arrays.SparseArray([1.0, 0.0, 3.0], fill_value=0.0),
        "b": [1.0, 2.0, 3.0],
        "c": pd.arrays.SparseArray([0, 0, 2]),
        "d": pd.arrays.SparseArray([True, False, False]),
    })  # fmt: skip

    def test_their_numbers_are_perturbed_like_any_others(self):
        table = as_table(self.FRAME)
        assert table.not_numeric == ("d",)
        np.testing.assert_array_equal(table.numbers()[:, :3], [[1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [3.0, 3.0, 2.0]])
        e = sl.explain(lambda t: 2 * t["a"] - t["c"] + t["d"], self.FRAME, n_samples=64)
        np.testing.assert_allclose(e.values[:, :3], [[2.0, 0.0, -1.0]] * 3, atol=1e-9)
        np.testing.assert_array_equal(e.prediction, [3.0, 0.0, 4.0])

    def test_a_row_of_them_is_a_row(self):
        numbers = self.FRAME[["a"]]
        np.testing.assert_array_equal(sl.explain(lambda a: a[:, 0], numbers.iloc[2], n_samples=64).x, [[3.0]])
        mixed = pd.Series(pd.arrays.SparseArray(np.array([1.0, "x"], dtype=object)), index=["a", "b"])
        with pytest.raises(WrongType, match="X is one row of a table with columns of several types"):
            sl.explain(lambda a: a[:, 0], mixed)

    def test_an_estimator_fitted_on_them_is_explained(self):
        frame = self.FRAME[["a", "c"]]
        linear = LinearRegression().fit(frame, [0.0, 1.0, 5.0])
        e = sl.explain(linear, frame, method="clime", background=frame, n_samples=64)
        np.testing.assert_allclose(e.values, np.tile(linear.coef_, (3, 1)), atol=1e-9)


class TestPrecision:
    @pytest.mark.parametrize(("dtype", "x", "sigma"), [(np.float32, 1e8, 10.0), (np.float16, 1_000.0, 1.0)])
    def test_columns_of_few_digits_that_blur_the_draws_are_reported(self, dtype, x, sigma):
        model = sl.as_model(lambda t: 2.0 * t["a"].to_numpy().astype(float), takes="table")
        frame = pd.DataFrame({"a": np.array([x], dtype), "b": [1e9]})
        with pytest.warns(sl.errors.LostPrecision, match="for feature 'a', but the model's numbers are"):
            sl.explain(model, frame, sigma=sigma, n_samples=64)
        with pytest.raises(InvalidArgument, match=r"for feature 'a', but the model's numbers are .* steps get lost"):
            sl.explain(model, frame, sigma=sigma / 10, n_samples=64)

    def test_other_columns_are_not(self):
        model = sl.as_model(lambda t: t["a"].to_numpy().astype(float), takes="table")
        sl.explain(model, pd.DataFrame({"a": np.array([1.0], np.float32), "b": [1e9]}), n_samples=64)


class TestAfterwards:
    FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "t": ["x", "y"]})

    def test_sums_of_explanations_of_tables_keep_their_rows(self):
        one = sl.explain(lambda t: t["a"] ** 2 + t["b"], self.FRAME, n_samples=512, design="orthogonal")
        two = sl.explain(lambda t: t["a"] * t["b"], self.FRAME, n_samples=512, design="orthogonal")
        apart = one - two
        np.testing.assert_array_equal(apart.x, one.x)
        np.testing.assert_array_equal(apart.perturbations(1), one.perturbations(1))

    def test_certificates_cannot_ask_around_rows_that_are_not_kept(self):
        e = sl.explain(lambda t: t["a"], self.FRAME, n_samples=512)
        with pytest.raises(InvalidArgument, match="give the rows themselves as X"):
            sl.certify(lambda t: t["a"], e, output_range=(-9, 9), n_samples=400)
        assert sl.certify(None, e, output_range=(-9, 9)).lipschitz.shape == (2,)


class TestMissing:
    @pytest.mark.parametrize("library", FRAMES)
    def test_a_gap_in_a_perturbed_column_is_held(self, library, fitted):
        frame = FRAMES[library](GAPS)
        e = sl.explain(fitted, take(frame, [0, 1]), background=frame, target="1", n_samples=64)
        place = list(GAPS).index("age")
        assert np.argwhere(e.missing).tolist() == [[0, place]]
        held = sl.Neighbourhood.from_data(frame, fixed=["age"])
        alone = sl.explain(fitted, take(frame, [0, 1]), sigma=held, target="1", n_samples=64)
        np.testing.assert_allclose(e.values[0], alone.values[0], rtol=1e-9)

    @pytest.mark.parametrize("library", FRAMES)
    def test_what_is_missing_reaches_a_function_as_it_came(self, library):
        """A gap of pandas as NaN or NA, one of polars and Arrow as null."""
        frame = FRAMES[library]({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]})
        seen = []

        def model(t):
            t = nw.from_native(t, eager_only=True)
            seen.append(t["a"].null_count())
            return np.nan_to_num(t["a"].cast(nw.Float64).to_numpy().astype(float)) + 2 * t["b"].to_numpy()

        e = sl.explain(sl.as_model(model, takes="table"), frame, n_samples=64)
        assert max(seen) >= 64
        np.testing.assert_allclose(e.values, [[1.0, 2.0], [np.nan, 2.0], [1.0, 2.0]], atol=1e-9)

    def test_a_gap_in_a_fixed_column_is_the_models_business(self, fitted):
        frame = pd.DataFrame(GAPS)
        around = sl.Neighbourhood(0.3, scale=[9_000, 10, 5, 1, 1], fixed=["age"])
        e = sl.explain(fitted, frame.iloc[[0, 1]], sigma=around, target="1", n_samples=64)
        assert np.isnan(e.x[0, 1])
        np.testing.assert_array_equal(e.prediction, fitted.predict_proba(frame.iloc[[0, 1]])[:, 1])
        assert e.perturbations(0).shape == (64, 5)

    def test_a_gap_in_a_fixed_column_of_an_array_reaches_the_model(self):
        rows = np.array([[1.0, np.nan]])
        e = sl.explain(lambda a: 2 * a[:, 0] + np.isnan(a[:, 1]), rows, sigma=sl.Neighbourhood(fixed=[1]), n_samples=64)
        np.testing.assert_allclose([e.values[0, 0], e.prediction[0]], [2.0, 3.0])

    def test_scales_leave_gaps_out(self):
        background = pd.DataFrame(
            {"a": [1.0, None, 3.0, 5.0], "b": [2.0, 2.0, None, 2.0], "c": [None, 1.0, None, None]}
        )
        around = sl.Neighbourhood.from_data(background, 0.5)
        np.testing.assert_allclose(around.scale, [2.0, 1.0, 1.0])
        assert around.fixed == ("b", "c")
        with pytest.raises(
            InvalidArgument, match="X has 1 missing values, the first at row 1; correlations need whole rows"
        ):
            sl.Neighbourhood.from_data(background, full=True)


class TestNames:
    def test_the_background_is_found_by_name(self):
        rows = pd.DataFrame({"a": [1.0], "b": [2.0]})
        background = pd.DataFrame({"label": ["u", "v"], "b": [0.0, 20.0], "a": [0.0, 2.0]})
        e = sl.explain(lambda a: a.sum(axis=1), rows, background=background, n_samples=64)
        np.testing.assert_allclose(e.std, np.array([2.0, 20.0]) / np.sqrt(2))

    def test_a_background_without_a_column_is_refused(self):
        rows = pd.DataFrame({"a": [1.0], "b": [2.0]})
        with pytest.raises(InvalidArgument, match="background has no column 'b'; its columns are 'a', 'c'"):
            sl.explain(lambda a: a.sum(axis=1), rows, background=pd.DataFrame({"a": [1.0, 2.0], "c": [0.0, 1.0]}))

    def test_the_background_names_rows_that_have_no_names(self):
        background = pd.DataFrame({"a": [1.0, 2.0], "c": [0.0, 1.0]})
        e = sl.explain(lambda a: a.sum(axis=1), [1.0, 2.0], background=background, n_samples=64)
        assert e.feature_names == ("a", "c")

    def test_a_background_of_other_columns_is_refused_though_their_number_fits(self):
        rows = pd.DataFrame({"a": [1.0], "b": [2.0]})
        with pytest.raises(InvalidArgument, match="background has no column 'a'; its columns are 'q', 'r'"):
            sl.explain(lambda a: a[:, 0], rows, background=pd.DataFrame({"q": [0.0, 1.0], "r": [0.0, 9.0]}))

    def test_a_neighbourhood_keeps_the_names_of_its_columns(self):
        rows = pd.DataFrame({"a": [1.0], "b": [2.0]})
        data = pd.DataFrame({"b": [0.0, 1.0, 5.0], "a": [0.0, 100.0, 50.0]})
        arounds = [
            sl.Neighbourhood.from_data(data),
            sl.Neighbourhood.from_data(data, full=True),
            sl.Neighbourhood(scale=data.std()),
            sl.Neighbourhood(covariance=data.cov()),
            sl.Neighbourhood(data.std()),
            data.std(),
        ]
        for around in arounds:
            with pytest.raises(InvalidArgument, match="made for columns 'b', 'a', but the rows have 'a', 'b'; select"):
                sl.explain(lambda a: a[:, 0], rows, sigma=around, n_samples=64)
            assert sl.explain(lambda a: a[:, 0], rows[["b", "a"]], sigma=around, n_samples=64).feature_names == (
                "b",
                "a",
            )
            assert sl.explain(lambda a: a[:, 0], [1.0, 2.0], sigma=around, n_samples=64).values.shape == (1, 2)

    def test_columns_named_as_if_they_had_no_names_are_found_by_name(self):
        rows = pd.DataFrame({"x0": [0.0], "x1": [0.0]})
        data = pd.DataFrame({"y": [1.0, 1.0], "x1": [0.0, 200.0], "x0": [0.0, 2.0]})
        for background in (data, data[["x1", "x0"]], pl.from_pandas(data)):
            e = sl.explain(lambda a: a.sum(axis=1), rows, background=background, n_samples=64)
            np.testing.assert_allclose(e.std, np.array([2.0, 200.0]) / np.sqrt(2))
        around = sl.Neighbourhood.from_data(data[["x1", "x0"]])
        with pytest.raises(InvalidArgument, match="made for columns 'x1', 'x0', but the rows have 'x0', 'x1'; select"):
            sl.explain(lambda a: a.sum(axis=1), rows, sigma=around)
        with pytest.raises(InvalidArgument, match="background has no column 'x0'; its columns are 'a', 'b'"):
            sl.explain(lambda a: a.sum(axis=1), rows, background=pd.DataFrame(np.eye(2), columns=["a", "b"]))

    def test_scales_without_names_go_by_position_whatever_the_names_of_the_rows(self):
        rows = pd.DataFrame({"x1": [0.0], "x0": [0.0]})
        data = np.array([[0.0, 0.0], [2.0, 200.0]])
        scales = np.array([2.0, 200.0]) / np.sqrt(2)
        for about in ({"background": data}, {"sigma": sl.Neighbourhood.from_data(data)}, {"sigma": scales}):
            e = sl.explain(lambda a: a.sum(axis=1), rows, n_samples=64, **about)
            assert e.feature_names == ("x1", "x0")
            np.testing.assert_allclose(e.std, scales)

    def test_a_labelled_sigma_names_rows_and_a_background_that_have_no_names(self):
        sigma = pd.Series({"b": 1.0, "a": 10.0})
        for about in ({}, {"background": np.eye(2)}):
            e = sl.explain(lambda a: a.sum(axis=1), [0.0, 0.0], sigma=sigma, n_samples=64, **about)
            assert e.feature_names == ("b", "a")

    def test_a_covariance_has_its_rows_in_the_order_of_its_columns(self):
        for labels in (["a", "b"], [5, 7]):
            cov = pd.DataFrame([[4.0, 0.5], [0.5, 1.0]], index=labels, columns=labels)
            with pytest.raises(
                InvalidArgument,
                match=rf"covariance must have its rows in the order of its columns; at position 0 stand row"
                rf" '{labels[1]}' and column '{labels[0]}'. Reorder it: covariance.loc\[covariance.columns\]",
            ):
                sl.Neighbourhood(covariance=cov.loc[labels[::-1]])
            assert sl.Neighbourhood(covariance=cov).columns == tuple(map(str, labels))
        assert sl.Neighbourhood(covariance=cov.reset_index(drop=True)).columns == ("5", "7")

    def test_labels_that_are_whole_numbers_are_compared(self):
        f, rows = lambda a: a.sum(axis=1), pd.DataFrame({1: [0.0], 0: [0.0]})
        for about in ({}, {"background": np.eye(2)}):
            with pytest.raises(
                InvalidArgument, match="sigma is for features 0, 1, but the rows have 1, 0; give the same"
            ):
                sl.explain(f, rows, sigma=pd.Series([1.0, 10.0]), n_samples=64, **about)
        for sigma in (pd.Series([10.0, 1.0], index=[1, 0]), sl.Neighbourhood(pd.Series([10.0, 1.0], index=[1, 0]))):
            np.testing.assert_array_equal(sl.explain(f, rows, sigma=sigma, n_samples=64).std, [10.0, 1.0])
            with pytest.raises(InvalidArgument, match="made for columns '1', '0', but the rows have '0', '1'"):
                sl.explain(f, rows[[0, 1]], sigma=sigma, n_samples=64)

    def test_labels_that_count_from_0_are_positions_for_columns_with_other_names(self):
        sigma = pd.Series([1.0, 10.0])
        for rows in (pd.DataFrame({"b": [0.0], "a": [0.0]}), pd.DataFrame({0: [0.0], 1: [0.0]}), [0.0, 0.0]):
            e = sl.explain(lambda a: a.sum(axis=1), rows, sigma=sigma, n_samples=64)
            np.testing.assert_array_equal(e.std, [1.0, 10.0])
            assert e.neighbourhood.columns is None

    def test_names_in_which_lightgbm_writes_underscores_find_their_columns(self):
        data = pd.DataFrame({"a": [0.0, 2.0] * 20, "b b": [0.0, 200.0] * 10 + [200.0, 0.0] * 10})
        model = LGBMRegressor(n_estimators=2, min_child_samples=5, verbose=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of LightGBM, about the spaces
            model.fit(data, data["a"])
        for background in (data, data[["b b", "a"]].assign(y=1.0)):
            e = sl.explain(model, np.zeros((1, 2)), background=background)
            assert e.feature_names == ("a", "b b")
            np.testing.assert_allclose(e.std[1] / e.std[0], 100.0)
        assert sl.explain(model, np.zeros((1, 2)), sigma=sl.Neighbourhood.from_data(data)).feature_names == ("a", "b b")

    def test_names_that_differ_in_an_underscore_alone_stay_apart(self):
        data = pd.DataFrame({"a_b": [0.0, 2.0, 5.0], "a b": [0.0, 200.0, 100.0]})
        model = LinearRegression().fit(data, [0.0, 1.0, 2.0])
        e = sl.explain(model, np.zeros((1, 2)), background=data)
        assert e.feature_names == ("a_b", "a b")
        np.testing.assert_allclose(e.std, data.std())

    def test_a_neighbourhood_for_more_columns_than_there_are_features_is_refused(self):
        around = sl.Neighbourhood(0.5, columns=["a", "b", "c"])
        with pytest.raises(InvalidArgument, match="made for columns 'a', 'b', 'c', but the rows have 'x0', 'x1'"):
            sl.explain(lambda a: a.sum(axis=1), [0.0, 0.0], sigma=around)

    def test_a_labelled_sigma_goes_by_the_order_of_all_else(self):
        data = pd.DataFrame({"b": [0.0, 1.0, 5.0], "a": [0.0, 100.0, 50.0]})
        sigma = pd.Series({"a": 1.0, "b": 10.0})
        with pytest.raises(InvalidArgument, match=r"sigma is for features a, b, but scale is for b, a; give the same"):
            sl.Neighbourhood(sigma, scale=data.std())
        with pytest.raises(InvalidArgument, match=r"sigma is for features a, b, but the neighbourhood is for b, a"):
            sl.explain(lambda a: a[:, 0], data[:1], sigma=sigma, background=data)
        assert sl.explain(lambda a: a[:, 0], data[["a", "b"]], sigma=sigma, background=data, n_samples=64).values.size
        with pytest.raises(InvalidArgument, match="columns has 1 names for 2 features"):
            sl.Neighbourhood([1.0, 2.0], columns=["a"])

    @pytest.mark.parametrize("method", ["clime", "exact"])
    def test_a_path_keeps_the_names_of_its_neighbourhood(self, method):
        data = pd.DataFrame({"b": [0.0, 1.0, 5.0], "a": [0.0, 100.0, 50.0]})
        linear = LinearRegression().fit(data[["a", "b"]], [0.0, 1.0, 2.0])
        around = sl.Neighbourhood(scale=data.std())
        with pytest.raises(InvalidArgument, match="made for columns 'b', 'a', but the rows have 'a', 'b'"):
            sl.sigma_path(linear, data[["a", "b"]][:1], [0.5, 1.0], neighbourhood=around, method=method)

    def test_a_background_that_cannot_be_used_is_called_background(self):
        rows = pd.DataFrame({"a": [1.0], "b": [2.0]})
        for background, message in (
            (rows, "background must have at least 2 rows to show how features vary; got 1"),
            (
                pd.DataFrame({"a": [1.0, np.inf], "b": [1.0, 2.0]}),
                "background must be finite; got inf at row 1.*'a'",
            ),
            (np.ones((4, 3)), "background has 3 columns but the rows have 2 features"),
            (rows[:0], r"background is empty: it has shape \(0, 2\)"),
            (pd.DataFrame(np.eye(2), columns=["a", "a"]), "background must have columns of different names"),
        ):
            with pytest.raises(InvalidArgument, match=message):
                sl.explain(lambda a: a[:, 0], rows, background=background)
        with pytest.raises(WrongType, match="background is a lazy frame"):
            sl.explain(lambda a: a[:, 0], rows, background=pl.from_pandas(rows).lazy())

    def test_one_row_of_a_frame_keeps_its_names(self):
        frame = pd.DataFrame({"a": [1.0], "b": [2]})
        e = sl.explain(lambda a: a[:, 0] * a[:, 1], frame.iloc[0], n_samples=64)
        assert e.feature_names == ("a", "b")
        mixed = pd.DataFrame({"a": [1.0], "b": ["x"]})
        with pytest.raises(WrongType, match=r"X is one row of a table with columns of several types.*iloc\[\[0\]\]"):
            sl.explain(lambda t: t["a"], mixed.iloc[0])

    def test_a_batch_of_arrow_records_is_a_table(self):
        batch = pa.RecordBatch.from_pydict({"a": [1.0], "b": ["x"]})
        assert sl.explain(lambda t: np.asarray(t["a"]), batch, n_samples=64).neighbourhood.fixed == ("b",)

    def test_labels_that_are_no_strings_become_strings(self):
        e = sl.explain(lambda a: a.sum(axis=1), pd.DataFrame({0: [1.0], 1: [2.0]}), n_samples=64)
        assert e.feature_names == ("0", "1")

    @pytest.mark.parametrize(
        "labels",
        [
            [2, 0, 1],
            pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]),
            pd.date_range("2020", periods=3),
        ],
        ids=["numbers", "pairs", "dates"],
    )
    def test_a_background_may_have_labels_that_are_no_strings(self, labels):
        data = pd.DataFrame([[0.0, 0.0, 0.0], [2.0, 4.0, 8.0]], columns=labels)
        names = tuple(str(each) for each in labels)
        for rows in (data[1:], data.iloc[1], data[1:].to_numpy()):
            e = sl.explain(lambda a: a[:, 1], rows, background=data, n_samples=64)
            assert e.feature_names == names
            np.testing.assert_allclose(e.std, np.array([2.0, 4.0, 8.0]) / np.sqrt(2))
        turned = data[data.columns[::-1]]
        e = sl.explain(lambda a: a[:, 1], data[1:], background=turned, n_samples=64)
        np.testing.assert_allclose(e.std, np.array([2.0, 4.0, 8.0]) / np.sqrt(2))
        path = sl.sigma_path(lambda a: a[:, 1], data[1:], [0.5, 1.0], background=data, n_samples=64)
        assert path.feature_names == names

    def test_equal_names_are_refused(self):
        frame = pd.DataFrame(np.ones((1, 2)), columns=["a", "a"])
        with pytest.raises(InvalidArgument, match="X must have columns of different names"):
            sl.explain(lambda a: a.sum(axis=1), frame)
        with pytest.raises(InvalidArgument, match="columns of different names; '1' stands there 2 times"):
            sl.explain(lambda a: a.sum(axis=1), pd.DataFrame(np.ones((1, 2)), columns=[1, "1"]))

    def test_lazy_frames_are_refused(self):
        with pytest.raises(WrongType, match=r"X is a lazy frame.*Call collect\(\) on it first"):
            sl.explain(lambda a: a.sum(axis=1), pl.LazyFrame({"a": [1.0]}))

    def test_empty_tables_are_refused(self):
        with pytest.raises(InvalidArgument, match=r"X is empty: it has shape \(0, 1\)"):
            sl.explain(lambda a: a.sum(axis=1), pl.DataFrame({"a": []}))

    def test_a_table_of_text_alone_leaves_nothing_to_perturb(self):
        with pytest.raises(InvalidArgument, match="all 1 features are fixed; leave at least one"):
            sl.explain(lambda t: np.ones(len(t)), pd.DataFrame({"a": ["x"]}))

    def test_a_broken_model_of_tables_is_reported(self):
        frame = pd.DataFrame({"a": [1.0], "b": ["x"]})
        with pytest.raises(ModelError, match="the model raised KeyError"):
            sl.explain(lambda t: t["c"], frame)


def test_arrays_are_no_tables():
    for each in (np.ones((2, 2)), [[1.0]], (1.0, 2.0)):
        assert as_table(each) is None


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_decimals_are_numbers_in_every_library(library):
    from decimal import Decimal

    gap = pd.NA if library == "pandas" else None
    cells = {"price": [Decimal("1.5"), gap, Decimal("2.25")], "b": [1.0, 2.0, 3.0]}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](cells)
    np.testing.assert_array_equal(as_table(frame).numbers(), [[1.5, 1.0], [np.nan, 2.0], [2.25, 3.0]])
    whole = pl.DataFrame(cells)[[0, 2]] if library == "polars" else frame.take([0, 2])
    np.testing.assert_allclose(sl.explain(lambda a: np.asarray(a) @ [2.0, 1.0], whole).values, [[2, 1]] * 2, atol=1e-9)


def test_objects_of_other_kinds_stay_what_they_are():
    frame = pd.DataFrame({"a": [1.0, 2.0], "both": [1, "x"]}, dtype=object)
    frame["a"] = frame["a"].astype(float)
    assert as_table(frame).not_numeric == ("both",)
