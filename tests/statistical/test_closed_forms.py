"""Every estimator with every design it can use, against closed forms; tolerances come from the standard errors."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known

V = np.array([0.7, -0.4, 0.3])
X = np.array([[0.3, -0.2, 0.1], [-0.4, 0.5, 0.8]])
SMOOTH = {
    "linear": known.Linear(V, 0.5),
    "quadratic": known.Quadratic(np.diag([1.0, -0.5, 0.2]) + 0.3, [0.2, 0.1, -0.6]),
    "cubic": known.Cubic(V, 0.9),
    "sine": known.Sine(V, 0.3),
    "exponential": known.Exponential(V, 0.1),
    "probit": known.Probit(2 * V, 0.2),
    "absolute": known.Absolute(V, 0.6),
    "relu": known.Relu(V, 0.1),
    "rbf": known.RadialBasis([0.9, 0.1, -0.6], 1.2),
}
NEIGHBOURHOODS = {
    "diagonal": sl.Neighbourhood([0.5, 0.9, 0.7]),
    "full": sl.Neighbourhood(0.7, covariance=[[1.0, 0.5, 0.1], [0.5, 1.5, -0.4], [0.1, -0.4, 0.8]]),
}
DRAWS = 2**15


@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_match_closed_forms(name, around, method, design, seen_by):
    function, neighbourhood = SMOOTH[name], NEIGHBOURHOODS[around]
    e = sl.explain(
        function, X, method=method, design=design, sigma=neighbourhood, n_samples=DRAWS, seed=3, progress=False
    )
    truth = function.slopes(X, seen_by(method, neighbourhood))
    degrees = float(e.degrees_of_freedom.min())
    known.assert_matches(e.values, truth, e.standard_error, sees=0.25, degrees_of_freedom=degrees)
    if method != "differences":
        spread = np.sqrt(e.n_samples)  # a loose bound on the error of a mean: the spread of f is at most a few units
        assert np.all(np.abs(e.smoothed - function.smoothed(X, neighbourhood)) < 12 / spread)


@pytest.mark.parametrize("around", NEIGHBOURHOODS)
def test_predictions_explain_a_step(around, method, design, seen_by):
    function, neighbourhood = known.Step(V, 0.1), NEIGHBOURHOODS[around]
    asked = {"method": method, "design": design, "sigma": neighbourhood, "n_samples": DRAWS, "seed": 3}
    if method in ("smoothgrad", sl.SmoothGrad(control="values")):
        with pytest.warns(sl.errors.JumpsUnseen):
            e = sl.explain(function, X, **asked)
        np.testing.assert_array_equal(e.values, 0)  # what gradients say of a step, and why agreement is tested
        return
    e = sl.explain(function, X, **asked)
    degrees = float(e.degrees_of_freedom.min())
    truth = function.slopes(X, seen_by(method, neighbourhood))
    known.assert_matches(e.values, truth, e.standard_error, sees=0.25, degrees_of_freedom=degrees)


def test_every_pair_of_methods_sees_the_same_truth_more_closely_with_more_draws():
    function, neighbourhood = SMOOTH["sine"], NEIGHBOURHOODS["full"]
    truth = function.slopes(X, neighbourhood)
    for method in ("smoothgrad", "clime", "stein", "differences"):
        errors = [
            np.linalg.norm(sl.explain(function, X, method=method, sigma=neighbourhood, n_samples=n).values - truth)
            for n in (512, 2**17)
        ]
        assert errors[1] < errors[0] / 3, method


@pytest.mark.parametrize("around", NEIGHBOURHOODS)
def test_ridge_shrinks_to_its_population_limit(around):
    """The limit is (Σ + λI)⁻¹ Cov(a, f) = (Σ + λI)⁻¹ Σ w, whatever the number of draws."""
    function, neighbourhood, penalty = SMOOTH["sine"], NEIGHBOURHOODS[around], 0.4
    cov = known.covariance(neighbourhood, 3)
    limit = np.linalg.solve(cov + penalty * np.eye(3), cov @ function.slopes(X, neighbourhood).T).T
    for n in (2**14, 2**17):
        e = sl.explain(
            function, X, method=sl.CLime(ridge=penalty), design="antithetic", sigma=neighbourhood, n_samples=n
        )
        known.assert_matches(e.values, limit, e.standard_error, sees=0.1, degrees_of_freedom=31)


def test_fidelity_is_the_linear_share_of_the_variation(method, design, seen_by):
    """For sin, wᵀΣw = τ²cos²μ e^{−τ²} and Var f = ½(1 − e^{−2τ²}cos 2μ) − sin²μ e^{−τ²}."""
    function, neighbourhood = SMOOTH["sine"], NEIGHBOURHOODS["full"]
    e = sl.explain(function, X, method=method, design=design, sigma=neighbourhood, n_samples=DRAWS)
    if method == "differences":
        assert np.isnan(e.fidelity).all()
        assert np.isnan(e.smoothed).all()
        return
    tau2 = V @ known.covariance(seen_by(method, neighbourhood), 3) @ V
    mu = X @ V + 0.3
    variance = 0.5 * (1 - np.exp(-2 * tau2) * np.cos(2 * mu)) - np.sin(mu) ** 2 * np.exp(-tau2)
    np.testing.assert_allclose(e.fidelity, tau2 * np.cos(mu) ** 2 * np.exp(-tau2) / variance, atol=0.05)


# least squares is biased by O(1/n): its limit and its coverage are tested instead
UNBIASED = [
    (m, d)
    for m, designs in (
        ("smoothgrad", ("iid", "antithetic", "orthogonal", "sobol")),
        ("stein", ("iid", "antithetic", "sobol")),
        ("differences", ("differences",)),
    )
    for d in designs
]


@pytest.mark.parametrize(("estimator", "drawn"), UNBIASED)
def test_estimates_are_unbiased(estimator, drawn):
    """The mean over many independent repeats: biases far below one standard error would show here."""
    function, neighbourhood = SMOOTH["probit"], NEIGHBOURHOODS["full"]
    repeats = np.repeat(X[:1], 1_500 if drawn == "sobol" else 4_000, axis=0)
    n = {"differences": 12, "orthogonal": 12}.get(drawn, 16)
    e = sl.explain(
        function, repeats, method=estimator, design=drawn, sigma=neighbourhood, n_samples=n, draws="independent"
    )
    mean_error = e.values.std(axis=0, ddof=1) / np.sqrt(len(repeats))
    known.assert_matches(e.values.mean(axis=0), function.slopes(X[:1], neighbourhood)[0], mean_error, sees=0.2)
