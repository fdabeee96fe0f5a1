"""By Quantus' protocol; its own metrics are asked in tests/frameworks."""

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime.interop.quantus import explain_func

ROWS = np.random.default_rng(0).normal(size=(4, 1, 6))


def network(dtype=torch.float64):
    torch.manual_seed(0)
    layers = torch.nn.Flatten(), torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    return torch.nn.Sequential(*layers).to(dtype).eval()


def test_slopes_are_those_of_explain_in_the_shape_of_the_inputs():
    targets = np.array([0, 2, 1, 1])
    found = explain_func(network(), ROWS, targets, sigma=0.3, n_samples=256)
    e = sl.explain(network(), ROWS, target=targets, sigma=0.3, n_samples=256)
    assert isinstance(found, np.ndarray)
    assert found.shape == ROWS.shape
    np.testing.assert_array_equal(found[:, 0], e.values)


def test_called_as_quantus_calls_it():
    """`model=, inputs=, targets=` and keywords of its own beside those of explain_func_kwargs."""
    found = explain_func(
        model=network(),
        inputs=ROWS,
        targets=np.array([0, 1, 2, 0]),
        device="cpu",
        normalise=True,
        reduce_axes=(1,),
        sigma=0.3,
        n_samples=64,
    )
    assert found.shape == ROWS.shape


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_come_in_the_type_of_the_inputs(dtype):
    found = explain_func(network(torch.float32), ROWS.astype(dtype), np.zeros(4, dtype=int), n_samples=64)
    assert found.dtype == dtype


def test_tensors_plain_rows_and_a_single_row_will_do_too():
    asked = {"sigma": 0.3, "n_samples": 64}
    whole = explain_func(network(), ROWS, np.array([1, 1, 1, 1]), **asked)
    assert np.array_equal(explain_func(network(), torch.tensor(ROWS), torch.tensor([1, 1, 1, 1]), **asked), whole)
    np.testing.assert_allclose(explain_func(network(), ROWS[:1], np.array([1]), **asked), whole[:1], rtol=1e-9)
    np.testing.assert_allclose(explain_func(network(), ROWS[:, 0], np.array([1] * 4), **asked), whole[:, 0], rtol=1e-9)
    assert np.array_equal(explain_func(network(), ROWS, np.array([[1]] * 4), **asked), whole)
