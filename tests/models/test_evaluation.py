"""f(x) is asked for before the first draw, twice and once beside probe points, on every device alike."""

import numpy as np
import pytest
import torch
from torch import nn

import smoothlime as sl
from smoothlime import errors
from smoothlime.device import torch_sums
from smoothlime.draws.far_draws import FAR
from smoothlime.models.torch import TorchModel
from smoothlime.sampling import device_loop

X = np.random.default_rng(5).normal(size=(1, 4))


@pytest.fixture(autouse=True, params=[False, True], ids=["processor", "card"])
def is_asynchronous(request, monkeypatch):
    """Networks are explained as on a processor, and as on a graphics card."""
    if request.param:
        monkeypatch.setattr(TorchModel, "is_asynchronous", True)
        monkeypatch.setattr(torch_sums, "WORTH_KEEPING", 1)
        monkeypatch.setattr(device_loop, "WORTH_DRAWING", 1)
        plain = TorchModel._tensor
        monkeypatch.setattr(TorchModel, "_tensor", lambda self, array: plain(self, array).clone())  # its own memory
    return request.param


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


@pytest.mark.parametrize("target", [2, "predicted", {0: 1, 2: -1}])
@pytest.mark.parametrize("settings", [{}, {"n_samples": None, "rtol": 0.003}, {"draws": "independent"}])
@pytest.mark.parametrize("rows", [1, 5])
def test_it_is_asked_first_and_every_point_is_counted(rows, target, settings):
    net = Counted()
    e = explain(net, X + np.arange(rows)[:, None], batch_size=64, target=target, **settings)
    assert net.sizes[:4] == [rows, rows, 3, 64]
    assert e.n_evaluations.sum() == sum(net.sizes)
    far = FAR if "rtol" in settings else 0  # they are looked at where draws decide that a row is done
    assert (e.n_evaluations - e.n_samples - far).tolist() == [5] + [2] * (rows - 1)


def test_all_outputs_share_one_f_of_x():
    net = Counted()
    sl.explain_outputs(net, X, n_samples=128, design="antithetic")
    assert net.sizes == [1, 1, 3, 128]


def test_where_gradients_are_switched_off():
    expected = explain(Counted())
    with torch.no_grad():
        np.testing.assert_array_equal(explain(Counted()).values, expected.values)


@pytest.mark.parametrize("method", ["smoothgrad", "clime"])
def test_of_a_module_that_follows_gradients_whatever_it_is_told(method):
    class Follows(Counted):
        @torch.enable_grad()
        def forward(self, a):
            return super().forward(a)

    e, expected = (explain(net, method=method) for net in (Follows(), Counted()))
    np.testing.assert_array_equal(e.values, expected.values)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_of_pairs_that_no_batch_holds(batch_size):
    settings, net = {"batch_size": batch_size, "n_samples": 64}, Counted()
    np.testing.assert_allclose(explain(net, **settings).values, explain(Counted(), n_samples=64).values, rtol=1e-12)
    assert max(net.sizes) <= batch_size


def test_of_few_digits():
    net = Counted(dtype=torch.bfloat16)
    with pytest.warns(errors.LostPrecision):
        explain(net)
    assert net.sizes == [1, 1, 3, 256]


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
        net = Counted(spoil)
        with pytest.raises(errors.NotDeterministic, match="two answers for row 0"):
            explain(net, batch_size=batch_size, target=target)
        assert net.sizes == [1, 1]

    def test_what_depends_on_the_size_of_a_batch_is_refused(self):
        with pytest.raises(errors.ModelError, match="depends on what it is asked together with"):
            explain(Counted(lambda _, out: out * (1 + 1e-2 * len(out))))


class TestTrouble:
    def test_memory_that_runs_out(self):
        def spoil(net, out):
            if len(out) > 40:
                raise RuntimeError("CUDA out of memory")
            return out

        net = Counted(spoil)
        with pytest.warns(errors.SmallerBatches):
            e = explain(net)
        assert e.n_evaluations.tolist() == [256 + 5]
        np.testing.assert_allclose(e.values, explain(Counted()).values, rtol=1e-12)

    @pytest.fixture
    def short_of_memory(self, monkeypatch):
        """Memory runs out on the first way back."""
        plain, calls = torch.autograd.grad, []

        def grad(out, *args, **settings):
            calls.append(len(out))
            if len(calls) == 1:
                raise RuntimeError("CUDA out of memory")
            return plain(out, *args, **settings)

        monkeypatch.setattr(torch.autograd, "grad", grad)
        return calls

    def test_memory_that_runs_out_on_the_way_back(self, short_of_memory):
        with pytest.warns(errors.SmallerBatches):
            e = explain(Counted(), batch_size=256)
        assert short_of_memory == [256, 128, 128]
        np.testing.assert_allclose(e.values, explain(Counted()).values, rtol=1e-12)

    def test_points_that_were_written_into_are_not_asked_again(self, short_of_memory):
        with pytest.raises(errors.ModelError, match="wrote into its input, and then memory ran out"):
            explain(Sometimes())

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
                        a.mul_(1.001)
                return super().forward(a)

        e, expected = explain(Scales()), explain(Counted())
        np.testing.assert_array_equal(e.values, expected.values)
        np.testing.assert_allclose(e.prediction, explain(Counted(), 1.001 * X).prediction, rtol=1e-12)

    def test_a_module_that_hands_its_input_on(self):
        e = explain(nn.Identity(), target=2)
        np.testing.assert_allclose(e.values, [[0, 0, 1, 0]], atol=1e-12)
        np.testing.assert_allclose(e.prediction, X[:, 2], rtol=1e-6)

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda _, out: out[:1], "one row of outputs per point"),
            (lambda _, out: out.squeeze(), "one row of outputs per point"),
            (lambda _, out: out[:, :0], "returned no output"),
            (lambda _, out: torch.complex(out, out), "must return real numbers"),
            (lambda _, out: out.detach(), "does not depend on its input"),
            (lambda _, out: out * float("nan"), "returned .*nan"),
            (lambda _, out: 1 / 0, "ZeroDivisionError"),
            (lambda _, out: out if len(out) > 1 else out * float("inf"), "inf.* at row 0"),
            (lambda _, out: out if len(out) > 1 else 1 / 0, "raised ZeroDivisionError on 1 point"),
        ],
    )
    def test_complaints_are_the_usual_ones(self, spoil, says):
        with pytest.raises(errors.ModelError, match=says):
            explain(Counted(spoil))

    def test_one_output_that_is_squeezed_away(self):
        with pytest.raises(errors.ModelError, match=r"one row of outputs per point.*got \(\)"):
            explain(Counted(lambda _, out: out[:, 1].squeeze()), target=0)

    def test_outputs_whose_number_changes(self):
        with pytest.raises(errors.ModelError, match="1 outputs at first and 3 now"):
            explain(Counted(lambda _, out: out if len(out) > 1 else out[:, :1]), target=0)

    def test_a_target_that_is_not_there(self):
        with pytest.raises(errors.InvalidArgument, match="out of range"):
            explain(Counted(), target=7)


class Sometimes(Counted):
    """Writes into its input, but only where points are many."""

    def forward(self, a):
        if len(a) > 3:
            with torch.no_grad():
                a.mul_(2.0)
        return super().forward(a)


@pytest.mark.parametrize("batch_size", ["auto", 64])
def test_a_module_that_writes_in_some_calls_only(batch_size):
    model = sl.as_model(Sometimes())
    first, second = (explain(model, batch_size=batch_size) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)
