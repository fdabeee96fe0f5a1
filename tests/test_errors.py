"""Errors: which argument is at fault, also after a way to another process."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.SmoothlimeError)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_keep_their_argument_on_their_way_to_another_process(kind, way):
    for error in (kind("sigma must be > 0", argument="sigma"), kind("no more draws")):
        other = way(error)
        assert type(other) is kind
        assert (str(other), other.args, other.argument) == (str(error), error.args, error.argument)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("sigma", {"sigma": 0}),
        ("sigma", {"sigma": "wide"}),
        ("X", {"X": [[np.inf, 0.0]]}),
        ("n_samples", {"n_samples": 1.5}),
        ("n_samples", {"n_samples": 2}),
        ("method", {"method": "magic"}),
        ("method", {"method": "smoothgrad"}),
        ("design", {"design": "magic"}),
        ("design", {"method": "differences", "design": "iid"}),
        ("target", {"target": "nobody"}),
        ("output", {"output": "magic"}),
        ("confidence", {"confidence": 1}),
        ("rtol", {"rtol": 2}),
        ("max_samples", {"max_samples": 2}),
        ("seed", {"seed": -1}),
        ("background", {"background": [[1.0], [2.0]]}),
    ],
)
def test_errors_say_which_argument_is_at_fault(argument, given):
    with pytest.raises(errors.SmoothlimeError) as caught:
        sl.explain(**{"model": lambda a: np.sin(a[:, 0]), "X": [[0.1, 0.2]], **given})
    assert caught.value.argument == argument


def test_other_errors_name_no_argument():
    with pytest.raises(errors.ModelError) as caught:
        sl.explain(lambda a: 1 / 0, [[0.1, 0.2]])
    assert caught.value.argument is None
