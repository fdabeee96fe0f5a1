"""What the benchmarks share: facts about the machine, interleaved timing, JSON lines, Markdown tables.

Scripts import this module before all else: it limits numerical libraries to one thread, which works only until they
are loaded. It loads none itself.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
for _variable in THREADS:
    os.environ[_variable] = "1"

HERE = Path(__file__).parent
STARTED = time.perf_counter()


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


def is_quick(about: str, quick: str) -> bool:
    """Whether the command line asks for the small version of a benchmark; `quick` says what that is."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    return bool(parser.parse_args().quick)


def publish(
    name: str, records: Iterable[Mapping[str, Any]], facts: Mapping[str, Any], shown: str, *, quick: bool
) -> None:
    """Write the records, each with the facts, and print what a reader wants to see; how long it took comes last."""
    path = write_lines(f"{name}_quick" if quick else name, [{**each, **facts} for each in records])
    print(shown)
    print(
        f"\n{facts['cpu']}, one thread of {facts['cores']} cores; {facts['versions']}; written to {path.name};"
        f" {time.perf_counter() - STARTED:.0f} s, {time.process_time():.0f} s of them CPU time"
    )


def read_lines(name: str) -> list[dict[str, Any]]:
    """The records of results/<name>.jsonl."""
    path = HERE / "results" / f"{name}.jsonl"
    if not path.is_file():
        sys.exit(f"there is no {path.name} yet: run benchmarks/bench_{name}.py first")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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


def short(number: float) -> str:
    """Two digits, or all of them left of the point: 0.0031, 2.4, 56, 1,234."""
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.2g}"


def interleaved(
    jobs: Mapping[Any, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.process_time
) -> dict[Any, list[float]]:
    """Seconds of each job in each round, run in turn so that a busy spell of the machine hits all alike.

    By default CPU time of this process: with one thread it is wall time on a quiet machine, and it does not count the
    time that other programs take. Each job runs once beforehand, unmeasured.
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
    """Short hash, with a + where the code differs from it; 'none' outside a repository or before the first commit."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ":/src", ":/benchmarks/*.py")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
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
