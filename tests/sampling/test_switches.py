"""Effects of other levels: against enumeration, exactly for closed forms, and by every kind of model."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.polynomial.hermite_e import hermegauss
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import smoothlime as sl
from smoothlime import errors
from smoothlime.exact.trees.format import as_threshold
from smoothlime.models import as_model

SIGMA = 0.7
NODES, WEIGHTS = hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
SHIFT = {"x": 0.0, "y": 0.5, "z": -1.2}

DATA = pd.DataFrame(
    {
        "a": np.linspace(-1, 1, 30),
        "b": np.cos(np.arange(30.0)),
        "word": ["x", "y", "z"] * 10,
        "flag": [True, False] * 15,
        "idle": ["p", "q", "p"] * 10,
    }
)
ROWS = DATA.iloc[[0, 4, 11, 21]]
STEPS = [*(SIGMA / DATA[["a", "b"]].std()), 1.0, 1.0, 1.0]
"""SIGMA in standard deviations of the columns"""


def frame_model(frame):
    """Tanh of a, shifted by the word, and more of b where the flag is up; `idle` is ignored."""
    as_pandas = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
    shift = as_pandas["word"].map(SHIFT).to_numpy(dtype=float)
    up = as_pandas["flag"].to_numpy(dtype=float)
    a, b = as_pandas["a"].to_numpy(dtype=float), as_pandas["b"].to_numpy(dtype=float)
    return np.column_stack([np.tanh(a + shift) + 0.3 * up * b**2, shift * a])


def truth(word, flag, a, b, output=0):
    """The smoothed outputs, by quadrature."""
    if output:
        return SHIFT[word] * a
    return WEIGHTS @ np.tanh(a + SIGMA * NODES + SHIFT[word]) + 0.3 * flag * (b**2 + SIGMA**2)


def expected(rows=ROWS, output=0):
    """(r, s) effects in the order of features and levels; NaN for a row's own level."""
    effects = []
    for row in rows.itertuples():
        base = truth(row.word, row.flag, row.a, row.b, output)
        flags = [truth(row.word, flag, row.a, row.b, output) - base for flag in (False, True)]
        words = [truth(word, row.flag, row.a, row.b, output) - base for word in "xyz"]
        effects.append([*words, *flags, 0.0, 0.0])
    found = np.array(effects)
    own = np.column_stack([
        *(rows["word"] == word for word in "xyz"), *(rows["flag"] == flag for flag in (False, True)),
        *(rows["idle"] == idle for idle in "pq"),
    ])  # fmt: skip
    return np.where(own, np.nan, found)


def explain(rows=ROWS, background=DATA, model=None, **asked):
    asked = {"target": 0, "sigma": STEPS, "n_samples": 2_048} | asked
    model = as_model(frame_model, takes="table") if model is None else model
    return sl.explain(model, rows, background=background, **asked)


def assert_within_errors(switches, truth, z=5.0):
    np.testing.assert_array_equal(np.isnan(switches.effect), np.isnan(truth))
    np.testing.assert_array_equal(np.isnan(switches.standard_error), np.isnan(truth))
    there = ~np.isnan(truth)
    error = np.abs(switches.effect - truth)[there]
    assert (error <= z * switches.standard_error[there] + 1e-12).all()
    assert np.median(switches.standard_error[there]) < 0.02  # or nothing would be seen


class TestEnumeration:
    @pytest.mark.parametrize("method", ["clime", "stein", "differences", "lime"])
    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_every_method(self, method, draws):
        e = explain(method=method, draws=draws)
        assert_within_errors(e.switches, expected())
        assert e.switches.features == ("word",) * 3 + ("flag",) * 2 + ("idle",) * 2
        assert e.switches.levels == ("x", "y", "z", "False", "True", "p", "q")
        assert (e.switches.n_samples == np.where(np.isnan(expected()), 0, 2_048)).all()

    def test_gradients_of_a_network_beside_a_held_code(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.tanh(x[:, :1] + 0.5 * x[:, 2:]) + x[:, 1:2] * x[:, 2:]

        rows = np.array([[0.2, 0.5, 0.0], [-0.4, 1.0, 2.0]])
        levels = [0.0, 1.0, 2.0]
        e = sl.explain(
            Net().double().eval(), rows, sigma=SIGMA, fixed=[2], switches={"x2": levels}, n_samples=4_096,
            method="smoothgrad",
        )  # fmt: skip
        smoothed = [[WEIGHTS @ np.tanh(a + SIGMA * NODES + 0.5 * c) + b * c for c in levels] for a, b, _ in rows]
        found = np.array(smoothed) - np.array(smoothed)[[0, 1], [0, 2]][:, None]
        found[[0, 1], [0, 2]] = np.nan
        assert_within_errors(e.switches, found)

    @pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas])
    def test_other_libraries_say_the_same(self, library):
        there = explain(library(ROWS.reset_index(drop=True)), library(DATA))
        np.testing.assert_allclose(there.switches.effect, explain().switches.effect, atol=1e-12)
        names = list(there.switches.to_frame().schema if library is pl.from_pandas else
                     there.switches.to_frame().column_names)  # fmt: skip
        assert names[:6] == ["row", "feature", "from", "to", "effect", "standard_error"]

    def test_ranks(self):
        """Steps in ranks: the model is explained as f∘T, and T leaves held columns alone."""
        e = explain(sigma=0.4, scale="ranks", n_samples=4_096)
        row = ROWS.iloc[0]
        # the same by brute force, from the very points of the explanation
        points = sl.explain(
            as_model(frame_model, takes="table"), ROWS, background=DATA, sigma=0.4, scale="ranks", n_samples=65_536,
            target=0, method="stein", design="iid", seed=5, switches=False,
        ).perturbations(0)  # fmt: skip
        a, b = points[:, 0], points[:, 1]
        for k, word in enumerate("yz", start=1):
            change = np.tanh(a + SHIFT[word]) - np.tanh(a + SHIFT[row.word])
            error = np.hypot(e.switches.standard_error[0, k], change.std() / 256)
            assert abs(e.switches.effect[0, k] - change.mean()) < 5 * error
        up = -0.3 * b**2 if row.flag else 0.3 * b**2
        k = 3 if row.flag else 4
        assert abs(e.switches.effect[0, k] - up.mean()) < 5 * np.hypot(e.switches.standard_error[0, k], up.std() / 256)

    def test_a_full_covariance(self):
        """Correlated steps: of a product, the effect of the flag is the mean of a·b, with their covariance."""
        cov = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]) * SIGMA**2
        rows = np.array([[0.5, -0.3, 0.0]])
        around = sl.Neighbourhood(1.0, covariance=cov, fixed=[2])
        e = sl.explain(lambda a: a[:, 0] * a[:, 1] * a[:, 2], rows, sigma=around, switches={"x2": [1]}, n_samples=4_096)
        assert abs(e.switches.effect[0, 0] - (-0.15 + 0.8 * SIGMA**2)) < 5 * e.switches.standard_error[0, 0]
        assert e.switches.standard_error[0, 0] < 0.02


class TestPromises:
    def test_a_column_that_the_model_ignores_has_exactly_no_effect(self):
        for n in (None, 512):
            effect = explain(n_samples=n).switches.effect[:, 5:]
            assert set(effect[~np.isnan(effect)]) == {0.0}

    def test_the_answer_does_not_depend_on_which_rows_are_asked_together(self):
        for n in (None, 512):
            together = explain(n_samples=n).switches
            for row in range(len(ROWS)):
                alone = explain(ROWS.iloc[[row]], n_samples=n).switches
                np.testing.assert_array_equal(alone.effect[0], together.effect[row])
                np.testing.assert_array_equal(alone.standard_error[0], together.standard_error[row])
                np.testing.assert_array_equal(alone.n_samples[0], together.n_samples[row])

    def test_the_answer_does_not_depend_on_batches_or_panels(self, monkeypatch):
        together = explain().switches
        np.testing.assert_allclose(explain(batch_size=100).switches.effect, together.effect, rtol=1e-12, atol=1e-14)
        monkeypatch.setattr("smoothlime.sampling.switches.SUMS_BYTES", 1)
        np.testing.assert_array_equal(explain().switches.effect, together.effect)

    def test_a_seed_fixes_it_and_another_does_not(self, assert_same):
        one, again, other = (explain(seed=seed).switches for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.effect, again.effect)
        assert (one.effect != other.effect)[:, :3][~np.isnan(one.effect[:, :3])].all()

    def test_it_is_linear_in_the_model(self):
        def doubled(frame):
            return 2 * frame_model(frame)

        np.testing.assert_allclose(
            explain(model=as_model(doubled, takes="table")).switches.effect, 2 * explain().switches.effect, atol=1e-12
        )

    def test_every_output_has_its_own(self):
        each = sl.explain_outputs(
            as_model(frame_model, takes="table"), ROWS, background=DATA, sigma=STEPS, n_samples=2_048,
        )  # fmt: skip
        for k, e in enumerate(each.values()):
            assert_within_errors(e.switches, expected(output=k))
        np.testing.assert_allclose(each["0"].switches.effect, explain().switches.effect, rtol=1e-12, atol=1e-14)

    def test_without_other_levels_slopes_are_what_they_were(self, assert_same):
        assert_same(explain().values, explain(switches=False).values)

    def test_evaluations_are_counted(self):
        asked = []

        def counted(frame):
            asked.append(len(frame))
            return frame_model(frame)

        e = explain(model=as_model(counted, takes="table"), n_samples=512)
        with_switches = sum(asked)
        asked.clear()
        explain(model=as_model(counted, takes="table"), n_samples=512, switches=False)
        assert with_switches - sum(asked) == e.switches.n_evaluations.sum() == len(ROWS) * 5 * 512

    def test_it_stops_by_itself_row_by_row(self):
        e = explain(n_samples=None, rtol=0.05)
        s, there = e.switches, ~np.isnan(expected())
        assert s.converged.all()
        assert set(s.n_samples[there]) <= {256, 512, 1_024, 2_048, 4_096, 8_192, 16_384}
        assert len(set(s.n_samples[there])) > 1
        spread = np.hypot(SIGMA, 0.5)  # no less than that of the model
        good_enough = np.maximum(0.05 * np.abs(s.effect), 0.01 * spread)[there]
        assert (s.standard_error[there] <= good_enough).all()
        assert_within_errors(s, expected())

    def test_probabilities_stop_at_their_range(self):
        def rare(frame):
            return np.where(frame["word"] == "z", 0.5, 0.0) * (frame["a"] > 0.5)

        model = as_model(rare, takes="table")
        wide = explain(model=model, target=None, n_samples=None, output_range=(0, 100)).switches
        narrow = explain(model=model, target=None, n_samples=None, output_range=(0, 1)).switches
        assert wide.n_samples.max() <= 512 < narrow.n_samples.max()
        assert np.nanmax(narrow.standard_error) <= np.maximum(0.005, 0.05 * np.nanmax(np.abs(narrow.effect)))

    def test_rows_that_give_up_say_so(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", sl.errors.DrawsOffData)
            e = explain(n_samples=None, rtol=1e-4, atol=1e-6, max_samples=512)
        assert len(told) == 2  # of slopes and of switches
        assert "switches did not reach the tolerance for '0' within 512 draws: the first is 'word' to 'y'" in str(
            told[1].message
        )
        assert not e.switches.converged[~np.isnan(e.switches.effect)][:3].all()

    def test_few_draws_are_enough_for_errors(self):
        e = explain(method="stein", n_samples=4)
        assert set(e.switches.n_samples.ravel()) == {0, 16}
        assert np.isfinite(e.switches.interval()[0][~np.isnan(e.switches.effect)]).all()

    def test_a_missing_category_switches_to_every_level(self):
        def gappy(frame):
            return np.tanh(frame["a"].to_numpy()) + frame["word"].map(SHIFT).fillna(2.0).to_numpy(dtype=float)

        rows = ROWS.assign(word=[None, "y", "new", "x"])
        e = explain(rows, model=as_model(gappy, takes="table"), target=None, switches=["word"])
        effect = np.array([SHIFT[word] - 2.0 for word in "xyz"])
        np.testing.assert_allclose(e.switches.effect[0], effect, atol=1e-12)
        np.testing.assert_allclose(e.switches.effect[2], effect, atol=1e-12)
        assert [e.switches.own_level(row, 0) for row in range(4)] == ["(missing)", "y", "new", "x"]
        assert e.switches.to_frame()["from"].tolist()[:3] == ["(missing)"] * 3


def codes(n=40, seed=0):
    """Two numbers, a code of three levels and a group of 0/1 columns, with a target that all have a say in."""
    rng = np.random.default_rng(seed)
    a, b, code, town = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n), rng.integers(0, 3, n)
    X = pd.DataFrame({"a": a, "b": b, "code": code} | {f"town_{name}": (town == k) * 1 for k, name in enumerate("uvw")})
    return X, a * (code + 1) + np.where(town == 1, b, -0.5 * b) + 0.3 * town


class TestExactly:
    def test_trees_are_two_means_of_leaves(self):
        """By brute force: every tree is a sum over leaves of what the leaf says times the chance to be there."""
        from scipy.special import ndtr

        X, y = codes(300)
        forest = RandomForestRegressor(n_estimators=5, max_depth=6, random_state=0).fit(X, y)
        held = list(X.columns[2:])
        rows = X.iloc[:6]
        e = sl.explain(forest, rows, background=X, sigma=0.6, fixed=held)
        assert e.is_exact
        s = e.switches
        assert s.is_exact
        assert s.features == ("code",) * 3 + ("town",) * 3
        std = np.append(0.6 * X[["a", "b"]].std().to_numpy(), [0.0] * 4)

        def mean(tree, x, node=0, low=(-np.inf, -np.inf), high=(np.inf, np.inf)):
            j = tree.feature[node]
            if j < 0:
                chance = 1.0
                for k in range(2):
                    chance *= ndtr((high[k] - x[k]) / std[k]) - ndtr((low[k] - x[k]) / std[k])
                return chance * tree.value[node].item()
            cut = as_threshold(tree.threshold[node], single=True, strict=False)  # in float64, of x rounded to float32
            if j > 1:
                side = tree.children_left if x[j] <= cut else tree.children_right
                return mean(tree, x, side[node], low, high)
            below = [*high]
            below[j] = min(high[j], cut)
            above = [*low]
            above[j] = max(low[j], cut)
            found = 0.0
            if below[j] > low[j]:
                found += mean(tree, x, tree.children_left[node], low, below)
            if high[j] > above[j]:
                found += mean(tree, x, tree.children_right[node], above, high)
            return found

        def smoothed(x):
            return np.mean([mean(each.tree_, x) for each in forest.estimators_])

        for i, x in enumerate(rows.to_numpy(dtype=float)):
            base = smoothed(x)
            for k in range(6):
                switched = x.copy()
                if k < 3:
                    switched[2] = k
                else:
                    switched[3:] = np.eye(3)[k - 3]
                is_own = np.array_equal(switched, x)
                assert np.isnan(s.effect[i, k]) == is_own
                if not is_own:
                    assert abs(s.effect[i, k] - (smoothed(switched) - base)) < 1e-12
        assert np.nansum(s.standard_error) == 0
        assert s.converged.all()
        assert s.n_evaluations.sum() == 0

    @pytest.mark.parametrize("output", ["probability", "margin"])
    def test_logistic_regression(self, output):
        X, y = codes(200)
        model = LogisticRegression().fit(X, y > 0)
        held = list(X.columns[2:])
        asked = {"background": X, "sigma": 0.6, "fixed": held, "target": 1, "output": output}
        exact = sl.explain(model, X.iloc[:5], **asked).switches
        drawn = sl.explain(model, X.iloc[:5], **asked, n_samples=4_096).switches
        assert exact.is_exact
        assert not drawn.is_exact
        assert_within_errors(drawn, exact.effect)
        if output == "margin":
            step = model.coef_[0, 2] * (np.arange(3) - X["code"].to_numpy()[:5, None])
            there = ~np.isnan(exact.effect[:, :3])
            np.testing.assert_allclose(exact.effect[:, :3][there], step[there], atol=1e-12)

    @pytest.mark.parametrize("scale", ["ranks", "log"])
    def test_trees_on_scales(self, scale):
        X, y = codes(300)
        X[["a", "b"]] = np.exp(X[["a", "b"]])
        forest = RandomForestRegressor(n_estimators=5, max_depth=6, random_state=0).fit(X, y)
        rows = X.iloc[:5].copy()
        rows.loc[0, "a"] = 100.0  # beyond the background
        asked = {"background": X, "sigma": 0.6, "fixed": list(X.columns[2:]), "scale": scale}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.SmoothlimeWarning)
            exact = sl.explain(forest, rows, **asked).switches
            drawn = sl.explain(forest, rows, **asked, n_samples=4_096, method="stein").switches
        assert exact.is_exact
        assert_within_errors(drawn, exact.effect)

    def test_where_the_form_is_not_the_model_at_other_levels_these_are_drawn(self, monkeypatch):
        X, y = codes(200)
        model = LinearRegression().fit(X, y)
        asked = {"background": X, "sigma": 0.6, "fixed": list(X.columns[2:])}
        exact = sl.explain(model, X.iloc[:3], **asked)
        monkeypatch.setattr("smoothlime.sampling.switches.AGREES", -1.0)
        drawn = sl.explain(model, X.iloc[:3], **asked)
        assert drawn.is_exact
        assert exact.switches.is_exact
        assert not drawn.switches.is_exact
        np.testing.assert_allclose(drawn.switches.effect, exact.switches.effect, atol=1e-12)

    def test_what_a_pipeline_makes_of_a_column_is_switched_too(self):
        X, _ = shop(200)
        y = X["minutes"] + 3.0 * (X["month"] == "Nov") - 2.0 * (X["month"] == "May") + X["weekend"]
        columns = make_column_transformer((OneHotEncoder(), ["month"]), remainder="passthrough")
        model = make_pipeline(columns, LinearRegression()).fit(X, y)
        s = sl.explain(model, X.iloc[:8], background=X, sigma=0.5, switches=["month", "weekend"]).switches
        size = {"Feb": 0.0, "May": -2.0, "Nov": 3.0}
        for i, month in enumerate(X["month"][:8]):
            effect = [np.nan if each == month else size[each] - size[month] for each in ("Feb", "May", "Nov")]
            np.testing.assert_allclose(s.effect[i, :3], effect, atol=1e-9)


def shop(n=400, seed=0):
    """Three numbers, a word, a code and a flag, and who bought."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "minutes": rng.gamma(2.0, 5.0, n),
            "pages": rng.poisson(4.0, n),
            "rate": rng.beta(1, 20, n),
            "month": rng.choice(["Feb", "May", "Nov"], n),
            "browser": rng.integers(1, 4, n),
            "weekend": rng.random(n) < 0.3,
        }
    )
    score = X["minutes"] / 10 - 2 + 1.5 * (X["month"] == "Nov") + 0.5 * (X["browser"] == 2) + 0.4 * X["weekend"]
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


def categories(X, kind="category"):
    return X.astype(dict.fromkeys(["month", "browser"], kind))


def fitted(kind):
    """A model of the shop, and its table as it takes it."""
    X, y = shop()
    if kind in ("one-hot", "ordinal"):
        encoder = OneHotEncoder() if kind == "one-hot" else OrdinalEncoder()
        columns = make_column_transformer((encoder, ["month", "browser", "weekend"]), remainder="passthrough")
        return make_pipeline(columns, HistGradientBoostingClassifier(max_iter=20, random_state=0)).fit(X, y), X
    if kind == "hist":
        X = categories(X)
        model = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype", random_state=0)
        return model.fit(X, y), X
    if kind == "lightgbm":
        import lightgbm

        X = categories(X)
        return lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1, random_state=0).fit(X, y), X
    if kind == "xgboost":
        import xgboost

        X = categories(X)
        return xgboost.XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True, random_state=0).fit(X, y), X
    import catboost

    X = categories(X, str).astype({"weekend": str})
    settings = {"iterations": 20, "verbose": False, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
    return catboost.CatBoostClassifier(cat_features=["month", "browser", "weekend"], **settings).fit(X, y), X


KINDS = ["one-hot", "ordinal", "hist", "lightgbm", "xgboost", "catboost"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_library_knows_its_categories(kind):
    """All columns of a shop, of all kinds: against the model's own answers on frames made by hand."""
    model, X = fitted(kind)
    rows = X.iloc[[0, 7]]
    e = sl.explain(
        model, rows, background=X, sigma=0.5, target=1, fixed=["month", "browser", "weekend"], n_samples=1_024,
        method="stein",
    )  # fmt: skip
    s = e.switches
    assert s.features == ("month",) * 3 + ("browser",) * 3 + ("weekend",) * 2
    rng = np.random.default_rng(1)
    free = ["minutes", "pages", "rate"]
    step = 0.5 * X[free].std().to_numpy()
    for i in range(2):
        draws = rows.iloc[[i] * 4_096].reset_index(drop=True).astype(dict.fromkeys(free, float))
        draws[free] += rng.normal(size=(4_096, 3)) * step
        base = model.predict_proba(draws)[:, 1]
        for k, (feature, level) in enumerate(zip(s.features, s.levels, strict=True)):
            if str(rows[feature].iloc[i]) == level:
                assert np.isnan(s.effect[i, k])
                continue
            known = {str(each): each for each in X[feature].unique()}
            switched = draws.copy()
            switched[feature] = pd.Series([known[level]] * len(draws), dtype=X[feature].dtype)
            change = model.predict_proba(switched)[:, 1] - base
            error = np.hypot(s.standard_error[i, k], change.std() / 64)
            assert abs(s.effect[i, k] - change.mean()) <= 5 * error + 1e-9, (feature, level)
    assert np.nanmax(np.abs(s.effect[:, :3])) > 0.05  # the month matters


def test_a_level_that_the_model_refuses_is_named():
    X, y = shop(60)
    columns = make_column_transformer((OneHotEncoder(), ["month"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression(max_iter=1_000)).fit(X, y)
    background = X.assign(month=["Feb", "May", "Nov", "Dec"] * 15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.SmoothlimeWarning)
        with pytest.raises(errors.ModelError, match="the model does not take 'Dec' in 'month', as switches would") as e:
            sl.explain(model, X.iloc[:2], background=background, sigma=0.1, target=1, switches=["month"])
        assert "switches=False" in str(e.value)
        found = sl.explain(
            model, X.iloc[:2], background=background, sigma=0.1, target=1, switches={"month": ["Feb", "Nov"]}
        )
    assert found.switches.levels == ("Feb", "Nov")


@pytest.mark.parametrize("method", ["auto", "clime"])
def test_slopes_are_not_lost_where_nobody_asked_for_switches(method):
    X, y = shop(60)
    columns = make_column_transformer((OneHotEncoder(), ["month"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression(max_iter=1_000)).fit(X, y)
    background = X.assign(month=["Feb", "May", "Nov", "Dec"] * 15)
    asked = {"background": background, "sigma": 0.1, "target": 1, "method": method}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = sl.explain(model, X.iloc[:2], **asked)
    words = [str(each.message) for each in said if issubclass(each.category, errors.SwitchesLeftOut)]
    assert len(words) == 1
    assert words[0].startswith("there are no switches: the model does not take 'Dec' in 'month'")
    assert found.switches is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.DrawsOffData)
        alone = sl.explain(model, X.iloc[:2], switches=False, **asked)
    np.testing.assert_array_equal(found.values, alone.values)


def test_numbers_and_no_background_have_none():
    rows = np.zeros((2, 3))
    assert sl.explain(lambda a: a.sum(axis=1), rows).switches is None
    assert sl.explain(lambda a: a.sum(axis=1), rows, background=np.eye(3)).switches is None
    once = sl.explain(lambda a: a.sum(axis=1), rows, background=np.eye(3), fixed=[1])
    assert once.switches is None  # three rows do not show that 0 and 1 are levels
    held = sl.explain(lambda a: a.sum(axis=1), rows, background=np.tile(np.eye(3), (2, 1)), fixed=[1]).switches
    assert held.levels == ("0", "1")
    np.testing.assert_allclose(held.effect[:, 1], 1.0)
    by_position = sl.explain(lambda a: a.sum(axis=1), rows, fixed=[1], switches={1: [0, 1]}).switches
    np.testing.assert_array_equal(by_position.effect, held.effect)
    group = sl.explain(lambda a: a @ [1.0, 2.0, 5.0], np.array([[0.0, 1.0, 0.0]]), one_hot=[[1, 2]]).switches
    assert group.levels == ("x1", "x2")
    np.testing.assert_allclose(group.effect[:, 1], 3.0)
    with pytest.raises(errors.InvalidArgument, match="switches names 3, which is not a column"):
        sl.explain(lambda a: a.sum(axis=1), rows, fixed=[1], switches={3: [0, 1]})
