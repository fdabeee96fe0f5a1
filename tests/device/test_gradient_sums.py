"""Networks add up their gradients by themselves; the answers, and the complaints, are those of asking in full view."""

import pickle
import sys

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime import errors
from smoothlime.device import sums_for
from smoothlime.device.torch_groups import TorchPseudovalues, make_room
from smoothlime.device.torch_sums import TorchSums, over_draws
from smoothlime.draws.rotation import Rotation
from smoothlime.models.torch import TorchModel
from smoothlime.sampling.device_loop import ahead

X = np.random.default_rng(0).normal(size=(7, 4))
EXACT = {"rtol": 1e-11, "atol": 1e-13}


def network(dtype=torch.float64, outputs=3):
    with torch.random.fork_rng():
        torch.manual_seed(2)
        layers = [torch.nn.Linear(4, 8), torch.nn.ELU(), torch.nn.Linear(8, outputs)]
        return torch.nn.Sequential(*layers).to(dtype).eval()


class InFullView:
    """A torch module of which only points and gradients are known: the path of every other model."""

    is_pure = True

    def __init__(self, net):
        self._model = sl.as_model(net)
        self.outputs, self.dtype = (), self._model.dtype

    def values(self, points):
        return self._model.values(points)

    def values_and_gradients(self, points, weights):
        return self._model.values_and_gradients(points, weights)


class Function(torch.nn.Module):
    """A function as a module; without parameters its points are float32."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a):
        return self.function(a)


def assert_alike(one, other, **tolerance):
    for name in ("values", "standard_error", "radius", "smoothed", "fidelity", "prediction"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), **(tolerance or EXACT), err_msg=name)
    np.testing.assert_array_equal(one.n_samples, other.n_samples)
    np.testing.assert_array_equal(one.converged, other.converged)
    np.testing.assert_allclose(one.groups.pseudo, other.groups.pseudo, **(tolerance or EXACT))
    np.testing.assert_allclose(one.groups.resolution, other.groups.resolution, **(tolerance or EXACT))


class TestAnswers:
    def test_only_networks_sum_by_themselves(self):
        assert sums_for(sl.as_model(network())) is not None
        assert sums_for(InFullView(network())) is None

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    @pytest.mark.parametrize("design", ["iid", "antithetic", "orthogonal", "sobol", "aligned"])
    @pytest.mark.parametrize("batch_size", ["auto", 5, 100])
    def test_are_those_of_asking_in_full_view(self, design, draws, batch_size):
        settings = {"design": design, "draws": draws, "target": 1, "n_samples": 300, "sigma": 0.7}
        settings["batch_size"] = batch_size
        assert_alike(*(sl.explain(each, X, **settings) for each in (network(), InFullView(network()))))

    @pytest.mark.parametrize("design", ["sobol", "aligned"])
    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_see_the_same_kinks_whoever_looks_and_however_many_draws_at_once(self, design, draws):
        x, kinks = X[:2], [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)]
        net = torch.nn.Sequential(*kinks).double().eval()
        settings = {"design": design, "draws": draws, "target": 1, "n_samples": 8_192}
        settings["sigma"] = sl.Neighbourhood(0.7, fixed=[2])
        whole = sl.explain(net, x, **settings, batch_size=100_000)
        for model in (net, InFullView(net)):
            for size in (100, 2_000):
                assert_alike(sl.explain(model, x, **settings, batch_size=size), whole)
        assert_alike(sl.explain(InFullView(net), x, **settings, batch_size=100_000), whole)
        if draws == "shared":
            assert_alike(sl.explain(net, x[::-1].copy(), **settings)[::-1], whole)

    @pytest.mark.parametrize("target", [0, "predicted", {0: 1, 2: -0.5}])
    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_for_every_kind_of_target(self, target, draws):
        settings = {"target": target, "n_samples": 64, "draws": draws}
        e, seen = (sl.explain(each, X, **settings) for each in (network(), InFullView(network())))
        assert e.provenance.method == sl.SmoothGrad(control="values")
        assert_alike(e, seen)

    @pytest.mark.parametrize("design", ["iid", "sobol", "aligned"])
    def test_with_features_held_fixed_and_features_that_move_together(self, design):
        around = sl.Neighbourhood(0.4, fixed=[1, 3])
        cov = np.eye(4) + 0.3
        for sigma in (around, sl.Neighbourhood(0.4, covariance=cov), sl.Neighbourhood(0.4, covariance=cov, fixed=[0])):
            settings = {"sigma": sigma, "target": 0, "n_samples": 128, "design": design}
            assert_alike(*(sl.explain(each, X, **settings) for each in (network(), InFullView(network()))))

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    @pytest.mark.parametrize("design", ["aligned", "sobol", "iid"])
    def test_when_rows_stop_one_after_the_other(self, design, draws):
        small = {"aligned": 0.3, "sobol": 1.0, "iid": 0.85}[design]
        settings = {"target": 0, "sigma": 1.5, "rtol": 0.005 * small, "atol": 0.004 * small, "design": design}
        settings["draws"] = draws
        x = X * np.geomspace(0.2, 5, 7)[:, None]
        e, seen = (sl.explain(each, x, **settings) for each in (network(), InFullView(network())))
        assert len(set(e.n_samples)) > 1
        assert_alike(e, seen)

    def test_when_rows_of_different_classes_stop_one_after_the_other(self):
        settings = {"target": "predicted", "sigma": 1.5, "rtol": 0.0005, "atol": 0.0004}
        x = X * np.geomspace(0.2, 5, 7)[:, None]
        e, seen = (sl.explain(each, x, **settings) for each in (network(), InFullView(network())))
        assert len(set(e.n_samples)) > 1
        assert len(set(e.row_outputs)) > 1
        assert_alike(e, seen)

    def test_of_all_outputs_at_once_and_of_each_alone(self):
        for draws in ("shared", "independent"):
            together = sl.explain_outputs(network(), X, rtol=0.02, sigma=1.5, draws=draws)
            in_view = sl.explain_outputs(InFullView(network()), X, rtol=0.02, sigma=1.5, draws=draws)
            for name in together:
                assert_alike(together[name], in_view[name])
        settings = {"n_samples": 64, "design": "orthogonal"}  # a pilot would look at all outputs, or at one
        fixed = sl.explain_outputs(network(), X, **settings)
        for i, name in enumerate(fixed):
            assert_alike(fixed[name], sl.explain(network(), X, target=i, **settings))

    def test_in_float32_up_to_its_digits(self):
        net = network(torch.float32)
        settings = {"target": 0, "n_samples": 1_024, "design": "sobol"}
        e = sl.explain(net, X, **settings)
        for other in (
            sl.explain(InFullView(net), X, **settings),
            *(sl.explain(net, X, **settings, batch_size=size) for size in (7, 256, 1_000)),
            sl.explain(net, X[::-1].copy(), **settings)[::-1],
        ):
            np.testing.assert_allclose(other.values, e.values, rtol=1e-6, atol=1e-6 * np.abs(e.values).max())
            np.testing.assert_allclose(other.smoothed, e.smoothed, rtol=1e-6, atol=1e-6)

    def test_are_the_same_to_the_bit_when_asked_again(self, assert_same):
        for dtype in (torch.float32, torch.float64):
            for draws in ("shared", "independent"):
                first, second = (sl.explain(network(dtype), X, target=0, n_samples=300, draws=draws) for _ in range(2))
                assert_same(first, second)

    def test_do_not_depend_on_how_many_rows_are_fetched_together(self, monkeypatch):
        settings = {"target": 0, "sigma": 1.5, "rtol": 0.005, "atol": 0.004}
        x = X * np.geomspace(0.2, 5, 7)[:, None]
        e = sl.explain(network(), x, **settings)
        monkeypatch.setattr(sys.modules["smoothlime.sampling.device_loop"], "FETCHED_BYTES", 1)
        one_by_one = sl.explain(network(), x, **settings)
        assert_alike(one_by_one, e)

    def test_long_runs_are_added_up_in_float64(self):
        terms = torch.full((1, 10_000, 1), 0.1)
        exact = 10_000 * np.float64(np.float32(0.1))
        assert over_draws(terms).dtype == torch.float64
        assert abs(over_draws(terms).item() / exact - 1) < 2e-7
        assert over_draws(terms[:, :256]).dtype == torch.float32
        ramp = torch.arange(700.0)[None, :, None].expand(2, 700, 3)
        np.testing.assert_array_equal(over_draws(ramp), np.full((2, 3), 699 * 700 / 2))

    def test_of_a_module_that_hands_its_input_on(self):
        settings = {"n_samples": 512, "batch_size": 64, "target": 0}
        e = sl.explain(Function(lambda a: a[:, :2]), X, **settings)
        np.testing.assert_array_equal(e.values, np.eye(1, 4).repeat(7, axis=0))
        in_view = sl.explain(InFullView(Function(lambda a: a[:, :2])), X, **settings)
        np.testing.assert_allclose(e.smoothed, in_view.smoothed, rtol=1e-6)
        np.testing.assert_allclose(e.fidelity, in_view.fidelity, rtol=1e-6)

    def test_of_a_sum_whose_gradient_is_one_number_seen_many_times(self):
        for design in ("iid", "aligned"):
            e = sl.explain(Function(lambda a: a.sum(dim=1)), X, n_samples=64, method="smoothgrad", design=design)
            np.testing.assert_array_equal(e.values, np.ones((7, 4)))
            np.testing.assert_array_equal(e.standard_error, np.zeros((7, 4)))

    def test_progress_counts_every_draw_once(self):
        seen = []
        sl.explain(network(), X, target=0, n_samples=256, batch_size=100, progress=lambda *each: seen.append(each))
        done = [done for done, _ in seen]
        assert done == sorted(set(done))
        assert done[-1] == 7 * 256 == seen[-1][1]


class TestCosts:
    def count(self, net, monkeypatch):
        calls = {"forward": 0, "points": 0, "fetched": 0}

        def called(module, args):
            calls["forward"] += 1
            calls["points"] += len(args[0])

        net.register_forward_pre_hook(called)
        plain = TorchSums.totals

        def totals(sums, rows):
            calls["fetched"] += 1
            return plain(sums, rows)

        monkeypatch.setattr(TorchSums, "totals", totals)
        return calls

    def test_sums_are_fetched_at_looks_only(self, monkeypatch):
        net = network()
        calls = self.count(net, monkeypatch)
        sl.explain(net, X, target=0, n_samples=1_024, design="sobol", batch_size=64)
        assert calls["forward"] == 3 + 7 * 1_024 // 64
        assert calls["fetched"] == 1

    def test_several_outputs_take_one_pass_forward(self, monkeypatch):
        net = network()
        calls = self.count(net, monkeypatch)
        sl.explain_outputs(net, X, n_samples=256)
        assert calls["points"] == 7 * (256 + 2 + 3 * 16) + 3  # a pilot has to ask for the gradients of each output


@pytest.fixture
def apart(monkeypatch):
    """Networks behave as on a graphics card: they draw by themselves, and keep what groups say."""
    monkeypatch.setattr(TorchModel, "is_asynchronous", True)
    monkeypatch.setattr(sys.modules["smoothlime.device.torch_sums"], "WORTH_KEEPING", 1)
    monkeypatch.setattr(sys.modules["smoothlime.sampling.device_loop"], "WORTH_DRAWING", 1)


class TestApart:
    """A device that works by itself: nothing but where things are made may differ."""

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    @pytest.mark.parametrize("design", ["iid", "antithetic", "orthogonal", "sobol", "aligned"])
    @pytest.mark.parametrize("batch_size", ["auto", 50])
    def test_answers_are_those_of_asking_in_full_view(self, apart, design, draws, batch_size):
        settings = {"design": design, "draws": draws, "target": 1, "n_samples": 300, "sigma": 0.7}
        settings["batch_size"] = batch_size
        assert_alike(*(sl.explain(each, X, **settings) for each in (network(), InFullView(network()))))

    @pytest.mark.parametrize("design", ["iid", "antithetic", "aligned"])
    def test_with_features_held_fixed_or_moving_together(self, apart, design):
        cov = np.eye(4) + 0.3
        for sigma in (sl.Neighbourhood([0.4, 0.1, 2.0, 1.0], fixed=[1]), sl.Neighbourhood(0.4, covariance=cov)):
            settings = {"sigma": sigma, "target": 0, "n_samples": 128, "design": design}
            e, seen = (sl.explain(each, X, **settings) for each in (network(), InFullView(network())))
            assert_alike(e, seen)
            np.testing.assert_allclose(e.interval(0.9), seen.interval(0.9), rtol=1e-10)

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_when_rows_stop_one_after_the_other(self, apart, draws):
        settings = {"target": "predicted", "sigma": 1.5, "rtol": 0.005, "atol": 0.004, "design": "antithetic"}
        x = X * np.geomspace(0.2, 5, 7)[:, None]
        e, seen = (sl.explain(each, x, draws=draws, **settings) for each in (network(), InFullView(network())))
        assert len(set(e.n_samples)) > 1
        assert_alike(e, seen)

    def test_of_all_outputs_at_once(self, apart):
        together = sl.explain_outputs(network(), X, n_samples=64)
        for name, in_view in sl.explain_outputs(InFullView(network()), X, n_samples=64).items():
            assert_alike(together[name], in_view)

    def test_points_are_known_afterwards(self, apart):
        e = sl.explain(network(), X, target=0, n_samples=64, design="iid")
        model = sl.as_model(network())
        for row in range(len(X)):
            points = e.perturbations(row)
            _, gradients = model.values_and_gradients(points, np.eye(3)[[0] * len(points)])
            np.testing.assert_allclose(gradients.mean(axis=0), e.values[row], **EXACT)

    def test_what_groups_say_stays_there_until_it_is_wanted(self, apart, tmp_path):
        e = sl.explain(network(), X, target=0, n_samples=128, design="iid")
        seen = sl.explain(InFullView(network()), X, target=0, n_samples=128, design="iid")
        assert isinstance(e.groups.pseudovalues, TorchPseudovalues)
        np.testing.assert_allclose(e.interval(0.9, simultaneous=True), seen.interval(0.9, simultaneous=True), **EXACT)
        assert e.groups.pseudovalues.bytes_on[1] == 8 * 7 * (32 + 1) * 4  # and the errors of their means
        for one, other in ((e[2], seen[2]), (e - 2 * e, seen - 2 * seen)):
            np.testing.assert_allclose(one.values, other.values, **EXACT)
            np.testing.assert_allclose(one.standard_error, other.standard_error, **EXACT)
        assert e.groups.pseudovalues.bytes_on[1] == 0
        np.testing.assert_allclose(e.interval(0.9), seen.interval(0.9), **EXACT)

    def test_results_can_be_copied_and_kept_in_files(self, apart, tmp_path, assert_same):
        e = sl.explain(network(), X, target=0, n_samples=128, design="iid")
        e.interval()  # leaves a tensor behind, that need not travel
        assert b"torch" not in pickle.dumps(e)
        copied = pickle.loads(pickle.dumps(e))
        assert isinstance(copied.groups.pseudovalues, np.ndarray)
        np.testing.assert_array_equal(copied.groups.pseudo, e.groups.pseudo)
        e.save(tmp_path / "e.parquet")
        loaded = sl.load(tmp_path / "e.parquet")
        np.testing.assert_array_equal(loaded.groups.pseudo, e.groups.pseudo)
        np.testing.assert_allclose(loaded.interval(), e.interval(), **EXACT)

    def test_the_oldest_make_room(self):
        errors_of_means = torch.zeros((1, 5), dtype=torch.float64)
        numbers = [torch.full((1, 4, 5), float(i), dtype=torch.float64) for i in range(4)]
        said = [TorchPseudovalues(torch, each, errors_of_means) for each in numbers]
        for each in said[:3]:
            make_room(each, allowed=1_000)
        assert [each.bytes_on[1] for each in said[:3]] == [200] * 3
        make_room(said[3], allowed=410)
        assert [each.bytes_on[1] for each in said] == [0, 0, 200, 200]
        np.testing.assert_array_equal(said[1].fetch(), np.full((1, 4, 5), 1.0))
        assert isinstance(said[1].spread, np.ndarray)
        del said[2]  # nobody holds it any more: it takes no room
        last = TorchPseudovalues(torch, torch.zeros((1, 4, 5), dtype=torch.float64), errors_of_means)
        make_room(last, allowed=410)
        assert said[2].bytes_on[1] == last.bytes_on[1] == 200

    def test_what_waits_on_another_device_need_not_make_room(self):
        def said(device):  # of the device "meta" nothing can be fetched
            numbers, errors = (torch.zeros(shape, dtype=torch.float64, device=device) for shape in ((1, 4, 5), (1, 5)))
            return TorchPseudovalues(torch, numbers, errors)

        elsewhere, here = said("meta"), said("cpu")
        make_room(elsewhere, allowed=1_000)
        make_room(here, allowed=0)
        assert elsewhere.bytes_on[1] == here.bytes_on[1] == 200

    def test_a_random_model_is_found_out_all_the_same(self, apart):
        class Random(torch.nn.Module):
            def forward(self, a):
                return a.sum(dim=1) + torch.rand(1)

        with pytest.raises(errors.NotDeterministic, match="two answers for row 0"):
            sl.explain(Random(), X, n_samples=64)
        calls = []
        counted = Function(lambda a: (calls.append(len(a)), a.sum(dim=1))[1])
        sl.explain(counted, X, n_samples=64)
        assert calls.count(7) == 2


class TestTurns:
    @pytest.mark.parametrize("fixed", [(), (1,)])
    def test_turn_the_steps_that_rows_share(self, fixed):
        net, rng = network(), np.random.default_rng(1)
        free = np.setdiff1d(np.arange(4), fixed)
        f = len(free)
        turns = Rotation.onto(np.linalg.qr(rng.normal(size=(7, f, 2))).Q.swapaxes(1, 2))
        model = sl.as_model(net)
        weights = np.broadcast_to(np.eye(3)[1], (7, 1, 3))
        sums = sums_for(model)(X, free, 5, weights, looks_closely=True)
        order = rng.permutation(12)[:8].reshape(1, 2, 4, 1)  # two pieces of four draws
        staged = sums.stage((1, 6, 2, f))
        staged.array[...] = rng.normal(size=staged.array.shape)
        steps = sums.move(staged)
        for part in (slice(0, 3), slice(3, 7)):
            batch = sums.batch(part, slice(2, 4), steps, turns.rows(part), sums.positions(order))
            batch.add([batch.ask(slice(0, len(batch)))])
        totals = sums.totals(slice(0, 7))
        for row in range(7):
            points = np.repeat(X[row : row + 1], 12, axis=0)
            points[:, free] += turns.of(staged.array.reshape(1, 12, f))[row]
            values, gradients = model.values_and_gradients(points, np.tile(np.eye(3)[1], (12, 1)))
            expected = gradients[:, free].reshape(6, 2, f)
            np.testing.assert_allclose(totals.first[row, 2:4], expected.sum(axis=0), rtol=1e-12)
            np.testing.assert_allclose(totals.first[row, [0, 1, 4]], 0)
            seen = expected.reshape(12, f)[order[0, :, :, 0]]
            apart = np.abs(np.diff(seen, axis=1)).reshape(-1, f)
            seen = np.stack([seen.sum(axis=(0, 1)), (seen**2).sum(axis=(0, 1)), apart.sum(axis=0), apart.max(axis=0)])
            np.testing.assert_allclose(totals.seen[:, row], seen, rtol=1e-12)
            total = totals.pivot[row] * 12 + totals.value_first[row].sum()
            np.testing.assert_allclose(total, values[:, 1].sum(), rtol=1e-12)
        assert totals.some == 8

    def test_turn_each_rows_own_steps_too(self):
        net, rng = network(), np.random.default_rng(2)
        turns = Rotation.onto(np.linalg.qr(rng.normal(size=(2, 4, 3))).Q.swapaxes(1, 2))
        weights = np.zeros((2, 1, 3))
        sums = sums_for(sl.as_model(net))(X[:2], np.arange(4), 1, weights, looks_closely=False)
        staged = sums.stage((2, 8, 1, 4))
        staged.array[...] = rng.normal(size=staged.array.shape)
        batch = sums.batch(slice(0, 2), slice(0, 1), sums.move(staged), turns)
        expected = X[:2, None] + turns.of(staged.array[:, :, 0])
        np.testing.assert_allclose(batch.points.numpy().reshape(2, 8, 4), expected, rtol=1e-12)


def near(a, place, width=0.05):
    """Where points are close to a place."""
    return ((a - torch.as_tensor(place, dtype=a.dtype)) ** 2).sum(dim=1) < width


class TestComplaints:
    """Sums that are not finite are traced back to the point, in the words of asking in full view."""

    def both(self, module, x=X, **settings):
        said = []
        for model in (module, InFullView(module)):
            with pytest.raises(errors.ModelError) as caught:
                sl.explain(model, x, **{"n_samples": 512, "target": 0, "design": "sobol", **settings})
            said.append(str(caught.value))
        assert said[0] == said[1]
        return said[0]

    @pytest.mark.parametrize("batch_size", ["auto", 300])
    def test_values_that_are_not_finite(self, batch_size):
        module = Function(lambda a: torch.stack([torch.log(5.0 - a[:, 0]), a[:, 1]], dim=1))
        x = np.array([[0.0] * 4, [-1.0] * 4, [3.5] * 4])
        said = self.both(module, x, batch_size=batch_size)
        assert said.startswith("the model returned [")
        assert "nan" in said
        assert said.endswith("at a draw around row 2; it must be finite all over the neighbourhood")

    def test_values_of_an_output_that_is_not_explained(self):
        module = Function(lambda a: torch.stack([a[:, 1], torch.log(2.5 - a[:, 0])], dim=1))
        assert "nan" in self.both(module, X)

    def test_gradients_that_are_not_finite(self):
        def root(a):  # 0 below −1, where the slope of the root is infinite
            return torch.sqrt(torch.where(a[:, 0] > -1.0, a[:, 0] + 1.0, 0.0 * a[:, 0])) + a[:, 1]

        assert "the model's gradient is not finite near a draw around row" in self.both(Function(root), target=None)

    def test_gradients_of_a_feature_that_is_held_fixed(self):
        class Odd(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a.sum(dim=1)

            @staticmethod
            def backward(ctx, g):
                found = g[:, None].repeat(1, 4)
                found[:, 2] = np.inf
                return found

        said = self.both(Function(Odd.apply), target=None, sigma=sl.Neighbourhood(1.0, fixed=[2]))
        assert said.startswith("the model's gradient is not finite near a draw around row 0: [ 1.  1. inf")

    def test_gradients_of_a_feature_that_is_missing_may_be_anything(self):
        """NaN, as where 0 is multiplied by it; and nothing is asked twice for it."""
        asked = []

        def model(a):
            asked.append(len(a))
            return torch.where(a.isnan(), 0.0, torch.sin(a)).sum(dim=1)

        rows = X.copy()
        rows[1, 2] = np.nan
        e = sl.explain(Function(model), rows, sigma=0.5, n_samples=512, design="sobol", method="smoothgrad")
        in_gaps = sum(asked)
        np.testing.assert_array_equal(np.isnan(e.values), np.isnan(rows))
        view = sl.explain(
            InFullView(Function(model)), rows, sigma=0.5, n_samples=512, design="sobol", method="smoothgrad"
        )
        np.testing.assert_allclose(e.values, view.values, rtol=1e-6)
        asked.clear()
        sl.explain(Function(model), X, sigma=0.5, n_samples=512, design="sobol", method="smoothgrad")
        assert in_gaps == sum(asked)

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_at_a_later_look(self, draws):
        calls = []

        def late(a):
            with torch.no_grad():
                calls.append(a.detach().clone())
            bump = torch.where(near(a, far), float("nan"), 0.0)
            return torch.sin(3 * a).sum(dim=1) + bump

        far = np.full(4, 50.0)
        settings = {
            "rtol": 0.01,
            "draws": draws,
            "target": None,
            "n_samples": None,
            "design": "iid",
            "max_samples": 4096,
        }
        with pytest.warns(errors.NotConverged):
            sl.explain(Function(late), X, **settings)
        far = calls[-1][-1].numpy()  # a point of the last look
        calls.clear()
        said = self.both(Function(late), **settings)
        assert "the model returned [nan] at a draw around row" in said

    def test_sums_that_overflow_are_no_fault_of_the_model(self):
        huge = 1e37
        with np.errstate(all="ignore"):
            e = sl.explain(Function(lambda a: huge * a.sum(dim=1)), X, n_samples=2_048, design="iid")
            seen = sl.explain(InFullView(Function(lambda a: huge * a.sum(dim=1))), X, n_samples=2_048, design="iid")
        np.testing.assert_allclose(e.values, seen.values, rtol=1e-5)

    def test_what_a_module_raises(self):
        def broken(a):
            if len(a) > 10:
                raise KeyError("no such layer")
            return a.sum(dim=1)

        assert self.both(Function(broken), target=None) == "the model raised KeyError on 3584 points: 'no such layer'"

    def test_outputs_whose_number_depends_on_the_batch(self):
        said = self.both(Function(lambda a: a[:, :2] if len(a) < 10 else a[:, :3]))
        assert said == "the model returned 2 outputs at first and 3 now"


class TestMemory:
    def test_batches_are_halved_and_nothing_is_added_twice(self):
        sizes = []

        def hungry(a):
            if len(a) > 100:
                raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB")
            sizes.append(len(a))
            return torch.sin(a.sum(dim=1))

        with pytest.warns(errors.SmallerBatches, match="going on with batches of"):
            e = sl.explain(Function(hungry), X, n_samples=512)
        assert max(sizes) <= 100
        assert e.provenance.batch_size <= 100
        plenty = sl.explain(Function(lambda a: torch.sin(a.sum(dim=1))), X, n_samples=512)
        np.testing.assert_allclose(e.values, plenty.values, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(e.fidelity, plenty.fidelity, rtol=1e-5)

    def test_blocks_larger_than_a_batch_are_asked_in_parts(self):
        net = network()
        settings = {"target": 0, "n_samples": 64, "design": "orthogonal"}
        assert_alike(sl.explain(net, X, **settings, batch_size=3), sl.explain(net, X, **settings))


class TestAhead:
    def test_items_come_in_order(self):
        assert list(ahead(iter(range(1, 6)))) == [1, 2, 3, 4, 5]
        assert list(ahead(iter(()))) == []

    def test_the_next_item_is_made_while_one_is_in_use(self):
        from threading import Event

        second = Event()

        def items():
            yield "one"
            second.set()
            yield "two"

        coming = ahead(items())
        assert next(coming) == "one"
        assert second.wait(timeout=30)
        assert list(coming) == ["two"]

    def test_errors_arrive_where_the_items_are_used(self):
        def items():
            yield 1
            raise ValueError("no more")

        coming = ahead(items())
        assert next(coming) == 1
        with pytest.raises(ValueError, match="no more"):
            next(coming)

    def test_whoever_stops_early_leaves_no_thread_behind(self):
        import threading

        before = threading.active_count()
        coming = ahead(iter(range(1, 100)))
        next(coming)
        coming.close()
        assert threading.active_count() == before
