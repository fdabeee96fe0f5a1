"""Tests on Ray and Dask, in an environment of their own: `make test-engines` makes it."""

import contextlib
import os
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import smoothlime as sl
from smoothlime.batch.journal import read_journal

HERE = str(Path(__file__).parent)
sys.path.insert(0, HERE)  # workers import models of tests by name

SETTINGS = {"n_samples": 256, "sigma": 0.5, "block_rows": 128, "progress": False}
MARK = "SMOOTHLIME_TEST"
ENGINES = ("ray", "dask")


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """The path of a table of 16 blocks."""
    path = tmp_path_factory.mktemp("table") / "rows.parquet"
    pq.write_table(table(), path, row_group_size=300)
    return path


def table(poison=()):
    x = np.random.default_rng(0).standard_normal((2_000, 3))
    x[list(poison), 2] = 77
    return pa.table(dict(zip("abc", x.T, strict=True)))


@pytest.fixture(scope="session")
def truth(rows, tmp_path_factory):
    """The lines that every engine must write."""
    import engine_models

    folder = tmp_path_factory.mktemp("truth") / "out"
    sl.explain_table(engine_models.wave, rows, folder, **SETTINGS)
    return lines(folder)


@dataclass
class Cluster:
    """A cluster that stays while the tests of an engine run."""

    engine: str
    address: str


@pytest.fixture(scope="session", params=ENGINES)
def cluster(request):
    """Two nodes of Ray with a processor and a card each, which need not be there; two workers of Dask."""
    with {"ray": _ray, "dask": _dask}[request.param]() as address:
        yield Cluster(request.param, address)


@contextlib.contextmanager
def _ray():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 1, "include_dashboard": False})
    try:
        nodes.add_node(num_cpus=1, num_gpus=1)
        nodes.wait_for_nodes()
        yield nodes.address
    finally:
        nodes.shutdown()


@contextlib.contextmanager
def _dask():
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),  # fewer workers to start again
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address="127.0.0.1:0", memory_limit=0) as cluster,
    ):
        yield cluster.scheduler_address


def lines(folder):
    return pq.read_table(folder).sort_by("row")


def errors(folder):
    return pa.concat_tables(map(pq.read_table, sorted((Path(folder) / "_errors").glob("*.parquet")))).sort_by("row")


def finished(folder):
    """Blocks in the journal, in its order."""
    return list(read_journal(Path(folder)))


def wait_until(is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@contextlib.contextmanager
def meanwhile(act):
    """Does something in a thread, and raises here what it raises there."""
    raised = []

    def run():
        try:
            act()
        except BaseException as err:
            raised.append(err)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join()
    if raised:
        raise raised[0]


@dataclass
class Script:
    """A process that explains a table, and all that it started."""

    process: Any
    mark: str
    log: Path

    def ends_with(self, *codes, seconds=100):
        """Wait for its end, and for that of all that it started."""
        assert self.process.wait(seconds) in codes, self.log.read_text()
        wait_until(lambda: not self.left(), seconds=20)

    def wait_until(self, is_so):
        """Wait for something that it does."""
        wait_until(lambda: is_so() or self.process.poll() is not None)
        assert is_so(), self.log.read_text()

    def left(self):
        """Processes that carry its mark."""
        found = []
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if each.status() != psutil.STATUS_ZOMBIE and each.environ().get(MARK) == self.mark:
                    found.append(each)
        return found


@pytest.fixture
def start(tmp_path):
    """Starts a script without a guard that explains a table by a model of `engine_models`."""
    started = []

    def run(model, source, destination, **settings):
        name = uuid.uuid4().hex
        path, log = tmp_path / f"{name}.py", tmp_path / f"{name}.log"
        path.write_text(
            "import engine_models, smoothlime as sl\n"
            f"sl.explain_table(engine_models.{model}, {str(source)!r}, {str(destination)!r}, **{SETTINGS | settings!r})"
        )
        environment = os.environ | {MARK: name, "PYTHONPATH": HERE, "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"}
        with open(log, "wb") as file:
            process = psutil.Popen(
                [sys.executable, str(path)], env=environment, stdout=file, stderr=file, start_new_session=True
            )
        started.append(Script(process, name, log))
        return started[-1]

    yield run
    for script in started:
        for each in script.left():
            with contextlib.suppress(psutil.Error):
                each.kill()
        script.process.wait()
