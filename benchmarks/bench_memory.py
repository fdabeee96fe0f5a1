"""How much memory does an explanation take? Peaks in fresh processes: ours, captum and lime.

Large in draws (10⁶ draws around one row of 64 features), in rows (10,000 rows of 16 features at 256 draws) and in both
by half (100 rows of 64 at 16,384). The model is an ELU network with two hidden layers of 32, float32. Each job runs in
a process of its own; what is reported is the peak of the whole process and the part of it above what libraries, model
and rows had taken before. lime works row by row, so that many rows cost it time and no memory: it is asked about one.

captum is run as it comes, all draws at once, and with `nt_samples_batch_size` set to 8,192 points per call; outputs are
summed beforehand, which spares it a loop over points and changes nothing in memory.

    python benchmarks/bench_memory.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import json
import resource
import subprocess
import sys
from typing import Any

from tables import memory

SIZES = {"draws": (1, 1_000_000, 64), "rows": (10_000, 256, 16), "both": (100, 16_384, 64)}
OURS = ("smoothgrad", "clime", "differences")
PEERS = {
    "draws": ("captum", "captum, batched", "lime"),
    "rows": ("captum", "captum, batched"),
    "both": ("captum", "captum, batched"),
}
POINTS_PER_CALL = 8_192
MOST_SECONDS = 300


def job(who: str, rows: int, draws: int, d: int) -> dict[str, float]:
    """Runs in a process of its own: peak memory before and after, in MiB, and CPU seconds."""
    # imported here, so that the process that starts the others stays small: children inherit its peak
    import time

    import numpy as np
    import torch
    from workloads import ValuesOnly, untrained

    import smoothlime as sl

    torch.set_num_threads(1)
    net, x = untrained(d), np.random.default_rng(0).standard_normal((rows, d))

    def run(x: Any, draws: int) -> Any:
        if who in OURS:
            model = net if who == "smoothgrad" else ValuesOnly(net)
            return sl.explain(model, x, method=who, target=1, n_samples=draws, progress=False)
        if who == "lime":
            import rivals

            return rivals.lime(rivals.predictions(net), 1, 1.0, d)(x, draws, 1)
        from captum.attr import NoiseTunnel, Saliency

        tunnel = NoiseTunnel(Saliency(lambda points: net(points)[:, 1].sum().reshape(1)))
        points = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        batch = max(1, POINTS_PER_CALL // len(x)) if who == "captum, batched" else None
        return tunnel.attribute(points, nt_samples=draws, nt_samples_batch_size=batch, stdevs=1.0, abs=False)

    run(x[:1], max(256, 8 * d))  # a small one first: libraries that load late belong to the "before"
    before, start = peak(), time.process_time()
    run(x, draws)
    return {"before": before, "peak": peak(), "seconds": time.process_time() - start}


def peak() -> float:
    """MiB that this process has held at most."""
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure(case: str, who: str, size: tuple[int, int, int]) -> dict[str, Any]:
    """A record: the job in a process of its own."""
    rows, draws, d = size
    words = [sys.executable, __file__, "--job", who, *map(str, size)]
    about = {"case": case, "who": who, "rows": rows, "draws": draws, "features": d}
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=MOST_SECONDS)
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        **about,
        **found,
        "added": found["peak"] - found["before"],
        "points": rows * draws * d * 8 / 2**20,
    }


def main() -> None:
    if sys.argv[1:2] == ["--job"]:
        who, *size = sys.argv[2:]
        print(json.dumps(job(who, *map(int, size))))
        return
    quick = is_quick(__doc__ or "", "a hundredth of the draws, two contestants")
    records = []
    for case, (rows, draws, d) in SIZES.items():
        if quick and case != "draws":
            continue
        for who in ("smoothgrad", "captum, batched") if quick else (*OURS, *PEERS[case]):
            print(case, who, file=sys.stderr)
            records.append(measure(case, who, (rows, draws // 100 if quick else draws, d)))
    publish("memory", records, machine("torch", "captum", "lime") | {"seed": 0}, memory(records), quick=quick)


if __name__ == "__main__":
    main()
