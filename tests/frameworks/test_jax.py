"""JAX functions: the contract, single rows and points, compiled once, and what is refused."""

import gc
import json
import multiprocessing
import re
import subprocess
import sys
import weakref
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, NoGradients
from smoothlime.models import jax as adapter

from ..contract.adapter_checks import CHECKS, Case, called

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(12, 4)).astype(np.float32)
WEIGHTS = RNG.normal(size=(4, 3)).astype(np.float32)


def scores(a):
    return jnp.tanh(a @ WEIGHTS)


def one_score(row):
    return jnp.exp(-(row[0] ** 2)) * jnp.sin(row[1]) + row[2] * row[3]


def each(function, points):
    """Row by row, as the function takes them."""
    return np.stack([function(row) for row in np.asarray(points, dtype=np.float32)])


def ask(function, points):
    return function(np.asarray(points, dtype=np.float32))


@jax.custom_jvp
def bent(a):
    return jnp.sinh(a).sum(axis=1)


bent.defjvp(lambda primals, tangents: (bent(*primals), (jnp.cosh(primals[0]) * tangents[0]).sum(axis=1)))

# a compiled function cannot be pickled, whatever of; nor does any take no other number of features
ANY = "any: (n, ...)"
COMMON = {"shapes": ANY, "gradients": True, "method": "smoothgrad", "dtype": np.float32, "spawns": False, "state": repr}
CASES = [
    Case("JAX function", "of points", lambda: jax.jit(scores), ask, POINTS, **COMMON),
    Case("JAX function", "of rows", lambda: jax.jit(one_score), each, POINTS, **COMMON | {"wrong_width": None}),
    Case(
        "JAX function", "of rows, several outputs", lambda: jax.jit(lambda row: WEIGHTS.T @ jnp.tanh(row)), each,
        POINTS, options={"outputs": ("a", "b", "c"), "feature_names": tuple("wxyz")}, outputs=("a", "b", "c"),
        feature_names=tuple("wxyz"), **COMMON,
    ),
    Case(
        "JAX function", "of parameters and points", lambda: partial(jax.jit(lambda w, a: jnp.tanh(a @ w)), WEIGHTS),
        ask, POINTS, **COMMON,
    ),
    Case(
        "JAX function", "with a derivative of its own", lambda: bent, ask, POINTS, **COMMON | {"wrong_width": None},
    ),
    Case(
        "JAX function", "of points in a shape", lambda: jax.jit(lambda a: jnp.tanh(a).sum(axis=1)), ask,
        POINTS.reshape(6, 4, 2), **COMMON | {"wrong_width": None},
    ),
    Case(
        "JAX function", "probabilities", lambda: jax.jit(lambda a: a @ WEIGHTS),
        lambda f, a: jax.nn.softmax(ask(f, a), axis=1), POINTS,
        options={"output": "probability", "outputs": tuple("abc")}, outputs=tuple("abc"), **COMMON,
    ),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=called)
@pytest.mark.parametrize("case", CASES, ids=called)
def test_the_contract(case, check):
    check(case)


def test_gradients_are_those_of_jax():
    f, weights = jax.jit(scores), np.array([[1.0, -2.0, 0.5]], dtype=np.float32).repeat(12, axis=0)
    values, gradients = sl.as_model(f).values_and_gradients(POINTS, weights)
    np.testing.assert_allclose(values, f(POINTS), rtol=1e-6, atol=1e-7)
    expected = jax.vmap(jax.grad(lambda row, w: scores(row[None])[0] @ w))(POINTS, weights)
    np.testing.assert_allclose(gradients, expected, rtol=1e-5, atol=1e-6)


def test_slopes_are_means_of_gradients_at_the_perturbations():
    f = jax.jit(one_score)
    e = sl.explain(f, POINTS[:2], sigma=0.3, n_samples=256, method="smoothgrad", design="iid")
    for row in range(2):
        at = np.asarray(e.perturbations(row), dtype=np.float32)
        np.testing.assert_allclose(e.values[row], jax.vmap(jax.grad(f))(at).mean(axis=0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("d", [2, 3, 7, 11])
def test_functions_of_rows_are_told_from_functions_of_points(d):
    """Also where a matrix of as many points as features would do for either."""
    square = RNG.normal(size=(d, d)).astype(np.float32)
    points = RNG.normal(size=(5, d)).astype(np.float32)
    for of_rows in (lambda row: square @ row, lambda row: square @ row @ row, lambda row: row[0] * row[1]):
        values = sl.as_model(jax.jit(of_rows)).values(points)
        expected = np.stack([of_rows(row) for row in points]).reshape(5, -1)
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
    for of_points in (lambda a: a @ square, lambda a: (a @ square).sum(axis=1), lambda a: a[:, 0] * a[:, 1]):
        values = sl.as_model(jax.jit(of_points)).values(points)
        np.testing.assert_allclose(values, np.asarray(of_points(points)).reshape(5, -1), rtol=1e-5, atol=1e-5)


def test_the_probes_are_not_as_many_as_the_features():
    """At d = 7 probes of 7 points would let W @ points through, which mixes points."""
    square = RNG.normal(size=(7, 7)).astype(np.float32)
    points = RNG.normal(size=(7, 7)).astype(np.float32)
    values = sl.as_model(jax.jit(lambda row: square @ row)).values(points)
    np.testing.assert_allclose(values, points @ square.T, rtol=1e-4, atol=1e-5)


def test_compiled_once_for_all_calls():
    """A second call, and an adapter made anew, compile nothing: the Python behind the function is not run again."""
    runs = []

    @jax.jit
    def f(a):
        runs.append(a.shape)
        return jnp.sin(a).sum(axis=1)

    first = sl.explain(f, POINTS[:3], sigma=0.3, n_samples=512, method="smoothgrad")
    before = len(runs)
    again = sl.explain(f, POINTS[:3], sigma=0.3, n_samples=512, method="smoothgrad")
    model = sl.as_model(f)
    sl.explain(model, POINTS[:3] + 1, sigma=0.1, n_samples=512, method="smoothgrad")
    assert len(runs) == before
    np.testing.assert_array_equal(first.values, again.values)


def test_few_numbers_of_points_are_compiled_for():
    """Batches of any size are made up to powers of four: for 1 to 300 points there are four to compile."""
    shapes = set()

    @jax.jit
    def f(a):
        shapes.add(a.shape)
        return jnp.sin(a).sum(axis=1)

    model = sl.as_model(f)
    points = RNG.normal(size=(300, 3)).astype(np.float32)
    for n in (*range(1, 300, 7), 300):
        np.testing.assert_allclose(model.values(points[:n])[:, 0], np.sin(points[:n]).sum(axis=1), rtol=1e-5, atol=1e-6)
    assert shapes - {(7, 3)} == {(16, 3), (64, 3), (256, 3)} | ({(1024, 3)} & shapes)


@pytest.mark.parametrize("fewest", [4, 16])
def test_pieces_cover_all_points_and_waste_less_than_half(fewest):
    for n in range(1, 3_000):
        pieces = adapter._pieces(n, fewest)
        assert [part.start for part, _ in pieces[1:]] == [part.stop for part, _ in pieces[:-1]]
        assert pieces[0][0].start == 0
        assert pieces[-1][0].stop == n
        assert all(0 < part.stop - part.start <= size for part, size in pieces)
        assert sum(size for _, size in pieces) < max(2 * n, fewest + 1)
        assert {size for _, size in pieces} <= {fewest * 4**i for i in range(8)}


def test_points_that_are_made_up_are_near_those_asked():
    """A square root has no value below 0; with debug_nans JAX would raise."""
    f = jax.jit(lambda a: jnp.sqrt(a - 1).sum(axis=1))
    with jax.debug_nans(True):
        values = sl.as_model(f).values(np.full((3, 2), 2.0))
    np.testing.assert_allclose(values[:, 0], 2.0, rtol=1e-6)


def test_what_was_compiled_goes_with_its_function():
    held = jnp.ones(4)
    f = jax.jit(lambda a: a @ held)
    sl.explain(f, POINTS[:1], sigma=0.3, n_samples=64)
    assert f in adapter._OF_OBJECTS
    before, gone = len(adapter._OF_OBJECTS), weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    assert len(adapter._OF_OBJECTS) == before - 1


def test_float64_where_x64_is_enabled():
    with jax.enable_x64(True):
        f = jax.jit(lambda a: jnp.sin(a).sum(axis=1))
        model = sl.as_model(f)
        assert model.dtype == np.float64
        assert model.epsilon == np.finfo(np.float64).eps
        values, gradients = model.values_and_gradients(np.full((2, 3), 0.5), np.ones((2, 1)))
    assert values.dtype == gradients.dtype == np.float64
    np.testing.assert_allclose(gradients, np.cos(0.5), rtol=1e-14)


def test_float32_is_warned_of_where_steps_get_lost():
    with pytest.raises(InvalidArgument, match="steps get lost"):
        sl.explain(jax.jit(scores), POINTS[:1] + 1_000, sigma=1e-6)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a: (a, a), r"function .* returned a tuple, .*jax\.jit\(lambda points: model\(points\)\[0\]\)"),
        (lambda a: {"logits": a}, r"returned a dict, .*model\(points\)\['logits'\]"),
        (lambda a: a @ jnp.ones((5, 2)), r"takes neither points \(n, 4\) nor single rows \(4,\)\. Points: TypeErr"),
        (lambda a: jnp.ones((2, 2, 2)) * a.sum(), r"one row of outputs per point"),
        (lambda a: a.sum(axis=1) + 1j, "must return real numbers"),
    ],
)
def test_outputs_that_cannot_be_explained(function, said):
    with pytest.raises(ModelError, match=said):
        sl.explain(jax.jit(function), POINTS[:2], method="clime")


def test_whole_numbers_have_no_gradients():
    labels = jax.jit(lambda a: jnp.argmax(a, axis=1))
    with pytest.raises(ModelError, match=r"whole numbers \(int32\), which have no gradients; .*method='clime'"):
        sl.explain(labels, POINTS[:2], sigma=0.5)
    assert sl.explain(labels, POINTS[:2], sigma=0.5, method="clime", n_samples=256).method == "clime"


def test_a_batch_that_answers_together_is_refused():
    with pytest.raises(ModelError, match="depends on what it is asked together with"):
        sl.explain(jax.jit(lambda a: a[:, 0] - a[:, 0].mean()), POINTS[:1])


@pytest.mark.parametrize("given", [{"device": "cpu"}, {"compile": True}, {"autocast": "bfloat16"}])
def test_what_is_for_torch_is_refused(given):
    with pytest.raises(InvalidArgument, match="is for torch modules; a PjitFunction runs where it runs"):
        sl.as_model(jax.jit(scores), **given)
    with pytest.raises(InvalidArgument, match="output='margin' is for classifiers"):
        sl.as_model(jax.jit(scores), output="margin")


def test_a_function_that_is_not_compiled_gives_values_alone():
    """Nothing tells it from a function of NumPy arrays."""
    e = sl.explain(scores, POINTS[:1], target=0, n_samples=256)
    assert e.method == "clime"
    np.testing.assert_allclose(e.prediction, scores(POINTS[:1])[:, 0], rtol=1e-5)
    with pytest.raises(NoGradients, match=r"a function gives only values.*; around a function of JAX put jax\.jit"):
        sl.explain(scores, POINTS[:1], target=0, method="smoothgrad")


def _in_a_fork(queue, function):
    adapter.STALLED = 3.0
    try:
        sl.explain(function, POINTS[:1], n_samples=64)
    except Exception as err:
        queue.put(f"{type(err).__name__}: {err}")


@pytest.mark.parametrize("is_asked_before", [False, True])
def test_a_fork_is_refused_where_jax_would_wait_for_ever(is_asked_before):
    model = jax.jit(one_score)
    jax.jit(scores)(POINTS)  # JAX has threads from here on
    if is_asked_before:
        model = sl.as_model(model)
        sl.explain(model, POINTS[:1], n_samples=64)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_fork, args=(queue, model))
    with pytest.warns((RuntimeWarning, DeprecationWarning), match="fork"):
        child.start()
    said = queue.get(timeout=30)
    child.join(timeout=30)
    assert re.match(r"ModelError: JAX does not survive a fork: .*get_context\('spawn'\)", said)


def test_a_fork_that_can_compile_is_asked_once(monkeypatch):
    monkeypatch.setattr(adapter, "is_forked", lambda: True)
    adapter._check_forked.cache_clear()
    for _ in range(2):
        sl.explain(jax.jit(one_score), POINTS[:1], n_samples=64)
    assert adapter._check_forked.cache_info().misses == 1


def test_a_fork_of_a_process_without_jax_explains():
    code = """
import multiprocessing, numpy as np

def work(queue):
    import jax, smoothlime as sl
    queue.put(sl.explain(jax.jit(lambda a: 2 * a.sum(axis=1)), np.ones((1, 2)), n_samples=64).values.tolist())

context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=work, args=(queue,))
child.start()
print(queue.get(timeout=60))
child.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    np.testing.assert_allclose(json.loads(done.stdout), [[2.0, 2.0]], rtol=1e-6)


def test_importing_smoothlime_imports_none_of_these():
    code = """
import sys, smoothlime as sl
sl.as_model(lambda a: a)
print(", ".join(name for name in ("jax", "equinox", "flax", "keras", "torch", "statsmodels") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
