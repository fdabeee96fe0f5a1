"""Pieces of nets are never parted, and neighbours within them are found wherever draws lie."""

import numpy as np
import pytest

from smoothlime.draws.blocks import LOOKED_AT, PIECE
from smoothlime.draws.designs import DESIGNS, PARTS

NETS = [name for name, design in DESIGNS.items() if design.is_net]


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("n", [64, 256, 1_024, 16_384])
def test_chunks_of_nets_hold_whole_pieces_however_few_are_asked_for(name, n):
    n = DESIGNS[name].whole(n, 3)
    for limit in (1, 7, 255, 257, 700, 5_000, 10**6):
        stop = 0
        for chunk in DESIGNS[name].layout(n, 3).chunks(0, n, limit):
            assert chunk.start == stop
            assert chunk.start % PIECE == 0
            assert chunk.n <= max(limit, PIECE)
            stop += chunk.n
        assert stop == n


def looked_at(n, limit=10**6, start=0):
    """First draws of the pieces that are looked at, in the whole sequence."""
    return [
        chunk.start + int(piece[0])
        for chunk in DESIGNS["aligned"].layout(n, 3).chunks(start, n, limit)
        for piece in chunk.looked_at()
    ]


@pytest.mark.parametrize("n", [16 * 2**k for k in range(13)])
def test_each_place_of_a_run_is_looked_at_in_some_run(n):
    """A rare point of a net may lie in the same piece of each run: no piece of a run is left out of all of them."""
    found = looked_at(n)
    assert found == looked_at(n, limit=300)
    assert len(found) == max(1, n // PIECE // LOOKED_AT)
    run = max(1, n // PARTS)
    assert {first % run // PIECE for first in found} == set(range(max(1, run // PIECE)))


def test_what_is_looked_at_does_not_depend_on_the_looks_before():
    assert looked_at(1_024) + looked_at(4_096, start=1_024) == looked_at(4_096)


def test_a_last_piece_that_is_not_whole_is_not_looked_at():
    layout = DESIGNS["sobol"].layout(8, 3)
    for limit in (256, 10**6):
        pieces = [chunk.looked_at() for chunk in layout.chunks(0, 7 * PIECE + 200, limit)]
        assert sum(len(each) for each in pieces) == 1


@pytest.mark.parametrize("name", ["sobol", "aligned"])
@pytest.mark.parametrize("by_turn", [False, True])
@pytest.mark.parametrize("n", [128, 512, 8_192])
def test_neighbours_follow_each_other_along_their_coordinate(name, by_turn, n):
    design = DESIGNS[name]
    z = design.stream(3, 0).take(n)
    seen = []
    for chunk in design.layout(n, 3).chunks(0, n, 2_048):
        mine = z[chunk.start : chunk.start + chunk.n]
        flat = (chunk.by_turn(mine) if by_turn else chunk.by_group(mine)).reshape(1, chunk.n, 3)
        across = design.across(flat)
        order = chunk.neighbours(across, by_turn=by_turn)
        if order is None:
            assert not len(chunk.looked_at())
            continue
        assert order.shape == (1, len(chunk.looked_at()), min(n, PIECE), 1 if name == "aligned" else 3)
        for piece, theirs in zip(chunk.looked_at(), order[0], strict=True):
            for axis in range(theirs.shape[1]):
                np.testing.assert_array_equal(flat[0, theirs[:, axis], axis], np.sort(mine[piece, axis]))
            seen.append(chunk.start + int(piece[0]))
    assert len(seen) == max(1, n // PIECE // LOOKED_AT)
