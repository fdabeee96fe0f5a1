"""A certificate from gradients that are not the slopes of the model is void, and refused where values contradict it."""

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known


class Detached(torch.nn.Module):
    """Σ x + share·Σ sin x, of which autograd sees the first part only."""

    def __init__(self, share=1.0):
        super().__init__()
        self.share = share

    def forward(self, a):
        return a.sum(1) + self.share * torch.sin(a).sum(1).detach()


def hooked():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).eval()
    net[1].register_full_backward_hook(lambda module, inwards, outwards: (0.5 * inwards[0],))
    return net


FALSE = {
    "detached": (Detached(), "the gradients are not those of this output"),
    "step": (known.Step([1.0, 0.5]), "the output is piecewise constant"),
    "wrong sign": (
        sl.from_functions(values=lambda a: np.sin(a).sum(axis=1), gradients=lambda a: -np.cos(a)),
        "the gradients are -1 times what the predictions say",
    ),
    "hooked": (hooked(), ""),
}


def certified(model, **more):
    more = {"sigma": 0.5, "method": "smoothgrad", "gradient_bound": 3.0, **more}
    return sl.explain(model, [[0.1, 0.2], [0.0, 0.0]], guarantee="certified", **more)


@pytest.mark.parametrize("settings", [{}, {"n_samples": 5_000}, {"draws": "independent"}], ids=str)
@pytest.mark.parametrize("name", FALSE)
def test_gradients_that_are_no_slopes_are_not_certified(name, settings):
    model, reason = FALSE[name]
    match = f"the gradients of 'output' are not the slopes of the model around row 0: .*{reason}.*method='clime'"
    with pytest.raises(errors.ModelError, match=match):
        certified(model, **settings)


def test_every_output_is_looked_at():
    model = sl.from_functions(
        values=lambda a: np.sin(a), gradients=lambda a: np.stack([np.cos(a[:, :1]) * [1, 0], 0 * a], axis=1)
    )
    with pytest.raises(errors.ModelError, match="the gradients of '1' are not the slopes"):
        sl.explain_outputs(
            model, [0.1, 0.2], method="smoothgrad", guarantee="certified", gradient_bound=1.0, n_samples=5_000
        )


def test_a_small_part_that_is_detached_is_found_by_more_draws():
    for n in (5_000, 100_000):
        with pytest.raises(errors.ModelError, match="are not the slopes of the model"):
            certified(Detached(0.03), n_samples=n)


def steep(k, at):
    """tanh(k (s − at)), whose gradients few draws see; and they are its slopes all the same."""

    def gradient(a):
        return k / np.cosh(np.minimum(k * np.abs(a[:, :1] - at), 300.0)) ** 2

    return sl.from_functions(values=lambda a: np.tanh(k * (a[:, 0] - at)), gradients=lambda a: gradient(a) * [1.0, 0.0])


TRUE = {
    "near a step": (steep(1_000.0, 0.0), 1_001.0),
    "far from one": (steep(200.0, 1.0), 201.0),
    "kink": (known.Absolute([1.0, -0.5]), 2.0),
    "rare": (known.Relu([1.0, 0.0], -1.5), 1.0),
    "waves": (known.Sine([20.0, 0.0]), 20.0),
    "coarse": (
        sl.from_functions(
            values=lambda a: (1e3 + a[:, 0]).astype(np.float32), gradients=lambda a: np.ones_like(a) * [1.0, 0.0]
        ),
        1.0,
    ),
}


@pytest.mark.parametrize("n", [200, 3_000, 20_000])
@pytest.mark.parametrize("name", TRUE)
def test_gradients_that_are_slopes_are_not_refused(name, n):
    model, bound = TRUE[name]
    for seed in range(4):
        assert len(certified(model, gradient_bound=bound, n_samples=n, seed=seed)) == 2  # warnings are errors


def test_what_is_assumed_of_gradients_is_said():
    e = certified(known.Sine([1.0, 0.5]))
    assert "gradients no longer than 3 that are the model's own" in e.provenance.assumes
    assert "gradients that are the model's own" in sl.certify(None, e, output_range=(-1, 1)).assumes
    by_values = sl.explain(known.Sine([1.0, 0.5]), [0.0, 0.0], method="clime", n_samples=512)
    assert "the model's own" not in sl.certify(None, by_values, output_range=(-1, 1)).assumes


def test_slopes_of_zero_are_told_where_the_certificate_is_wide_enough_to_hold():
    with pytest.warns(errors.JumpsUnseen, match="the gradients of 'output' are 0 around row 0 and 1 more"):
        e = certified(known.Step([1.0, 0.5]), gradient_bound=50.0, n_samples=200)
    assert (e.radius > 0.4).all()  # no step of 1 has a longer slope
