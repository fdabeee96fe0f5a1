"""Whole numbers beyond 2**53: held codes reach the model as they are, or it is said that they do not."""

import numpy as np
import pandas as pd
import pytest
import torch

import smoothlime as sl
from smoothlime.errors import InvalidArgument, LostPrecision
from smoothlime.models import as_model

RNG = np.random.default_rng(6)
KINDS = np.array([1, 2, 3, 1_000])
"""Of which the last alone differs from the others as a float"""
N = 200
CODES = 2**60 + np.append(KINDS, RNG.choice(KINDS, N - 4))
NUMBERS = np.column_stack([CODES, RNG.integers(0, 9, N)])


def second(a):
    return np.asarray(a)[:, 1].astype(float)


def explain(x, background=None, model=second, **more):
    return sl.explain(model, x, background=background, fixed=[0], sigma=0.5, n_samples=64, **more)


@pytest.mark.parametrize("read", [np.asarray, torch.as_tensor, lambda rows: rows.tolist(), pd.DataFrame])
@pytest.mark.parametrize("rows", [slice(3), 0])
def test_other_codes_are_told(read, rows):
    if read is pd.DataFrame and rows == 0:
        rows = slice(1)
    with pytest.warns(LostPrecision, match=rf"row 0 has {2**60 + 1} at '(x)?0', and the model is given {2**60}: "):
        explain(read(NUMBERS[rows]))


def test_what_floats_hold_is_not_told():
    explain(NUMBERS[:3] % 2**60)
    explain([[2**60, 1], [-(2**61), 2]])
    explain([[np.nan, 1.0], [1e300, 2.0], [np.inf, 3.0]])  # of what is held, the model may make what it wants


@pytest.mark.filterwarnings("ignore::smoothlime.errors.LostPrecision")
def test_levels_that_would_be_others_are_refused():
    for background in (NUMBERS, NUMBERS.tolist()):
        with pytest.raises(InvalidArgument, match=rf"'x0' has the level {2**60 + 1}, .* Number such codes 0, 1, 2"):
            explain(NUMBERS[:3], background, scale="ranks")
    with pytest.raises(InvalidArgument, match=rf"'x0' has the level {2**53 + 1}"):
        explain([[1.0, 2.0]], switches={0: [1, 2**53 + 1]})
    assert explain([[1.0, 2.0]], switches={0: [1, 2**53 + 2]}).switches.levels == ("1", str(2**53 + 2))
    with pytest.raises(InvalidArgument, match=r"switches must list levels of 0 as .* finite numbers; got 1000"):
        explain([[1.0, 2.0]], switches={0: [1, 10**400]})


def test_tables_keep_them():
    table = pd.DataFrame(NUMBERS, columns=["code", "count"])
    model = as_model(lambda frame: (frame["code"] == 2**60 + 2) + 0.0 * frame["count"], takes="table")
    e = explain(table[:3], table, model, scale="ranks")
    assert e.prediction.tolist() == [0, 1, 0]
    two = e.switches.levels.index(str(2**60 + 2))
    np.testing.assert_array_equal(e.switches.effect[:, two], [1, np.nan, 1])


@pytest.mark.parametrize("read", [list, tuple])
def test_backgrounds_that_are_no_arrays_have_levels(read):
    rows = NUMBERS % 2**60
    e = explain(rows[:3], read(rows.tolist()))
    assert e.switches.levels == ("1", "2", "3", "1000")
