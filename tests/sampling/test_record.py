"""What is kept of rows once they are done, in whatever order and from whatever thread they come."""

import time
from threading import Barrier, Thread
from types import SimpleNamespace

import numpy as np
import pytest

from smoothlime.sampling import record as looks
from smoothlime.sampling.record import InterimEstimate, ResultBuffer
from smoothlime.uncertainty.groups import Groups

ROWS, GROUPS, D = 12, 4, 3


def look(rows, *, with_selected=False):
    """Numbers that tell the rows (positions) apart."""
    of_row = np.asarray(rows, dtype=np.float64)
    by_feature = np.repeat(of_row[:, None], D, axis=1)
    said = by_feature[:, None] + np.arange(GROUPS)[None, :, None]
    groups = Groups(said, np.full((len(rows), GROUPS), 8.0), np.zeros((len(rows), D)), None)
    torn = of_row % 2 == 1
    estimate = SimpleNamespace(smoothed=of_row, selected=by_feature if with_selected else None, torn=torn)
    return InterimEstimate(32, estimate, groups, by_feature, of_row, of_row, of_row, np.ones(len(rows), dtype=np.bool_))


def slowly(make):
    def made(*args, **settings):
        time.sleep(0.002)
        return make(*args, **settings)

    return made


def assert_is_complete(found):
    expected = np.arange(ROWS, dtype=np.float64)
    for each in (found.smoothed, found.radius, found.fidelity, found.values[:, 0], found.said[:, 0, 0]):
        np.testing.assert_array_equal(each, expected)
    assert found.converged.all()
    np.testing.assert_array_equal(found.torn, expected % 2 == 1)
    assert (found.n == 32).all()
    assert (found.sizes == 8).all()


class TestFound:
    def test_all_rows_at_once_are_kept_as_they_are(self):
        found, seen = ResultBuffer(ROWS, GROUPS, D), look(range(ROWS))
        found.store(slice(0, ROWS), slice(0, ROWS), seen)
        assert_is_complete(found)
        assert found.said is seen.groups.said

    def test_rows_may_come_in_parts(self):
        found = ResultBuffer(ROWS, GROUPS, D)
        found.store(np.array([0, 5, 7]), np.array([0, 1, 2]), look([0, 5, 7]))
        others = [row for row in range(ROWS) if row not in (0, 5, 7)]
        found.store(np.array(others), np.arange(len(others)), look(others))
        assert_is_complete(found)

    @pytest.mark.parametrize("with_selected", [False, True])
    def test_parts_may_come_from_several_threads_at_once(self, monkeypatch, with_selected):
        """The first to come makes room, slowly; nobody wipes out what another has written."""
        slow = {name: slowly(getattr(np, name)) for name in ("zeros", "full")}
        monkeypatch.setattr(looks, "np", SimpleNamespace(**(vars(np) | slow)))
        found, together = ResultBuffer(ROWS, GROUPS, D), Barrier(ROWS)

        def record(row):
            together.wait()
            found.store(slice(row, row + 1), slice(0, 1), look([row], with_selected=with_selected))

        threads = [Thread(target=record, args=(row,)) for row in range(ROWS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert_is_complete(found)
        if with_selected:
            np.testing.assert_array_equal(found.selected[:, 0], np.arange(ROWS))
