"""Nothing here may use the network, the user's cache or real data files: those are for tests/data."""

import urllib.request

import pytest


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """An empty cache, no folder of data, and an archive that cannot be reached."""

    def unreachable(*args, **kwargs):
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.delenv("SMOOTHLIME_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
