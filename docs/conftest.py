"""Makes the Python blocks of the pages here run as tests, in order and sharing names within a page.

Blocks of `py` instead of `python` need another environment: tests/frameworks and tests/engines run those.
"""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.myst import ClearNamespaceParser, PythonCodeBlockParser, SkipParser

collect_ignore = ["conf.py", "figures", "tutorials", "_build", "_vendor"]

pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        SkipParser(),
        ClearNamespaceParser(),
    ],
    patterns=["*.md"],
).pytest()
