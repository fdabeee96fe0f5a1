"""Distances that a change allows are found to the last digits, on the safe side, and soon."""

import numpy as np
import pytest
from scipy.special import erfinv

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.guarantees.distances import farthest_within, gradient_distance, range_distance
from smoothlime.guarantees.lipschitz import RANGE_SLOPE

CHANGES = np.concatenate([[0.0, 1e-300, 1e-9], np.geomspace(1e-6, 0.79, 200), [0.7978, 0.79788]])


def by_bisection(bound, allowed):
    low, high = np.zeros(allowed.shape), np.full(allowed.shape, 64.0)
    for _ in range(80):
        middle = (low + high) / 2
        fits = bound(middle) <= allowed
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


@pytest.mark.parametrize("growth", [0.0, 1e-3])
@pytest.mark.parametrize("bound", [range_distance, gradient_distance, lambda rho: np.minimum(rho**2, 0.2 * rho)])
def test_they_are_those_of_bisection_and_never_beyond(bound, growth):
    def grows(rho):
        return bound(rho) + growth * rho

    found, wanted = farthest_within(grows, CHANGES, growth), by_bisection(grows, CHANGES)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-20)  # digits that flat bounds have lost are not there
    np.testing.assert_allclose(found[:-9], wanted[:-9], rtol=1e-12, atol=1e-20)
    assert (grows(found) <= CHANGES).all()


@pytest.mark.parametrize("change", [1e-6, 0.01, 0.1, 0.5, 0.79])
def test_they_take_a_dozen_looks_at_the_bound(change):
    """Bisection took 80."""
    looks = []

    def counted(rho):
        looks.append(len(rho))
        return range_distance(rho)

    farthest_within(counted, np.full(1_000, change), 0.0)
    assert len(looks) < 20


def test_the_radius_of_a_gradient_is_that_of_the_error_function():
    certificate = sl.certify(None, np.zeros((len(CHANGES), 1)), sigma=1.0, gradient_bound=1.0)
    np.testing.assert_allclose(
        certificate.radius(CHANGES), 2 * np.sqrt(2) * erfinv(CHANGES / 2), rtol=2e-13, atol=1e-300
    )


def test_radii_of_several_certificates_are_the_largest_of_them():
    question = {"sigma": 0.8, "output_range": (0, 1), "n_samples": 2_000}
    f, rows = known.Probit([1.0, 0.5], 0.4), np.tile([0.3, -0.2], (len(CHANGES), 1))
    certificate = sl.certify(f, rows, gradient_bound=0.5, **question)
    found = certificate.radius(CHANGES)
    is_finite = np.isfinite(found)
    assert (certificate.bound(found)[is_finite] <= CHANGES[is_finite] * (1 + 1e-12)).all()
    assert (certificate.bound(found * (1 + 1e-9) + 1e-12)[is_finite] >= CHANGES[is_finite]).all()
    assert np.isinf(certificate.radius(np.inf)).all()


def test_the_worst_change_is_where_it_was():
    """t tanh(t h) = h, and D = 2(φ(t − h) − φ(t + h)) is largest there: no other t gives more."""
    for h in (1e-9, 1e-4, 0.3, 0.7, 1.0, 2.5, 10.0):
        t = np.linspace(0, h + 3, 200_001)
        density = lambda s: np.exp(-(s**2) / 2) / np.sqrt(2 * np.pi)
        scanned = 2 * (density(t - h) - density(t + h)).max()
        assert float(range_distance(np.array(2 * h))) == pytest.approx(scanned, rel=1e-6)
    np.testing.assert_allclose(range_distance(np.array([1e-300, 1e-12])) / [1e-300, 1e-12], RANGE_SLOPE, rtol=1e-9)


def test_rounding_that_grows_ends_what_would_be_endless():
    assert farthest_within(lambda rho: 1.0 + 0.01 * rho, np.array([3.0, 0.5]), 0.01) == pytest.approx([200.0, 0.0])
    assert np.isinf(farthest_within(lambda rho: np.minimum(rho, 1.0), np.array([1.0]), 0.0)).all()
