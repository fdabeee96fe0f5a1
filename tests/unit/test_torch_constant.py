"""Modules with weights that are constants: the same answers, and nothing of the original is touched."""

import threading

import numpy as np
import pytest

import smoothlime as sl
from smoothlime.models.torch_constant import constant

torch = pytest.importorskip("torch")
nn = torch.nn

X = np.linspace(-1, 1, 2 * 6).reshape(2, 6)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, a):
        return self.last(self.inner(a.view(-1, 2, 3))[0][:, -1])


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(3, 1, dim_feedforward=8, dropout=0.0, batch_first=True)

    def forward(self, a):
        return self.layer(a.view(-1, 2, 3)).flatten(1)[:, :2]


class Tied(nn.Module):
    """One layer under two names, a parameter of its own, a buffer, and an attribute that is set at each call."""

    def __init__(self):
        super().__init__()
        self.first = self.second = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.tensor([0.5, 2.0]))
        self.register_buffer("shift", torch.tensor([1.0, -1.0]))
        self.nothing = None
        self.register_parameter("absent", None)

    def forward(self, a):
        self.seen = len(a)
        return torch.tanh(self.second(torch.tanh(self.first(a))))[:, :2] * self.scale + self.shift


class Particular(nn.Linear):
    """Made in one way only, and careful with what is written to it."""

    def __new__(cls, size):
        return super().__new__(cls)

    def __init__(self, size):
        super().__init__(size, 2)
        object.__setattr__(self, "is_complete", True)

    def __setattr__(self, name, value):
        assert "is_complete" not in vars(self) or name == "training", name
        super().__setattr__(name, value)


def normed():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 2))


MODULES = {
    "recurrent": Recurrent,
    "attending": Attending,
    "tied": Tied,
    "particular": lambda: Particular(6),
    "normed": normed,
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 2, 3), nn.ELU(), nn.Flatten()),
    "batch norm": lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ELU(), nn.Linear(4, 2)),
    "traced": lambda: torch.fx.symbolic_trace(nn.Sequential(nn.Linear(6, 4), nn.ELU(), nn.Linear(4, 2))),
}


@pytest.fixture(params=MODULES)
def module(request):
    torch.manual_seed(0)
    return MODULES[request.param]().eval()


class TestConstant:
    def test_gives_the_same_outputs_and_gradients(self, module):
        for each in (module, constant(torch, module)):
            points = torch.as_tensor(X, dtype=torch.float32).requires_grad_(True)
            out = each(points)
            (gradient,) = torch.autograd.grad(out[:, 1].sum(), points)
            if each is module:
                expected = out.detach(), gradient
        torch.testing.assert_close((out.detach(), gradient), expected, rtol=0, atol=0)

    def test_weights_share_memory_and_want_no_gradients(self, module):
        twin = constant(torch, module)
        pairs = list(zip(module.parameters(), twin.parameters(), strict=True))
        assert pairs
        for theirs, ours in pairs:
            assert theirs.requires_grad
            assert not ours.requires_grad
            assert ours.data_ptr() == theirs.data_ptr()

    def test_the_module_stays_as_it_was(self, module):
        before = {name: (each, each.requires_grad) for name, each in module.named_parameters()}
        attributes = dict(vars(module))
        sl.explain(module, X, sigma=0.1, target=1, n_samples=256)
        assert vars(module).keys() - attributes.keys() <= {"seen"}
        for name, each in module.named_parameters():
            assert each is before[name][0]
            assert each.requires_grad is before[name][1]
            assert each.grad is None

    def test_explains_like_weights_that_were_frozen(self, module):
        settings = {"sigma": 0.1, "target": 1, "n_samples": 256, "method": "smoothgrad", "design": "iid"}
        e = sl.explain(module, X, **settings)
        frozen = sl.explain(module.requires_grad_(False), X, **settings)
        np.testing.assert_allclose(e.values, frozen.values, rtol=1e-5, atol=1e-7)

    def test_what_is_not_made_yet_stays_so(self):
        lazy = nn.Sequential(nn.LazyLinear(2))
        assert constant(torch, lazy)[0].weight is lazy[0].weight

    def test_compiled_modules_are_used_as_they_are(self):
        plain = nn.Sequential(nn.Linear(6, 2))
        with pytest.warns(DeprecationWarning, match="script"):
            scripted = torch.jit.script(plain)
        for compiled in (scripted, torch.compile(plain, backend="eager")):
            assert constant(torch, compiled) is compiled
            within = nn.Sequential(compiled)
            assert constant(torch, within) is within

    def test_training_in_another_thread_is_not_disturbed(self):
        """Whoever trains the module meanwhile finds its weights wanting gradients at every step."""
        module = nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Linear(8, 2)).eval()
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
