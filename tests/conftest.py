"""Shared by all tests: a few models, and which designs each method can use."""

import pytest
import torch

from smoothlime import CLime, Differences, Lime, Neighbourhood, SmoothGrad, Stein

torch.set_num_threads(1)  # the networks here are tiny: threads would only wait for each other

METHODS = (SmoothGrad, CLime, Stein, Differences)
LIME = Lime(kernel=1.5)  # with kernel=None it would be clime over again, to the last bit
COMBINATIONS = [(method.name, design) for method in METHODS for design in method.designs]
COMBINATIONS += [(LIME, design) for design in LIME.designs]


def pytest_generate_tests(metafunc):
    """Tests that take `method` and `design` run over every combination that exists."""
    if {"method", "design"} <= set(metafunc.fixturenames):
        ids = [f"{getattr(method, 'name', method)}-{design}" for method, design in COMBINATIONS]
        metafunc.parametrize(("method", "design"), COMBINATIONS, ids=ids)


@pytest.fixture
def seen_by():
    """What neighbourhood a method's slopes belong to: a kernel of width ω makes Σ narrower, Σ·ω²/(1 + ω²)."""

    def seen(method, neighbourhood):
        if not isinstance(method, Lime):
            return neighbourhood
        sigma = neighbourhood.sigma * method.kernel / (1 + method.kernel**2) ** 0.5
        return Neighbourhood(sigma, scale=neighbourhood.scale, covariance=neighbourhood.covariance)

    return seen


@pytest.fixture
def elu_network():
    """A small float64 network with two outputs, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(3, 8), torch.nn.ELU(), torch.nn.Linear(8, 2)]
        return torch.nn.Sequential(*layers).double().eval()
