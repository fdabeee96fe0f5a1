"""What does smoothlime cost before it does anything? Importing it, the command line's help, and a call's fixed part.

Import and help in fresh processes, wall and CPU time, medians; the interpreter's own start is measured beside them.
Modules are translated once, before the clock runs, as they are when a package is installed.
The fixed part of a call: one row, 256 draws, on a network 11-10-10-2, less the bare network on 256 points; CPU time,
one thread, interleaved.

    python benchmarks/bench_startup.py [--quick]
"""

from __future__ import annotations

from common import interleaved, is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import os
import resource
import statistics
import subprocess
import sys
import time
from functools import partial
from typing import Any

import torch
import workloads
from bench_scaling import bare
from tables import startup
from workloads import ValuesOnly

import smoothlime as sl

PROCESSES = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import smoothlime": ["-c", "import smoothlime"],
    "smoothlime --help": ["-m", "smoothlime", "--help"],
}
GOALS = {"import smoothlime": 0.3, "smoothlime --help": 0.3, "smoothgrad": 0.005, "differences": 0.005, "clime": 0.005}
DRAWS = 256
TRANSLATED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""What processes are started with: the first keeps its translated modules for those that are timed."""


def processes(rounds: int) -> list[dict[str, Any]]:
    """Seconds from the start of a process to its end, and CPU seconds, which do not mind what else is running."""
    cpu: dict[str, list[float]] = {name: [] for name in PROCESSES}

    def run(name: str) -> None:
        before = children()
        subprocess.run([sys.executable, *PROCESSES[name]], check=True, capture_output=True, env=TRANSLATED)
        cpu[name].append(children() - before)

    seconds = interleaved({name: partial(run, name) for name in PROCESSES}, rounds, clock=time.perf_counter)
    return [
        {
            "what": name, "kind": "process", "seconds": statistics.median(times), "fastest": min(times),
            "cpu_seconds": statistics.median(cpu[name][1:]), "goal": GOALS.get(name), "rounds": rounds,
        }
        for name, times in seconds.items()
    ]  # fmt: skip


def children() -> float:
    """CPU seconds of all processes started so far that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def calls(rounds: int) -> list[dict[str, Any]]:
    """Seconds of one call beyond the bare network."""
    module = workloads.made_up_11(2).module
    row = workloads.made_up_11(2).rows[:1]

    def explain(method: str) -> Any:
        model = module if method == "smoothgrad" else ValuesOnly(module)
        return lambda: sl.explain(model, row, method=method, sigma=0.3, target=1, n_samples=DRAWS, progress=False)

    points = torch.randn(DRAWS, row.shape[1])
    methods = ("smoothgrad", "differences", "clime")
    jobs: dict[Any, Any] = {method: explain(method) for method in methods}
    jobs |= {gradients: bare(module, points, gradients=gradients) for gradients in (True, False)}
    seconds = interleaved(jobs, rounds)
    found = []
    for method in methods:
        alone = seconds[method == "smoothgrad"]
        beyond = [total - own for total, own in zip(seconds[method], alone, strict=True)]
        found.append(
            {
                "what": method, "kind": "call", "seconds": statistics.median(beyond), "fastest": min(beyond),
                "cpu_seconds": statistics.median(beyond), "bare": statistics.median(alone),
                "goal": GOALS[method], "rounds": rounds, "draws": DRAWS,
            }
        )  # fmt: skip
    return found


def main() -> None:
    quick = is_quick(__doc__ or "", "two processes each, ten calls")
    torch.set_num_threads(1)
    records = processes(2 if quick else 11) + calls(10 if quick else 201)
    publish("startup", records, machine("torch", "click") | {"seed": 0}, startup(records), quick=quick)


if __name__ == "__main__":
    main()
