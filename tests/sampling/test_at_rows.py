"""f(x) comes behind the draws, where a device works by itself."""

import numpy as np
import pytest
import torch
from smoothlime.sampling.at_rows import Behind
from torch import nn

import smoothlime as sl
from smoothlime import errors
from smoothlime.device import torch_sums
from smoothlime.models.torch import TorchModel
from smoothlime.sampling import at_rows
from smoothlime.sampling import device_loop as gradient_path

X = np.random.default_rng(5).normal(size=(1, 4))


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    """Networks behave as on a graphics card, and even the smallest batch is worth beginning with."""
    monkeypatch.setattr(TorchModel, "is_asynchronous", True)
    monkeypatch.setattr(torch_sums, "WORTH_KEEPING", 1)
    monkeypatch.setattr(gradient_path, "WORTH_DRAWING", 1)
    monkeypatch.setattr(at_rows, "WORTH_OPENING", 1)
    plain = TorchModel._tensor
    monkeypatch.setattr(TorchModel, "_tensor", lambda self, array: plain(self, array).clone())  # memory of its own


class Counted(nn.Module):
    """A network that knows what it was asked, and may be spoilt."""

    def __init__(self, spoil=None, k=3, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, k)).to(dtype)
        self.sizes = []
        self.spoil = spoil

    def forward(self, a):
        self.sizes.append(len(a))
        out = self.layers(a)
        return out if self.spoil is None else self.spoil(self, out)


def explain(net, x=X, **settings):
    return sl.explain(net, x, **{"target": 1, "n_samples": 256, "design": "antithetic", "sigma": 0.7, **settings})


def plainly(monkeypatch, **settings):
    """The same with f(x) asked for first."""
    with monkeypatch.context() as patch:
        patch.setattr(at_rows, "WORTH_OPENING", 10**9)
        return explain(Counted(), **settings)


@pytest.mark.parametrize("design", ["iid", "antithetic", "orthogonal", "sobol"])
@pytest.mark.parametrize("batch_size", ["auto", 64, 100])
@pytest.mark.parametrize("target", [2, "predicted", {0: 1, 2: -1}])
def test_changes_nothing_but_the_order(monkeypatch, design, batch_size, target):
    settings = {"design": design, "batch_size": batch_size, "target": target}
    e, expected = explain(Counted(), **settings), plainly(monkeypatch, **settings)
    np.testing.assert_array_equal(e.values, expected.values)
    np.testing.assert_array_equal(e.standard_error, expected.standard_error)
    np.testing.assert_array_equal(e.prediction, expected.prediction)
    np.testing.assert_array_equal(e.n_evaluations, expected.n_evaluations)
    assert e.row_outputs == expected.row_outputs


def test_all_outputs_too(monkeypatch):
    settings = {"n_samples": 128, "design": "antithetic"}
    each = sl.explain_outputs(Counted(), X, **settings)
    monkeypatch.setattr(at_rows, "WORTH_OPENING", 10**9)
    for name, e in sl.explain_outputs(Counted(), X, **settings).items():
        np.testing.assert_array_equal(each[name].values, e.values)


def test_the_first_batch_comes_first_and_every_point_is_counted():
    net = Counted()
    e = explain(net, batch_size=64)
    assert net.sizes == [64] * 4 + [1] * 2
    assert e.n_evaluations.tolist() == [sum(net.sizes)]


def test_a_target_that_depends_on_it_has_it_asked_behind_the_first_batch():
    net = Counted()
    e = explain(net, batch_size=64, target="predicted")
    assert net.sizes == [64, 1, 64, 64, 64, 1]
    assert e.n_evaluations.tolist() == [sum(net.sizes)]


def test_without_a_fixed_number_of_draws_it_is_asked_before_the_first_look(monkeypatch):
    settings = {"n_samples": None, "rtol": 0.003, "batch_size": 64}
    net = Counted()
    e = explain(net, **settings)
    assert net.sizes[:6] == [64] * 4 + [1] * 2
    assert set(net.sizes[6:]) == {64}
    assert e.n_evaluations.tolist() == [sum(net.sizes)]
    np.testing.assert_array_equal(e.values, plainly(monkeypatch, **settings).values)


def test_draws_of_its_own(monkeypatch):
    e, expected = explain(Counted(), draws="independent"), plainly(monkeypatch, draws="independent")
    np.testing.assert_array_equal(e.values, expected.values)


def test_where_gradients_are_switched_off(monkeypatch):
    expected = plainly(monkeypatch)
    with torch.no_grad():
        np.testing.assert_array_equal(explain(Counted()).values, expected.values)


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
@pytest.mark.parametrize("worth", [1, 10**9], ids=["f(x) behind", "f(x) first"])
def test_of_a_module_that_follows_gradients_whatever_it_is_told(monkeypatch, worth, method):
    class Follows(Counted):
        @torch.enable_grad()
        def forward(self, a):
            return super().forward(a)

    monkeypatch.setattr(at_rows, "WORTH_OPENING", worth)
    e, expected = (explain(net, method=method) for net in (Follows(), Counted()))
    np.testing.assert_array_equal(e.values, expected.values)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_of_pairs_that_no_batch_holds(monkeypatch, batch_size):
    settings, net = {"batch_size": batch_size, "n_samples": 64}, Counted()
    np.testing.assert_array_equal(explain(net, **settings).values, plainly(monkeypatch, **settings).values)
    assert max(net.sizes) <= batch_size


def test_of_few_digits():
    net = Counted(dtype=torch.bfloat16)
    with pytest.warns(errors.LostPrecision):
        explain(net)
    assert net.sizes == [256, 1, 1]


@pytest.mark.parametrize(
    "settings",
    [{"x": np.vstack([X, X])}, {"design": "aligned"}, {"sigma": sl.Neighbourhood(0.4, covariance=np.eye(4) + 0.3)}],
    ids=["two rows", "a pilot comes first", "draws of the host"],
)
def test_otherwise_rows_are_asked_first(settings):
    net = Counted()
    explain(net, **settings)
    assert net.sizes[0] == len(settings.get("x", X))


class TestRandom:
    """A model that is random is found out, whether its noise is of a point, of a call, or of a state."""

    @pytest.mark.parametrize("batch_size", ["auto", 64])
    @pytest.mark.parametrize("target", [1, "predicted"])
    @pytest.mark.parametrize(
        "spoil",
        [
            lambda _, out: out + 0.1 * torch.rand_like(out),
            lambda net, out: out * (1 + 1e-12 * len(net.sizes)),
            lambda net, out: torch.cat([1e9 * out[:, :1] ** 0, out[:, 1:] * len(net.sizes)], dim=1),
        ],
        ids=["from point to point", "from call to call, in the last digits", "beside a large output"],
    )
    def test_is_found_out(self, spoil, batch_size, target):
        with pytest.raises(errors.NotDeterministic, match="two answers for row 0"):
            explain(Counted(spoil), batch_size=batch_size, target=target)

    def test_what_depends_on_the_size_of_a_batch_is_not_random(self):
        e = explain(Counted(lambda _, out: out * (1 + 1e-2 * len(out))))
        np.testing.assert_allclose(e.prediction, 1.01 * explain(Counted()).prediction, rtol=1e-12)


class TestTrouble:
    """What is wrong with the first batch is left to the usual way to complain about."""

    def test_memory_that_runs_out(self):
        def spoil(net, out):
            if len(out) > 40:
                raise RuntimeError("CUDA out of memory")
            return out

        net = Counted(spoil)
        with pytest.warns(errors.SmallerBatches):
            e = explain(net)
        assert e.n_evaluations.tolist() == [258]
        np.testing.assert_allclose(e.values, explain(Counted()).values, rtol=1e-12)

    @pytest.fixture
    def short_of_memory(self, monkeypatch):
        """Memory runs out on the first way back."""
        plain, calls = TorchModel.gradients, []

        def gradients(self, leaf, out, weights):
            calls.append(len(out))
            if len(calls) == 1:
                raise RuntimeError("CUDA out of memory")
            return plain(self, leaf, out, weights)

        monkeypatch.setattr(TorchModel, "gradients", gradients)
        return calls

    def test_memory_that_runs_out_on_the_way_back(self, monkeypatch, short_of_memory):
        with pytest.warns(errors.SmallerBatches):
            e = explain(Counted(), batch_size=256)
        assert short_of_memory == [256, 128, 128]
        np.testing.assert_allclose(e.values, explain(Counted()).values, rtol=1e-12)

    def test_memory_that_runs_out_at_x_as_long_as_the_first_batch_is_there(self, monkeypatch):
        plain, settings = torch_sums.TorchSums.answer, {"batch_size": 64, "target": "predicted"}
        expected = explain(Counted(), **settings)

        def answer(self):
            if self.opened is not None:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return plain(self)

        monkeypatch.setattr(torch_sums.TorchSums, "answer", answer)
        np.testing.assert_array_equal(explain(Counted(), **settings).values, expected.values)

    def test_memory_that_runs_out_where_sums_are_to_be(self, monkeypatch):
        plain = torch_sums.TorchSums.aim

        def aim(self, weights):
            if self.opened is not None:
                raise torch.OutOfMemoryError("CUDA out of memory")
            plain(self, weights)

        expected = explain(Counted())
        monkeypatch.setattr(torch_sums.TorchSums, "aim", aim)
        np.testing.assert_array_equal(explain(Counted()).values, expected.values)

    def test_a_module_that_writes_into_its_input(self):
        class Writes(Counted):
            def forward(self, a):
                a += 1.0
                return super().forward(a)

        np.testing.assert_allclose(explain(Writes()).values, explain(Counted(), X + 1.0).values, rtol=1e-12)

    @pytest.mark.filterwarnings("ignore::smoothlime.errors.SmallerBatches")
    def test_a_module_that_writes_behind_torchs_back_where_memory_runs_out(self, short_of_memory):
        class Doubles(nn.Module):
            def forward(self, a):
                with torch.no_grad():
                    a.mul_(2.0)
                return (a**2).sum(dim=1)

        module = Doubles()
        module.register_buffer("where", torch.zeros(1, dtype=torch.float64))
        e = explain(module, target=0)
        np.testing.assert_allclose(e.values, 4 * X, rtol=1e-12)  # as torch follows it: the doubling is no function

    def test_a_module_that_writes_into_x_alone(self):
        class Scales(Counted):
            def forward(self, a):
                if len(a) == 1:
                    with torch.no_grad():
                        a.mul_(2.0)
                return super().forward(a)

        e, expected = explain(Scales()), explain(Counted())
        np.testing.assert_array_equal(e.values, expected.values)
        np.testing.assert_allclose(e.prediction, explain(Counted(), 2 * X).prediction, rtol=1e-12)

    def test_a_module_that_hands_its_input_on(self):
        e = explain(nn.Identity(), target=2)
        np.testing.assert_allclose(e.values, [[0, 0, 1, 0]], atol=1e-12)
        np.testing.assert_allclose(e.prediction, X[:, 2])

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda _, out: out[:1], "one row of outputs per point"),
            (lambda _, out: out.squeeze(), "one row of outputs per point"),
            (lambda _, out: out[:, :0], "returned no output"),
            (lambda _, out: out if len(out) > 1 else out[:, :1], "3 outputs at first and 1 now"),
            (lambda _, out: torch.complex(out, out), "must return real numbers"),
            (lambda _, out: out.detach(), "does not depend on its input"),
            (lambda _, out: out * float("nan"), "returned .*nan"),
            (lambda _, out: 1 / 0, "ZeroDivisionError"),
            (lambda _, out: out if len(out) > 1 else out * float("inf"), "inf.* at row 0"),
            (lambda _, out: out if len(out) > 1 else 1 / 0, "ZeroDivisionError on 1 point|raised ZeroDivisionError"),
        ],
    )
    def test_complaints_are_the_usual_ones(self, spoil, says):
        with pytest.raises(errors.ModelError, match=says):
            explain(Counted(spoil))

    def test_one_output_that_is_squeezed_away(self):
        with pytest.raises(errors.ModelError, match=r"one row of outputs per point.*got \(\)"):
            explain(Counted(lambda _, out: out[:, 1].squeeze()), target=0)

    def test_a_target_that_is_not_there(self):
        with pytest.raises(errors.InvalidArgument, match="out of range"):
            explain(Counted(), target=7)


class Sometimes(Counted):
    """Writes into its input, but not where x is alone."""

    def forward(self, a):
        if len(a) > 1:
            with torch.no_grad():
                a.mul_(2.0)
        return super().forward(a)


@pytest.mark.parametrize("worth", [1, 10**9], ids=["f(x) behind", "f(x) first"])
@pytest.mark.parametrize("batch_size", ["auto", 64])
def test_a_module_that_writes_in_some_calls_only(monkeypatch, worth, batch_size):
    monkeypatch.setattr(at_rows, "WORTH_OPENING", worth)
    model = sl.as_model(Sometimes())
    first, second = (explain(model, batch_size=batch_size) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)


def test_points_that_were_written_into_are_not_asked_again(monkeypatch):
    monkeypatch.setattr(at_rows, "WORTH_OPENING", 10**9)
    plain, calls = TorchModel.gradients, []

    def gradients(self, *args):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("CUDA out of memory")
        return plain(self, *args)

    monkeypatch.setattr(TorchModel, "gradients", gradients)
    with pytest.raises(errors.ModelError, match="wrote into its input, and then memory ran out"):
        explain(Sometimes())


def test_this_is_what_happens_here(monkeypatch):
    seen = []
    plain = Behind.compare
    monkeypatch.setattr(Behind, "compare", lambda self: (seen.append(self.width), plain(self)))
    explain(Counted(k=5))
    assert seen == [5]
