"""What the benchmarks share: facts about the machine, interleaved timing, JSON lines, Markdown tables.

Scripts import this module before all else: it limits numerical libraries to one thread, which works only until they
are loaded. It loads none itself.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
for _variable in THREADS:
    os.environ[_variable] = "1"

HERE = Path(__file__).parent


def machine(*packages: str) -> dict[str, Any]:
    """Commit, versions and processor: what a number needs beside it to mean something later."""
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("smoothlime", "numpy", "scipy", *packages)},
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write_lines(name: str, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write records to results/<name>.jsonl, one per line, whole or not at all."""
    path = HERE / "results" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".part")
    fresh.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    fresh.replace(path)
    return path


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown; numbers come formatted."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def interleaved(
    jobs: Mapping[Any, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[Any, list[float]]:
    """CPU seconds of each job in each round, run in turn so that a busy spell of the machine hits all alike.

    CPU time of this process: with one thread it is wall time on a quiet machine, and it does not count the time
    that other programs take. Work that is done elsewhere needs another clock. Each job runs once before it counts.
    """
    for job in jobs.values():
        job()
    gc.collect()
    gc.freeze()  # what was loaded beforehand is not looked through again and again while the clock runs
    seconds: dict[Any, list[float]] = {name: [] for name in jobs}
    names = list(jobs)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:  # nobody always follows the same job
            start = clock()
            jobs[name]()
            seconds[name].append(clock() - start)
    return seconds


def fastest(
    make: Callable[[int], Callable[[], Any]],
    sizes: Sequence[int],
    rounds: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> int:
    """The batch size at which a job takes least time, by the median of a few interleaved rounds."""
    times = interleaved({size: make(size) for size in sizes}, rounds, clock)
    return min(sizes, key=lambda size: statistics.median(times[size]))


def _commit() -> str:
    """Short hash, with a + where files differ from it; 'none' outside a repository or before the first commit."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "none"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's name as the system gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
