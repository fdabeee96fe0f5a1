"""Nothing here may use the network, the user's cache or real data files: those are for tests/data.

A study at the smallest scale, on data that is always there.
"""

import urllib.error
import urllib.request

import pytest

from smoothlime.errors import DataUnavailable
from smoothlime.paper import datasets
from smoothlime.paper.run import prepare
from smoothlime.paper.scale import Scale

TINY = Scale(
    name="tiny",
    equivalence_rows=40,
    robustness_rows=16,
    shared_rows=8,
    shared_seeds=3,
    limit_rows=8,
    limit_draws=8_192,
    most_draws=500,
    convergence_rows=3,
    convergence_repeats=4,
    reference_draws=16_384,
    theorem_repeats=400,
    peer_rows=2,
    peer_seeds=2,
    peer_samples=200,
)


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """An empty cache, no folder of data, and an archive that cannot be reached."""

    def unreachable(*args, **kwargs):
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.delenv("SMOOTHLIME_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def unavailable():
    msg = "no such file here"
    raise DataUnavailable(msg)


@pytest.fixture(scope="session")
def study():
    """Simulated, and stand-ins for the two data sets that have to be fetched."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bankruptcy", "shopping"):
            patch.setattr(datasets, name, unavailable)
        return prepare(TINY, 0, None, lambda line: None)
