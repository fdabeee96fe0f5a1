"""Users of captum and of captum.metrics change one line: asked of the real library."""

import numpy as np
import pytest
import torch
from captum.attr import Saliency
from captum.metrics import infidelity, sensitivity_max

import smoothlime as sl
from smoothlime import errors
from smoothlime.interop.captum import SmoothLime

RNG = np.random.default_rng(0)
ROWS = torch.tensor(RNG.normal(size=(5, 4)))
IMAGES = torch.tensor(RNG.normal(size=(3, 2, 5, 5)), dtype=torch.float32)
FEW = {"sigma": 0.3, "n_samples": 256}


def network(dtype=torch.float64):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(dtype).eval()


def convolution():
    torch.manual_seed(1)
    layers = torch.nn.Conv2d(2, 4, 3), torch.nn.ELU(), torch.nn.Flatten(), torch.nn.Linear(36, 3)
    return torch.nn.Sequential(*layers).eval()


def gradients(net, target):
    """captum's own."""
    return Saliency(net).attribute(ROWS.clone().requires_grad_(), target=target, abs=False).detach()


class Weighted(torch.nn.Module):
    def forward(self, x, weights, power=1, *, unused=None):
        return torch.stack([(x**power * weights).sum(dim=1), x.sum(dim=1)], dim=1)


class TestAttribute:
    def test_slopes_are_those_of_explain(self):
        found = SmoothLime(network(), **FEW).attribute(ROWS, target=1)
        np.testing.assert_array_equal(found.numpy(), sl.explain(network(), ROWS, target=1, **FEW).values)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_they_come_in_the_shape_and_type_of_the_inputs(self, dtype):
        found = SmoothLime(convolution(), **FEW).attribute(IMAGES.to(dtype), target=0)
        assert (found.shape, found.dtype, found.device) == (IMAGES.shape, dtype, IMAGES.device)
        assert not found.requires_grad

    def test_as_sigma_shrinks_they_are_captums_gradients(self):
        net = network()
        found = SmoothLime(net, sigma=1e-4, n_samples=64).attribute(ROWS, target=2)
        torch.testing.assert_close(found, gradients(net, 2), rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize("make", [list, torch.tensor, lambda each: [(j,) for j in each]])
    def test_a_target_for_each_row(self, make):
        each = [0, 2, 1, 1, 0]
        method = SmoothLime(network(), **FEW)
        found = method.attribute(ROWS, target=make(each))
        for row, target in enumerate(each):
            torch.testing.assert_close(found[row], method.attribute(ROWS, target=target)[row])

    @pytest.mark.parametrize("target", [1, torch.tensor(1), torch.tensor([1]), (1,), np.int64(1)])
    def test_a_target_for_all(self, target):
        method = SmoothLime(network(), **FEW)
        torch.testing.assert_close(method.attribute(ROWS, target=target), method.attribute(ROWS, target=1))

    def test_a_tuple_of_one_tensor_gives_a_tuple(self):
        (found,) = SmoothLime(network(), **FEW).attribute((ROWS,), target=0)
        torch.testing.assert_close(found, SmoothLime(network(), **FEW).attribute(ROWS, target=0))

    def test_functions_of_tensors_have_gradients(self):
        method = SmoothLime(lambda x: torch.tanh(x).sum(dim=1), **FEW)
        assert method.explain(ROWS).method == "smoothgrad"
        assert method.explain(ROWS.float()).provenance.dtype == "float32"

    def test_models_that_were_adapted(self):
        model = sl.as_model(network(), output="probability")
        found = SmoothLime(model, **FEW).attribute(ROWS, target=0)
        np.testing.assert_array_equal(found.numpy(), sl.explain(model, ROWS, target=0, **FEW).values)

    @pytest.mark.parametrize("given", ["module", "function"])
    def test_further_arguments_are_held(self, given):
        """Of (x² · w): 2·x·w, by row."""
        net, weights = Weighted().eval(), torch.tensor(RNG.normal(size=(5, 4)))
        call = net if given == "module" else lambda x, w, p: net(x, w, p)
        found = SmoothLime(call, sigma=1e-4, n_samples=64).attribute(ROWS, 0, (weights, 2))
        torch.testing.assert_close(found, 2 * ROWS * weights, rtol=1e-3, atol=1e-5)
        one = SmoothLime(call, sigma=1e-4, n_samples=64).attribute(ROWS, 0, (weights[:1], 2))  # of one line, for all
        torch.testing.assert_close(one, 2 * ROWS * weights[:1], rtol=1e-3, atol=1e-5)

    def test_features_held_fixed_have_none(self):
        found = SmoothLime(network(), sigma=sl.Neighbourhood(0.3, fixed=[1]), n_samples=256).attribute(ROWS, target=0)
        assert not found[:, 1].any()
        assert found[:, [0, 2, 3]].all()

    def test_the_network_is_left_in_the_mode_it_is_in(self):
        net = network()
        net.train()
        SmoothLime(lambda x: net(x), **FEW).attribute(ROWS, target=0)
        SmoothLime(Weighted().train(), **FEW).attribute(ROWS, 0, (ROWS,))
        assert net.training
        dropping = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 1).double())
        with pytest.raises(errors.ModelError, match=r"Dropout .* in training mode"):
            SmoothLime(dropping, **FEW).attribute(ROWS)

    @pytest.mark.parametrize(
        ("inputs", "settings", "said"),
        [
            ((ROWS, ROWS), {"target": 0}, "inputs must be one tensor; got 2. The first is perturbed"),
            (ROWS[0], {"target": 0}, r"a tensor of floats \(n, \.\.\.\), a line for each row; got shape \(4,\)"),
            (ROWS.long(), {"target": 0}, "a tensor of floats"),
            (ROWS.numpy(), {"target": 0}, "a tensor of floats"),
            (ROWS, {"target": (0, 1)}, "target must pick one of the outputs"),
            (ROWS, {"target": [0, 1]}, "target has 2 entries for 5 rows"),
        ],
    )
    def test_what_does_not_go(self, inputs, settings, said):
        with pytest.raises((errors.InvalidArgument, errors.WrongType), match=said):
            SmoothLime(network(), **FEW).attribute(inputs, **settings)


class TestMetrics:
    """captum's own, with ours in place of one of theirs."""

    def test_infidelity_of_a_linear_model_is_none(self):
        net = torch.nn.Linear(4, 3).double().eval()
        attributions = SmoothLime(net, **FEW).attribute(ROWS, target=[0, 1, 2, 0, 1])
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = infidelity(
                net, _noise, ROWS, attributions, target=torch.tensor([0, 1, 2, 0, 1]), n_perturb_samples=20
            )
        torch.testing.assert_close(found, torch.zeros(5, dtype=torch.float64), rtol=0, atol=1e-12)

    def test_infidelity_sees_a_bent_model(self):
        """Over noise as wide as the neighbourhood, slopes of the smoothed model leave less than gradients do."""
        net = network()
        net[0].weight.data *= 8
        ours = SmoothLime(net, sigma=0.5, n_samples=4_096).attribute(ROWS, target=0)
        theirs = gradients(net, 0)
        with torch.random.fork_rng():
            found = []
            for each in (ours, theirs):
                torch.manual_seed(0)
                found.append(infidelity(net, _noise, ROWS, each, target=0, n_perturb_samples=2_000).mean())
        assert found[0] < found[1]

    def test_sensitivity_max(self):
        """Of shared draws: explanations of near inputs differ by little, and captum hands on the target."""
        method = SmoothLime(convolution(), **FEW)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = sensitivity_max(method.attribute, IMAGES, target=[0, 2, 1], n_perturb_samples=3)
        assert found.shape == (3,)
        assert ((found > 0) & (found < 0.2)).all()

    def test_sensitivity_max_with_further_arguments(self):
        weights = torch.tensor(RNG.normal(size=(5, 4)))
        method = SmoothLime(Weighted().eval(), **FEW)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = sensitivity_max(method.attribute, ROWS, target=0, additional_forward_args=(weights,))
        torch.testing.assert_close(found, torch.zeros(5, dtype=torch.float64), rtol=0, atol=1e-9)


def _noise(inputs):
    noise = 0.5 * torch.randn_like(inputs)
    return noise, inputs - noise
