"""Keras models, once for each library that Keras runs on: `make test-frameworks` names it in KERAS_BACKEND."""

import functools

import keras
import numpy as np
import pytest
from keras import layers

import smoothlime as sl
from smoothlime.errors import InvalidArgument, ModelError, NoGradients

from ..contract.adapter_checks import CHECKS, Case, called

# Keras reads its own weights so: np.array(variable), of which NumPy 2 wants more than Keras 3.15 gives
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

RUNS_ON = keras.backend.backend()
HAS_GRADIENTS = RUNS_ON in ("jax", "torch")
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(12, 4)).astype(np.float32)


def sequential(last=None, name=None, units=3, dtype=None):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((4,), dtype=dtype),
            layers.Dense(8, activation="tanh", dtype=dtype),
            layers.Dropout(0.5, dtype=dtype),
            layers.BatchNormalization(dtype=dtype),
            layers.Dense(units, activation=last, name=name, dtype=dtype),
        ]
    )
    norm = model.layers[2]
    norm.set_weights([np.linspace(0.5, 2, 8), np.linspace(-1, 1, 8), np.linspace(-1, 1, 8), np.linspace(1, 2, 8)])
    return model


def functional():
    """Two ways from the inputs to the outputs, the last layer a whole model."""
    keras.utils.set_random_seed(4)
    inputs = keras.Input((4,))
    hidden = layers.Dense(6, activation="tanh")(inputs)
    joined = layers.Concatenate()([hidden, inputs])
    head = keras.Sequential([keras.Input((10,)), layers.Dense(3), layers.Softmax()])
    return keras.Model(inputs, head(joined))


def convolution():
    keras.utils.set_random_seed(6)
    return keras.Sequential(
        [keras.Input((4, 2)), layers.Conv1D(3, 3, activation="tanh"), layers.Flatten(), layers.Dense(2)]
    )


@keras.saving.register_keras_serializable("smoothlime tests")
class Own(keras.Model):
    """A model of one's own, which does something else in training."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first, self.last = layers.Dense(6, activation="tanh"), layers.Dense(2)

    def call(self, points, training=None):
        out = self.last(self.first(points))
        return out + 100 if training else out


def own():
    keras.utils.set_random_seed(5)
    model = Own()
    model(POINTS)
    return model


def ask(model, points):
    return model.predict(np.asarray(points), verbose=0)


def all_of(model):
    return [each.tobytes() for each in model.get_weights()], [each.trainable for each in model.layers]


COMMON = {
    "shapes": "any: (n, ...)",
    "gradients": HAS_GRADIENTS,
    "method": "smoothgrad" if HAS_GRADIENTS else "clime",
    "dtype": np.float32,
    "state": all_of,
    "wrong_width": r"shape|dimension|axis|feature",
}
KIND = f"Keras model on {RUNS_ON}" if HAS_GRADIENTS else "Keras model, any other library"
CASES = [
    Case(KIND, "sequential", sequential, ask, POINTS, **COMMON),
    Case(
        KIND, "one probability", lambda: sequential("sigmoid", "risk", 1), ask, POINTS, outputs=("risk",), **COMMON,
    ),
    Case(
        KIND, "functional", functional, ask, POINTS,
        options={"outputs": tuple("abc"), "feature_names": tuple("wxyz")}, outputs=tuple("abc"),
        feature_names=tuple("wxyz"), **COMMON,
    ),
    Case(KIND, "of points in a shape", convolution, ask, POINTS.reshape(6, 4, 2), **COMMON),
    Case(KIND, "of one's own", own, ask, POINTS, **COMMON),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=called)
@pytest.mark.parametrize("case", CASES, ids=called)
def test_the_contract(case, check):
    check(case)


def test_the_last_layer_says_the_range_and_the_name():
    for model, known, named in (
        (sequential("sigmoid", "risk", 1), (0.0, 1.0), ("risk",)),
        (sequential("softmax", "kind", 3), (0.0, 1.0), ()),
        (functional(), (0.0, 1.0), ()),
        (sequential(None, None, 1), None, ()),
        (sequential("tanh", "score", 1), None, ("score",)),
        (own(), None, ()),
    ):
        adapted = sl.as_model(model)
        assert adapted.output_range == known
        assert tuple(adapted.outputs) == named


def test_probabilities_are_made_of_logits_once():
    logits, probabilities = sequential(), sequential("softmax")
    wanted = ask(probabilities, POINTS)
    adapted = sl.as_model(logits, output="probability")
    assert adapted.output_range == (0.0, 1.0)
    np.testing.assert_allclose(adapted.values(POINTS), wanted, rtol=1e-4, atol=1e-6)
    one = sl.as_model(sequential(None, None, 1), output="probability")
    np.testing.assert_allclose(one.values(POINTS), ask(sequential("sigmoid", None, 1), POINTS), rtol=1e-4, atol=1e-6)
    again = sl.as_model(probabilities, output="probability")
    np.testing.assert_allclose(again.values(POINTS), wanted, rtol=1e-5, atol=1e-7)
    with pytest.raises(InvalidArgument, match="output='margin' is for classifiers"):
        sl.as_model(probabilities, output="margin")


def test_an_adapter_follows_a_model_that_is_trained_on():
    model = sequential()
    adapted = sl.as_model(model)
    before = adapted.values(POINTS)
    bias = model.layers[-1].bias
    bias.assign(np.asarray(keras.ops.convert_to_numpy(bias.value + 1)))
    np.testing.assert_allclose(adapted.values(POINTS), before + 1, rtol=1e-5, atol=1e-5)


def test_numbers_are_those_that_the_model_computes_with():
    half = sequential(dtype="bfloat16")
    adapted = sl.as_model(half)
    assert adapted.dtype == np.float32
    assert adapted.epsilon == 2**-7
    assert sl.as_model(sequential()).epsilon == 2**-23


class Several(keras.Model):
    """Of code of its own, with its outputs in a dictionary."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, points):
        return {"price": self.dense(points)}


def after_a_call(kind):
    """A model that has seen points, and so has weights."""

    def made():
        model = kind()
        model(np.zeros((2, 4), dtype=np.float32))
        return model

    return made


class Brief(keras.Model):
    """Whose call takes points alone; its dropout is off, as ever outside training."""

    def __init__(self):
        super().__init__()
        self.drop, self.dense = layers.Dropout(0.5), layers.Dense(1)

    def call(self, points):
        return self.dense(self.drop(points))


def test_a_model_whose_call_takes_points_alone():
    model = after_a_call(Brief)()
    e = sl.explain(model, POINTS[:2], n_samples=64)
    assert e.method == ("smoothgrad" if HAS_GRADIENTS else "differences")
    slopes = np.asarray(keras.ops.convert_to_numpy(model.dense.kernel.value))[:, 0]
    np.testing.assert_allclose(e.values, np.tile(slopes, (2, 1)), atol=1e-3)


def test_a_part_of_several_outputs_by_a_function():
    model = after_a_call(Several)()
    e = sl.explain(lambda a: model(a)["price"], POINTS[:2], n_samples=64)
    slopes = np.asarray(keras.ops.convert_to_numpy(model.dense.kernel.value))[:, 0]
    np.testing.assert_allclose(e.values, np.tile(slopes, (2, 1)), atol=1e-3)


@pytest.mark.parametrize("settings", [{}, {"training": False}, {"mask": None}])
def test_a_partial_is_its_model(settings):
    model = sequential()
    call = sl.as_model(functools.partial(model, **settings))
    np.testing.assert_allclose(call.values(POINTS), ask(model, POINTS), rtol=1e-4, atol=1e-6)
    if HAS_GRADIENTS and "mask" not in settings:
        assert hasattr(call, "values_and_gradients")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Own, r"the Own has no weights yet.*model\.build\(\(None, d\)\)"),
        (
            lambda: keras.Model(inputs := keras.Input((4,)), [layers.Dense(1)(inputs), layers.Dense(2)(inputs)]),
            r"has 2 outputs; .*keras\.Model\(model\.inputs, model\.outputs\[0\]\)",
        ),
        (
            lambda: keras.Model(
                pair := [keras.Input((4,)), keras.Input((2,))], layers.Dense(1)(layers.Concatenate()(pair))
            ),
            r"has 2 inputs; .*lambda a: model\(\[a, others\]\)",
        ),
        (
            lambda: keras.Sequential(
                [keras.Input((4,), dtype="int32"), layers.Embedding(9, 3), layers.Flatten(), layers.Dense(1)]
            ),
            r"takes whole numbers or text \(int32\), which have no slopes",
        ),
        (
            lambda: keras.Model(inputs := keras.Input((4,)), {"price": layers.Dense(1)(inputs)}),
            r"outputs in a dictionary; .*keras\.Model\(model\.inputs, model\.output\['price'\]\)",
        ),
        (
            after_a_call(Several),
            r"returned a dict.*Give a function that returns the part .*points\)\['price'\]|a\)\['price'\]",
        ),
        (
            lambda: keras.Sequential([keras.Input((4,)), layers.Reshape((2, 2))]),
            "one row of outputs per point",
        ),
    ],
)
def test_models_that_cannot_be_explained(model, said):
    with pytest.raises(ModelError, match=said):
        sl.explain(model(), POINTS[:2])


def test_the_library_is_not_changed_behind_keras():
    """Of torch and JAX, only the one that Keras runs on is asked."""
    if HAS_GRADIENTS:
        name = type(sl.as_model(sequential())).__name__
        assert name == {"jax": "JaxModel", "torch": "TorchModel"}[RUNS_ON]
    else:
        with pytest.raises(NoGradients, match="Sequential gives only values"):
            sl.explain(sequential(), POINTS[:1], target=0, method="smoothgrad")
