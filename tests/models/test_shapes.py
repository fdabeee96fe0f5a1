"""Rows that are no rows of numbers: images, sequences, several inputs, several outputs, exported programs."""

import dataclasses
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime import errors

SHAPE = (3, 6, 5)
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(4, *SHAPE))
ROWS = RNG.normal(size=(5, 6))


def convolution(dtype=torch.float64):
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(48, 2)
    return torch.nn.Sequential(*layers).to(dtype).eval()


class Masked(torch.nn.Module):
    """tanh(x·mask + shift) @ A: mask and shift are further inputs."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(RNG.normal(size=(6, 2))))

    def forward(self, x, mask, which=None):
        shift = 0.0 if which is None else which.to(x.dtype)[:, None] / 10
        return torch.tanh(x * mask + shift) @ self.weight


MASK = (RNG.random(size=(5, 6)) > 0.4).astype(float)
WHICH = np.array([3, 1, 4, 1, 5])


def settings(method):
    return {"target": 1, "sigma": 0.3, "n_samples": 1_024, "method": method}


class TestShapes:
    @pytest.mark.parametrize("method", ["smoothgrad", "clime", "differences", "stein"])
    def test_images_are_what_flat_rows_are(self, method):
        net, asked = convolution(), {"target": 1, "sigma": 0.3, "n_samples": 2_048, "method": method}
        flat = torch.nn.Sequential(torch.nn.Unflatten(1, SHAPE), *net).eval()
        e, same = sl.explain(net, IMAGES, **asked), sl.explain(flat, IMAGES.reshape(4, -1), **asked)
        np.testing.assert_allclose(e.values, same.values, rtol=1e-9, atol=1e-12)
        assert e.values.shape == (4, 90)
        assert e.input_shape == SHAPE
        assert e.shaped().shape == e.shaped("standard_error").shape == (4, *SHAPE)
        np.testing.assert_array_equal(e.shaped("x"), IMAGES)
        np.testing.assert_array_equal(e.shaped("standardised")[2, 1, 4, 3], 0.3 * e.values[2, 1 * 30 + 4 * 5 + 3])

    def test_plain_rows_have_no_shape(self):
        e = sl.explain(lambda a: a.sum(axis=1), ROWS, n_samples=64)
        assert e.input_shape == ()
        assert e.shaped() is e.values

    def test_functions_are_given_the_shape(self):
        """The gradient of Σ c·x² is 2·c·x, smoothed or not."""
        c = RNG.normal(size=SHAPE)
        e = sl.explain(lambda a: (c * a**2).sum(axis=(1, 2, 3)), IMAGES, n_samples=512)
        np.testing.assert_allclose(e.shaped(), 2 * c * IMAGES, atol=1e-9)
        assert e.feature_names[0 * 30 + 5 * 5 + 2] == "x[0,5,2]"

    def test_lists_of_lists_of_lists_are_images_too(self):
        e = sl.explain(lambda a: a.sum(axis=(1, 2)), IMAGES[:, 0].tolist(), n_samples=64)
        np.testing.assert_allclose(e.shaped(), np.ones((4, 6, 5)), atol=1e-9)

    @pytest.mark.parametrize("as_tensor", [False, True])
    def test_a_model_of_ones_own_is_given_the_shape(self, as_tensor):
        class Own:
            outputs = ("only",)

            def values(self, points):
                assert points.shape[1:] == SHAPE
                return (points**2).sum(axis=(1, 2, 3))[:, None]

            def values_and_gradients(self, points, weights):
                return self.values(points), 2 * points * weights[:, :, None, None]

        e = sl.explain(Own(), torch.tensor(IMAGES) if as_tensor else IMAGES, n_samples=64)
        assert e.method == "smoothgrad"
        np.testing.assert_allclose(e.shaped(), 2 * IMAGES, atol=1.0)
        assert ((e.interval(1 - 1e-9)[0] <= 2 * e.x) & (2 * e.x <= e.interval(1 - 1e-9)[1])).all()

    def test_gradients_of_one_size_only(self):
        class Own:
            outputs = ("only",)

            def values(self, points):
                return points.sum(axis=(1, 2, 3))[:, None]

            def values_and_gradients(self, points, weights):
                return self.values(points), np.ones((len(points), 3))

        with pytest.raises(
            errors.ModelError, match=r"gradients of shape \(\d+, 3\) for points of shape \(\d+, 3, 6, 5\)"
        ):
            sl.explain(Own(), IMAGES, n_samples=64)

    def test_sigma_and_background_may_have_the_shape_too(self):
        net, per_channel = convolution(), np.array([0.1, 0.2, 0.4])[:, None, None]
        e = sl.explain(net, IMAGES, target=0, n_samples=64, sigma=per_channel)
        np.testing.assert_array_equal(e.std.reshape(SHAPE), np.broadcast_to(per_channel, SHAPE))
        with pytest.raises(errors.InvalidArgument, match=r"sigma of shape \(2, 1, 1\) does not go with rows of shape"):
            sl.explain(net, IMAGES, target=0, sigma=np.ones((2, 1, 1)))
        past = RNG.normal(size=(50, *SHAPE))
        e = sl.explain(net, IMAGES, target=0, n_samples=64, background=past)
        np.testing.assert_allclose(e.std.reshape(SHAPE), past.std(axis=0, ddof=1))
        with pytest.raises(
            errors.InvalidArgument, match=r"background has rows of shape \(6, 5\) and X of shape \(3, 6, 5\)"
        ):
            sl.explain(net, IMAGES, target=0, background=past[:, 0])

    def test_one_image_without_its_axis_of_rows_is_told_how(self):
        with pytest.raises(errors.ModelError, match=r"given points \(n, 6, 5\); for one row give X\[None\]\)$"):
            sl.explain(convolution(), IMAGES[0], target=0)

    def test_the_shape_is_saved(self, tmp_path):
        e = sl.explain(convolution(), IMAGES, target=0, n_samples=64)
        for suffix in (".json", ".parquet"):
            e.save(tmp_path / f"e{suffix}")
            loaded = sl.load(tmp_path / f"e{suffix}")
            assert loaded.input_shape == SHAPE
            np.testing.assert_array_equal(loaded.shaped(), e.shaped())
        assert e[1:3].input_shape == (e - e).input_shape == SHAPE

    def test_other_front_doors(self):
        net = convolution()
        assert sl.sigma_path(net, IMAGES[:1], [0.1, 0.3], target=0, n_samples=64).explanations[0].input_shape == SHAPE
        assert sl.agreement(net, IMAGES[:1], sigma=0.1, target=0).agrees != (False,)
        assert sl.robustness(net, IMAGES, sigma=0.3, target=0, neighbours=2, n_samples=64).mean > 0

    def test_a_curve_goes_along_a_pixel(self):
        found = sl.curve(lambda a: (a**2).sum(axis=(1, 2, 3)), IMAGES[:1], "x[0,5,2]", grid=[0.0, 1.0, 2.0], sigma=0.1)
        np.testing.assert_allclose(np.diff(found.values), [1.0, 3.0], atol=1e-6)

    def test_two_models_are_compared(self):
        same = sl.compare(convolution(), convolution(), IMAGES, sigma=0.3, target=0, n_samples=256)
        assert not any(same.changed)

    def test_a_reference_for_shap_may_have_the_shape(self):
        c = RNG.normal(size=SHAPE)
        e = sl.explain(lambda a: (c * a).sum(axis=(1, 2, 3)), IMAGES, n_samples=512)
        found = e.to_shap("contributions", reference=IMAGES[0])
        np.testing.assert_allclose(found.values.reshape(IMAGES.shape), c * (IMAGES - IMAGES[0]), atol=1e-9)

    def test_a_few_large_images_are_asked_at_once(self):
        net = torch.nn.Sequential(torch.nn.AvgPool2d(100), torch.nn.Flatten()).eval()
        e = sl.explain(net, np.zeros((1, 1, 200, 200)), target=0, n_samples=64)
        assert e.provenance.batch_size == 4
        np.testing.assert_allclose(
            e.shaped()[0, 0, ::99, ::99], [[1e-4, 1e-4, 0], [1e-4, 1e-4, 0], [0, 0, 0]], atol=1e-9
        )


class TestHeldInputs:
    @pytest.mark.parametrize("method", ["smoothgrad", "clime", "differences"])
    def test_each_point_goes_with_the_line_of_its_row(self, method):
        net = Masked().eval()
        e = sl.explain(sl.as_model(net, held={"mask": MASK, "which": WHICH}), ROWS, **settings(method))
        assert e.values.shape == (5, 6)
        for row in range(5):
            mask, which = torch.tensor(MASK[row]), torch.tensor(WHICH[row])

            def alone(a, mask=mask, which=which):
                many = len(a)
                return net(torch.as_tensor(a), mask.expand(many, -1), which.expand(many)).detach().numpy()

            one = sl.explain(alone, ROWS[[row]], **settings("clime" if method == "smoothgrad" else method))
            reach = 6 * (e.standard_error[row] + one.standard_error[0]) + 1e-9
            assert (np.abs(e.values[row] - one.values[0]) < reach).all()
            np.testing.assert_allclose(e.prediction[row], one.prediction[0])
        assert (np.abs(e.values) <= 6 * e.standard_error + 1e-9)[MASK == 0].all()

    def test_the_gradient_is_that_of_the_first_input(self):
        """Of f = Σ m·x² at σ → 0: 2·m·x, by row."""

        class Squares(torch.nn.Module):
            def forward(self, x, mask):
                return (mask * x**2).sum(dim=1)

        model = sl.as_model(Squares().eval(), held={"mask": torch.tensor(MASK, dtype=torch.float32)})
        e = sl.explain(model, ROWS.astype(np.float32), method="smoothgrad", sigma=1e-3, n_samples=64)
        np.testing.assert_allclose(e.values, 2 * MASK * ROWS, atol=1e-2)

    def test_images_beside_numbers(self):
        class Tinted(torch.nn.Module):
            def forward(self, x, tint):
                return (x * tint[:, :, None, None]).sum(dim=(1, 2, 3))

        tint = RNG.normal(size=(4, 3))
        e = sl.explain(sl.as_model(Tinted().eval(), held={"tint": tint}), IMAGES, n_samples=64)
        np.testing.assert_allclose(e.shaped(), np.broadcast_to(tint[:, :, None, None], (4, *SHAPE)), rtol=1e-5)

    def test_functions_hold_too(self):
        model = sl.as_model(lambda a, c: (c * a).sum(axis=1), held={"c": MASK + 1})
        np.testing.assert_allclose(sl.explain(model, ROWS, n_samples=64).values, MASK + 1, atol=1e-9)

    def test_lines_of_few_digits_find_their_row(self):
        """bfloat16 tells positions up to 256 apart; lines are looked up before points are rounded to it."""

        class Product(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))

            def forward(self, x, c):
                return (self.one * x * c[:, None]).sum(dim=1)

        c = np.arange(300.0) % 7
        e = sl.explain(sl.as_model(Product().eval(), held={"c": c}), np.zeros((300, 2)), n_samples=64)
        np.testing.assert_allclose(e.values, np.column_stack([c, c]), rtol=1e-2)

    def test_the_model_can_be_asked_directly(self):
        net = Masked().eval()
        model = sl.as_model(net, held={"mask": MASK})
        np.testing.assert_array_equal(model.values(ROWS), net(torch.tensor(ROWS), torch.tensor(MASK)).detach().numpy())

    def test_neighbours_of_a_row_have_its_line(self):
        model = sl.as_model(lambda a, c: (c * a).sum(axis=1), held={"c": 10.0 ** np.arange(5)[:, None]})
        found = sl.robustness(model, ROWS, neighbours=2, n_samples=64, method="clime")
        np.testing.assert_allclose(found.per_row, 0, atol=1e-6)  # a wrong line would be ten times as steep, or more

    @pytest.mark.parametrize("is_torch", [False, True])
    def test_on_a_scale_of_logarithms(self, is_torch):
        """Of m·x, the slope in log x is m·x·exp(σ²/2)."""

        class Product(torch.nn.Module):
            def forward(self, x, m):
                return (x * m).sum(dim=1)

        one = torch.nn.Sequential(torch.nn.Linear(1, 1, dtype=torch.float64))  # says what type the network has
        net = Product()
        net.one = one
        model = sl.as_model(net.eval() if is_torch else lambda x, m: (x * m).sum(axis=1), held={"m": 1 + MASK})
        x = np.exp(ROWS)
        e = sl.explain(model, x, scale="log", sigma=0.1, n_samples=1_024)
        np.testing.assert_allclose(e.values, (1 + MASK) * x * np.exp(0.005), rtol=1e-3)

    def test_a_curve_has_no_lines_for_its_points(self):
        model = sl.as_model(lambda a, c: (c * a).sum(axis=1), held={"c": MASK})
        with pytest.raises(
            errors.InvalidArgument, match="a curve puts rows at other values, and held inputs have no lines"
        ):
            sl.curve(model, ROWS, 1)

    def test_a_table_of_numbers_will_do(self):
        import pandas as pd

        frame = pd.DataFrame(ROWS, columns=list("abcdef"))
        e = sl.explain(sl.as_model(Masked().eval(), held={"mask": MASK}), frame, target=0, n_samples=64)
        assert e.feature_names == tuple("abcdef")

    @pytest.mark.parametrize(
        ("held", "kind", "said"),
        [
            (
                {"mask": MASK[:3]},
                errors.InvalidArgument,
                r"held\['mask'\] has 3 lines for 5 rows of X; give one for each",
            ),
            ({"msk": MASK}, errors.InvalidArgument, "held names 'msk', which the model does not take.*x, mask, which"),
            ({"x": ROWS}, errors.InvalidArgument, "held names 'x', the model's first argument, which is perturbed"),
            ({"mask": np.array(["a"] * 5)}, errors.WrongType, r"held\['mask'\] must hold numbers that torch can read"),
            ({"mask": 1.0}, errors.WrongType, r"held\['mask'\] must be an array or a tensor with a line for each row"),
            (MASK, errors.WrongType, "held must map names of arguments to their rows"),
        ],
    )
    def test_what_does_not_go(self, held, kind, said):
        with pytest.raises(kind, match=said):
            sl.explain(sl.as_model(Masked().eval(), held=held), ROWS, target=0, n_samples=64)

    def test_not_for_estimators(self):
        from sklearn.linear_model import LinearRegression

        fitted = LinearRegression().fit(ROWS, ROWS[:, 0])
        with pytest.raises(errors.InvalidArgument, match="held is for torch modules and functions; a LinearRegr"):
            sl.as_model(fitted, held={"mask": MASK})
        with pytest.raises(errors.InvalidArgument, match="output_key is for models that return several outputs; a Lin"):
            sl.as_model(fitted, output_key=0)


@dataclasses.dataclass
class Answer:
    logits: torch.Tensor
    hidden: torch.Tensor


class Pair(NamedTuple):
    hidden: torch.Tensor
    logits: torch.Tensor


class Packing(torch.nn.Module):
    def __init__(self, pack):
        super().__init__()
        self.inner, self.pack = torch.nn.Linear(6, 2).double(), pack

    def forward(self, x):
        return self.pack(self.inner(x), x)


class TestOutputs:
    @pytest.mark.parametrize(
        ("pack", "key"),
        [
            (lambda out, x: (x, out), 1),
            (lambda out, x: [x, out], -1),
            (lambda out, x: {"logits": out, "hidden": x}, "logits"),
            (lambda out, x: {"logits": out, "hidden": x}, 0),
            (lambda out, x: Answer(out, x), "logits"),
            (lambda out, x: Answer(out, x), 0),
            (lambda out, x: Pair(x, out), "logits"),
            (lambda out, x: Pair(x, out), 1),
        ],
    )
    @pytest.mark.parametrize("method", ["smoothgrad", "clime"])
    def test_the_part_named_is_explained(self, pack, key, method):
        net = Packing(pack).eval()
        e = sl.explain(sl.as_model(net, output_key=key), ROWS, target=1, n_samples=64, method=method)
        np.testing.assert_allclose(e.values, net.inner.weight[[1] * 5].detach().numpy(), rtol=1e-6)

    @pytest.mark.parametrize(
        ("pack", "key", "said"),
        [
            (lambda out, x: (x, out), 2, r"no part 2, but a tuple of 2 parts, with positions 0 to 1"),
            (lambda out, x: Answer(out, x), "logit", "no part 'logit', but a Answer with parts 'logits', 'hidden'"),
            (lambda out, x: {"a": out}, "b", "no part 'b', but a dict with parts 'a'"),
            (lambda out, x: out, 0, "output_key=0 picks a part of several outputs, but the model returned a Tensor"),
            (
                lambda out, x: Answer(out, x),
                None,
                r"returned a Answer with parts 'logits', 'hidden'\. Say which .*'logits'\)",
            ),
        ],
    )
    def test_a_part_that_is_not_there_lists_those_that_are(self, pack, key, said):
        with pytest.raises(errors.ModelError, match=said):
            sl.explain(sl.as_model(Packing(pack).eval(), output_key=key), ROWS, target=1, n_samples=64)

    def test_functions_have_parts_too(self):
        model = sl.as_model(lambda a: {"score": a.sum(axis=1), "rest": None}, output_key="score")
        np.testing.assert_allclose(sl.explain(model, ROWS, n_samples=64).values, 1)
        with pytest.raises(
            errors.ModelError, match=r"the function returned a dict with parts 'score'.*output_key='score'"
        ):
            sl.explain(lambda a: {"score": a.sum(axis=1)}, ROWS, n_samples=64)

    def test_a_key_is_a_name_or_a_position(self):
        with pytest.raises(
            errors.WrongType, match=r"output_key must be the name or the position of an output; got 1\.5"
        ):
            sl.as_model(convolution(), output_key=1.5)


class TestPrograms:
    @pytest.mark.parametrize("size", [None, 1, 3])
    @pytest.mark.parametrize("method", ["smoothgrad", "clime"])
    def test_an_exported_program_is_its_network(self, size, method):
        """Whatever size of batch it was exported for: None for any."""
        net = convolution()
        given = torch.tensor(IMAGES[: size or 2])
        shapes = ({0: torch.export.Dim("n")},) if size is None else None
        program = torch.export.export(net, (given,), dynamic_shapes=shapes)
        asked = {"target": 0, "sigma": 0.3, "n_samples": 1_024, "method": method}
        e, same = sl.explain(program, IMAGES[:2], **asked), sl.explain(net, IMAGES[:2], **asked)
        np.testing.assert_allclose(e.values, same.values, rtol=1e-9, atol=1e-12)

    def test_held_inputs_and_parts(self):
        class Both(Masked):
            def forward(self, x, mask):
                return {"rest": x, "logits": super().forward(x, mask)}

        net = Both().eval()
        program = torch.export.export(net, (torch.tensor(ROWS[:2]),), kwargs={"mask": torch.tensor(MASK[:2])})
        models = [sl.as_model(each, held={"mask": MASK}, output_key="logits") for each in (program, net)]
        e, same = (sl.explain(each, ROWS, **settings("smoothgrad")) for each in models)
        np.testing.assert_allclose(e.values, same.values, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("by_name", [False, True])
    def test_one_of_several_inputs(self, by_name):
        class Product(torch.nn.Module):
            def forward(self, x, c):
                return {"product": (x * c).sum(dim=1)}

        x, other = torch.zeros(5, 3), torch.ones(5, 3)  # torch takes one tensor given twice for one input
        given = ((x,), {"c": other}) if by_name else ((x, other), {})
        program = torch.export.export(Product(), *given)
        c = np.arange(15.0).reshape(5, 3)
        e = sl.explain(sl.as_model(program, held={"c": c}, output_key="product"), np.zeros((5, 3)), n_samples=64)
        np.testing.assert_allclose(e.values, c, rtol=1e-6)
        if not by_name:
            with pytest.raises(errors.ModelError, match=r"takes 'c' besides: give as_model\(program, held="):
                sl.explain(program, np.zeros((5, 3)))

    def test_one_exported_in_training_mode_is_refused_for_its_dropout(self):
        net = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.Dropout(0.5), torch.nn.Linear(20, 1)).train()
        program = torch.export.export(net, (torch.randn(3, 6),))
        with pytest.raises(errors.NotDeterministic, match="the model gave two answers for row 0"):
            sl.explain(program, ROWS)


@pytest.mark.parametrize("shape", [(8, 8), (3, 8, 8), (8, 8, 3), (1, 8, 8)])
def test_images_are_drawn_as_maps_of_their_slopes(shape):
    """Signed and symmetric about 0, added up over channels, with a bar that says what colours mean."""
    from matplotlib import pyplot

    c = RNG.normal(size=shape)
    e = sl.explain(lambda a: (c * a).reshape(len(a), -1).sum(axis=1), np.zeros((2, *shape)), sigma=0.5, n_samples=1_024)
    ax = e.plot(1)
    (image,) = ax.images
    axis = {(3, 8, 8): 0, (1, 8, 8): 0, (8, 8, 3): 2}.get(shape)
    np.testing.assert_allclose(image.get_array(), 0.5 * (c if axis is None else c.sum(axis=axis)), atol=1e-9)
    low, high = image.get_clim()
    assert -low == high == pytest.approx(np.abs(image.get_array()).max())
    assert "slope per neighbourhood standard deviation" in image.colorbar.ax.get_ylabel().replace("\n", " ")
    assert f"{e.n_samples[1]:,} draws" in ax.get_xlabel()
    pyplot.close(ax.figure)


def test_pixels_held_fixed_are_left_out_of_a_map():
    from matplotlib import pyplot

    around = sl.Neighbourhood(1.0, fixed=range(8))
    e = sl.explain(lambda a: a.sum(axis=(1, 2)), np.zeros((1, 4, 4)), sigma=around, n_samples=64)
    ax = e.plot()
    np.testing.assert_allclose(np.ma.filled(ax.images[0].get_array(), np.nan), [[np.nan] * 4] * 2 + [[1.0] * 4] * 2)
    pyplot.close(ax.figure)


def test_inputs_that_are_no_images_are_drawn_as_bars():
    from matplotlib import pyplot

    e = sl.explain(lambda a: a.sum(axis=(1, 2, 3, 4)), np.zeros((1, 2, 2, 2, 2)), n_samples=64)
    ax = e.plot()
    assert not ax.images
    assert ax.get_yticklabels()[0].get_text().startswith("x[")
    pyplot.close(ax.figure)


def test_a_bound_model_survives_pickling():
    from smoothlime.models.inputs import bind

    model, rows = bind(sl.as_model(convolution(), held=None), IMAGES.reshape(4, -1), SHAPE)
    again = pickle.loads(pickle.dumps(model.inputs))
    assert again.shape == SHAPE
    np.testing.assert_array_equal(again.first(rows), IMAGES)


@pytest.mark.slow
def test_a_network_of_large_images_stays_below_two_gigabytes():
    """In a process of its own, whose peak is its own."""
    code = """
import numpy as np, torch, smoothlime as sl
torch.manual_seed(0)
layers = torch.nn.Conv2d(3, 16, 7, stride=4), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, stride=2), torch.nn.ReLU()
net = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, 10)).eval()
e = sl.explain(net, torch.randn(8, 3, 224, 224), target="predicted", sigma=0.2, n_samples=32, progress=False)
assert e.shaped().shape == (8, 3, 224, 224)
import matplotlib; matplotlib.use("agg")
assert e.plot(7).images[0].get_array().shape == (224, 224)
# of this memory alone: getrusage also counts the peak of the process that started this one
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    peak = int(done.stdout) * 1024
    assert peak < 2e9
