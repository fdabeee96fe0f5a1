"""Every design keeps the same promises: reproducible, extensible, standard normal, in independent blocks."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi, kstest

from smoothlime.draws.blocks import Layout
from smoothlime.draws.designs import DESIGNS
from smoothlime.errors import InvalidArgument

NAMES = list(DESIGNS)
NORMAL = [name for name in NAMES if name != "differences"]


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", NAMES)
class TestEveryDesign:
    def test_the_seed_alone_fixes_the_draws(self, name, d):
        first = DESIGNS[name].stream(d, 7).take(64)
        np.testing.assert_array_equal(first, DESIGNS[name].stream(d, 7).take(64))
        assert not np.array_equal(first, DESIGNS[name].stream(d, 8).take(64))

    def test_later_draws_continue_the_same_sequence(self, name, d):
        whole = DESIGNS[name].stream(d, 1).take(200)
        stream = DESIGNS[name].stream(d, 1)
        np.testing.assert_array_equal(whole, np.concatenate([stream.take(n) for n in (1, 15, 0, 48, 136)]))

    def test_rows_of_their_own_have_different_draws(self, name, d):
        by_row = [DESIGNS[name].stream(d, 1, row).take(32) for row in (None, 0, 1)]
        assert not np.array_equal(by_row[0], by_row[1])
        assert not np.array_equal(by_row[1], by_row[2])
        np.testing.assert_array_equal(by_row[2], DESIGNS[name].stream(d, 1, 1).take(32))

    def test_draws_have_the_right_radius(self, name, d):
        # one draw per block, from many independent sequences where blocks are not single draws of one
        z = np.concatenate([DESIGNS[name].stream(d, 3, row).take(8)[:1] for row in range(2_000)])
        degrees = d + 2 if name == "differences" else d
        assert kstest(np.linalg.norm(z, axis=1), chi(degrees).cdf).pvalue > 1e-4

    def test_global_random_state_is_left_alone(self, name, d):
        before = np.random.get_state()[1].copy()  # noqa: NPY002 (the state that must not move)
        DESIGNS[name].stream(d, 3).take(16)
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("name", NORMAL)
def test_each_draw_is_standard_normal(name):
    z = np.concatenate([DESIGNS[name].stream(2, 4, row).take(16) for row in range(1_500)])
    n = len(z)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(z.T @ z / n, np.eye(2), atol=5 * np.sqrt(2 / n))
    assert kstest(z[::16, 0], "norm").pvalue > 1e-4


def test_antithetic_and_orthogonal_draws_come_in_pairs():
    for name in ("antithetic", "orthogonal", "differences"):
        z = DESIGNS[name].stream(3, 0).take(24)
        np.testing.assert_array_equal(z[0::2], -z[1::2])


@pytest.mark.parametrize("name", [name for name, design in DESIGNS.items() if design.is_paired])
def test_the_first_of_each_pair_can_be_had_alone(name):
    whole, firsts = (DESIGNS[name].stream(3, seed=5) for _ in range(2))
    z = whole.take(20)
    np.testing.assert_array_equal(
        np.concatenate([firsts.take_firsts(12), firsts.take(2)[:1], firsts.take_firsts(6)]), z[0::2]
    )


def test_orthogonal_blocks_are_orthogonal():
    z = DESIGNS["orthogonal"].stream(5, 0).take(30)[0::2].reshape(3, 5, 5)
    gram = z @ z.swapaxes(1, 2)
    off_diagonal = gram[:, ~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(off_diagonal, 0, atol=1e-12)


def test_random_bases_are_uniform():
    """Without its sign fix QR would favour a hemisphere."""
    z = np.concatenate([DESIGNS["orthogonal"].stream(3, 0, row).take(6)[0::2] for row in range(3_000)])
    q = (z / np.linalg.norm(z, axis=1, keepdims=True)).reshape(3_000, 9)
    np.testing.assert_allclose(q.mean(axis=0), 0, atol=5 * np.sqrt(1 / 3 / 3_000))


def test_sobol_groups_are_nets():
    """Each scramble of 2^k points puts exactly one in each of 2^k slices of every axis."""
    z = DESIGNS["sobol"].stream(3, 0).take(8 * 64).reshape(64, 8, 3)
    for scramble in range(8):
        cells = np.floor(ndtr(z[:, scramble]) * 64).astype(int)
        for axis in range(3):
            assert sorted(cells[:, axis]) == list(range(64))


def test_streams_of_one_seed_do_not_share_their_state():
    """Scrambles are kept between calls; where one stream stands must not matter to another."""
    first, second = (DESIGNS["sobol"].stream(4, 11) for _ in range(2))
    taken = first.take(64)
    first.take(512)
    np.testing.assert_array_equal(second.take(64), taken)
    np.testing.assert_array_equal(DESIGNS["sobol"].stream(4, 11).take(64), taken)


def test_sobol_says_up_to_how_many_features_it_goes():
    with pytest.raises(InvalidArgument, match="goes up to 21201 features; got 30000"):
        DESIGNS["sobol"].stream(30_000, 0)


@pytest.mark.parametrize("name", ["aligned", "aligned-pairs"])
def test_draws_of_one_net_are_rounded_down_to_one_that_groups_share_evenly(name):
    design = DESIGNS[name]
    for n in (1, 15, 16, 31, 32, 33, 63, 64, 1_000):
        below = design.below(n, 3)
        assert below <= n
        assert below == 0 or design.whole(below, 3) == below
    assert design.below(1_023, 3) == 512


def test_draws_are_rounded_up_to_whole_blocks():
    assert [DESIGNS[name].whole(1_000, 15) for name in ("iid", "antithetic", "orthogonal")] == [1_000, 1_000, 1_020]
    assert [DESIGNS["sobol"].whole(n, 15) for n in (1, 8, 9, 1_000, 1_024)] == [8, 8, 16, 1_024, 1_024]


def test_few_orthogonal_blocks_are_dealt_as_pairs():
    assert DESIGNS["orthogonal"].layout(15 * 30, 15) == Layout(30, 32)
    assert DESIGNS["orthogonal"].layout(7 * 30, 15) == Layout(2, 32)
    assert DESIGNS["antithetic"].layout(6, 15) == Layout(2, 32)


@pytest.mark.parametrize(
    ("block", "groups", "n", "limit"), [(1, 32, 1_000, 96), (2, 5, 46, 3), (6, 4, 100 * 6, 7), (1, 8, 64, 64)]
)
def test_chunks_deal_block_i_to_group_i_mod_g(block, groups, n, limit):
    layout = Layout(block, groups)
    z = np.arange(n, dtype=float)[:, None]
    dealt = [[] for _ in range(groups)]
    start = 0
    for chunk in layout.chunks(0, n, limit):
        assert chunk.n <= max(limit, block)
        by_group = chunk.by_group(z[start : start + chunk.n])
        for group, draws in zip(range(groups)[chunk.groups], by_group, strict=True):
            dealt[group] += draws[:, 0].tolist()
        start += chunk.n
    assert start == n
    expected = [[i for i in range(n) if i // block % groups == group] for group in range(groups)]
    assert dealt == expected
    assert layout.sizes(n).tolist() == [len(each) for each in expected if each]


@pytest.mark.parametrize("d", [3, 11, 30])
def test_points_that_change_places_leave_each_coordinate_as_it_was(d):
    """One point in each of n slices of every axis, of all draws and of each run; and no two blocks are dealt alike."""
    z = DESIGNS["aligned"].stream(d, 0).take(2_048)
    for n in (16, 64, 256, 1_024, 2_048):
        cells = np.floor(ndtr(z[:n]) * n).astype(int)
        for axis in range(d):
            assert sorted(cells[:, axis]) == list(range(n))
    runs = np.floor(ndtr(z) * 128).astype(int).reshape(16, 128, d)
    assert (np.sort(runs, axis=1) == np.arange(128)[:, None]).all()


@pytest.mark.parametrize("d", [11, 30, 200])
def test_which_places_change_does_not_depend_on_how_draws_are_taken(d):
    whole, pieces = (DESIGNS["aligned"].stream(d, 7) for _ in range(2))
    z = whole.take(5_000)
    np.testing.assert_array_equal(np.concatenate([pieces.take(n) for n in (5, 100, 7, 400, 1_000, 2_488, 1_000)]), z)
    alone = DESIGNS["aligned"].stream(d, 7, row=3).take(5_000)
    by_itself = DESIGNS["aligned"].stream(d, 7, row=3)
    np.testing.assert_array_equal(np.concatenate([by_itself.take(n) for n in (300, 700, 4_000)]), alone)


@pytest.mark.parametrize("name", ["sobol", "aligned"])
@pytest.mark.parametrize("d", [3, 11, 30])
def test_what_follows_the_opening_that_is_kept_is_what_would_have_followed(name, d, monkeypatch):
    kept = DESIGNS[name].stream(d, 5).take(4_096)
    monkeypatch.setattr("smoothlime.draws.sobol.CACHED_FEATURES", 0)
    np.testing.assert_array_equal(DESIGNS[name].stream(d, 5).take(4_096), kept)
