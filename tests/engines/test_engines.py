"""The same bits from every engine, whatever happens to its workers."""

import os
import re
import shutil
import signal
from pathlib import Path

import engine_models
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import smoothlime as sl
from smoothlime.cli import main

from .conftest import ENGINES, HERE, SETTINGS, errors, finished, lines, meanwhile, table, wait_until


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_that_kills_two_workers_goes_to_the_errors_and_no_other(engine, start, tmp_path):
    pq.write_table(table(poison=[700]), tmp_path / "rows.parquet")
    settings = {"workers": 2, "background": False}
    scripts = [
        start("deadly", tmp_path / "rows.parquet", tmp_path / each, engine=each, **settings)
        for each in ("local", engine)
    ]
    for script in scripts:
        script.ends_with(0)
    assert lines(tmp_path / engine).equals(lines(tmp_path / "local"))
    assert len(lines(tmp_path / engine)) == 2_000 - 128
    one, other = errors(tmp_path / engine), errors(tmp_path / "local")
    assert one["row"].equals(other["row"])
    for each in (one, other):
        assert {text[:41] for text in each["reason"].to_pylist()} == {"2 processes that explained its block died"}


def test_a_worker_that_is_killed_changes_no_bit(cluster, rows, truth, tmp_path):
    notes, out = tmp_path / "notes", tmp_path / "out"
    notes.mkdir()
    killed = []

    def kill():
        wait_until(lambda: len(finished(out)) > 2)
        killed.append(int(next(notes.iterdir()).name))
        os.kill(killed[0], signal.SIGKILL)

    gpus = 1 if cluster.engine == "ray" else 0
    with meanwhile(kill):
        done = sl.explain_table(
            engine_models.Noted(notes), rows, out,
            engine=cluster.engine, address=cluster.address, gpus_per_worker=gpus, **SETTINGS,
        )  # fmt: skip
    assert (done.rows, done.failed) == (2_000, 0)
    assert lines(out).equals(truth)
    assert len(finished(out)) == 16
    noted = [each.read_text().split(",") for each in notes.iterdir()]
    assert len(noted) == 3, "two workers, and one in the place of the one that was killed"
    if cluster.engine == "ray":
        assert len({node for node, _ in noted}) == 2, "both nodes had work"
        assert {cards for _, cards in noted} <= {"0", "1"}, "each worker sees the card that it was given"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_one_engine_began_another_ends(engine, rows, truth, start, tmp_path):
    ends = {signal.SIGINT: tmp_path / "interrupted", signal.SIGKILL: tmp_path / "killed"}
    scripts = {by: start("slow", rows, out, engine=engine, workers=2) for by, out in ends.items()}
    for by, out in ends.items():
        scripts[by].wait_until(lambda out=out: len(finished(out)) > 2)
        scripts[by].process.send_signal(by)
    for by, out in ends.items():
        scripts[by].ends_with(-by, 130)
        before = finished(out)
        assert 2 < len(before) < 16
        sl.explain_table(engine_models.slow, rows, out, **SETTINGS)
        assert finished(out)[: len(before)] == before
        assert lines(out).equals(truth)


def test_what_was_begun_here_a_cluster_ends(cluster, rows, truth, start, tmp_path):
    out = tmp_path / "out"
    script = start("slow", rows, out)
    script.wait_until(lambda: len(finished(out)) > 2)
    script.process.kill()
    script.ends_with(-signal.SIGKILL)
    before = finished(out)
    assert 2 < len(before) < 16
    sl.explain_table(engine_models.slow, rows, out, engine=cluster.engine, address=cluster.address, **SETTINGS)
    assert finished(out)[: len(before)] == before
    assert lines(out).equals(truth)


def test_the_command_line_reaches_a_cluster(cluster, rows, tmp_path):
    asked = ["explain", "engine_models:wave", str(rows), "--path", HERE, "--n-samples", "256", "--out"]
    folders = tmp_path / "cluster", tmp_path / "local"
    where = ["--engine", cluster.engine, "--address", cluster.address]
    for folder, more in zip(folders, (where, []), strict=True):
        done = CliRunner().invoke(main, [*asked, str(folder), *more])
        assert done.exit_code == 0, done.output
    one, other = map(lines, folders)
    assert one.equals(other)


def test_errors_of_workers_are_errors_here(cluster, rows, tmp_path):
    settings = {"engine": cluster.engine, "address": cluster.address, **SETTINGS}
    cases = {
        "home": (engine_models.Homesick(), sl.errors.WrongType, "cannot be loaded by the worker on .* not at home"),
        "mood": (engine_models.Moody(), sl.errors.NotDeterministic, "no longer answers rows that it answered"),
        "end": (engine_models.Homesick(fatal=True), sl.errors.InvalidArgument, "end before they have the model"),
    }
    for name, (model, error, text) in cases.items():
        with pytest.raises(error, match=text):
            sl.explain_table(model, rows, tmp_path / name, **settings)
    with pytest.raises(sl.errors.WrongType, match="cannot be sent to other processes"):
        sl.explain_table(_with_a_lock(), rows, tmp_path / "lock", **settings)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_address_where_nobody_is_is_named(engine, rows, tmp_path):
    address = {"ray": "127.0.0.1:9", "dask": "tcp://127.0.0.1:9"}[engine]
    with pytest.raises(sl.errors.InvalidArgument, match=r"127.0.0.1:9.* cannot be used"):
        sl.explain_table(engine_models.wave, rows, tmp_path / "out", engine=engine, address=address, **SETTINGS)


def test_the_blocks_of_the_page_run_and_leave_what_was_running(cluster, rows, tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "big-tables.md"
    blocks = re.findall(r"```py\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [each for each in blocks if f'engine="{cluster.engine}"' in each]
    monkeypatch.chdir(tmp_path)
    shutil.copy(rows, "customers.parquet")
    code = re.sub(r"first:6379|tcp://scheduler:8786", cluster.address, code)
    exec(compile(code, str(page), "exec"), {"sl": sl, "model": lambda a: engine_models.wave(a)})
    sl.explain_table(engine_models.wave, rows, "local", sigma=0.5, progress=False)
    assert lines(f"slopes-by-{cluster.engine}").equals(lines("local"))
    if cluster.engine == "ray":
        import ray

        assert ray.is_initialized()
        with pytest.raises(sl.errors.InvalidArgument, match=r"is connected to Ray at .*leave address out"):
            sl.explain_table(engine_models.wave, rows, "elsewhere", engine="ray", address="elsewhere:1", **SETTINGS)
        ray.shutdown()


def _with_a_lock():
    import threading

    lock = threading.Lock()
    return lambda a: engine_models.wave(a) if lock else None
