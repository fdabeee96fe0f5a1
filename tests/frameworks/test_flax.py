"""Flax nnx modules: the contract, evaluation mode, training on, and linen modules, which hold no parameters."""

import flax.linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import smoothlime as sl
from smoothlime.errors import ModelError, WrongType

from ..contract.adapter_checks import CHECKS, Case, called

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(12, 4)).astype(np.float32)


class Network(nnx.Module):
    """Two layers, between which something is dropped out and normed, and calls are counted."""

    def __init__(self, outputs=3, rate=0.5, norm=True):
        rngs = nnx.Rngs(3)
        self.first, self.last = nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, outputs, rngs=rngs)
        self.drop = nnx.Dropout(rate, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs) if norm else None
        self.calls = nnx.BatchStat(jnp.zeros((), dtype=jnp.int32))

    def __call__(self, points):
        self.calls[...] += 1
        hidden = self.drop(jnp.tanh(self.first(points)))
        return self.last(hidden if self.norm is None else self.norm(hidden))


class OfRows(nnx.Module):
    """A network that takes one row at a time."""

    def __init__(self):
        self.weights = nnx.Param(jax.random.normal(jax.random.key(0), (3, 4)))

    def __call__(self, row):
        return jnp.tanh(self.weights[...] @ row)


class OfSequences(nnx.Module):
    """A network of points (n, length, channels)."""

    def __init__(self):
        self.convolution = nnx.Conv(2, 3, (3,), rngs=nnx.Rngs(0))
        self.last = nnx.Linear(12, 2, rngs=nnx.Rngs(1))

    def __call__(self, points):
        return self.last(jnp.tanh(self.convolution(points)).reshape(len(points), -1))


def trained():
    network = Network()
    for _ in range(3):
        network(POINTS)  # so that the statistics of the batch norm are some
    network.eval()
    return network


def ask(module, points):
    """On a copy: the module counts its calls."""
    return nnx.clone(module)(jnp.asarray(points, dtype=jnp.float32))


def all_of(module):
    graph, state = nnx.split(module)
    arrays = [each for each in jax.tree_util.tree_leaves(state) if not jnp.issubdtype(each.dtype, jax.dtypes.prng_key)]
    return str(graph), [np.asarray(each).tobytes() for each in arrays]


COMMON = {"shapes": "any: (n, ...)", "gradients": True, "method": "smoothgrad", "dtype": np.float32, "state": all_of}
CASES = [
    Case("Flax nnx module", "of points", trained, ask, POINTS, **COMMON),
    Case(
        "Flax nnx module", "of rows", OfRows, lambda module, a: np.stack([module(row) for row in a]), POINTS,
        options={"outputs": tuple("abc"), "feature_names": tuple("wxyz")}, outputs=tuple("abc"),
        feature_names=tuple("wxyz"), **COMMON,
    ),
    Case("Flax nnx module", "of points in a shape", OfSequences,
         lambda module, a: module(jnp.asarray(a, dtype=jnp.float32)), POINTS.reshape(6, 4, 2), **COMMON),
    Case("Flax nnx module", "compiled", lambda: nnx.jit(OfRows()), lambda f, a: np.stack(
        [f(row) for row in np.asarray(a, dtype=np.float32)]), POINTS,
        **COMMON | {"state": repr, "spawns": False}),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=called)
@pytest.mark.parametrize("case", CASES, ids=called)
def test_the_contract(case, check):
    check(case)


def test_an_adapter_follows_a_module_that_is_trained_on():
    network = trained()
    model = sl.as_model(network)
    before = model.values(POINTS)
    network.last.bias[...] += 1.0
    np.testing.assert_allclose(model.values(POINTS), before + 1, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("network", "layer"),
    [
        (lambda: Network(norm=False), "Dropout"),
        (lambda: Network(rate=0.0), "BatchNorm"),
        (lambda: nnx.MultiHeadAttention(2, 4, dropout_rate=0.1, deterministic=False, rngs=nnx.Rngs(0)), "MultiHeadAtt"),
    ],
)
def test_training_mode_is_refused(network, layer):
    with pytest.raises(ModelError, match=rf"has a {layer}.* in training mode.* Call model\.eval\(\) first"):
        sl.explain(network(), POINTS[:1])


def test_nothing_is_dropped_at_rate_0():
    assert sl.explain(Network(rate=0.0, norm=False), POINTS[:1], target=0, n_samples=64).method == "smoothgrad"


def test_a_linen_module_is_refused_and_the_way_that_is_named_works():
    module = flax.linen.Dense(2)
    variables = module.init(jax.random.key(0), POINTS)
    for each in (module, module.bind(variables)):
        with pytest.raises(WrongType, match=r"a Dense of flax\.linen.*jax\.jit\(lambda points: module\.apply\(var"):
            sl.explain(each, POINTS[:1])
    e = sl.explain(jax.jit(lambda points: module.apply(variables, points)), POINTS[:1], target=0, n_samples=64)
    np.testing.assert_allclose(e.values[0], variables["params"]["kernel"][:, 0], rtol=1e-5)
