"""f(x) goes along with the draws, where a device works by itself."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

import smoothlime as sl
from smoothlime import at_rows, errors, gradient_path
from smoothlime.at_rows import Riding
from smoothlime.models import torch_sums
from smoothlime.models.from_torch import TorchModel

X = np.random.default_rng(5).normal(size=(1, 4))


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    """Networks behave as on a graphics card, and even the smallest batch is worth beginning with."""
    monkeypatch.setattr(TorchModel, "is_apart", True)
    monkeypatch.setattr(torch_sums, "WORTH_KEEPING", 1)
    monkeypatch.setattr(gradient_path, "WORTH_DRAWING", 1)
    monkeypatch.setattr(at_rows, "WORTH_OPENING", 1)
    plain = TorchModel._tensor
    monkeypatch.setattr(TorchModel, "_tensor", lambda self, array: plain(self, array).clone())  # memory of its own


class Counted(nn.Module):
    """A network that knows what it was asked, and may be spoilt."""

    def __init__(self, spoil=None, k=3):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, k)).double()
        self.sizes = []
        self.spoil = spoil

    def forward(self, a):
        self.sizes.append(len(a))
        out = self.layers(a)
        return out if self.spoil is None else self.spoil(self, out)


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of 64, where nobody says how large they may be."""
    monkeypatch.setattr(sys.modules["smoothlime.explain"], "automatic_batch_size", lambda *_: 64)


def explain(net, x=X, **settings):
    return sl.explain(net, x, **{"target": 1, "n_samples": 256, "design": "antithetic", "sigma": 0.7, **settings})


def plainly(monkeypatch, **settings):
    """The same with f(x) asked for by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(at_rows, "WORTH_OPENING", 10**9)
        net = Counted()
        return explain(net, **settings), net.sizes


@pytest.mark.parametrize("design", ["iid", "antithetic", "orthogonal", "sobol"])
@pytest.mark.parametrize("batch_size", ["auto", 64, 100])
@pytest.mark.parametrize("target", [2, "predicted", {0: 1, 2: -1}])
def test_changes_nothing_but_the_order(monkeypatch, design, batch_size, target):
    settings = {"design": design, "batch_size": batch_size, "target": target}
    e, (expected, _) = explain(Counted(), **settings), plainly(monkeypatch, **settings)
    np.testing.assert_allclose(e.values, expected.values, rtol=1e-12)
    np.testing.assert_allclose(e.standard_error, expected.standard_error, rtol=1e-9)
    np.testing.assert_allclose(e.prediction, expected.prediction, rtol=1e-12)
    assert e.row_outputs == expected.row_outputs


def test_all_outputs_ride_too(monkeypatch):
    settings = {"n_samples": 128, "design": "antithetic"}
    each = sl.explain_outputs(Counted(), X, **settings)
    monkeypatch.setattr(at_rows, "WORTH_OPENING", 10**9)
    for name, e in sl.explain_outputs(Counted(), X, **settings).items():
        np.testing.assert_allclose(each[name].values, e.values, rtol=1e-12)


def test_the_first_batch_comes_first_and_every_point_is_counted(small_batches):
    net = Counted()
    e = explain(net)
    assert net.sizes == [65, 65, 64, 64]
    assert e.n_evaluations.tolist() == [sum(net.sizes)]


def test_one_batch_is_followed_by_the_row_alone():
    net = Counted()
    e = explain(net)
    assert net.sizes == [257, 1]
    assert e.n_evaluations.tolist() == [sum(net.sizes)]


def test_without_a_fixed_number_of_draws_riding_ends_at_the_first_look(monkeypatch, small_batches):
    settings = {"n_samples": None, "rtol": 0.003}
    net = Counted()
    e = explain(net, **settings)
    assert net.sizes[:2] == [65] * 2
    assert set(net.sizes[2:]) == {64}
    assert e.n_evaluations.tolist() == [sum(net.sizes)]
    np.testing.assert_allclose(e.values, plainly(monkeypatch, **settings)[0].values, rtol=1e-12)


def test_rows_of_their_own_draws_ride_with_them(monkeypatch):
    e, (expected, _) = explain(Counted(), draws="independent"), plainly(monkeypatch, draws="independent")
    np.testing.assert_allclose(e.values, expected.values, rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"x": np.vstack([X, X])},
        {"design": "aligned"},
        {"sigma": sl.Neighbourhood(0.4, covariance=np.eye(4) + 0.3)},
        {"batch_size": 256},
    ],
    ids=["two rows", "a pilot comes first", "draws of the host", "no room"],
)
def test_otherwise_rows_are_asked_first(settings):
    net = Counted()
    explain(net, **settings)
    assert net.sizes[0] == len(settings.get("x", X))
    assert max(net.sizes) <= settings.get("batch_size", 10**6)


def test_a_call_holds_no_more_points_than_it_may():
    net = Counted()
    explain(net, batch_size=100)
    assert net.sizes == [65, 65, 64, 64]  # whole rounds of the groups, and there is room


class TestRandom:
    """A model that is random is found out, whether its noise is of a point, of a call, or of a state."""

    SPOILT = (
        lambda _, out: out + 0.1 * torch.rand_like(out),
        lambda net, out: out * (1 + 0.01 * len(net.sizes)),
    )

    @pytest.mark.parametrize("spoil", SPOILT, ids=["from point to point", "from call to call"])
    def test_in_one_batch(self, spoil):
        with pytest.raises(errors.NotDeterministic, match="two answers for row 0"):
            explain(Counted(spoil))

    @pytest.mark.parametrize("spoil", SPOILT, ids=["from point to point", "from call to call"])
    def test_in_several(self, small_batches, spoil):
        with pytest.raises(errors.NotDeterministic, match="two answers for row 0"):
            explain(Counted(spoil))

    def test_noise_of_the_last_digits_is_found_between_batches_of_one_size(self, small_batches):
        net = Counted(lambda net, out: out * (1 + 1e-12 * len(net.sizes)))
        with pytest.raises(errors.NotDeterministic):
            explain(net)

    def test_rounding_that_depends_on_the_size_of_a_batch_is_none(self):
        net = Counted(lambda _, out: out * (1 + 1e-2 * len(out) / 256))
        e = explain(net)
        assert net.sizes == [257, 1, 1, 1]  # too much for rounding, so asked in the careful way
        assert e.n_evaluations.tolist() == [sum(net.sizes)]


class TestTrouble:
    """What is wrong with the first batch is left to the careful way to complain about."""

    def test_memory_that_runs_out(self):
        def spoil(net, out):
            if len(out) > 40:
                raise RuntimeError("CUDA out of memory")
            return out

        net = Counted(spoil)
        with pytest.warns(errors.SmallerBatches):
            e = explain(net)
        assert e.n_evaluations.tolist() == [258]

    def test_memory_that_runs_out_on_the_way_back(self, monkeypatch):
        plain, calls = TorchModel.gradients, []

        def gradients(self, leaf, out, weights):
            calls.append(len(out))
            if len(calls) == 1:
                raise RuntimeError("CUDA out of memory")
            return plain(self, leaf, out, weights)

        monkeypatch.setattr(TorchModel, "gradients", gradients)
        with pytest.warns(errors.SmallerBatches):
            e = explain(Counted(), batch_size=257)
        assert calls == [256, 128, 128]
        monkeypatch.undo()
        np.testing.assert_allclose(e.values, explain(Counted()).values, rtol=1e-12)

    def test_a_module_that_writes_into_its_input(self):
        class Writes(Counted):
            def forward(self, a):
                a += 1.0
                return super().forward(a)

        net = Writes()
        shifted = explain(Counted(), X + 1.0)
        np.testing.assert_allclose(explain(net).values, shifted.values, rtol=1e-12)

    def test_a_module_that_hands_its_input_on(self):
        e = explain(nn.Identity(), target=2)
        np.testing.assert_allclose(e.values, [[0, 0, 1, 0]], atol=1e-12)
        np.testing.assert_allclose(e.prediction, X[:, 2])

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda _, out: out[:1], "one row of outputs per point"),
            (lambda _, out: out.detach(), "does not depend on its input"),
            (lambda _, out: out * float("nan"), "returned .*nan"),
            (lambda _, out: 1 / 0, "ZeroDivisionError"),
        ],
    )
    def test_complaints_are_the_usual_ones(self, spoil, says):
        with pytest.raises(errors.ModelError, match=says):
            explain(Counted(spoil))

    def test_a_target_that_is_not_there(self):
        with pytest.raises(errors.InvalidArgument, match="out of range"):
            explain(Counted(), target=7)

    def test_not_finite_at_the_row_alone(self):
        def spoil(_, out):
            return torch.where(out == out[-1:], float("inf"), out) if len(out) > 1 else out

        with pytest.raises(errors.ModelError, match="at row 0"):
            explain(Counted(spoil))


def test_riding_is_what_happens_here(monkeypatch):
    seen = []
    plain = Riding.compare
    monkeypatch.setattr(Riding, "compare", lambda self: (seen.append(self.width), plain(self)))
    explain(Counted(k=5))
    assert seen == [5]
