"""Peers are other people's programs: which version answered belongs to every result."""

from importlib.metadata import version

import pytest
import torch

PEERS = ("captum", "lime", "numpy", "scikit-learn", "torch")


@pytest.fixture(autouse=True)
def versions(record_property):
    """Record the versions with each result, and print them, so that pytest shows them beside a failure."""
    for name in PEERS:
        record_property(name, version(name))
    print("peers:", ", ".join(f"{name} {version(name)}" for name in PEERS))


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small gain nothing from threads, and lose much where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
