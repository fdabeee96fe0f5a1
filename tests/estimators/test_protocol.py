"""Two estimates of the same draws, of which each row takes the one that suits it."""

import numpy as np

from smoothlime.estimators import Estimate

R, G, D = 3, 4, 2


def fitted(terms, seed):
    rng = np.random.default_rng(seed)
    return Estimate(
        values=rng.normal(size=(R, terms)),
        pseudo=rng.normal(size=(R, G, terms)),
        resolution=rng.random((R, terms)),
        smoothed=rng.normal(size=R),
        variance=rng.random(R),
        spread=rng.random(R),
    )


def test_slopes_come_with_the_scatter_the_resolution_and_the_variance_of_their_own_fit():
    curved, plain = fitted(terms=5, seed=0), fitted(terms=3, seed=1)
    both = curved.where(np.array([False, True, False]), plain, D)
    for row, own in enumerate((curved, plain, curved)):
        np.testing.assert_array_equal(both.values[row], own.values[row, :D])
        np.testing.assert_array_equal(both.pseudo[row], own.pseudo[row, :, :D])
        np.testing.assert_array_equal(both.resolution[row], own.resolution[row, :D])
        assert both.variance[row] == own.variance[row]
    # means over the draws are no matter of what is fitted to them
    np.testing.assert_array_equal(both.smoothed, curved.smoothed)
    np.testing.assert_array_equal(both.spread, curved.spread)
