"""What one draw of a net can change, as draws that are neighbours show it."""

import numpy as np
import pytest
import torch

from smoothlime.uncertainty.resolution import TYPICAL, join, look, resolution

RNG = np.random.default_rng(0)
R, N, F, PIECES, LENGTH = 3, 24, 2, 2, 8
NUMBERS = RNG.normal(size=(R, N, F))


def order(rows, axes):
    """Some draws of each row and feature in some order: (rows, p, P, axes)."""
    shuffled = RNG.permuted(np.broadcast_to(np.arange(N)[:, None], (rows, N, axes)), axis=1)
    return shuffled[:, : PIECES * LENGTH].reshape(rows, PIECES, LENGTH, axes)


@pytest.mark.parametrize("rows", [1, R])
@pytest.mark.parametrize("axes", [1, F])
def test_sums_and_differences_are_those_of_neighbours(rows, axes):
    near = order(rows, axes)
    found = look(NUMBERS, near)
    for row in range(R):
        for axis in range(F):
            seen = NUMBERS[row, :, axis][near[row % rows, :, :, axis % axes]]
            apart = np.abs(np.diff(seen, axis=1))
            expected = [seen.sum(), (seen**2).sum(), apart.sum(), apart.max()]
            np.testing.assert_allclose(found[:, row, axis], expected, rtol=1e-13)
    there = look(torch.from_numpy(NUMBERS), torch.from_numpy(near))
    np.testing.assert_allclose(there.numpy(), found, rtol=1e-13)


def test_parts_add_up_to_the_whole():
    near = order(1, 1)
    sums = np.zeros((4, 5, F))
    join(sums, slice(1, 4), look(NUMBERS, near[:, :1]))
    join(sums, np.array([1, 2, 3]), look(NUMBERS, near[:, 1:]))
    np.testing.assert_allclose(sums[:, 1:4], look(NUMBERS, near), rtol=1e-13)
    assert not sums[:, [0, 4]].any()


def seen(gradients):
    """What one row's gradients (n,) at draws in order say of the floor, in units of 1 / n."""
    in_order = np.arange(len(gradients)).reshape(1, 1, -1, 1)
    found = resolution(look(gradients[None, :, None], in_order), np.array([len(gradients)]), 0.75, 1.0)
    return float(found[0, 0])


def test_a_rare_step_counts_by_its_height():
    z = np.linspace(-3, 3, 256)
    rare = np.where(z > 2.9, 2.0, 0.0)
    assert abs(seen(rare) / (0.75 * 2.0) - 1) < TYPICAL / 255 + 1e-12
    assert seen(rare) > 3 * rare.std()


def test_what_is_smooth_or_noisy_counts_by_its_spread():
    z = np.linspace(-3, 3, 256)
    for calm in (np.cos(z), z, np.random.default_rng(1).normal(size=256)):
        assert seen(calm) == pytest.approx(calm.std(), rel=1e-12)


def test_rounding_is_no_spread():
    assert seen(1.0 + 1e-16 * RNG.normal(size=256)) == 0
    assert seen(np.full(256, 0.1)) == 0
