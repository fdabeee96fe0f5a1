"""Equinox modules: the contract, rows and points, inference, states, and modules that JAX has compiled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smoothlime as sl
from smoothlime.errors import ModelError
from smoothlime.models import jax as adapter

from ..contract.adapter_checks import CHECKS, Case, called

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(12, 4)).astype(np.float32)


class OfPoints(eqx.Module):
    """A network of points (n, d), with an array of NumPy and a number among its parts."""

    weights: jax.Array
    shift: np.ndarray
    power: float

    def __init__(self):
        self.weights = jax.random.normal(jax.random.key(3), (4, 3))
        self.shift = np.linspace(-1, 1, 3, dtype=np.float32)
        self.power = 0.5

    def __call__(self, points):
        return self.power * jnp.tanh(points @ self.weights + self.shift)


class Dropping(eqx.Module):
    """A network of rows that wants a key where it drops something out."""

    first: eqx.nn.Linear
    drop: eqx.nn.Dropout
    last: eqx.nn.Linear

    def __init__(self, p=0.5):
        one, other = jax.random.split(jax.random.key(1))
        self.first, self.last = eqx.nn.Linear(4, 8, key=one), eqx.nn.Linear(8, 2, key=other)
        self.drop = eqx.nn.Dropout(p)

    def __call__(self, row, *, key=None):
        return self.last(self.drop(jnp.tanh(self.first(row)), key=key))


class Normed(eqx.Module):
    """A network of rows with a state beside it."""

    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    last: eqx.nn.Linear

    def __init__(self):
        one, other = jax.random.split(jax.random.key(1))
        self.first, self.last = eqx.nn.Linear(4, 8, key=one), eqx.nn.Linear(8, 2, key=other)
        self.norm = eqx.nn.BatchNorm(8, axis_name="batch", mode="batch")

    def __call__(self, row, state):
        row, state = self.norm(jnp.tanh(self.first(row)), state)
        return self.last(row), state


def mlp(**options):
    return eqx.nn.MLP(4, 3, 8, 2, activation=jnp.tanh, key=jax.random.key(0), **options)


def convolution():
    return eqx.nn.Sequential(
        [eqx.nn.Conv1d(2, 3, 3, key=jax.random.key(0)), eqx.nn.Lambda(jnp.tanh), eqx.nn.Lambda(jnp.ravel)]
    )


def each(module, points):
    return np.stack([module(row) for row in np.asarray(points, dtype=np.float32)])


def all_of(module):
    arrays, rest = eqx.partition(module, eqx.is_array)
    return [np.asarray(leaf).tobytes() for leaf in jax.tree_util.tree_leaves(arrays)], repr(rest)


COMMON = {"shapes": "any: (n, ...)", "gradients": True, "method": "smoothgrad", "dtype": np.float32, "state": all_of}
CASES = [
    # its activation is a function that JAX has compiled, which cannot be sent to another process
    Case("Equinox module", "of rows", mlp, each, POINTS, **COMMON, spawns=False),
    Case(
        "Equinox module", "of points", OfPoints, lambda module, a: module(np.asarray(a, dtype=np.float32)), POINTS,
        options={"outputs": ("a", "b", "c")}, outputs=("a", "b", "c"), **COMMON,
    ),
    Case("Equinox module", "in inference mode", lambda: eqx.nn.inference_mode(Dropping()), each, POINTS, **COMMON),
    Case("Equinox module", "compiled", lambda: eqx.filter_jit(mlp()), each, POINTS, **COMMON, spawns=False),
    Case("Equinox module", "of rows in a shape", convolution, each, POINTS.reshape(6, 2, 4), **COMMON, spawns=False),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=called)
@pytest.mark.parametrize("case", CASES, ids=called)
def test_the_contract(case, check):
    check(case)


def test_networks_of_one_shape_are_compiled_once():
    """Weights are no part of what is compiled: training on, or another seed, compiles nothing."""
    compiled = adapter.compiled_of_forms()
    sl.explain(mlp(), POINTS[:1], sigma=0.3, n_samples=64, target=0)
    before = compiled.values._cache_size(), compiled.values_and_gradients._cache_size()
    doubled = jax.tree_util.tree_map(lambda leaf: 2 * leaf if eqx.is_array(leaf) else leaf, mlp())
    e = sl.explain(doubled, POINTS[:1], sigma=0.3, n_samples=64, target=0)
    assert (compiled.values._cache_size(), compiled.values_and_gradients._cache_size()) == before
    np.testing.assert_allclose(e.prediction, doubled(POINTS[0])[0], rtol=1e-5)


def test_a_scalar_output_and_few_digits():
    module = eqx.nn.MLP(4, "scalar", 8, 1, activation=jnp.tanh, dtype=jnp.bfloat16, key=jax.random.key(0))
    model = sl.as_model(module)
    values, gradients = model.values_and_gradients(POINTS, np.ones((12, 1)))
    assert values.dtype == gradients.dtype == np.float32
    assert model.epsilon == 2**-7
    expected = jax.vmap(module)(POINTS.astype(jnp.bfloat16))
    np.testing.assert_allclose(values[:, 0], np.asarray(expected, dtype=np.float32), rtol=2**-6, atol=2**-8)


def test_training_mode_is_refused():
    with pytest.raises(ModelError, match=r"has a Dropout in training mode.*eqx\.nn\.inference_mode\(model\) first"):
        sl.explain(Dropping(), POINTS[:1])
    normed, _ = eqx.nn.make_with_state(Normed)()
    with pytest.raises(ModelError, match="has a BatchNorm in training mode"):
        sl.explain(normed, POINTS[:1])
    assert sl.explain(Dropping(p=0), POINTS[:1], target=0, n_samples=64).method == "smoothgrad"


def test_a_state_is_named_and_the_way_that_is_named_works():
    normed, state = eqx.nn.make_with_state(Normed)()
    _, state = jax.vmap(normed, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(POINTS, state)
    model = eqx.nn.inference_mode(normed)
    way = r"takes neither.*missing 1 required.*'state'.*jax\.jit\(jax\.vmap\(lambda row: model\(row, state\)\[0\]\)\)"
    with pytest.raises(ModelError, match=way):
        sl.explain(model, POINTS[:1])
    e = sl.explain(jax.jit(jax.vmap(lambda row: model(row, state)[0])), POINTS[:1], target=1, n_samples=64)
    np.testing.assert_allclose(e.prediction[0], model(POINTS[0], state)[0][1], rtol=1e-5)


def test_a_module_that_cannot_be_called_is_refused():
    class Settings(eqx.Module):
        width: int = 3

    with pytest.raises(ModelError, match="the Settings takes neither points"):
        sl.explain(Settings(), POINTS[:1])
