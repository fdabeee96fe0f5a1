"""Directions of shared draws that wait before they are multiplied: what waiting costs, and adding up."""

import tracemalloc

import numpy as np

from smoothlime.draws.designs import DESIGNS
from smoothlime.estimators import Differences, GroupedDraws
from smoothlime.estimators.differences import WAITING
from smoothlime.estimators.protocol import Setup
from smoothlime.space.neighbourhood import Factor

GROUPS, D = 32, 100
SUMS = 8 * GROUPS * D * D


def started(d=D):
    factor = Factor(d, np.arange(d), np.ones(d))
    return Differences().start(Setup(1, GROUPS, factor, DESIGNS["differences"], looks=(1_024,), is_shared=True))


def pairs(groups, count, d=D):
    return GroupedDraws(np.random.default_rng(0).standard_normal((1, groups, 2 * count, d)), is_shared=True)


def test_what_waits_is_not_gone_through_for_every_further_pair():
    class Unread(list):
        def __iter__(self):
            raise AssertionError("small batches would take time by their number squared")

    state, method = started(d=3), Differences()
    state._waiting = Unread()
    for group in range(GROUPS):
        method.update_shared(state, slice(group, group + 1), pairs(1, 1, d=3))
    assert len(state._waiting) == GROUPS


def test_adding_up_takes_little_room_besides_the_sums_and_what_waits(monkeypatch):
    monkeypatch.setattr("smoothlime.estimators.differences.WAITING", 0)
    state, method, draws = started(), Differences(), pairs(GROUPS, 4)
    tracemalloc.start()
    try:
        while len(state._waiting) or state._directions is None:
            method.update_shared(state, slice(0, GROUPS), draws)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.8 * SUMS


def test_directions_wait_until_sums_take_no_more_room():
    d = 300
    state, method = started(d), Differences()
    assert state.slopes.size * d // 2 > WAITING  # more may wait than in any case
    size = GROUPS * 4 * d
    for _ in range(state.slopes.size * d // 2 // size):
        method.update_shared(state, slice(0, GROUPS), pairs(GROUPS, 4, d))
    assert state._directions is None
    method.update_shared(state, slice(0, GROUPS), pairs(GROUPS, 4, d))
    assert state._directions is not None
    assert not state._waiting
    method.update_shared(state, slice(0, GROUPS), pairs(GROUPS, 4, d))
    assert len(state._waiting) == 1  # once more


def test_what_waits_does_not_keep_whole_batches():
    state, draws = started(), pairs(GROUPS, 4)
    Differences().update_shared(state, slice(0, GROUPS), draws)
    assert not np.shares_memory(state._waiting[0][1], draws.z)
