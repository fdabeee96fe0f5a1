"""The numbers in the errata are computed again here, each from its definition."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from smoothlime.paper.errata import ERRATA


def told(title):
    one = next(one for one in ERRATA if title in one.title)
    return " ".join((one.says, one.wrong, one.right, one.proof))


def test_the_step_has_slope_phi_of_zero():
    slope = quad(lambda a: a * norm.pdf(a), 0, 10)[0]  # cov(a, 1{a > 0}) / σ²
    assert f"φ(0) = {slope:.4f}" in told("almost everywhere")
    jump = quad(lambda a: 3 * a / 0.49 * norm.pdf(a, scale=0.7), 0.2, 12)[0]  # height 3 at 0.2, σ = 0.7
    assert jump == pytest.approx(3 * norm.pdf(0.2 / 0.7) / 0.7)


def test_the_lipschitz_constants_are_those_of_the_counterexamples():
    step = 1e-5  # SmoothGrad of |a| is E sign(a); σ = 1
    slope = (norm.cdf(step) - norm.cdf(-step) - norm.cdf(-step) + norm.cdf(step)) / (2 * step)
    assert f"{slope:.3f} G/σ" in told("Lipschitz")
    assert f"2√(2/π) = {slope / 0.5:.3f}" in told("Lipschitz")
    curvature = quad(lambda t: abs(t * t - 1) * norm.pdf(t), -12, 12, points=[-1, 1])[0] / 2
    assert curvature == pytest.approx(math.sqrt(2 / (math.pi * math.e)))
    assert f"{curvature:.3f} B/σ²" in told("Lipschitz")


def test_the_scaling_argument_against_theorem_3():
    def least(eps, s):
        sigma, x, eps = s, s, eps / s
        return min(eps * sigma**2, eps * sigma**3 / x, x, 1 / sigma**2)

    eps = 0.01
    assert least(eps, eps ** (-1 / 3)) == pytest.approx(eps ** (2 / 3))
    n = math.log(1 / 0.05) / least(eps, eps ** (-1 / 3)) ** 2
    assert round(n, -1) == 1390
    assert "C = 1, ε = 0.01 and δ = 0.05" in told("every constant")
    # without an intercept: E[aaᵀ]⁻¹ E[a f] for f = 1, x = e₁, σ = 1
    np.testing.assert_allclose(np.linalg.solve(np.diag([2.0, 1.0]), [1.0, 0.0]), [0.5, 0.0])


def test_the_mean_of_n_vectors_in_a_ball_stays_within_the_bound():
    gradient_bound, delta, n = 1.0, 0.05, 100
    eps = gradient_bound * math.sqrt(2 * math.log(2 / delta) / n)
    assert n == pytest.approx(2 * (gradient_bound / eps) ** 2 * math.log(2 / delta))
    assert 2 * math.exp(-n * eps**2 / (2 * gradient_bound**2)) == pytest.approx(delta)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(20_000, n))
    assert (abs(signs.mean(axis=1)) >= eps).mean() < delta


def test_the_simulated_data_cannot_be_told_apart_so_well():
    best = norm.cdf(math.sqrt(2))
    assert f"Φ(√2) = {best:.1%}" in told("simulated")
    assert f"{binom.sf(198, 200, best) * 1e6:.1f}·10⁻⁶" in told("simulated")
    assert 2 / norm.ppf(0.995) ** 2 == pytest.approx(0.30, abs=0.005)


def test_the_majority_of_companies_is_above_the_weak_model():
    assert f"10008/10503 = {10_008 / 10_503:.4f}" in told("public data")
    assert 0.86 < 10_008 / 10_503 < 0.963


def test_ridge_of_a_sum_needs_n_times_the_penalty_of_a_mean():
    rng = np.random.default_rng(0)
    a, n, penalty = rng.normal(size=(200, 3)), 200, 0.3
    y = np.tanh(a @ [1.0, -0.5, 0.2])
    centred, target = a - a.mean(axis=0), y - y.mean()
    by_mean = np.linalg.solve(centred.T @ centred / n + penalty * np.eye(3), centred.T @ target / n)
    by_sum = np.linalg.solve(centred.T @ centred + n * penalty * np.eye(3), centred.T @ target)
    np.testing.assert_allclose(by_sum, by_mean)
