"""What do tables cost that do not fit in memory? Rows per second and peak memory of `explain_table`.

Two million rows of 20 features through the trees of XGBoost (100 of depth 6, exact), and 200,000 rows of 15 features
through a network in float32 (two hidden layers of 32, 256 draws around each row). Beside them: `explain` on 50,000 of
these rows in memory; the table with two worker processes; and loops that one would write around TreeSHAP and captum, on
as many rows as take a while. Each in a fresh process, one thread. Peak memory is that of the process that was started,
with its libraries; of two workers, the largest of all three. Reading the table for its scales, starting workers and
writing are part of the time, making the table and the model are not.

    python benchmarks/bench_tables.py [--quick] [--rows ROWS_OF_TREES ROWS_OF_THE_NETWORK]
"""

from __future__ import annotations

from common import STARTED, machine, write_lines  # before NumPy: it sets one thread

# isort: split
import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tables import tables as shown

FEATURES = {"trees": 20, "network": 15}
ROWS = {"trees": 2_000_000, "network": 200_000}
IN_MEMORY = 50_000
PEER_ROWS = {"trees": 20_000, "network": 5_000}
DRAWS, SIGMA, SEED = 256, 0.5, 0
JOBS = ("in memory", "table, one process", "table, two processes", "peer")
PEERS = {"trees": "TreeSHAP", "network": "captum"}
QUICK = 100


def names(case: str) -> list[str]:
    return [f"x{j}" for j in range(FEATURES[case])]


def make(case: str, rows: int, folder: Path) -> None:
    """A table of so many rows in row groups of 100,000, and for trees a model file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, d = np.random.default_rng(SEED), FEATURES[case]
    kind = np.float64 if case == "trees" else np.float32
    schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name in names(case)])
    with pq.ParquetWriter(folder / f"{case}.parquet", schema) as writer:
        for start in range(0, rows, 100_000):
            x = rng.standard_normal((min(100_000, rows - start), d)).astype(kind)
            writer.write_table(pa.table(dict(zip(names(case), x.T, strict=True))))
    if case == "trees":
        import xgboost

        x = rng.standard_normal((20_000, d))
        y = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + x[:, 3:] @ rng.standard_normal(d - 3) / d
        xgboost.XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1).fit(x, y).save_model(folder / "trees.ubj")


def model_of(case: str, folder: Path) -> Any:
    if case == "trees":
        return str(folder / "trees.ubj")
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    sizes = ((15, 32), (32, 32), (32, 2))
    layers = [each for size in sizes for each in (torch.nn.Linear(*size), torch.nn.ELU())]
    return torch.nn.Sequential(*layers[:-1]).eval()


def job(what: str, case: str, rows: int, folder: Path) -> dict[str, Any]:
    """Runs in a process of its own: rows, wall and CPU seconds, and peak memory in MiB."""
    import warnings

    import pyarrow.parquet as pq

    import smoothlime as sl

    warnings.simplefilter("ignore", sl.errors.SmoothlimeWarning)
    settings: dict[str, Any] = {"sigma": SIGMA, "progress": False}
    if case == "network":
        settings |= {"target": 1, "n_samples": DRAWS}
    source, model = folder / f"{case}.parquet", model_of(case, folder)
    run: Any
    if what.startswith("table"):
        workers = 2 if "two" in what else 1
        run, done = (lambda: sl.explain_table(model, source, folder / what, workers=workers, **settings)), rows
    else:
        done = min(rows, IN_MEMORY if what == "in memory" else PEER_ROWS[case])
        some = next(pq.ParquetFile(source).iter_batches(batch_size=done)).to_pandas()
        run = peer(case, model, some.to_numpy()) if what == "peer" else None
        if run is None:
            sl.explain(model, some[:64], background=some[:1_000], **settings)  # numba's first call compiles

            def run() -> Any:
                return sl.explain(model, some, background=some, **settings)

    wall, cpu = time.perf_counter(), cpu_seconds()
    run()
    return {"rows": done, "seconds": time.perf_counter() - wall, "cpu_seconds": cpu_seconds() - cpu, "peak": peak()}


def peer(case: str, model: Any, x: Any) -> Any:
    """A loop over blocks of rows around the library that answers most nearly the same."""
    if case == "trees":
        import shap
        import xgboost

        explainer = shap.TreeExplainer(xgboost.Booster(model_file=model))
        return lambda: [explainer.shap_values(x[start : start + 1_000]) for start in range(0, len(x), 1_000)]
    import torch
    from captum.attr import NoiseTunnel, Saliency

    tunnel, rows = NoiseTunnel(Saliency(lambda points: model(points)[:, 1].sum().reshape(1))), torch.tensor(x)
    return lambda: [
        tunnel.attribute(
            rows[start : start + 64].requires_grad_(),
            nt_samples=DRAWS,
            nt_samples_batch_size=128,
            stdevs=SIGMA,
            abs=False,
        )
        for start in range(0, len(rows), 64)
    ]


def cpu_seconds() -> float:
    """Of this process and those that it has started and seen end."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def peak() -> float:
    """MiB that this process, or one that it has started, has held at most."""
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / unit


def measure(what: str, case: str, rows: int, folder: Path) -> dict[str, Any]:
    """A record: the job in a process of its own."""
    words = [sys.executable, __file__, "--job", what, case, str(rows), str(folder)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    name = PEERS[case] if what == "peer" else what
    return {"case": case, "who": name, "features": FEATURES[case], **found, "rate": found["rows"] / found["seconds"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"a {QUICK}th of all rows")
    parser.add_argument("--rows", type=int, nargs=2, default=list(ROWS.values()), help="of the trees and the network")
    asked = parser.parse_args()
    share = QUICK if asked.quick else 1
    records = []
    for case, rows in zip(ROWS, asked.rows, strict=True):
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, __file__, "--make", case, str(rows // share), folder]
            subprocess.run(words, check=True)
            for what in JOBS:
                load = machine()["load"]
                records.append(measure(what, case, rows // share, Path(folder)) | {"load_before": load})
    facts = machine("pyarrow", "xgboost-cpu", "torch", "shap", "captum")
    path = write_lines(f"tables{'_quick' * asked.quick}", [{**each, **facts} for each in records])
    print(shown(records))
    print(f"\n{facts['cpu']}, {facts['cores']} cores; written to {path.name}; {time.perf_counter() - STARTED:.0f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    elif sys.argv[1:2] == ["--job"]:
        print(json.dumps(job(sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))))
    else:
        main()
