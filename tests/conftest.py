"""Shared by all tests: a few models, and which designs each method can use."""

import pytest
import torch

from smoothlime import CLime, Differences, SmoothGrad, Stein

collect_ignore = ["data"]  # needs files that are not part of the repository: `make test-data` names it

torch.set_num_threads(1)  # the networks here are tiny: threads would only wait for each other

METHODS = (SmoothGrad, CLime, Stein, Differences)
COMBINATIONS = [(method.name, design) for method in METHODS for design in method.designs]


def pytest_generate_tests(metafunc):
    """Tests that take `method` and `design` run over every combination that exists."""
    if {"method", "design"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("method", "design"), COMBINATIONS, ids=["-".join(pair) for pair in COMBINATIONS])


@pytest.fixture
def elu_network():
    """A small float64 network with two outputs, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(3, 8), torch.nn.ELU(), torch.nn.Linear(8, 2)]
        return torch.nn.Sequential(*layers).double().eval()
