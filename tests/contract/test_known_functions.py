"""The closed forms themselves, against numerical integration and finite differences: truth must be true."""

import numpy as np
import pytest

from smoothlime import Neighbourhood
from smoothlime import testing as known

V = np.array([0.7, -0.4])
X = np.array([[0.3, -0.2]])
FUNCTIONS = {
    "linear": known.Linear(V, 0.5),
    "quadratic": known.Quadratic([[1.0, 0.3], [0.3, -0.5]], [0.2, 0.1]),
    "cubic": known.Cubic(V, 0.2),
    "sine": known.Sine(V, 0.3),
    "exponential": known.Exponential(V, 0.1),
    "probit": known.Probit(2 * V, 0.2),
    "absolute": known.Absolute(V, 0.1),
    "relu": known.Relu(V, 0.1),
    "step": known.Step(V, 0.1),
    "rbf": known.RadialBasis([0.5, 0.1], 0.8),
}
NEIGHBOURHOODS = {
    "diagonal": Neighbourhood([0.5, 0.9]),
    "full": Neighbourhood(0.8, covariance=[[1.0, 0.6], [0.6, 2.0]]),
}


def integrate(function, x, neighbourhood, nodes=400):
    """E[f] and E[z f] by the trapezoidal rule on a wide grid: spectrally accurate, kinks and steps to 1e-3."""
    line = np.linspace(-8.5, 8.5, nodes)
    z = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = np.exp(-(z**2).sum(axis=1) / 2) / (2 * np.pi) * (line[1] - line[0]) ** 2
    factor = neighbourhood.factor(2)
    f = function.values(x + factor.steps(z))[:, 0] * weight
    return f.sum(), factor.unwhiten((z * f[:, None]).sum(axis=0)[None])[0]


@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_closed_forms_equal_numerical_integrals(name, around):
    function, neighbourhood = FUNCTIONS[name], NEIGHBOURHOODS[around]
    mean, slope = integrate(function, X, neighbourhood)
    tolerance = {"absolute": 1e-4, "relu": 1e-4, "step": 4e-3}.get(name, 1e-10)
    np.testing.assert_allclose(function.smoothed(X, neighbourhood), [mean], rtol=0, atol=tolerance)
    np.testing.assert_allclose(function.slopes(X, neighbourhood), [slope], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_equal_finite_differences(name):
    function = FUNCTIONS[name]
    _, gradient = function.values_and_gradients(X, np.ones((1, 1)))
    steps = 1e-6 * np.eye(2)
    by_hand = (function.values(X + steps) - function.values(X - steps))[:, 0] / 2e-6
    np.testing.assert_allclose(gradient[0], by_hand, atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_the_gradient_of_the_smoothed_value(name):
    function, neighbourhood = FUNCTIONS[name], NEIGHBOURHOODS["full"]
    steps = 1e-5 * np.eye(2)
    by_hand = (function.smoothed(X + steps, neighbourhood) - function.smoothed(X - steps, neighbourhood)) / 2e-5
    np.testing.assert_allclose(function.slopes(X, neighbourhood)[0], by_hand, atol=1e-8)


def test_a_check_that_cannot_see_fails():
    with pytest.raises(AssertionError, match=r"cannot see errors of 1.0%"):
        known.assert_matches([1.0], [1.0], [0.1], sees=0.01)


def test_a_check_that_sees_a_difference_fails():
    with pytest.raises(AssertionError, match=r"got 1\.1, truth 1"):
        known.assert_matches([1.1], [1.0], [0.001], sees=0.01)
    with pytest.raises(AssertionError, match="got nan"):
        known.assert_matches([np.nan], [1.0], [0.001], sees=0.01)
