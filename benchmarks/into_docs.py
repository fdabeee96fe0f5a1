"""Puts the committed results into the pages that show them: every table of results there is made here.

    python benchmarks/into_docs.py [--check]

A table stands between `<!-- table NAME: made by benchmarks/into_docs.py -->` and `<!-- end of table -->`. With --check
nothing is written; tables that are not what the results say are named, and the exit status is 1.
"""

from __future__ import annotations

from common import HERE, read_lines

# isort: split
import re
import sys
from collections.abc import Callable
from typing import Any

import bench_coverage as coverage
import bench_gaps as gaps
import bench_scales as scales
import goals
import tables

PAGES = (
    "README.md",
    "docs/benchmarks.md",
    "docs/theory/errors.md",
    "docs/trees.md",
    "docs/what-is-near.md",
    "docs/big-tables.md",
)
TABLES: dict[str, tuple[str, Callable[..., str]]] = {
    "beside-others": ("error stability", tables.beside_others),
    "error-all": ("error", tables.error_long),
    "error-peers": ("error", tables.peers),
    "error-worst": ("error", tables.worst),
    "intervals": ("intervals", tables.intervals),
    "time": ("time", tables.time_table),
    "stability": ("stability", tables.stability),
    "overhead": ("overhead", tables.overhead_short),
    "trees": ("trees", tables.trees_short),
    "scaling": ("scaling", tables.scaling),
    "memory": ("memory", tables.memory),
    "startup": ("startup", tables.startup),
    "latency": ("latency", tables.latency),
    "weak": ("weak", tables.weak),
    "trees-probabilities": ("trees_probabilities", tables.probabilities_long),
    "gpu": ("gpu", tables.gpu),
    "coverage": ("coverage", lambda records: coverage.well_behaved_table(records, 1_024)),
    "coverage-skewed-1": ("coverage", lambda records: coverage.skewed_table(records, 1)),
    "coverage-skewed-3": ("coverage", lambda records: coverage.skewed_table(records, 3)),
    "gaps": ("gaps", gaps.cells_table),
    "gaps-smooth": ("gaps", gaps.smooth_table),
    "radius": ("radius", tables.radius),
    "table": ("table", tables.whole_table),
    "tables": ("tables", tables.tables),
    "scales": ("scales", scales.table),
    "coverage-short": ("coverage", coverage.shortfalls_table),
}
"""Name of a table to the benchmarks whose results it shows, and how."""
GOALS = "goals"
"""The table that is made from the results of several benchmarks."""

MARKED = re.compile(
    r"(<!-- table (?P<name>[\w-]+): made by benchmarks/into_docs\.py -->\n)(?P<text>.*?)(<!-- end of table -->)", re.S
)


def made(name: str) -> str:
    """The table with that name, and where its numbers come from."""
    if name == GOALS:
        results = goals.read()
        return f"\n{goals.table(results)}\n\n{goals.sources(results)}\n\n"
    benchmarks, make = TABLES[name]
    records = {benchmark: read_lines(benchmark) for benchmark in benchmarks.split()}
    sources = "\n".join(source(benchmark, lines[0]) for benchmark, lines in records.items())
    return f"\n{make(*records.values())}\n\n{sources}\n\n"


def source(benchmark: str, facts: dict[str, Any]) -> str:
    """Script, commit, day, versions and processor."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if name != "smoothlime")
    script = (
        benchmark.removesuffix("_probabilities") + ".py" + " --probabilities" * benchmark.endswith("_probabilities")
    )
    used = f"{facts['cores']} cores" if "card" in facts else "one thread"
    return (
        f"<sub>`benchmarks/bench_{script}` at {facts['commit']}, {facts['when'][:10]}; Python {facts['python']},"
        f" {versions}; {facts['cpu']}, {used}.</sub>"
    )


def filled(text: str) -> tuple[str, list[str]]:
    """A page with every table made anew, and the names of those that have changed."""
    stale = []

    def fresh(match: re.Match[str]) -> str:
        if match["name"] not in (*TABLES, GOALS):
            sys.exit(f"there is no table {match['name']!r}; there are {', '.join((*TABLES, GOALS))}")
        content = made(match["name"])
        if content != match["text"]:
            stale.append(match["name"])
        return f"{match[1]}{content}{match[4]}"

    return MARKED.sub(fresh, text), stale


def main() -> None:
    is_check = sys.argv[1:] == ["--check"]
    changed = []
    for page in PAGES:
        path = HERE.parent / page
        before = path.read_text(encoding="utf-8")
        if before.count("made by benchmarks/into_docs.py -->") != len(MARKED.findall(before)):
            sys.exit(f"{page}: a table has no end, or two have one")
        after, stale = filled(before)
        changed += [f"{page}: {name}" for name in stale]
        if not is_check:
            path.write_text(after, encoding="utf-8")
    print("\n".join(changed) or "every table is what the results say")
    if is_check and changed:
        sys.exit(1)


if __name__ == "__main__":
    main()
