"""Makes the Python blocks of README.md run as tests; docs/conftest.py does so for the pages in docs/."""

import os
import tempfile
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.markdown import ClearNamespaceParser, PythonCodeBlockParser, SkipParser

os.environ.setdefault("MPLBACKEND", "Agg")  # figures in tests go to memory, never to a screen

collect_ignore = ["benchmarks", "examples"]  # scripts: run by `make bench` and `make demo`, not imported


def _elsewhere(namespace: dict[str, object]) -> None:
    """Files that the examples write go to a folder of their own."""
    namespace["_here"] = os.getcwd()
    namespace["_folder"] = tempfile.TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def _back(namespace: dict[str, object]) -> None:
    os.chdir(namespace["_here"])
    namespace["_folder"].cleanup()


# The blocks of one file run in order and share their names, as a reader would type them.
pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        SkipParser(),
        ClearNamespaceParser(),
    ],
    patterns=["README.md"],
    excludes=["*/*"],  # this folder's own README.md, no other
    setup=_elsewhere,
    teardown=_back,
).pytest()
