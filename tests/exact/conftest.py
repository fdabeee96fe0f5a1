"""Truths for models of two features: all cells that thresholds cut out, each with its exact probability."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import norm

from smoothlime.exact.trees.read.recognise import read_trees


def _thresholds_of(estimator, j, output="margin"):
    """Where the trees of an estimator split on feature j."""
    trees = read_trees(estimator, output)
    return np.unique(trees.threshold[trees.feature == j])


def _by_cells(ask, cuts, x, sigma):
    """E f and its slopes around x (2,), of a function that is constant between the cuts of either feature."""
    middles, chances, rates = [], [], []
    for j in range(2):
        ends = np.unique(np.concatenate([[-np.inf], cuts[j], [np.inf]]))
        inner = np.where(np.isinf(ends), np.sign(ends) * (np.abs(ends[np.isfinite(ends)]).max(initial=0) + 1), ends)
        z = (ends - x[j]) / sigma[j]
        middles.append((inner[1:] + inner[:-1]) / 2)
        chances.append(np.where(z[:-1] > 0, norm.sf(z[:-1]) - norm.sf(z[1:]), np.diff(norm.cdf(z))))
        rates.append(-np.diff(norm.pdf(z)) / sigma[j])
    f = ask(np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(*map(len, middles))
    return chances[0] @ f @ chances[1], np.array([rates[0] @ f @ chances[1], chances[0] @ f @ rates[1]])


def _by_quadrature(ask, x, factor, nodes=80):
    """E f and its slopes around x (2,), of a smooth function; factor is L with Σ = L Lᵀ."""
    z, w = hermegauss(nodes)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = (w[:, None] * w).ravel() / (2 * np.pi)
    f = ask(x + grid @ factor.T)
    return weight @ f, np.linalg.solve(factor.T, (weight * f) @ grid)


@pytest.fixture(scope="session")
def thresholds_of():
    return _thresholds_of


@pytest.fixture(scope="session")
def by_cells():
    return _by_cells


@pytest.fixture(scope="session")
def by_quadrature():
    return _by_quadrature
