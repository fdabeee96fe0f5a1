"""What is kept of rows once they are done, in whatever order they come."""

import numpy as np
import pytest

from smoothlime.estimators import Estimate
from smoothlime.sampling.record import InterimEstimate, ResultBuffer
from smoothlime.uncertainty.groups import Groups

ROWS, GROUPS, D = 12, 4, 3


def look(rows, *, with_selected=False):
    """Numbers that tell the rows (positions) apart."""
    of_row = np.asarray(rows, dtype=np.float64)
    by_feature = np.repeat(of_row[:, None], D, axis=1)
    pseudo = by_feature[:, None] + np.arange(GROUPS)[None, :, None]
    groups = Groups(pseudo, np.full((len(rows), GROUPS), 8.0), np.zeros((len(rows), D)), None)
    estimate = Estimate(
        values=by_feature,
        pseudo=pseudo,
        resolution=np.zeros((len(rows), D)),
        smoothed=of_row,
        variance=of_row,
        spread=of_row,
        selected=by_feature if with_selected else None,
        inconsistent=of_row % 2 == 1,
    )
    yes = np.ones(len(rows), dtype=np.bool_)
    return InterimEstimate(32, estimate, groups, by_feature, of_row, of_row, of_row, yes, ~yes)


def assert_is_complete(results, *, with_selected=False):
    expected = np.arange(ROWS, dtype=np.float64)
    for each in (results.smoothed, results.radius, results.fidelity, results.values[:, 0]):
        np.testing.assert_array_equal(each, expected)
    np.testing.assert_array_equal(results.pseudovalues_of(slice(0, None, 1))[:, 0, 0], expected)
    assert results.converged.all()
    np.testing.assert_array_equal(results.inconsistent, expected % 2 == 1)
    assert (results.n == 32).all()
    assert (results.sizes == 8).all()
    if with_selected:
        np.testing.assert_array_equal(results.selected[:, 0], expected)
    else:
        assert results.selected is None


class TestResultBuffer:
    @pytest.mark.parametrize("with_selected", [False, True])
    def test_all_rows_at_once_are_kept_as_they_are(self, with_selected):
        found, seen = ResultBuffer(ROWS, GROUPS, D), look(range(ROWS), with_selected=with_selected)
        found.store(slice(0, ROWS), slice(0, ROWS), seen)
        assert_is_complete(found.results(), with_selected=with_selected)
        assert found.results().pseudovalues is seen.groups.pseudovalues

    @pytest.mark.parametrize("with_selected", [False, True])
    def test_rows_may_come_in_parts(self, with_selected):
        found = ResultBuffer(ROWS, GROUPS, D)
        found.store(np.array([0, 5, 7]), np.array([0, 1, 2]), look([0, 5, 7], with_selected=with_selected))
        others = [row for row in range(ROWS) if row not in (0, 5, 7)]
        found.store(np.array(others), np.arange(len(others)), look(others, with_selected=with_selected))
        assert_is_complete(found.results(), with_selected=with_selected)

    @pytest.mark.parametrize("with_selected", [False, True])
    def test_rows_may_come_one_by_one_in_any_order(self, with_selected):
        found = ResultBuffer(ROWS, GROUPS, D)
        for row in np.random.default_rng(0).permutation(ROWS):
            found.store(slice(row, row + 1), slice(0, 1), look([row], with_selected=with_selected))
        assert_is_complete(found.results(), with_selected=with_selected)
