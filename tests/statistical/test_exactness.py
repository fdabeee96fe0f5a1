"""What holds to the last digit, whatever the draws."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known

V = np.array([0.7, -0.4, 0.3])
X = np.array([[0.3, -0.2, 0.1], [-0.4, 0.5, 0.8]])
FULL = sl.Neighbourhood(0.7, covariance=[[1.0, 0.5, 0.1], [0.5, 1.5, -0.4], [0.1, -0.4, 0.8]])
DIAGONAL = sl.Neighbourhood([0.5, 0.9, 0.7])


def both(model, method, design, sigma=FULL, x=X, **more):
    return sl.explain(model, x, method=method, design=design, sigma=sigma, n_samples=96, **more)


@pytest.mark.parametrize("method", ["smoothgrad", "clime", "differences"])
@pytest.mark.parametrize("sigma", [DIAGONAL, FULL], ids=["diagonal", "full"])
def test_linear_functions_are_explained_exactly(method, sigma):
    e = sl.explain(known.Linear(V, 5.0), X, method=method, sigma=sigma, n_samples=96)
    np.testing.assert_allclose(e.values, [V, V], rtol=1e-12)
    np.testing.assert_allclose(e.standard_error, 0, atol=1e-12)


@pytest.mark.parametrize("sigma", [DIAGONAL, FULL], ids=["diagonal", "full"])
def test_differences_are_exact_for_quadratics(sigma):
    function = known.Quadratic(np.diag([1.0, -0.5, 0.2]) + 0.3, [0.2, 0.1, -0.6])
    e = sl.explain(function, X, method="differences", sigma=sigma, n_samples=12)
    np.testing.assert_allclose(e.values, function.slopes(X, sigma), rtol=1e-12)
    np.testing.assert_allclose(e.standard_error, 0, atol=1e-12)


@pytest.mark.parametrize("design", ["antithetic", "orthogonal"])
def test_paired_mean_gradients_are_exact_for_quadratics(design):
    function = known.Quadratic(np.diag([1.0, -0.5, 0.2]) + 0.3, [0.2, 0.1, -0.6])
    e = sl.explain(function, X, method="smoothgrad", design=design, sigma=FULL, n_samples=12)
    np.testing.assert_allclose(e.values, function.slopes(X, FULL), rtol=1e-12)


def test_explanations_are_linear_in_the_model(method, design):
    f, g = known.Sine(V, 0.3), known.Probit(2 * V[::-1], 0.1)
    mixed = sl.from_functions(
        values=lambda a: 2 * f.values(a) - 3 * g.values(a),
        gradients=lambda a: 2 * f.values_and_gradients(a, 1.0)[1] - 3 * g.values_and_gradients(a, 1.0)[1],
    )
    whole = both(mixed, method, design)
    if design.startswith("aligned"):  # draws are turned to each model: the sum is right within its errors, and says so
        with pytest.warns(sl.errors.ErrorsAdded, match="design='orthogonal'"):
            parts = 2 * both(f, method, design) - 3 * both(g, method, design)
        assert (np.abs(parts.values - whole.values) <= 3 * (parts.standard_error + whole.standard_error)).all()
        return
    parts = 2 * both(f, method, design) - 3 * both(g, method, design)
    scale = np.abs(whole.values).max()
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-12 * scale)
    if design != "sobol":  # the resolution of a sum is bounded by the sum of resolutions, not equal to it
        np.testing.assert_allclose(parts.standard_error, whole.standard_error, atol=1e-12 * scale)
    np.testing.assert_allclose(parts.prediction, whole.prediction, rtol=1e-12)


def test_generalised_linear_models_are_explained_in_proportion():
    """SmoothGrad gives a multiple of the weights exactly; least squares only in the limit."""
    e = both(known.Probit(2 * V, 0.2), "smoothgrad", "iid")
    ratio = e.values / V
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(3), rtol=1e-12)


@pytest.mark.parametrize("estimator", ["smoothgrad", "clime", "stein", "differences"])
def test_the_order_of_features_does_not_matter(estimator):
    """Draws go by position, so a permuted table is another sample of the same answer."""
    order = [2, 0, 1]
    plain = sl.explain(known.Sine(V, 0.3), X, method=estimator, sigma=DIAGONAL, n_samples=2**15)
    permuted = sl.Neighbourhood(np.asarray(DIAGONAL.sigma)[order])
    moved = sl.explain(known.Sine(V[order], 0.3), X[:, order], method=estimator, sigma=permuted, n_samples=2**15)
    joint = np.hypot(plain.standard_error[:, order], moved.standard_error)
    known.assert_matches(moved.values, plain.values[:, order], joint, sees=0.15, degrees_of_freedom=7)


def test_shifting_the_model_changes_nothing(method, design):
    f = known.Sine(V, 0.3)
    shifted = sl.from_functions(
        values=lambda a: f.values(a) + 1e6, gradients=lambda a: f.values_and_gradients(a, 1.0)[1]
    )
    plain, far = both(f, method, design), both(shifted, method, design)
    np.testing.assert_allclose(far.values, plain.values, atol=1e-8)
    np.testing.assert_allclose(far.standard_error, plain.standard_error, atol=1e-8)
    np.testing.assert_allclose(far.fidelity, plain.fidelity, atol=1e-6)


def test_rescaling_units_rescales_slopes_and_leaves_standardised_ones_alone(method, design):
    f = known.Sine(V, 0.3)
    unit = np.array([10.0, 0.1, 2.0])
    rescaled = sl.from_functions(
        values=lambda a: f.values(a / unit), gradients=lambda a: f.values_and_gradients(a / unit, 1.0)[1] / unit
    )
    plain = both(f, method, design, sigma=DIAGONAL)
    other = both(rescaled, method, design, sigma=sl.Neighbourhood(np.asarray(DIAGONAL.sigma) * unit), x=X * unit)
    np.testing.assert_allclose(other.values * unit, plain.values, rtol=1e-9)
    np.testing.assert_allclose(other.standardised, plain.standardised, rtol=1e-9)
    np.testing.assert_allclose(other.radius, plain.radius, rtol=1e-9)


@pytest.mark.parametrize("number", [3.0, 0.36, 1e6 + 0.1])
def test_a_constant_model_has_no_slope(method, design, number):
    constant = sl.from_functions(values=lambda a: np.full(len(a), number), gradients=np.zeros_like)
    e = both(constant, method, design)
    np.testing.assert_array_equal(e.values, 0)
    np.testing.assert_array_equal(e.standard_error, 0)
    if method != "differences":
        np.testing.assert_array_equal(e.fidelity, 1)
        np.testing.assert_array_equal(e.smoothed, number)
