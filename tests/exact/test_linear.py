"""Linear and generalised linear models: closed forms against quadrature, the library and sampling."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

import smoothlime as sl
from smoothlime.errors import InvalidArgument, NoClosedForm
from smoothlime.exact.links import LINKS
from smoothlime.testing import assert_matches

X, Y = load_diabetes(return_X_y=True)
X = 20 * X[:, :5]
WINE = load_wine(return_X_y=True)
CANCER, SICK = load_breast_cancer(return_X_y=True)
CANCER = CANCER[:, :6]
FULL = sl.Neighbourhood.from_data(CANCER, 0.7, full=True)
DIAGONAL = sl.Neighbourhood.from_data(CANCER, 0.7)


def averaged(function, m, tau):
    """E g(m + τz), by adaptive quadrature."""
    density = lambda z: function(m + tau * z) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    ends = sorted({-12.0, 12.0, *np.clip([-m / tau, (-m - 5) / tau, (5 - m) / tau], -12, 12)})
    return sum(quad(density, low, high, epsabs=1e-15, epsrel=1e-13, limit=400)[0] for low, high in pairwise(ends))


SLOPES = {
    "logistic": lambda u: 1 / (1 + np.exp(-u)) / (1 + np.exp(u)),
    "exponential": np.exp,
    "identity": lambda u: 1.0,
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("m", [-6.0, -1.0, 0.0, 0.4, 3.0])
@pytest.mark.parametrize("tau", [1e-3, 0.3, 0.999, 1.001, 2.5])
def test_links_against_quadrature(name, m, tau):
    link = LINKS[name]
    at = (np.array([[m]]), np.array([[tau]]))
    scalar = lambda u: float(link.value(np.array([u]))[0])
    assert link.slope(*at)[0, 0] == pytest.approx(averaged(SLOPES[name], m, tau), rel=1e-11)
    assert link.mean(*at)[0, 0] == pytest.approx(averaged(scalar, m, tau), rel=1e-11, abs=1e-13)
    mean, steepness = averaged(scalar, m, tau), tau * averaged(SLOPES[name], m, tau)
    unexplained = averaged(lambda u: ((scalar(u) - mean) / steepness) ** 2, m, tau)
    assert link.fidelity(*at)[0, 0] == pytest.approx(1 / unexplained, rel=1e-9)


@pytest.mark.parametrize("tau", [30.0, 1_000.0])
def test_a_very_wide_gaussian_sees_a_step(tau):
    slope = LINKS["logistic"].slope(np.array([[0.3]]), np.array([[tau]]))[0, 0]
    assert slope == pytest.approx(1 / (tau * np.sqrt(2 * np.pi)), rel=2 / tau**2 + 1e-3 / tau)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LinearRegression(),
        linear_model.Ridge(2.0),
        linear_model.Lasso(0.1),
        linear_model.ElasticNet(0.1),
        linear_model.SGDRegressor(random_state=0),
        linear_model.HuberRegressor(),
        svm.LinearSVR(random_state=0, max_iter=10_000),
        make_pipeline(StandardScaler(), linear_model.Ridge()),
        make_pipeline(StandardScaler(with_mean=False), MinMaxScaler(), linear_model.LinearRegression()),
        make_pipeline(RobustScaler(), "passthrough", linear_model.LinearRegression()),
    ],
    ids=lambda model: type(getattr(model, "steps", [[0, model]])[-1][1]).__name__,
)
def test_linear_regressors_are_their_coefficients(model):
    model.fit(X, Y)
    e = sl.explain(model, X[:4], sigma=0.5)
    base = model.predict(np.zeros((1, 5)))
    coefficients = (model.predict(np.eye(5)) - base).ravel()
    assert e.is_exact
    np.testing.assert_allclose(e.values, np.tile(coefficients, (4, 1)), rtol=1e-9)
    np.testing.assert_allclose(e.smoothed, model.predict(X[:4]), rtol=1e-9)
    np.testing.assert_allclose(e.fidelity, 1.0, rtol=1e-12)
    assert (e.standard_error == 0).all()
    assert e.converged.all()
    assert (e.radius < 1e-12 * np.linalg.norm(e.standardised, axis=1)).all()


@pytest.mark.parametrize("around", [DIAGONAL, FULL], ids=["diagonal", "full"])
def test_logistic_probabilities_agree_with_sampling(around):
    model = make_pipeline(StandardScaler(), linear_model.LogisticRegression()).fit(CANCER, SICK)
    e = sl.explain(model, CANCER[:5], sigma=around, target="1")
    drawn = sl.explain(model, CANCER[:5], sigma=around, target="1", method="clime", design="iid", n_samples=200_000)
    assert e.is_exact
    size = np.linalg.norm(e.standardised, axis=1, keepdims=True)
    for row in range(5):
        assert_matches(
            drawn.standardised[row], e.standardised[row], drawn.standard_error[row] * drawn.std, sees=1.0,
            degrees_of_freedom=31,
        )  # fmt: skip
    assert np.median(drawn.standard_error * drawn.std / size) < 0.02
    np.testing.assert_allclose(e.smoothed, drawn.smoothed, atol=4e-3)
    np.testing.assert_allclose(e.fidelity, drawn.fidelity, atol=0.03)


def test_both_classes_add_up_and_margins_are_linear():
    model = linear_model.LogisticRegression(max_iter=5_000).fit(CANCER, SICK)
    both = sl.explain_outputs(model, CANCER[:3], sigma=DIAGONAL)
    assert (both["0"].values == -both["1"].values).all()
    total = both["0"] + both["1"]  # no warning: what has no error adds none
    assert (total.values == 0).all()
    margin = sl.explain(model, CANCER[:3], sigma=DIAGONAL, output="margin")
    np.testing.assert_allclose(margin.values, np.tile(model.coef_, (3, 1)))


def test_counts_have_the_mean_of_a_lognormal():
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * X[:, 0]))
    model = linear_model.PoissonRegressor().fit(X, counts)
    e = sl.explain(model, X[:3], sigma=0.4)
    factor = np.exp(0.08 * (model.coef_**2).sum())
    np.testing.assert_allclose(e.values, model.predict(X[:3])[:, None] * factor * model.coef_, rtol=1e-12)


def test_several_targets_at_once():
    model = linear_model.LinearRegression().fit(X, np.column_stack([Y, -2 * Y]))
    e = sl.explain(model, X[:2], target={"0": 2, "1": 1})
    np.testing.assert_allclose(e.values, 0.0, atol=1e-9)


@pytest.mark.parametrize("model", [linear_model.LinearRegression(), linear_model.Ridge()])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
@pytest.mark.parametrize("sigma", [0.3, 1e-9])
def test_a_row_whose_output_is_nothing_but_rounding_is_exact(model, scaler, sigma):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    fitted = make_pipeline(scaler, model).fit(X, y - y.mean())
    row = X.mean(axis=0)
    assert abs(fitted.predict(row[None])[0]) < 1e-9  # the mean of a target without one
    e = sl.explain(fitted, row, sigma=sigma, method="exact")
    unit = scaler.fit(X).transform(np.eye(10)) - scaler.transform(np.zeros((1, 10)))
    np.testing.assert_allclose(e.values[0], np.diag(unit) * fitted[-1].coef_, rtol=1e-9)


def test_fixed_features_have_no_slope():
    model = linear_model.LogisticRegression(max_iter=5_000).fit(CANCER, SICK)
    around = sl.Neighbourhood.from_data(CANCER, 0.7, fixed=[1])
    e = sl.explain(model, CANCER[:2], sigma=around, target=1)
    assert np.isnan(e.values[:, 1]).all()
    drawn = sl.explain(model, CANCER[:2], sigma=around, target=1, method="clime", n_samples=100_000)
    np.testing.assert_allclose(e.values[:, 0], drawn.values[:, 0], rtol=0.05)


class TestChoosing:
    def test_what_asks_for_draws_gets_draws(self):
        model = linear_model.LinearRegression().fit(X, Y)
        assert sl.explain(model, X[:1]).method == "exact"
        assert sl.explain(model, X[:1], method="exact").method == "exact"
        assert sl.explain(model, X[:1], n_samples=64).method == "differences"
        assert sl.explain(model, X[:1], method="clime").method == "clime"

    def test_exact_draws_nothing(self):
        model = linear_model.LinearRegression().fit(X, Y)
        with pytest.raises(InvalidArgument, match="method='exact' draws nothing; leave n_samples and design out"):
            sl.explain(model, X[:1], method="exact", n_samples=64)
        with pytest.raises(InvalidArgument, match="this explanation is exact: no points were drawn for it"):
            sl.explain(model, X[:1]).perturbations(0)

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (lambda a: a[:, 0], "only linear models and trees of scikit-learn and its kin"),
            (
                make_pipeline(PolynomialFeatures(2), linear_model.Ridge()).fit(X, Y),
                "its PolynomialFeatures takes columns that are perturbed",
            ),
            (
                linear_model.LogisticRegression(max_iter=9_999).fit(*load_wine(return_X_y=True)),
                "by predict_proba has none",
            ),
        ],
    )
    def test_models_without_a_closed_form_say_so(self, model, message):
        rows = np.ones((1, getattr(model, "n_features_in_", 5)))
        with pytest.raises(NoClosedForm, match=message):
            sl.explain(model, rows, method="exact", target=0)

    def test_a_subclass_with_ideas_of_its_own_is_asked(self):
        class Bent(linear_model.LinearRegression):
            def predict(self, X):
                return super().predict(X) ** 2

        model = Bent().fit(X, Y)
        assert sl.explain(model, X[:1], max_samples=512, rtol=0.9, atol=1e9).method == "clime"
        with pytest.raises(NoClosedForm, match="a Bent by predict has none that we know"):
            sl.explain(model, X[:1], method="exact")

    def test_what_differs_only_around_the_rows_is_found_out(self, monkeypatch):
        model = linear_model.LinearRegression().fit(X, Y)
        plain = linear_model.LinearRegression.predict
        lowest = plain(model, X[:3]).min()
        clipped = lambda self, rows: np.maximum(plain(self, rows), lowest)
        monkeypatch.setattr(linear_model.LinearRegression, "predict", clipped)
        assert sl.explain(model, X[:3], max_samples=512, rtol=0.9, atol=1e9).method == "clime"
        with pytest.raises(NoClosedForm, match="the structure read from the LinearRegression does not reproduce"):
            sl.explain(model, X[:3], method="exact")

    @pytest.mark.parametrize("scaler", [MaxAbsScaler(clip=True), MinMaxScaler(clip=True)])
    def test_scalers_that_clip_are_not_linear(self, scaler):
        model = make_pipeline(scaler, linear_model.LinearRegression()).fit(X, Y)
        with pytest.raises(NoClosedForm, match="its steps bend feature 0 before it reaches a linear model"):
            sl.explain(model, X[:1], method="exact")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"guarantee": "foo"},
            {"rtol": -3},
            {"seed": -1},
            {"draws": "x"},
            {"batch_size": "q"},
            {"max_samples": -1},
            {"atol": "zz"},
            {"output_range": (0, 1), "atol": 0.1},
            {"confidence": 2},
        ],
    )
    def test_arguments_are_checked_though_unused(self, wrong):
        model = linear_model.LinearRegression().fit(X, Y)
        with pytest.raises((InvalidArgument, sl.errors.WrongType)):
            sl.explain(model, X[:1], **wrong)

    def test_a_mean_that_overflows_is_an_error(self):
        model = linear_model.PoissonRegressor().fit(X, np.random.default_rng(0).poisson(np.exp(0.3 * X[:, 0])))
        with pytest.raises(InvalidArgument, match="too large for a number; lower sigma"):
            sl.explain(model, X[:1], sigma=500.0)


def test_the_radius_holds_for_rows_of_which_the_model_is_sure():
    model = linear_model.LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    model.coef_[:], model.intercept_[:] = 3.0, 0.0
    for logit, slope in ((-36.0, 6.26390e-14), (-45.0, 7.73e-18), (-60.0, 2.4e-24)):
        e = sl.explain(model, [[logit / 3]], sigma=1.0, target=1)
        assert abs(e.values[0, 0] - slope) <= e.radius[0] < 1e-12


def logistic(coef, intercept):
    model = linear_model.LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[coef]]), np.array([intercept])
    return model


def true_slope(m, tau):
    """E g'(m + τz) to 30 digits; m and τ may have that many, too."""
    return precisely(m, tau)[0]


def precisely(m, tau):
    """E g'/g(m) times g(m), and the share of Var g that the slope explains, by a fine trapezoidal rule in 40 digits."""
    with mpmath.workdps(40):
        m, tau = mpmath.mpf(m), mpmath.mpf(tau)
        step = mpmath.mpf(1) / (16 * max(1, int(mpmath.ceil(tau))))
        z = [step * i for i in range(int(-14 / step), int((14 + 2 * min(tau, 8)) / step))]
        weight = [step * mpmath.npdf(each) for each in z]
        at_middle = 1 / (1 + mpmath.exp(-m))
        g = [1 / (1 + mpmath.exp(-(m + tau * each))) for each in z]
        away = [each / at_middle - 1 for each in g]
        mean = mpmath.fdot(weight, away)
        variance = mpmath.fdot(weight, [each**2 for each in away]) - mean**2
        slope = mpmath.fdot(weight, [each / at_middle * (1 - each) for each in g])
        return slope * at_middle, (slope * tau) ** 2 / variance


@pytest.mark.parametrize(("m", "tau"), [(0.0, 1.0), (0.0, 1.0001), (0.25, 1.0), (0.0, 0.95), (-2.0, 0.3), (3.0, 4.0)])
def test_the_radius_holds_what_quadrature_is_off_by(m, tau):
    """Steps of 1/2 were off by 4.7e-14 at (0, 1), where the nearest pole is at a distance of π."""
    e = sl.explain(logistic(1.0, 0.0), [m], sigma=tau, target=1)
    with mpmath.workdps(40):
        off = float(abs(mpmath.mpf(e.values[0, 0]) - true_slope(mpmath.mpf(m), mpmath.mpf(tau))) * tau)
    assert off <= e.radius[0] < 5e-14 * max(1.0, tau)


@pytest.mark.parametrize(
    ("coef", "intercept", "x"),
    [(1.1, -1.1 * 1.6e9, 1.6e9 + 0.3), (0.37, -740.3, 2_001.7), (2.0, 3.1e12, -1.55e12 + 0.01)],
)
def test_the_radius_holds_the_digits_that_large_features_lose(coef, intercept, x):
    e = sl.explain(logistic(coef, intercept), [x], sigma=1.0, target=1)
    with mpmath.workdps(40):
        middle = mpmath.mpf(coef) * mpmath.mpf(x) + mpmath.mpf(intercept)
        off = float(abs(mpmath.mpf(e.values[0, 0]) - mpmath.mpf(coef) * true_slope(middle, mpmath.mpf(coef))))
    assert off <= e.radius[0] <= 1e-12 + 1e-15 * abs(intercept)


def test_the_radius_holds_the_digits_that_scalers_lose():
    """Of a time stamp, scaled: the intercept is a small difference of large terms."""
    stamps = 1.6e9 + 1e-2 * np.random.default_rng(1).uniform(size=(300, 1))
    model = make_pipeline(StandardScaler(), linear_model.LogisticRegression())
    model.fit(stamps, (stamps[:, 0] > np.median(stamps)).astype(int))
    scaler, line = model
    x, sigma = float(stamps[3, 0]), 2e-3
    e = sl.explain(model, [x], sigma=sigma, target=1)
    with mpmath.workdps(40):
        coef = mpmath.mpf(float(line.coef_[0, 0])) / mpmath.mpf(float(scaler.scale_[0]))
        middle = coef * (mpmath.mpf(x) - mpmath.mpf(float(scaler.mean_[0]))) + mpmath.mpf(float(line.intercept_[0]))
        off = float(abs(mpmath.mpf(e.values[0, 0]) - coef * true_slope(middle, coef * sigma)) * sigma)
    assert off > 1e-13  # else this test could not see the error it is there for
    assert off <= e.radius[0]


@pytest.mark.parametrize(("intercept", "x"), [(300.0, 0.123), (30.0, 0.123), (-1.6e6, 1.6e6 + 3.3)])
def test_the_radius_of_counts_holds_what_exponents_lose(intercept, x):
    model = linear_model.PoissonRegressor().fit([[0.0], [1.0]], [1.0, 2.0])
    model.coef_, model.intercept_ = np.array([1.0]), intercept
    e = sl.explain(model, [x], sigma=0.5)
    with mpmath.workdps(40):
        truth = mpmath.exp(mpmath.mpf(x) + mpmath.mpf(intercept) + mpmath.mpf(0.125))
        off = float(abs(mpmath.mpf(e.values[0, 0]) - truth) / truth) * 0.5
    assert off <= e.radius[0] / float(truth) < 1e-8


class TestFidelity:
    @pytest.mark.parametrize("m", [0.0, 12.0, 18.0, 19.0, 20.0, 25.0, -25.0, 36.0, -40.0, 700.0])
    @pytest.mark.parametrize("tau", [1e-8, 1e-3, 0.5, 1.5, 3.0])
    def test_it_keeps_its_digits_where_the_model_is_sure_or_flat(self, m, tau):
        truth = float(precisely(-abs(m), tau)[1])  # g and 1 − g vary alike
        e = sl.explain(logistic(1.0, m), [0.0], sigma=tau, target=1)
        assert e.fidelity[0] == pytest.approx(truth, rel=1e-11)

    @pytest.mark.parametrize("sigma", [1e-9, 3e-8, 1e-6, 1e-3, 1.0, 10.0])
    def test_counts(self, sigma):
        model = linear_model.PoissonRegressor().fit([[0.0], [1.0]], [1.0, 2.0])
        model.coef_, model.intercept_ = np.array([1.0]), 0.3
        e = sl.explain(model, [0.0], sigma=sigma)
        assert e.fidelity[0] == pytest.approx(sigma**2 / np.expm1(sigma**2), rel=1e-14)

    def test_of_wide_neighbourhoods_it_is_known_or_not_a_number(self):
        """Nearly that of a step, 2/π in the middle; 100 σ away nothing is left of it."""
        near, side, far = LINKS["logistic"].fidelity(np.array([[0.0], [40.0], [-2_000.0]]), np.full((3, 1), 20.0))[:, 0]
        assert near == pytest.approx(float(precisely(0.0, 20.0)[1]), rel=1e-11)
        assert side == pytest.approx(float(precisely(-40.0, 20.0)[1]), rel=1e-11)
        assert np.isnan(far)

    def test_a_model_that_is_constant_is_explained(self):
        assert sl.explain(logistic(0.0, 2.0), [0.0], target=1).fidelity.tolist() == [1.0]
        assert sl.explain(logistic(1.0, 2.0), [0.0], target={0: 1.0, 1: 1.0}).fidelity.tolist() == [1.0]


class TestAfterwards:
    MODEL = linear_model.LinearRegression().fit(X, Y)

    @pytest.mark.parametrize("suffix", ["json", "parquet"])
    def test_saved_and_loaded(self, tmp_path, suffix, assert_same):
        e = sl.explain(self.MODEL, X[:3])
        e.save(tmp_path / f"e.{suffix}")
        assert_same(sl.load(tmp_path / f"e.{suffix}"), e)

    def test_shown(self):
        e = sl.explain(self.MODEL, X[:1])
        assert str(e).endswith("exact: no sampling, no sampling error")
        assert "±" not in str(e)
        assert "exact, no sampling" in e.plot().get_xlabel()

    def test_certified(self):
        e = sl.explain(self.MODEL, X[:2])
        certificate = sl.certify(None, e, output_range=(-1_000, 1_000))
        assert certificate.bound(0.0).tolist() == [0.0, 0.0]

    def test_minus_a_sampled_one(self):
        e = sl.explain(self.MODEL, X[:1])
        drawn = sl.explain(self.MODEL, X[:1], method="stein", n_samples=512)
        apart = drawn - e
        np.testing.assert_array_equal(apart.standard_error, drawn.standard_error)
        assert apart.n_samples[0] == 512
        assert (e - drawn).method == "stein"

    def test_intervals_are_points(self):
        e = sl.explain(self.MODEL, X[:1])
        low, high = e.interval()
        assert (low == high).all()
        assert not e.is_indicative.any()
