"""Normal numbers by position: the same wherever a run begins and on any device, and as random as they should be."""

import numpy as np
import pytest
import torch
from scipy import stats

from smoothlime.device import torch_normals
from smoothlime.draws import designs
from smoothlime.draws.normals import FEWEST_CHANGES, Run, Sequence, hashes, normals
from smoothlime.space.neighbourhood import Neighbourhood

GOLDEN = 0x9E3779B97F4A7C15


def sequence(seed=0, *key):
    return Sequence.of(np.random.SeedSequence(seed, spawn_key=key))


class TestHashes:
    def test_are_those_of_splitmix64(self):
        """The first outputs of the published generator, seeded with 1234567."""
        published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
        assert hashes(Sequence(1234567, GOLDEN), 0, 3).tolist() == published

    def test_follow_from_the_position_alone(self):
        whole = hashes(sequence(), 0, 100)
        np.testing.assert_array_equal(hashes(sequence(), 37, 61), whole[37:61])
        assert len({*whole, *hashes(sequence(1), 0, 100), *hashes(sequence(0, 1), 0, 100)}) == 300

    def test_change_half_of_their_bits_from_position_to_position(self):
        bits = hashes(sequence(3), 0, 20_001)
        changed = np.bitwise_count(bits[1:] ^ bits[:-1])
        assert abs(changed.mean() - 32) < 4 * 4 / np.sqrt(20_000)

    def test_of_steps_that_hardly_change_are_mended(self):
        class Poor:
            def generate_state(self, count, dtype):
                return np.array([5, 0xFFFFFFFF00000000], dtype=dtype)

        step = Sequence.of(Poor()).step
        assert step % 2 == 1
        assert (step ^ step >> 1).bit_count() >= FEWEST_CHANGES


class TestNumbers:
    @pytest.mark.parametrize(("start", "stop"), [(0, 10), (1, 10), (3, 4), (2, 3), (7, 20), (5, 5)])
    def test_of_any_run_are_those_of_the_whole(self, start, stop):
        whole = normals(Run(sequence(), 0, 20))
        np.testing.assert_array_equal(normals(Run(sequence(), start, stop)), whole[start:stop])

    def test_are_normal_and_independent(self):
        n = 2**18
        z = normals(Run(sequence(7), 0, n))
        assert stats.kstest(z, "norm").pvalue > 1e-3
        for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
            assert abs((z**power).mean() - expected) < 4 * np.sqrt(variance / n)
        other = normals(Run(sequence(8), 0, n))
        for lag in (1, 2, 3, 15, 64):
            for one, two in ((z, z), (z**2 - 1, z**2 - 1), (z, z**2 - 1), (z, other)):
                size = one.std() * two.std()
                assert abs((one[lag:] * two[:-lag]).mean()) < 4.5 * size / np.sqrt(n)

    def test_of_rows_and_seeds_are_unrelated(self):
        """Many short sequences, as rows with draws of their own have them."""
        z = np.stack([normals(Run(sequence(0, 1, row), 0, 64)) for row in range(2_000)])
        assert stats.kstest(z[:, 0], "norm").pvalue > 1e-3
        between = np.corrcoef(z, rowvar=False)[np.triu_indices(64, 1)]
        assert abs(between).max() < 5 / np.sqrt(2_000)

    def test_reach_into_the_tails(self):
        n = 2**20
        z = normals(Run(sequence(2), 0, n))
        for far in (3, 4, 4.5):
            expected = 2 * stats.norm.sf(far) * n
            assert abs((np.abs(z) > far).sum() - expected) < 4 * np.sqrt(expected)

    @pytest.mark.parametrize("start", [0, 1, 2**40 + 3])
    def test_are_the_same_made_by_torch(self, start):
        for seed in range(4):
            run = Run(sequence(seed), start, start + 10_001)
            made = torch_normals.normals(torch, run, torch.device("cpu"))
            assert made.dtype == torch.float64
            np.testing.assert_allclose(made.numpy(), normals(run), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ["iid", "antithetic"])
def test_a_design_says_which_numbers_its_draws_are(name):
    taken, said = (designs.DESIGNS[name].stream(5, seed=3) for _ in range(2))
    for n in (6, 2, 10):
        draws = taken.take_firsts(n) if taken.is_paired else taken.take(n)
        np.testing.assert_array_equal(normals(said.run(n)).reshape(-1, 5), draws)
    assert said.can_be_made_elsewhere
    assert not designs.DESIGNS["orthogonal"].stream(5, seed=3).can_be_made_elsewhere


def test_steps_are_rounded_once_to_the_type_they_are_written_in():
    z = np.random.default_rng(0).normal(size=(2, 3, 7, 5))
    factor = Neighbourhood(0.3).factor(5)
    out = np.full(z.shape, np.nan, dtype=np.float32)
    factor.write_steps(z, out)
    np.testing.assert_array_equal(out, factor.steps(z).astype(np.float32))
