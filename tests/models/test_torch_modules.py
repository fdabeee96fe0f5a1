"""Modules of torch's own layers, and others with code of their own: explained as they are, and left as they were."""

import pickle
import threading
import types
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import smoothlime as sl

X = np.linspace(-1, 1, 2 * 6).reshape(2, 6)


def tied():
    """A layer in two places, and a weight in two layers."""
    first, second = nn.Linear(6, 6), nn.Linear(6, 6)
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), first, nn.Tanh(), second)


PLAIN = {
    "dense": lambda: nn.Sequential(nn.Linear(6, 4), nn.ELU(), nn.Linear(4, 2)),
    "tied": tied,
    "one layer": lambda: nn.Linear(6, 2),
    "no bias": lambda: nn.Sequential(nn.Sequential(nn.Linear(6, 4, bias=False), nn.ReLU()), nn.Linear(4, 2)),
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 2, 3), nn.ELU(), nn.Flatten()),
    "batch norm": lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ELU(), nn.Linear(4, 2)),
    "attending": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 3)),
        nn.TransformerEncoderLayer(3, 1, dim_feedforward=8, dropout=0.0, batch_first=True),
        nn.Flatten(),
    ),
}


class Keeping(nn.Module):
    """Keeps what a layer said by a hook, and uses it: the hook knows this very object."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
        self.skip = nn.Linear(8, 2)
        self.body[1].register_forward_hook(self.keep)

    def keep(self, module, given, out):
        self.kept = out

    def forward(self, a):
        out = self.body(a)
        return out + self.skip(self.kept)


def hooked():
    module = PLAIN["dense"]()
    module[1].register_forward_hook(lambda *_: None)
    return module


def patched():
    module = PLAIN["dense"]()
    module.forward = types.MethodType(lambda self, a: 2 * self[2](self[1](self[0](a))), module)
    return module


def scripted():
    with pytest.warns(DeprecationWarning, match="script"):
        return torch.jit.script(PLAIN["dense"]())


NOT_PLAIN = {
    "keeping": Keeping,
    "hooked": hooked,
    "patched": patched,
    "normed": lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 2))),
    "traced": lambda: torch.fx.symbolic_trace(PLAIN["dense"]()),
    "scripted": scripted,
    "compiled": lambda: torch.compile(PLAIN["dense"](), backend="eager"),
    "compiled within": lambda: nn.Sequential(torch.compile(PLAIN["dense"](), backend="eager")),
}


def made(name, kinds):
    torch.manual_seed(0)
    return kinds[name]()


@pytest.fixture(params=PLAIN)
def module(request):
    return made(request.param, PLAIN).eval()


def test_the_module_stays_as_it_was(module):
    before, attributes = dict(module.named_parameters()), dict(vars(module))
    sl.explain(module, X, sigma=0.1, target=1, n_samples=256)
    assert vars(module) == attributes
    for name, each in module.named_parameters():
        assert each is before[name]
        assert each.requires_grad
        assert each.grad is None


@pytest.mark.parametrize("name", PLAIN | NOT_PLAIN)
@pytest.mark.parametrize("rows", [1, 2])
def test_are_explained_as_they_are(name, rows):
    """Against autograd at the same points."""
    module = made(name, PLAIN | NOT_PLAIN).eval()
    e = sl.explain(module, X[:rows], sigma=0.5, target=1, n_samples=256, method="smoothgrad", design="iid")
    for row in range(rows):
        points = torch.as_tensor(e.perturbations(row), dtype=torch.float32).requires_grad_(True)
        (gradient,) = torch.autograd.grad(module(points)[:, 1].sum(), points)
        np.testing.assert_allclose(e.values[row], gradient.mean(dim=0), rtol=1e-4, atol=1e-6)


class Scaled(nn.Module):
    """Takes a number and a tensor besides; its dropout must be off."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 2), nn.Dropout(0.5))

    def forward(self, a, factor=1.0, shift=None):
        return factor * self.inner(a) + (0 if shift is None else shift)


@pytest.mark.parametrize(
    ("call", "factor"),
    [
        (lambda net: net.forward, 1.0),
        (lambda net: net.__call__, 1.0),
        (lambda net: partial(net), 1.0),
        (lambda net: partial(net, factor=3.0, shift=torch.ones(2)), 3.0),
        (lambda net: partial(partial(net.forward, factor=2.0), factor=-2.0), -2.0),
    ],
    ids=["forward", "call", "partial", "partial with arguments", "partial of partial"],
)
def test_calls_of_a_module_have_its_gradients(call, factor):
    """The slope of a linear layer is its weight."""
    net = Scaled().eval()
    e = sl.explain(call(net), X, sigma=0.3, target=1)
    assert e.method == "smoothgrad"
    np.testing.assert_allclose(e.values, np.tile(factor * net.inner[0].weight[1].detach(), (2, 1)), rtol=1e-4)
    again = pickle.loads(pickle.dumps(sl.as_model(call(net))))
    np.testing.assert_array_equal(again.values(X), sl.as_model(call(net)).values(X))


def test_calls_of_a_module_are_held_to_what_modules_are():
    with pytest.raises(sl.errors.ModelError, match=r"a Dropout \(at 'module\.inner\.1'\) in training mode"):
        sl.explain(partial(Scaled(), factor=2.0), X, target=1)
    lines = torch.tensor([[1.0], [5.0]])
    net = Scaled().eval()
    e = sl.explain(sl.as_model(partial(net, shift=1.0), held={"factor": lines}), X, sigma=0.3, target=0)
    np.testing.assert_allclose(e.values, lines @ net.inner[0].weight[:1].detach(), rtol=1e-4)


@pytest.mark.parametrize(
    "model",
    [lambda a: nn.Linear(6, 1)(a), torch.func.vmap(lambda row: row.sum())],
    ids=["function", "vmap"],
)
def test_functions_of_tensors_are_told_of_the_module(model):
    with pytest.raises(sl.errors.ModelError, match="give the torch module itself, which brings its gradients"):
        sl.explain(model, X)


def test_tied_weights_can_be_compiled():
    model = sl.as_model(made("tied", PLAIN).eval(), compile="eager")
    e = sl.explain(model, X, sigma=0.1, target=1, n_samples=64)
    plain = sl.explain(made("tied", PLAIN).eval(), X, sigma=0.1, target=1, n_samples=64)
    np.testing.assert_allclose(e.values, plain.values, rtol=1e-5)


def test_training_in_another_thread_is_not_disturbed():
    """Whoever trains the module meanwhile finds its weights wanting gradients at every step."""
    module = made("dense", PLAIN).eval()
    stop, wanting = threading.Event(), []

    def train():
        while not stop.wait(1e-4):
            wanting.append(all(each.requires_grad for each in module.parameters()))

    thread = threading.Thread(target=train)
    thread.start()
    for _ in range(20):
        sl.explain(module, X, sigma=0.1, target=1, n_samples=256)
    stop.set()
    thread.join()
    assert len(wanting) > 20
    assert all(wanting)


def test_an_embedding_of_the_input_has_no_slopes():
    words = nn.Sequential(nn.Embedding(9, 3), nn.Flatten(), nn.Linear(18, 1)).eval()
    with pytest.raises(sl.errors.ModelError, match="in an embedding, by whole numbers, which have no slopes"):
        sl.explain(words, np.ones((2, 6), dtype=int))
