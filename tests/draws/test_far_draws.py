"""Draws that are only looked at: pairs of normal ones, stretched, that nobody else takes."""

import numpy as np
import pytest
from scipy.special import ndtr

from smoothlime.draws.designs import DESIGNS
from smoothlime.draws.far_draws import FAR, STRETCH, far_draws
from smoothlime.draws.keys import pilot_draws, spare_draws


@pytest.mark.parametrize("d", [1, 2, 30])
def test_they_are_pairs_of_longer_draws(d):
    many = np.stack([far_draws(d, seed, None) for seed in range(200)])
    assert many.shape == (200, FAR, d)
    np.testing.assert_array_equal(many[:, 1::2], -many[:, 0::2])
    spread = many[:, 0::2].ravel().std() if d > 1 else np.sqrt((many[:, 0::2] ** 2).mean())
    assert abs(spread / STRETCH - 1) < 0.05


def test_in_one_dimension_they_are_even():
    strata = np.floor(2 * (ndtr(far_draws(1, 3, None)[0::2, 0] / STRETCH) - 0.5) * FAR / 2)
    assert sorted(strata) == list(range(FAR // 2))


def test_a_seed_and_a_row_fix_them():
    one = far_draws(4, 7, 2)
    np.testing.assert_array_equal(one, far_draws(4, 7, 2))
    for other in (far_draws(4, 8, 2), far_draws(4, 7, 3), far_draws(4, 7, None)):
        assert not np.isclose(one, other).any()


def test_nobody_else_takes_them():
    numbers = far_draws(4, 0, None) / STRETCH
    taken = [pilot_draws(FAR, 4, 0, None), spare_draws(FAR, 4, 0, None), DESIGNS["iid"].stream(4, 0).take(FAR)]
    assert not any(np.isclose(numbers[0::2], each[: FAR // 2]).any() for each in taken)
