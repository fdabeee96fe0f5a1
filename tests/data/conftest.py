"""Tests on the real files. Run by `make test-data`; without the files they fail, they never skip."""

import os
import urllib.request
from pathlib import Path

import pytest

from smoothlime.paper.fetching import BANKRUPTCY, SHOPPING


def where_files_lie():
    """The folder with both files, or a message that says what is wrong."""
    folder = os.environ.get("SMOOTHLIME_DATA")
    if not folder:
        return None, "SMOOTHLIME_DATA is not set: set it to the folder with the two UCI files, see smoothlime.paper"
    for source in (SHOPPING, BANKRUPTCY):
        if not any((Path(folder) / name).is_file() for name in (source.packed_name, source.raw_name)):
            return None, f"SMOOTHLIME_DATA={folder} has neither {source.packed_name} nor {source.raw_name}"
    return Path(folder), ""


@pytest.fixture(scope="session", autouse=True)
def folder(tmp_path_factory):
    """The folder of the real files; the cache is empty and the archive out of reach, so nothing else can answer."""
    path, complaint = where_files_lie()
    if path is None:
        pytest.exit(complaint, returncode=1)  # once, not once per test

    def unreachable(*args, **kwargs):
        raise urllib.error.URLError("no network in tests")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(urllib.request, "urlopen", unreachable)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield path
