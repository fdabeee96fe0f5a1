"""Makes the Python blocks of README.md run as tests; docs/conftest.py does so for the pages in docs/."""

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.markdown import ClearNamespaceParser, PythonCodeBlockParser, SkipParser

os.environ.setdefault("MPLBACKEND", "Agg")  # figures in tests go to memory, never to a screen

collect_ignore = ["benchmarks", "examples"]  # scripts: run by `make bench` and `make demo`, not imported

# The blocks of one file run in order and share their names, as a reader would type them.
pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        SkipParser(),
        ClearNamespaceParser(),
    ],
    patterns=["README.md"],
    excludes=["*/*"],  # this folder's own README.md, no other
).pytest()
