"""Results of statsmodels: the contract, columns of ones, formulas, and what is refused."""

import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.tsa.arima.model import ARIMA

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, WrongType

from ..contract.adapter_checks import CHECKS, Case, assert_rows, called

RNG = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "g": RNG.choice(list("uvw"), N)})
TABLE["y"] = TABLE.a + 2 * TABLE.b + RNG.normal(size=N)
TABLE["two"] = (TABLE.y > 0).astype(int)
TABLE["three"] = np.array(["low", "mid", "top"])[np.digitize(TABLE.y, [-1.0, 1.0])]
TABLE["count"] = np.exp(TABLE.a).round()
ONES = sm.add_constant(TABLE[["a", "b"]])
POINTS = ONES.to_numpy()[:12]
ROWS = TABLE[["a", "b", "g"]].iloc[:12]
NAMES = ("const", "a", "b")
POISSON, BINOMIAL = sm.families.Poisson(), sm.families.Binomial()


def predict(results, points):
    return np.asarray(results.predict(points))


def linear(results, points):
    return np.asarray(results.predict(points, which="linear"))


def fitted(kind, y, **settings):
    return lambda: kind(TABLE[y], ONES, **settings).fit(**({} if kind in (sm.OLS, sm.GLM) else {"disp": 0}))


def of_arrays(name, make, outputs, ask=predict, **more):
    return Case("statsmodels results", name, make, ask, POINTS, outputs=outputs, **{"feature_names": NAMES, **more})


def of_formula(name, make, outputs, ask=predict, **more):
    wrong = {"wrong_width": None}  # a formula takes the columns that it names
    return Case("statsmodels results of a formula", name, make, ask, ROWS, outputs=outputs, **wrong, **more)


CASES = [
    of_arrays("least squares", fitted(sm.OLS, "y"), ("y",), method="exact"),
    of_arrays("Poisson", fitted(sm.GLM, "count", family=POISSON), ("count",), method="exact"),
    of_arrays("logit", fitted(sm.Logit, "two"), ("two",), method="exact"),
    of_arrays("probit, margin", fitted(sm.Probit, "two"), ("two",), linear, options={"output": "margin"},
              method="exact"),
    of_arrays("three classes", fitted(sm.MNLogit, "three"), ("low", "mid", "top")),
    of_arrays(
        "no names", lambda: sm.OLS(TABLE.y.to_numpy(), ONES.to_numpy()).fit(), ("y",),
        feature_names=("const", "x1", "x2"), method="exact",
    ),
    of_formula("least squares", lambda: smf.ols("y ~ a + np.log(b**2 + 1) + C(g)", TABLE).fit(), ("y",)),
    of_formula("logit", lambda: smf.logit("two ~ a * b", TABLE).fit(disp=0), ("two",)),
    of_formula(
        "binomial, margin", lambda: smf.glm("two ~ a + C(g)", TABLE, family=BINOMIAL).fit(), ("two",), linear,
        options={"output": "margin"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=called)
@pytest.mark.parametrize("case", CASES, ids=called)
def test_the_contract(case, check):
    check(case)


def test_the_page_has_a_row_for_each_kind():
    assert_rows(CASES, "frameworks", complete=False)


def test_columns_of_ones_are_held_and_slopes_are_coefficients():
    results = fitted(sm.OLS, "y")()
    for rows in (POINTS, ONES.iloc[:12]):
        e = sl.explain(results, rows)
        assert e.neighbourhood.fixed == ("const",)
        assert np.isnan(e.values[:, 0]).all()
        np.testing.assert_allclose(e.values[:, 1:], np.tile(results.params.iloc[1:], (12, 1)), rtol=1e-9)
    without = sm.OLS(TABLE.y, TABLE[["a", "b"]]).fit()
    assert sl.explain(without, POINTS[:, 1:]).neighbourhood.fixed == ()


def test_columns_in_another_order_are_refused_as_its_own_predict_would_not_mind():
    results = fitted(sm.OLS, "y")()
    with pytest.raises(InvalidArgument, match="at position 0 X has 'a' and the model 'const'"):
        sl.explain(results, ONES[["a", "b", "const"]])
    with pytest.raises(InvalidArgument, match=r"X has 2 features but the model has names for 3"):
        sl.explain(results, POINTS[:, 1:])


@pytest.mark.parametrize(
    "make",
    [
        fitted(sm.OLS, "y"),
        lambda: sm.WLS(TABLE.y, ONES, weights=1 + TABLE.a**2).fit(),
        lambda: sm.RLM(TABLE.y, ONES).fit(),
        fitted(sm.Logit, "two"),
        fitted(sm.Poisson, "count"),
        fitted(sm.GLM, "two", family=BINOMIAL),
        fitted(sm.GLM, "count", family=POISSON),
        lambda: sm.GLM(TABLE["count"], ONES, family=POISSON, offset=TABLE.b).fit(),
        lambda: sm.GLM(TABLE["count"] + 1, ONES, family=sm.families.Gamma(sm.families.links.Log())).fit(),
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_exact_slopes_are_those_that_are_drawn(make, full):
    """Within six standard errors, of 15 degrees of freedom: each number is beyond once in 1e4; one seed is fixed."""
    results, sigma = make(), sl.Neighbourhood(0.5, fixed=[0])
    if full:
        sigma = sl.Neighbourhood(0.5, covariance=[[1.0, 0, 0], [0, 1.0, 0.6], [0, 0.6, 2.0]], fixed=[0])
    exact = sl.explain(results, POINTS, sigma=sigma)
    assert exact.is_exact
    drawn = sl.explain(lambda a: predict(results, a), POINTS, sigma=sigma, method="clime", n_samples=4_096)
    allowed = 6 * drawn.standard_error[:, 1:] + 1e-9  # lines are fitted but for rounding
    assert (np.abs(exact.values - drawn.values)[:, 1:] <= allowed).all()
    seen = allowed.max(axis=1) < 0.1 * np.nanmax(np.abs(exact.values), axis=1)
    assert seen.sum() >= 6, "errors this large would hide a mistake"


@pytest.mark.parametrize(
    ("make", "known"),
    [
        (fitted(sm.Logit, "two"), (0.0, 1.0)),
        (fitted(sm.GLM, "two", family=BINOMIAL), (0.0, 1.0)),
        (fitted(sm.MNLogit, "three"), (0.0, 1.0)),
        (fitted(sm.OLS, "two"), None),
        (fitted(sm.GLM, "count", family=POISSON), None),
    ],
)
def test_probabilities_are_known_as_such(make, known):
    assert sl.as_model(make()).output_range == known


@pytest.mark.parametrize(
    "make",
    [
        lambda: sm.RLM(TABLE.y, ONES).fit(),
        lambda: sm.OLS(TABLE.y, ONES).fit_regularized(),
        lambda: sm.OLS(TABLE.y, ONES).fit()._results,
        lambda: OrderedModel(TABLE.three.astype("category").cat.as_ordered(), TABLE[["a", "b"]]).fit(
            disp=0, method="bfgs"
        ),
        lambda: smf.quantreg("y ~ a + b", TABLE).fit(),
        lambda: smf.gee("y ~ a + b", "g", TABLE).fit(),
    ],
)
def test_other_results_are_asked_alike(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the fit
        results = make()
    rows = ROWS if hasattr(results.model, "formula") else POINTS[:, -len(sl.as_model(results).feature_names) :]
    k = np.ndim(predict(results, rows)) == 2
    e = sl.explain(results, rows, target=1 if k else None, n_samples=64)
    np.testing.assert_allclose(e.prediction, predict(results, rows)[:, 1] if k else predict(results, rows))


def test_frames_of_other_libraries_reach_a_formula_as_pandas():
    results = smf.ols("y ~ a + C(g)", TABLE).fit()
    found = sl.as_model(results).values(nw.from_native(ROWS))
    np.testing.assert_allclose(found[:, 0], predict(results, ROWS))


class TestRefused:
    def test_what_is_not_fitted(self):
        with pytest.raises(WrongType, match=r"a OLS of statsmodels: it is not fitted.*explain\(model\.fit\(\), X\)"):
            sl.explain(sm.OLS(TABLE.y, ONES), POINTS)

    def test_forecasts(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = ARIMA(TABLE.y, order=(1, 0, 0)).fit()
        with pytest.raises(WrongType, match="forecasts from its own past: no function of rows"):
            sl.explain(results, POINTS)

    def test_results_without_their_data(self):
        results = sm.OLS(TABLE.y, ONES).fit()
        results.remove_data()
        with pytest.raises(WrongType, match=r"lost their data.*lambda a: results\.predict\(a\)"):
            sl.explain(results, POINTS)

    def test_hazards_that_are_more_than_numbers(self):
        results = sm.PHReg(TABLE.y.abs(), TABLE[["a", "b"]]).fit()
        with pytest.raises(WrongType, match=r"lambda a: results\.predict\(a\)\.predicted_values"):
            sl.explain(results, TABLE[["a", "b"]][:2])

    def test_counts_with_more_columns_for_their_zeros(self):
        counts = TABLE.y.abs().round()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = sm.ZeroInflatedPoisson(counts, ONES, exog_infl=np.ones((len(ONES), 1))).fit(disp=0)
        with pytest.raises(ModelError, match=r"lambda a: results\.predict\(a, exog_infl=np\.ones\(\(len\(a\), 1\)\)\)"):
            sl.explain(results, POINTS)
        e = sl.explain(lambda a: results.predict(a, exog_infl=np.ones((len(a), 1))), POINTS, fixed=(0,), n_samples=64)
        assert np.isfinite(e.values[:, 1:]).all()

    def test_margins_of_what_has_none(self):
        with pytest.raises(InvalidArgument, match=r"a OLS has not; leave output out"):
            sl.explain(fitted(sm.OLS, "y")(), POINTS, output="margin")

    def test_arrays_for_a_formula(self):
        with pytest.raises(WrongType, match="takes tables, but X is a ndarray"):
            sl.explain(smf.ols("y ~ a", TABLE).fit(), POINTS)

    def test_tables_without_a_column_of_the_formula(self):
        with pytest.raises(ModelError, match=r"name 'b' is not defined"):
            sl.explain(smf.ols("y ~ a + b", TABLE).fit(), ROWS[["a"]])
