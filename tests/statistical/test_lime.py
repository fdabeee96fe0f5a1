"""Where LIME converges to: a kernel is a narrower neighbourhood, a penalty has a limit of its own."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known

V = np.array([0.9, -0.5, 0.3])
X = np.array([[0.3, -0.2, 0.1], [-0.4, 0.5, 0.8]])
FUNCTIONS = {
    "sine": known.Sine(V, 0.3),
    "probit": known.Probit(2 * V, 0.2),
    "step": known.Step(V, 0.1),
    "rbf": known.RadialBasis([0.9, 0.1, -0.6], 1.2),
}
NEIGHBOURHOODS = {
    "diagonal": sl.Neighbourhood([0.8, 1.2, 0.6]),
    "full": sl.Neighbourhood(0.9, covariance=[[1.0, 0.5, 0.1], [0.5, 1.5, -0.4], [0.1, -0.4, 0.8]]),
}


def narrower(neighbourhood, width):
    sigma = neighbourhood.sigma * width / np.sqrt(1 + width**2)
    return sl.Neighbourhood(sigma, covariance=neighbourhood.covariance)


@pytest.mark.parametrize("width", [0.5, 0.75 * np.sqrt(3), 4.0])
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_exponential_kernel_is_a_narrower_neighbourhood(name, around, width):
    function, neighbourhood = FUNCTIONS[name], NEIGHBOURHOODS[around]
    e = sl.explain(function, X, method=sl.Lime(kernel=width), sigma=neighbourhood, design="antithetic", n_samples=2**18)
    truth = function.slopes(X, narrower(neighbourhood, width))
    known.assert_matches(e.values, truth, e.standard_error, sees=0.07, degrees_of_freedom=31)
    wide = function.slopes(X, neighbourhood)
    if width < 1:  # and the check above can tell the two apart
        assert np.abs(wide - truth).max() > 0.1 * np.abs(truth).max()
    np.testing.assert_allclose(e.smoothed, function.smoothed(X, neighbourhood), atol=0.02)


@pytest.mark.parametrize("around", NEIGHBOURHOODS)
def test_ridge_under_a_kernel_shrinks_to_its_population_limit(around):
    """(Σ' + λI)⁻¹ Σ' w' with Σ' of the narrower neighbourhood."""
    function, penalty, width = FUNCTIONS["sine"], 0.4, 1.2
    seen = narrower(NEIGHBOURHOODS[around], width)
    cov = known.covariance(seen, 3)
    limit = np.linalg.solve(cov + penalty * np.eye(3), cov @ function.slopes(X, seen).T).T
    method = sl.Lime(kernel=width, ridge=penalty)
    e = sl.explain(function, X, method=method, sigma=NEIGHBOURHOODS[around], design="antithetic", n_samples=2**16)
    known.assert_matches(e.values, limit, e.standard_error, sees=0.06, degrees_of_freedom=31)


def between(slopes, neighbourhood):
    """λ whose threshold λ/(2σ²) lies half-way between the second and the third slope."""
    return neighbourhood.sigma**2 * np.abs(slopes[1:]).sum()


@pytest.mark.parametrize("width", [None, 1.2])
def test_lasso_in_an_isotropic_neighbourhood_is_a_soft_threshold(width):
    """At λ/(2σ²): the slope of the third feature falls to 0, the others move by as much."""
    neighbourhood = sl.Neighbourhood(0.8)
    seen = neighbourhood if width is None else narrower(neighbourhood, width)
    slopes = FUNCTIONS["sine"].slopes(X[:1], seen)
    penalty = between(slopes[0], seen)
    limit = np.sign(slopes) * np.maximum(np.abs(slopes) - penalty / (2 * seen.sigma**2), 0)
    assert (limit == 0).tolist() == [[False, False, True]]
    for n in (2**16, 2**18):
        e = sl.explain(
            FUNCTIONS["sine"], X[:1], method=sl.Lime(kernel=width, lasso=penalty), sigma=neighbourhood,
            design="antithetic", n_samples=n,
        )  # fmt: skip
        np.testing.assert_array_equal(e.values[0, 2], 0)
        np.testing.assert_array_equal(e.selected, [[1, 1, 0]])
        known.assert_matches(e.values, limit, e.standard_error, sees=0.1, degrees_of_freedom=31)


@pytest.mark.slow
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("kernel", [None, "auto", 0.7], ids=str)
@pytest.mark.parametrize("design", ["iid", "antithetic", "sobol"])
def test_intervals_cover_as_promised(design, kernel, around):
    """600 repeats: the binomial error of a coverage of 95% is 0.9%."""
    function, neighbourhood = FUNCTIONS["sine"], NEIGHBOURHOODS[around]
    width = {"auto": 0.75 * np.sqrt(3)}.get(kernel, kernel)
    truth = function.slopes(X[:1], neighbourhood if width is None else narrower(neighbourhood, width))
    e = sl.explain(
        function, np.repeat(X[:1], 600, axis=0), method=sl.Lime(kernel=kernel), sigma=neighbourhood, design=design,
        n_samples=2_048, draws="independent",
    )  # fmt: skip
    lower, upper = e.interval(0.95)
    inside = ((lower <= truth) & (truth <= upper)).mean(axis=0)
    assert inside.min() >= 0.925
    assert inside.max() <= 0.985
    assert (np.linalg.norm((e.values - truth) * e.std, axis=1) <= e.radius).mean() >= 0.925


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["ridge", "features", "lasso"])
def test_intervals_cover_the_limits_of_penalties_and_clear_selections(setting):
    """Where every fit keeps the same features; where choices are close no such promise is made."""
    function, sigma, width = FUNCTIONS["sine"], 0.8, 1.2
    seen = narrower(sl.Neighbourhood(sigma), width)
    slopes, variance = function.slopes(X[:1], seen)[0], seen.sigma**2
    penalty = between(slopes, seen)
    value, limit = {
        "ridge": (0.2, slopes * variance / (variance + 0.2)),
        "features": (2, np.where(np.arange(3) < 2, slopes, 0.0)),
        "lasso": (penalty, np.sign(slopes) * np.maximum(np.abs(slopes) - penalty / (2 * variance), 0.0)),
    }[setting]
    method = sl.Lime(kernel=width, **{setting: value})
    e = sl.explain(
        function, np.repeat(X[:1], 600, axis=0), method=method, sigma=sigma, design="iid",
        n_samples=4_096, draws="independent",
    )  # fmt: skip
    kept = limit != 0
    lower, upper = (each[:, kept] for each in e.interval(0.95))
    inside = ((lower <= limit[kept]) & (limit[kept] <= upper)).mean(axis=0)
    assert inside.min() >= 0.925
    assert inside.max() <= 0.985
    if e.selected is not None:
        np.testing.assert_array_equal(e.values[:, ~kept], 0)
