"""Files that the pages name are there."""

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOMES = ("", "src", "src/smoothlime", "docs", "tests", "src/smoothlime/exact", "src/smoothlime/exact/trees")
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if path.name != "CHANGELOG.md")
NAMED = re.compile(r"`((?:\w+/)+\w+\.py)(?: --\w+)?`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_source_files_that_a_page_names_exist(page):
    lost = [
        name for name in NAMED.findall(page.read_text()) if not any((ROOT / home / name).is_file() for home in HOMES)
    ]
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_descriptions_of_figures_end_before_their_captions(page):
    """A second line behind `:alt:` would be shown as the caption; the block between --- takes several."""
    lines = page.read_text(encoding="utf-8").splitlines()
    broken = [a for a, b in itertools.pairwise(lines) if a.startswith(":alt:") and b.startswith("  ")]
    assert broken == []
