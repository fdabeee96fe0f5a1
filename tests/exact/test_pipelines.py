"""Pipelines whose steps act column by column: closed forms of what comes out, in the units of what goes in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from xgboost import XGBRegressor

import smoothlime as sl
from smoothlime.errors import NoClosedForm
from smoothlime.exact import fronts
from smoothlime.exact.known import find_known, threshold_points, view_of
from smoothlime.models.problem import build_problem
from smoothlime.sampling.tree_bounds import bound_jumps, bound_sum
from smoothlime.testing import assert_matches

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 2)) * [1.0, 40.0] + [0.5, 300.0]
Y = np.sin(2 * X[:, 0]) + (X[:, 1] - 300) / 40 * X[:, 0]
SIGMA = np.array([0.4, 12.0])
ROW = np.array([0.3, 310.0])
FOREST = {"n_estimators": 4, "max_depth": 5, "random_state": 0}
STEPS = {
    "standard": StandardScaler, "min-max": MinMaxScaler, "clipped": lambda: MinMaxScaler(clip=True),
    "max-abs": MaxAbsScaler, "robust": RobustScaler, "imputer": SimpleImputer,
    "power": PowerTransformer, "quantile": lambda: QuantileTransformer(n_quantiles=40),
    "bins": lambda: KBinsDiscretizer(7, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "arctan": lambda: FunctionTransformer(np.arctan),
}  # fmt: skip


def explain(model, rows=ROW, **more):
    return sl.explain(model, rows, **{"sigma": SIGMA, **more})


def back(step, inner, d=2):
    """Thresholds of what comes out of a step, as those of what goes in: those of the training data between which
    they lie, as far as the forest sees them."""
    out = []
    for j in range(d):
        grid = np.sort(np.concatenate([np.unique(X[:, j]), np.linspace(X[:, j].min() - 50, X[:, j].max() + 50, 4_001)]))
        rows = np.tile(X[:1], (len(grid), 1))
        rows[:, j] = grid
        made = step.transform(rows)[:, j]
        for t in inner[j]:
            low, high = grid[made <= t].max(initial=-1e9), grid[made > t].min(initial=1e9)
            for _ in range(80):  # halves, in the numbers themselves
                middle = np.array([[(low + high) / 2] * d])
                low, high = (middle[0, j], high) if step.transform(middle)[0, j] <= t else (low, middle[0, j])
            out.append((j, low))
    return [np.array([t for i, t in out if i == j]) for j in range(d)]


# ---- trees behind steps


@pytest.mark.parametrize("name", STEPS)
def test_a_forest_behind_a_step_is_the_sum_over_its_cells(name, by_cells, thresholds_of):
    model = make_pipeline(STEPS[name](), RandomForestRegressor(**FOREST)).fit(X, Y)
    e = explain(model)
    assert e.is_exact
    cuts = back(model[0], [thresholds_of(model[-1], j, "probability") for j in range(2)])
    mean, slopes = by_cells(model.predict, cuts, ROW, SIGMA)
    np.testing.assert_allclose(e.smoothed, mean, rtol=1e-10)
    np.testing.assert_allclose(e.values[0], slopes, rtol=1e-8, atol=1e-10)
    assert (e.radius < 1e-9).all()


@pytest.mark.parametrize(
    "make",
    [lambda: XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1), lambda: LGBMRegressor(n_estimators=8, verbose=-1),
     lambda: HistGradientBoostingRegressor(max_iter=8)],
    ids=["xgboost", "lightgbm", "hist"],
)  # fmt: skip
def test_thresholds_are_moved_to_the_last_float(make):
    """On a threshold, and next to it, rows go where the pipeline sends them."""
    model = make_pipeline(StandardScaler(), PowerTransformer(), make()).fit(X, Y)
    route = sl.explain(model, ROW, sigma=SIGMA)
    assert route.is_exact
    problem = build_problem(model, ROW, sigma=SIGMA)
    known, _ = find_known(problem)
    points, x = threshold_points(known, view_of(problem))
    form = known.rest.parts[0][0]
    on = form.trees.threshold[form.trees.feature == 1]
    assert np.isin(x[:, 1], on).sum() > 10
    np.testing.assert_allclose(known.rest.values(x)[:, 0], model.predict(points), rtol=1e-5, atol=1e-6)


def test_selection_and_nested_pipelines():
    wide = np.column_stack([X, RNG.normal(size=(300, 3)), np.ones(300)])
    model = Pipeline(
        [
            ("nothing", "passthrough"),
            ("vary", VarianceThreshold()),
            ("scale", make_pipeline(SimpleImputer(), StandardScaler())),
            ("best", SelectKBest(f_regression, k=2)),
            ("model", RandomForestRegressor(**FOREST)),
        ]
    ).fit(wide, Y)
    kept = np.flatnonzero(model["best"].get_support())
    row, std = wide[0], np.full(6, 0.5)
    e = sl.explain(model, row, sigma=std)
    inner = sl.explain(model[-1], model[:-1].transform(row[None]), sigma=(std[:5] / model["scale"][-1].scale_)[kept])
    assert e.is_exact
    np.testing.assert_allclose(e.smoothed, inner.smoothed, rtol=1e-12)
    expected = np.zeros(6)
    expected[kept] = inner.values[0] / model["scale"][-1].scale_[kept]
    np.testing.assert_allclose(e.values[0], expected, rtol=1e-9, atol=1e-12)


def test_a_search_and_margins_are_read_through():
    search = GridSearchCV(make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=8)), {}, cv=2).fit(
        X, Y > 0
    )
    e = explain(search, output="margin")
    assert e.is_exact
    bare = search.best_estimator_[-1]
    scale = search.best_estimator_[0].scale_
    inner = sl.explain(bare, search.best_estimator_[0].transform(ROW[None]), sigma=SIGMA / scale, output="margin")
    np.testing.assert_allclose(e.values, inner.values / scale, rtol=1e-9)
    assert explain(search, target=1).method == "jumps"


def test_jumps_behind_steps_match_the_cells(by_cells, thresholds_of):
    model = make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=8, random_state=0)).fit(X, Y > 0)
    e = explain(model, target=1, n_samples=2**14, method="jumps")
    cuts = back(model[0], [thresholds_of(model[-1], j) for j in range(2)])
    _, slopes = by_cells(lambda a: model.predict_proba(a)[:, 1], cuts, ROW, SIGMA)
    assert_matches(e.values[0], slopes, standard_error=e.standard_error[0], sees=0.05)


@pytest.mark.parametrize("is_full", [False, True])
def test_jumps_named_for_a_forest_draw_what_exact_knows(is_full):
    wide = np.column_stack([X, X @ [1.0, 0.01] + 0.3 * RNG.normal(size=300)])
    model = make_pipeline(StandardScaler(), RandomForestRegressor(**FOREST)).fit(wide, Y)
    around = sl.Neighbourhood.from_data(wide, 0.5, full=is_full)
    drawn = sl.explain(model, wide[:2], sigma=around, method="jumps", n_samples=2**14)
    if is_full:
        with pytest.raises(NoClosedForm, match="Σ is full"):
            sl.explain(model, wide[:2], sigma=around, method="exact")
        other = sl.explain(model, wide[:2], sigma=around, method="clime", n_samples=2**15)
        assert sl.explain(model, wide[:2], sigma=around).method == "jumps"
    else:
        other = sl.explain(model, wide[:2], sigma=around)
        assert other.is_exact
    error = np.hypot(drawn.standard_error, other.standard_error)
    assert (np.abs(drawn.values - other.values) < 5 * error + 1e-12).all()


# ---- linear models behind steps


LINES = {
    "imputed": (lambda: make_pipeline(SimpleImputer(), StandardScaler(), Ridge()), {}, Y),
    "selected": (lambda: make_pipeline(RobustScaler(), VarianceThreshold(), LinearRegression()), {}, Y),
    "logistic": (lambda: make_pipeline(make_pipeline(SimpleImputer(), MinMaxScaler()), LogisticRegression()),
                 {"target": 1}, Y > 0),
    "poisson": (lambda: make_pipeline(SimpleImputer(), StandardScaler(), PoissonRegressor()), {}, np.exp(Y / 2)),
    "in columns": (lambda: make_pipeline(ColumnTransformer([("b", StandardScaler(), [1]), ("a", "passthrough", [0])]),
                                         LogisticRegression()), {"target": 1}, Y > 0),
}  # fmt: skip


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("name", LINES)
def test_lines_behind_steps_match_quadrature(name, is_full, by_quadrature):
    make, asked, y = LINES[name]
    model = make().fit(X, y)
    factor = np.array([[0.4, 0.0], [8.0, 9.0]]) if is_full else np.diag(SIGMA)
    sigma = sl.Neighbourhood(covariance=factor @ factor.T) if is_full else SIGMA
    e = explain(model, sigma=sigma, **asked)
    assert e.is_exact
    ask = (lambda a: model.predict_proba(a)[:, 1]) if asked else model.predict
    mean, slopes = by_quadrature(ask, ROW, factor)
    np.testing.assert_allclose(e.smoothed, mean, rtol=1e-9)
    np.testing.assert_allclose(e.values[0], slopes, rtol=1e-7)
    assert 0 < e.fidelity[0] <= 1


# ---- held columns, and data frames


FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(
    city=RNG.choice(["Bath", "Leeds", "York"], 300),
    grade=RNG.choice(["low", "high"], 300),
    rooms=RNG.integers(1, 6, 300),
)
PRICE = Y + (FRAME["city"] == "York") * X[:, 0] + FRAME["rooms"]


def encoded():
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["b", "a"]),
            ("city", OneHotEncoder(), ["city"]),
            ("grade", OrdinalEncoder(), ["grade"]),
        ],
        remainder="passthrough",
    )


AROUND = sl.Neighbourhood([*SIGMA, 1.0, 1.0, 1.0], fixed=[2, 3, 4])
AROUND_NAMED = sl.Neighbourhood.from_data(FRAME, 0.4, fixed=["city", "grade", "rooms"])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", ["ridge", "logistic", "forest", "lightgbm"])
def test_text_columns_that_are_encoded_are_held(name, backend, by_cells, by_quadrature, thresholds_of):
    inner = {"ridge": Ridge(), "logistic": LogisticRegression(), "forest": RandomForestRegressor(**FOREST),
             "lightgbm": LGBMRegressor(n_estimators=6, verbose=-1, n_jobs=1)}[name]  # fmt: skip
    is_class = name == "logistic"
    model = make_pipeline(encoded(), inner).fit(FRAME, PRICE > 3 if is_class else PRICE)
    rows = FRAME.iloc[[4, 9]]
    given = {"pandas": lambda: rows, "polars": lambda: pl.from_pandas(rows),
             "pyarrow": lambda: pl.from_pandas(rows).to_arrow()}[backend]()  # fmt: skip
    e = sl.explain(model, given, sigma=AROUND_NAMED, **({"target": "True"} if is_class else {}))
    assert e.is_exact
    std = 0.4 * AROUND_NAMED.scale[:2]
    assert np.isnan(e.values[:, 2:]).all()
    for i in range(2):
        row = rows.iloc[[i]]

        def ask(a, row=row):
            frame = pd.concat([row] * len(a), ignore_index=True).assign(a=a[:, 0], b=a[:, 1])
            return model.predict_proba(frame)[:, 1] if is_class else model.predict(frame)

        x = row[["a", "b"]].to_numpy(float)[0]
        if name in ("ridge", "logistic"):
            mean, slopes = by_quadrature(ask, x, np.diag(std), nodes=40)
        else:
            scaler = model[0].named_transformers_["numbers"][-1]
            inner_cuts = [thresholds_of(model[-1], j, "probability") for j in (1, 0)]
            cuts = [c * scaler.scale_[j] + scaler.mean_[j] for c, j in zip(inner_cuts, (1, 0), strict=True)]
            mean, slopes = by_cells(ask, cuts, x, std)
        np.testing.assert_allclose(e.smoothed[i], mean, rtol=1e-8)
        np.testing.assert_allclose(e.values[i, :2], slopes, rtol=1e-6, atol=1e-9)


def test_an_imputer_of_texts_and_numbers_together():
    kinds = ["a", "b", "city"]
    imputer = SimpleImputer(strategy="most_frequent").set_output(transform="pandas")
    made = make_column_transformer((OneHotEncoder(), ["city"]), remainder=StandardScaler())
    rows = FRAME[kinds].iloc[:3].copy()
    rows.loc[rows.index[0], "a"], rows.loc[rows.index[1], "city"] = np.nan, None
    model = make_pipeline(imputer, made, Ridge()).fit(FRAME[kinds], PRICE)
    e = sl.explain(model, rows, sigma=sl.Neighbourhood.from_data(FRAME[kinds], 0.4, fixed=["city"]))
    assert e.is_exact
    slopes = np.tile(model[-1].coef_[-2:] / model[1].named_transformers_["remainder"].scale_, (3, 1))
    slopes[0, 0] = np.nan
    np.testing.assert_allclose(e.values[:, :2], slopes, rtol=1e-9)
    np.testing.assert_allclose(e.smoothed, model.predict(rows), rtol=1e-9)


def test_what_sparse_matrices_leave_out_is_missing_to_xgboost():
    kinds = ["a", "b", "city", "grade"]
    made = ColumnTransformer(
        [("texts", OneHotEncoder(), ["city", "grade"]), ("a", make_pipeline(SimpleImputer(), StandardScaler()), ["a"])],
        remainder=MaxAbsScaler(), sparse_threshold=1.0,
    )  # fmt: skip
    model = make_pipeline(made, XGBRegressor(n_estimators=6, max_depth=3, n_jobs=1)).fit(FRAME[kinds], PRICE)
    rows = FRAME[kinds].iloc[:3].copy()
    rows.loc[rows.index[0], "a"] = np.nan  # its mean comes to 0, and is left out
    question = {"sigma": sl.Neighbourhood.from_data(FRAME[kinds], 0.4, fixed=["city", "grade"])}
    e = sl.explain(model, rows, **question)
    assert e.is_exact
    drawn = sl.explain(model, rows, method="clime", n_samples=2**16, design="iid", **question)
    seen = ~np.isnan(drawn.values)
    np.testing.assert_array_equal(np.isnan(e.values), ~seen)
    assert_matches(e.values[seen], drawn.values[seen], standard_error=drawn.standard_error[seen], sees=0.1)


def test_numbers_that_are_held_and_encoded():
    rows = FRAME[["a", "b", "rooms"]]
    made = make_column_transformer((OneHotEncoder(), ["rooms"]), remainder=StandardScaler())
    model = make_pipeline(made, Ridge()).fit(rows, PRICE)
    around = sl.Neighbourhood.from_data(rows, 0.4, fixed=["rooms"])
    e = sl.explain(model, rows.iloc[:3], sigma=around)
    assert e.is_exact
    scale = np.std(X, axis=0)
    np.testing.assert_allclose(e.values[:, :2], np.tile(model[-1].coef_[-2:] / scale, (3, 1)), rtol=1e-9)
    with pytest.raises(NoClosedForm, match="its OneHotEncoder takes columns that are perturbed"):
        sl.explain(model, rows.iloc[:3], sigma=sl.Neighbourhood.from_data(rows, 0.4), method="exact")


# ---- missing values


def holes(rows):
    found = rows.copy()
    found[0, 0] = found[1, 1] = np.nan
    return found


GAPPY = np.where(RNG.random(X.shape) < 0.1, np.nan, X)


@pytest.mark.parametrize("name", ["ridge", "logistic", "forest", "lightgbm"])
def test_a_gap_that_is_imputed_holds_the_value_it_gets(name):
    inner = {"ridge": Ridge(), "logistic": LogisticRegression(), "forest": RandomForestRegressor(**FOREST),
             "lightgbm": LGBMRegressor(n_estimators=6, verbose=-1, n_jobs=1)}[name]  # fmt: skip
    question = {"target": 1} if name == "logistic" else {}
    model = make_pipeline(StandardScaler(), SimpleImputer(strategy="median"), inner).fit(
        GAPPY, Y > 0 if question else Y
    )
    e = explain(model, holes(X[:3]), **question)
    assert e.is_exact
    fills = model[0].mean_ + model[0].scale_ * model[1].statistics_
    for i, j in ((0, 0), (1, 1)):
        assert np.isnan(e.values[i, j])
        filled = np.where(np.isnan(holes(X[:3])[i]), fills, X[i])
        same = explain(model, filled, sigma=sl.Neighbourhood(SIGMA, fixed=[j]), **question)
        np.testing.assert_allclose(e.values[i, 1 - j], same.values[0, 1 - j], rtol=1e-9)
        np.testing.assert_allclose(e.smoothed[i], same.smoothed[0], rtol=1e-9)
        np.testing.assert_allclose(e.fidelity[i], same.fidelity[0], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("keeps", [False, True])
def test_a_constant_for_a_column_that_never_had_a_value(keeps):
    imputer = SimpleImputer(strategy="constant", fill_value=1.0, keep_empty_features=keeps)
    empty = np.column_stack([X[:, 0], np.full(len(X), np.nan), X[:, 1]])
    model = make_pipeline(imputer, Ridge()).fit(empty, Y)
    e = sl.explain(model, np.insert(ROW, 1, 0.0), sigma=np.insert(SIGMA, 1, 1.0))
    assert e.is_exact
    coef = model[1].coef_ if len(model[1].coef_) == 3 else np.insert(model[1].coef_, 1, 0.0)
    np.testing.assert_allclose(e.values[0], coef, atol=1e-12)


def test_jumps_around_a_gap_that_is_imputed():
    model = make_pipeline(SimpleImputer(), GradientBoostingClassifier(n_estimators=8)).fit(GAPPY, Y > 0)
    question = {"target": 1, "n_samples": 2**13, "method": "jumps"}
    e = explain(model, holes(X[:3])[[0]], **question)
    filled = np.array([model[0].statistics_[0], X[0, 1]])
    same = explain(model, filled, **question | {"sigma": sl.Neighbourhood(SIGMA, fixed=[0])})
    assert np.isnan(e.values[0, 0])
    assert_matches(
        e.values[0, 1], same.values[0, 1],
        standard_error=np.hypot(e.standard_error[0, 1], same.standard_error[0, 1]) + 1e-12, sees=0.05,
    )  # fmt: skip


def test_gaps_that_reach_trees_go_their_way():
    model = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=8)).fit(GAPPY, Y)
    bare = HistGradientBoostingRegressor(max_iter=8).fit(model[0].transform(GAPPY), Y)
    e, inner = (
        explain(model, holes(X[:3])),
        explain(bare, model[0].transform(holes(X[:3])), sigma=SIGMA / model[0].scale_),
    )
    assert e.is_exact
    np.testing.assert_allclose(e.values, inner.values / model[0].scale_, rtol=1e-9, atol=1e-12)


def test_gaps_of_lines_without_an_imputer_are_refused_as_ever():
    model = make_pipeline(StandardScaler(), VarianceThreshold(), Ridge()).fit(X, Y)
    with pytest.raises(sl.errors.SmoothlimeError, match="x0"):
        explain(model, holes(X[:3]))


# ---- on scales, and with a certificate


@pytest.mark.parametrize("scale", ["log", "ranks"])
@pytest.mark.parametrize("name", ["forest", "line", "boosted"])
def test_steps_in_logarithms_and_ranks(name, scale):
    rows, question = np.exp(X / [1.0, 400.0]), {"scale": scale, "sigma": 0.4}
    inner = {
        "forest": RandomForestRegressor(**FOREST),
        "line": Ridge(),
        "boosted": GradientBoostingClassifier(n_estimators=8),
    }
    is_boosted = name == "boosted"
    model = make_pipeline(SimpleImputer(), StandardScaler(), inner[name]).fit(rows, Y > 0 if is_boosted else Y)
    question |= {"background": rows} | ({"target": 1} if is_boosted else {})
    e = sl.explain(model, rows[:2], **question, **({"n_samples": 2**13, "method": "jumps"} if is_boosted else {}))
    assert e.is_exact != is_boosted
    other = sl.explain(model, rows[:2], method="clime", n_samples=2**16, **question)
    assert_matches(e.values, other.values, standard_error=np.hypot(e.standard_error, other.standard_error), sees=0.1)


def test_lines_beside_drawn_trees_on_scales_are_refused():
    rows = np.exp(X / [1.0, 400.0])
    members = [("line", Ridge()), ("boosted", HistGradientBoostingRegressor(loss="poisson", max_iter=5))]
    model = VotingRegressor(members).fit(rows, np.exp(Y / 2))
    with pytest.raises(NoClosedForm, match="lines stand beside trees in it, and steps are taken in logarithms"):
        sl.explain(model, rows[:1], background=rows, scale="log", method="jumps")


def test_certificates_hold_the_cells(by_cells, thresholds_of):
    boosted = GradientBoostingClassifier(n_estimators=5, random_state=0)
    model = VotingClassifier(
        [("a", make_pipeline(StandardScaler(), boosted)), ("b", LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1))],
        voting="soft",
    ).fit(X, Y > 0)
    one, other = model.estimators_
    cuts = [np.concatenate([thresholds_of(one[-1], j) * one[0].scale_[j] + one[0].mean_[j], thresholds_of(other, j)])
            for j in range(2)]  # fmt: skip
    _, slopes = by_cells(lambda a: model.predict_proba(a)[:, 1], cuts, ROW, SIGMA)
    e = explain(model, target=1, guarantee="certified", n_samples=2**13)
    off = np.linalg.norm((e.values[0] - slopes) * SIGMA)
    assert e.method == "jumps"
    assert 0 < off < e.radius[0] < 0.2 * np.linalg.norm(slopes * SIGMA)


def test_bounds_of_a_sum_are_those_of_its_parts_together():
    members = [("a", GradientBoostingClassifier(n_estimators=5)), ("b", LGBMClassifier(n_estimators=5, verbose=-1))]
    model = VotingClassifier(members, voting="soft", weights=[1, 3]).fit(X, Y > 0)
    problem = build_problem(model, ROW, sigma=SIGMA)
    known, _ = find_known(problem)
    x, factor, weights = known.x, problem.factor, np.array([[[0.0, 1.0]]])
    controls = known.tangents(x, weights)
    slopes = known.margin_slopes(x, factor, controls)
    whole = bound_sum(known, x, factor, weights, controls, slopes, 1e-9)
    parts = [
        bound_jumps(part, x, factor, weights @ turn, own, part.margin_slopes(x, factor, own), 1e-9)
        for (part, turn), own in known.split(controls)
    ]
    assert len(parts) == 2
    for name in ("slopes", "controls", "off_of_control"):
        np.testing.assert_allclose(getattr(whole, name), sum(getattr(each, name) for each in parts), rtol=1e-12)
    assert (whole.off >= sum(each.off for each in parts)).all()
    np.testing.assert_array_equal(whole.peaks, np.maximum(parts[0].peaks, parts[1].peaks))
    draws = known.jumps(x, factor.steps(RNG.normal(size=(1, 4_000, 2))), factor, weights, controls)
    assert (np.abs(draws.slopes[0, 0]).max(axis=0) <= whole.slopes[0, 0]).all()
    assert (np.abs(draws.of_margin[0, 0] - slopes[0, 0]).max(axis=0) <= whole.controls[0, 0] * (1 + 1e-9)).all()


def test_what_has_no_certificate_by_jumps_is_said():
    model = CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=3), cv=2).fit(X, Y > 0)
    with pytest.raises(NoClosedForm, match="no bound for jumps of trees behind a curve of a curve"):
        explain(model, target=1, guarantee="certified", n_samples=256, method="jumps")
    assert explain(model, target=1, guarantee="certified", n_samples=256).method == "clime"
    vote = VotingClassifier([("a", GradientBoostingClassifier(n_estimators=3)), ("b", LogisticRegression())],
                            voting="soft").fit(X, Y > 0)  # fmt: skip
    with pytest.raises(NoClosedForm, match="no bound for jumps of trees beside which stand closed forms"):
        explain(vote, target=1, guarantee="certified", n_samples=256, method="jumps")


# ---- what is refused


REFUSED = {
    "mixes": (lambda: PCA(), "its PCA takes columns that are perturbed, and is none of the steps known"),
    "log": (lambda: FunctionTransformer(np.log1p), "through log1p, which is not known to rise everywhere"),
    "own": (lambda: FunctionTransformer(lambda a: a - a.mean()), "through <lambda>, which is not known"),
    "indicator": (lambda: SimpleImputer(add_indicator=True), "adds columns that say what was missing"),
    "marker": (
        lambda: SimpleImputer(missing_values=0.0),
        "takes 0.0 for a missing value of columns that are perturbed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_steps_that_are_not_known_are_named(name):
    make, reason = REFUSED[name]
    rows = np.abs(GAPPY if name == "indicator" else X)
    model = make_pipeline(make(), HistGradientBoostingRegressor(max_iter=3)).fit(rows, Y)
    with pytest.raises(NoClosedForm, match=f"this Pipeline is not known throughout: .*{reason}"):
        explain(model, np.abs(ROW), method="exact")
    with pytest.raises(NoClosedForm, match=f"needs trees whose outputs we know: this Pipeline .*{reason}"):
        explain(model, np.abs(ROW), method="jumps")


def test_a_line_behind_a_bend_is_refused():
    model = make_pipeline(PowerTransformer(), Ridge()).fit(X, Y)
    with pytest.raises(NoClosedForm, match="its steps bend feature 0 before it reaches a linear model"):
        explain(model, method="exact")


def test_a_class_derived_from_a_step_is_asked_instead():
    class Other(StandardScaler):
        pass

    model = make_pipeline(Other(), RandomForestRegressor(**FOREST)).fit(X, Y)
    with pytest.raises(NoClosedForm, match="its Other takes columns that are perturbed"):
        explain(model, method="exact")


def test_models_that_are_not_known_are_named():
    from sklearn.neighbors import KNeighborsRegressor

    model = make_pipeline(StandardScaler(), KNeighborsRegressor()).fit(X, Y)
    with pytest.raises(NoClosedForm, match="its KNeighborsRegressor has no structure that is known here"):
        explain(model, method="exact")
    assert not explain(model, n_samples=64).is_exact


# ---- never from memory once it has changed


CHANGES = {
    "the scale": lambda m: np.multiply(m[1].scale_, 3, out=m[1].scale_),
    "the middle": lambda m: np.add(m[1].mean_, 0.1, out=m[1].mean_),
    "what is imputed": lambda m: np.add(m[0].statistics_, 0.3, out=m[0].statistics_),
    "the quantiles": lambda m: np.multiply(m[2].quantiles_, 1.1, out=m[2].quantiles_),
    "a threshold": lambda m: np.add(m[-1].estimators_[0].tree_.threshold, 0.01,
                                    out=m[-1].estimators_[0].tree_.threshold),
    "a step less": lambda m: m.steps.pop(1),
    "another step": lambda m: m.steps.__setitem__(1, ("other", MinMaxScaler().fit(X))),
    "another model": lambda m: m.steps.__setitem__(3, ("other", RandomForestRegressor(**FOREST).fit(
        m[:-1].transform(X), -Y))),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_pipeline_changed_in_place_is_read_anew(change):
    import copy

    model = make_pipeline(
        SimpleImputer(), StandardScaler(), QuantileTransformer(n_quantiles=30), RandomForestRegressor(**FOREST)
    ).fit(GAPPY, Y)
    rows = holes(X[:3])
    adapted, before = sl.as_model(model), explain(model, rows)
    CHANGES[change](model)
    after = explain(model, rows)
    assert before.is_exact
    assert after.is_exact
    assert not np.array_equal(before.values, after.values)
    np.testing.assert_array_equal(after.values, explain(adapted, rows).values)
    np.testing.assert_array_equal(after.values, explain(copy.deepcopy(model), rows).values)


@pytest.mark.parametrize(
    ("step", "method"), [(-1, "predict"), (0, "transform"), (None, "predict")], ids=["model", "step", "pipeline"]
)
def test_a_method_that_was_replaced_is_not_answered_for(step, method, monkeypatch):
    """Members are asked for what they say now; what differs from that is seen at the thresholds."""
    model = make_pipeline(StandardScaler(), RandomForestRegressor(**FOREST)).fit(X, Y)
    part = model if step is None else model[step]
    original = getattr(part, method)

    def other(rows, **named):
        found = original(rows, **named)
        return found + 3.0 * (rows[:, 0] > 1.5).reshape(-1, *[1] * (found.ndim - 1))

    assert explain(model).is_exact
    monkeypatch.setattr(part, method, other)
    with pytest.raises(NoClosedForm, match=r"predict otherwise than|does not reproduce its outputs|cannot be asked"):
        explain(model, sigma=0.01 * SIGMA, method="exact")


def test_a_step_that_was_replaced_is_not_answered_for_where_it_mixes(monkeypatch):
    """Nothing changes at the first row, where thresholds are looked for, and around it."""
    model = make_pipeline(StandardScaler(), RandomForestRegressor(**FOREST)).fit(X, Y)
    original = model[0].transform

    def other(rows):
        found = original(rows)
        found[:, 1] += 2.0 * (np.asarray(rows)[:, 0] > 1.5)
        return found

    assert explain(model).is_exact
    monkeypatch.setattr(model[0], "transform", other)
    with pytest.raises(NoClosedForm, match="does not reproduce its outputs"):
        explain(model, sigma=0.01 * SIGMA, method="exact")


def test_a_pipeline_is_proved_once(monkeypatch):
    model = make_pipeline(StandardScaler(), RandomForestRegressor(**FOREST)).fit(X, Y)
    asked, predict = [], RandomForestRegressor.predict
    monkeypatch.setattr(
        RandomForestRegressor, "predict", lambda self, rows: asked.append(len(rows)) or predict(self, rows)
    )
    first = explain(model)
    proved = len(asked)
    again = explain(model)
    assert proved > 3
    assert asked[proved:] == [33]  # the row, and the points around it
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.n_evaluations, again.n_evaluations)


def test_a_front_that_is_misread_is_refused(monkeypatch):
    monkeypatch.setattr(fronts, "scaler", lambda step: (1 / step.scale_, -step.mean_ / step.scale_ + 0.01))
    model = make_pipeline(SimpleImputer(), StandardScaler(), Ridge()).fit(X, Y)
    with pytest.raises(NoClosedForm, match="does not reproduce its outputs"):
        explain(model, method="exact")


def test_what_is_kept_goes_with_the_model():
    import gc

    from smoothlime.exact import known

    model = make_pipeline(StandardScaler(), RandomForestRegressor(**FOREST)).fit(X, Y)
    explain(model)
    forms = known._KEPT[id(model)][1]["forms"]
    explain(model)
    assert len(forms) == 1
    at = id(model)
    del model
    gc.collect()
    assert at not in known._KEPT


# ---- other levels of categories


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("name", ["line", "forest"])
def test_switches_of_what_is_encoded_are_those_of_the_rows_themselves(name, scale):
    """The effect of another city is that of the row with this city, smoothed, less the row's own."""
    positive = FRAME.assign(a=np.exp(FRAME["a"]))
    inner = Ridge() if name == "line" else RandomForestRegressor(**FOREST)
    model = make_pipeline(encoded(), inner).fit(positive, PRICE)
    rows, question = (
        positive.iloc[:3],
        {"background": positive, "sigma": 0.4, "scale": {"a": scale}, "fixed": ["rooms"]},
    )
    e = sl.explain(model, rows, **question)
    assert e.is_exact
    other = sl.explain(model, rows.assign(city="Leeds"), **question)
    assert other.is_exact
    found = e.switches
    column = next(each for each in found.columns if each.feature == "city")
    at = [level for each in found.columns for level in ((each.feature, k) for k in each.levels)].index(
        ("city", "Leeds")
    )
    is_own = (rows["city"] == "Leeds").to_numpy()
    assert "Leeds" in column.levels
    assert not is_own.all()
    np.testing.assert_allclose(found.effect[~is_own, at], (other.smoothed - e.smoothed)[~is_own], rtol=1e-9, atol=1e-12)
