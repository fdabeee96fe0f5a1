"""Draws by several threads are those of one: no answer may depend on how many processors a machine has."""

import numpy as np
import pytest

from smoothlime import _parallel, designs
from smoothlime.neighbourhood import Neighbourhood
from smoothlime.normals import _joined, _numbers_between, _Piece, by_threads


def generators(seed, kind=np.random.PCG64):
    return [np.random.Generator(kind(seed)) for _ in range(2)]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_several_threads_make_the_draws_of_one_and_leave_the_generator_where_it_would_be(count):
    for seed in range(60):  # of the guesses where a piece begins, one in fifty is wrong
        n = 37 + 97 * seed
        several, one = generators(seed)
        np.testing.assert_array_equal(by_threads(several, (n,), count), one.standard_normal(n))
        assert several.bit_generator.state == one.bit_generator.state
        assert several.integers(2**32) == one.integers(2**32)


def test_pieces_of_a_few_numbers_are_joined_too():
    for seed in range(200):
        several, one = generators(seed)
        np.testing.assert_array_equal(by_threads(several, (4, 5), 9), one.standard_normal((4, 5)))
        assert several.bit_generator.state == one.bit_generator.state


def test_wrong_guesses_are_made_good_from_both_sides():
    """A reader that starts inside a draw may be the first to be in step, or the last."""
    state, size, count = np.random.PCG64(4).state, 12, 3_000
    space = np.empty((count, size))
    pieces = [_Piece(state, slice(i * size, (i + 1) * size), space[i]) for i in range(count)]
    parts, end = _joined(pieces, state)
    draws = np.concatenate(parts)
    np.testing.assert_array_equal(draws, np.random.Generator(np.random.PCG64(4)).standard_normal(len(draws)))
    assert end >= size * count
    between, kept = parts[0::2], parts[1::2]
    assert any(len(each) for each in between)
    assert any(len(each) < len(piece.draws) for each, piece in zip(kept, pieces, strict=True))


def test_other_bit_generators_are_left_alone():
    several, one = generators(0, np.random.Philox)
    np.testing.assert_array_equal(by_threads(several, (1_000,), 4), one.standard_normal(1_000))


def test_steps_of_the_bit_generator_are_counted():
    bits = np.random.PCG64(5)
    before = bits.state["state"]
    for steps in (0, 1, 12_345, 2**40 + 17):
        bits.state = bits.state | {"state": before}
        bits.advance(steps)
        assert _numbers_between(before["state"], bits.state["state"]["state"], before["inc"]) == steps


@pytest.mark.parametrize("name", ["iid", "antithetic"])
def test_a_design_draws_the_same_by_any_number_of_threads(name, monkeypatch):
    def drawn():
        stream = designs.DESIGNS[name].stream(50, seed=3)
        return np.concatenate([stream.take(20), stream.take(14)])

    alone = drawn()
    monkeypatch.setattr(_parallel, "LONG", 100)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    np.testing.assert_array_equal(drawn(), alone)


def test_steps_are_the_same_by_any_number_of_threads(monkeypatch):
    z = np.random.default_rng(0).normal(size=(2, 3, 7, 5))
    factor = Neighbourhood(0.3).factor(5)
    out = np.full(z.shape, np.nan, dtype=np.float32)
    monkeypatch.setattr(_parallel, "LONG", 30)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    factor.write_steps(z, out)
    np.testing.assert_array_equal(out, factor.steps(z).astype(np.float32))


@pytest.mark.parametrize(("asked", "expected"), [("3", 3), ("1", 1), ("64", 16)])
def test_threads_are_limited_by_the_variable_that_limits_numerical_libraries(asked, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert _parallel.threads(100 * _parallel.LONG) == expected
    assert _parallel.threads(10) == 1


def test_without_the_variable_there_is_a_thread_for_each_processor(monkeypatch):
    monkeypatch.setattr(_parallel.os, "sched_getaffinity", lambda _: range(5), raising=False)
    for unset in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", unset)
        assert _parallel.threads(100 * _parallel.LONG) == 5
