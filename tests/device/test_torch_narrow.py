"""Narrow layers that work feature by feature: the same answers but for rounding, and the module stays as it was."""

import numpy as np
import pytest
import torch
from torch import nn

import smoothlime as sl
from smoothlime.device.torch_constant import constant
from smoothlime.device.torch_narrow import MANY, REGISTER, is_narrow, lay_out

NARROW = {
    "dense": lambda: nn.Sequential(nn.Linear(6, 10), nn.ELU(), nn.Linear(10, 2)),
    "one layer": lambda: nn.Linear(6, 2),
    "narrowing": lambda: nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 1), nn.Sigmoid(), nn.Linear(1, 2)),
    "no bias": lambda: nn.Sequential(nn.Linear(6, 4, bias=False), nn.ReLU(), nn.Linear(4, 2)),
    "in place": lambda: nn.Sequential(nn.Linear(6, 4), nn.ReLU(inplace=True), nn.Linear(4, 2), nn.ELU(inplace=True)),
    "in place at first": lambda: nn.Sequential(nn.ELU(inplace=True), nn.Linear(6, 2)),
    "normed": lambda: nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4, elementwise_affine=False), nn.Linear(4, 2)),
    "in two": lambda: nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Linear(3, 4), nn.ELU(), nn.Flatten(), nn.Linear(8, 2)),
    "folded": lambda: nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (2, 3)), nn.ELU(), nn.Flatten(), nn.Linear(6, 2)),
    "softmax": lambda: nn.Sequential(nn.Linear(6, 4), nn.ELU(), nn.Linear(4, 3), nn.Softmax(dim=1)),
}


@pytest.fixture(params=NARROW)
def module(request):
    torch.manual_seed(0)
    return NARROW[request.param]().eval()


def outputs_and_gradients(module, points):
    leaf = points.clone().requires_grad_(True)
    out = module(leaf.clone())
    return out.detach(), torch.autograd.grad(out[:, 1].sum(), leaf)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, MANY - 1, MANY, 3 * MANY + 1])
def test_outputs_and_gradients_are_the_same_but_for_rounding(module, dtype, n):
    module.to(dtype)
    ours = constant(torch, module)
    lay_out(torch, ours)
    points = torch.randn(n, 6, dtype=dtype)
    torch.testing.assert_close(outputs_and_gradients(ours, points), outputs_and_gradients(module, points))


@pytest.mark.parametrize("target", [1, {0: 1, 1: -2}, "predicted"])
@pytest.mark.parametrize("method", ["auto", "smoothgrad"])
def test_explanations_are_the_same_but_for_rounding(module, method, target, monkeypatch):
    """Of rows in several batches that wait for each other; against the module as it is."""
    x = np.random.default_rng(0).standard_normal((7, 6))

    def explained():
        e = sl.explain(module, x, sigma=0.3, target=target, n_samples=1_024, batch_size=3_072, method=method)
        return e.values, e.standard_error, e.smoothed, e.fidelity

    ours = explained()
    monkeypatch.setattr("smoothlime.device.torch_sums.is_narrow", lambda *_: False)
    for found, expected in zip(ours, explained(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_the_module_stays_as_it_was(module):
    parts = {name: dict(vars(part)) for name, part in module.named_modules()}
    sl.explain(module, np.ones((2, 6)), sigma=0.1, target=1, n_samples=1_024)
    assert {name: vars(part) for name, part in module.named_modules()} == parts


class Quantised(torch.Tensor):
    """Weights that know one product only."""


def of_another_kind(layer):
    weight = layer.weight.detach().as_subclass(Quantised)
    del layer.weight
    layer.weight = weight
    return layer


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Linear(100, REGISTER - 1), True),
        (nn.Linear(3, REGISTER), False),
        (nn.Sequential(nn.Linear(6, 4), nn.ELU(), nn.Linear(4, 64), nn.ELU(), nn.Linear(64, 2)), False),
        (nn.Sequential(nn.Flatten(), nn.ELU()), False),
        (of_another_kind(nn.Linear(3, 2)), False),
    ],
)
def test_narrow_are_modules_whose_layers_all_are(module, expected):
    assert is_narrow(torch, module) == expected


@pytest.mark.parametrize(
    ("made", "options", "is_laid_out"),
    [
        (NARROW["dense"], {}, True),
        (lambda: NARROW["dense"]().double(), {}, True),
        (lambda: NARROW["dense"]().bfloat16(), {}, False),
        (NARROW["dense"], {"autocast": "bfloat16"}, False),
        (NARROW["dense"], {"compile": "eager"}, False),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.PReLU(), nn.Linear(4, 2)), {}, False),
        (lambda: type("Own", (nn.Sequential,), {})(nn.Linear(6, 2)), {}, False),
    ],
)
def test_only_plain_dense_networks_are_laid_out(made, options, is_laid_out, monkeypatch):
    seen = []
    monkeypatch.setattr("smoothlime.device.torch_sums.lay_out", lambda *_: seen.append(True))
    sl.explain(sl.as_model(made().eval(), **options), np.zeros((2, 6)), sigma=0.5, target=1, n_samples=64)
    assert bool(seen) == is_laid_out
