"""What can be refused without the model is refused before it is asked, and alike whether or not anything is drawn."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import smoothlime as sl
from smoothlime.errors import SmoothlimeError
from smoothlime.sampling.options import Options

X = np.random.default_rng(0).normal(size=(2, 3))
LINE = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])

WRONG = [
    {"rtol": -1},
    {"rtol": 1},
    {"rtol": 0, "atol": 0},
    {"atol": "small"},
    {"confidence": 95},
    {"guarantee": "sure"},
    {"output_range": (1, 0)},
    {"output_range": (0, 1), "atol": 0.01},
    {"gradient_bound": 1.0},
    {"max_samples": 0},
    {"max_samples": None},
    {"draws": "own"},
    {"seed": -1},
    {"seed": None},
    {"batch_size": 0},
    {"batch_size": None},
]


def never(points):
    pytest.fail("the model was asked")


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("door", [sl.explain, sl.explain_outputs])
def test_bad_settings_are_refused_before_the_model_is_asked(door, wrong):
    with pytest.raises(SmoothlimeError) as sampled:
        door(never, X, **wrong)
    with pytest.raises(SmoothlimeError) as exact:
        door(LINE, X, **wrong)
    assert str(sampled.value) == str(exact.value)
    assert next(iter(wrong)) in str(exact.value)


def test_numbers_are_plain_ones():
    settings = Options(n_samples=np.int64(64), rtol=np.float32(0.5), atol=1, seed=2.0, batch_size=np.int32(8))
    assert (settings.n_samples, settings.rtol, settings.absolute) == (64, 0.5, 1.0)
    assert [type(each) for each in (settings.n_samples, settings.rtol, settings.seed, settings.batch_size)] == [
        int,
        float,
        int,
        int,
    ]
