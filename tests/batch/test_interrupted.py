import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import batch_models
import numpy as np
import pytest

import smoothlime as sl
from smoothlime.batch.journal import locked

from .conftest import assert_same_bits, environment, read_errors

HERE = Path(__file__).parent
SETTINGS = {"columns": ["a", "b", "c"], "n_samples": 256, "sigma": 0.5, "block_rows": 64, "progress": False}


@pytest.fixture(scope="module")
def jobs():
    """Runs jobs in forks of one process, which has everything imported."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "kills.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment(),
    )  # fmt: skip

    def run(source, out, **how):
        process.stdin.write(json.dumps({"source": str(source), "out": str(out)} | how) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with process:
        yield run
        process.stdin.close()


@pytest.fixture
def source(frame, tmp_path):
    """A table with rows that cannot be explained."""
    frame.loc[[7, 300, 301, 980], "c"] = np.inf
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=150)
    return tmp_path / "rows.parquet"


def lines(out):
    path = out / "_journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_job_that_is_killed_anywhere_goes_on_to_the_same_bits(jobs, source, tmp_path):
    assert jobs(source, tmp_path / "alone") == {"status": 0, "said": ""}
    killed = -signal.SIGKILL
    out = tmp_path / "killed"
    named = [
        ("before a manifest", 1), ("before a rename", 1), ("between rename and journal", 2), ("within a line", 2),
        ("after a line", 1), ("before a rename", 3),
    ]  # fmt: skip
    for point, count in named:
        before = lines(out)
        assert jobs(source, out, point=point, count=count)["status"] == killed
        assert lines(out) >= before
    rng = np.random.default_rng(1)
    for _ in range(2):  # at random moments
        assert jobs(source, out, after=float(rng.uniform(0.05, 0.3)), model="slow_wave")["status"] == killed
    assert jobs(source, out, point="before a manifest")["status"] == killed  # the last one, with all blocks there
    assert lines(out) == 16
    assert jobs(source, out) == {"status": 0, "said": ""}
    assert_same_bits(tmp_path / "alone", out)
    assert_same_bits(tmp_path / "alone" / "_errors", out / "_errors")
    assert not list(out.glob(".smoothlime-*"))


def test_a_full_disk_loses_nothing(jobs, source, tmp_path):
    out = tmp_path / "out"
    jobs(source, tmp_path / "alone")
    assert jobs(source, out, point="after a line", count=3)["status"] == -signal.SIGKILL
    done = jobs(source, out, most_bytes=8_000)  # less than a part, more than the journal
    assert done["status"] == 1
    assert "UnwritableFile" in done["said"]
    assert "cannot be written: File too large" in done["said"]
    assert lines(out) == 3
    assert jobs(source, out)["status"] == 0
    assert_same_bits(tmp_path / "alone", out)


def test_a_journal_that_cannot_grow_keeps_whole_lines(source, tmp_path, monkeypatch):
    usual, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == 9:  # a manifest, then two parts or three and a line per block
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(sl.errors.UnwritableFile, match="No space left on device"):
            sl.explain_table(batch_models.wave, source, tmp_path / "out", **SETTINGS)
    text = (tmp_path / "out" / "_journal.jsonl").read_text()
    assert text.endswith("\n") or not text
    sl.explain_table(batch_models.wave, source, tmp_path / "out", **SETTINGS)
    sl.explain_table(batch_models.wave, source, tmp_path / "alone", **SETTINGS)
    assert_same_bits(tmp_path / "alone", tmp_path / "out")


def test_a_destination_below_a_file_is_named(source, tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(sl.errors.UnwritableFile, match=r"destination '.*out' cannot be made: Not a directory"):
        sl.explain_table(batch_models.wave, source, tmp_path / "file" / "out", **SETTINGS)
    with pytest.raises(sl.errors.InvalidArgument, match=r"destination '.*file' is a file; give a folder"):
        sl.explain_table(batch_models.wave, source, tmp_path / "file", **SETTINGS)
    assert (tmp_path / "file").read_text() == "here"


def test_a_second_job_on_one_destination_is_refused(source, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with (
        locked(out),
        pytest.raises(sl.errors.InvalidArgument, match=r"is being written to by process \d+; wait for it"),
    ):
        sl.explain_table(batch_models.wave, source, out, **SETTINGS)
    assert sl.explain_table(batch_models.wave, source, out, **SETTINGS).rows == 996


def test_a_source_that_changed_is_refused(jobs, source, frame, tmp_path):
    out = tmp_path / "out"
    jobs(source, out, point="after a line", count=3)
    frame.assign(a=frame["a"] + 1).to_parquet(source, row_group_size=150)
    with pytest.raises(sl.errors.InvalidArgument, match=r"asked something else: source: '.*parquet' has changed since"):
        sl.explain_table(batch_models.wave, source, out, **SETTINGS)
    assert lines(out) == 3


def test_a_source_that_changes_while_it_is_read_is_refused(source, tmp_path):
    def touch(a):
        os.utime(source)
        return batch_models.wave(a)

    with pytest.raises(sl.errors.UnreadableFile, match=r"rows.parquet' changed while it was read"):
        sl.explain_table(touch, source, tmp_path / "out", **SETTINGS)


def test_what_changed_since_is_named(source, frame, tmp_path):
    out = tmp_path / "out"
    sl.explain_table(batch_models.wave, source, out, **SETTINGS)
    for changed, message in (
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"n_samples": 512}, "n_samples was 256 and is 512"),
        ({"sigma": 0.25}, r"sigma was 0.5 and is 0.25"),
        ({"key": "id"}, "key was None and is 'id'"),
        ({"background": frame[["a", "b", "c"]][:90]}, "background was 'the table' and is 'given'"),
    ):
        with pytest.raises(sl.errors.InvalidArgument, match=f"asked something else: {message}"):
            sl.explain_table(batch_models.wave, source, out, **SETTINGS | changed)
    with pytest.raises(sl.errors.InvalidArgument, match="the model answers otherwise than it did"):
        sl.explain_table(lambda a: batch_models.wave(a) + 1e-9, source, out, **SETTINGS)
    sl.explain_table(batch_models.wave, source, out, resume=False, **SETTINGS | {"seed": 1})
    assert json.loads((out / "_manifest.json").read_text())["asked"]["settings"]["seed"] == 1


def test_another_background_is_named(source, frame, tmp_path):
    out, some = tmp_path / "out", frame[["a", "b"]].assign(c=1.0 * np.arange(1_000))
    sl.explain_table(batch_models.wave, source, out, background=some, **SETTINGS)
    with pytest.raises(sl.errors.InvalidArgument, match="scales are others than they were"):
        sl.explain_table(batch_models.wave, source, out, background=some * 2, **SETTINGS)
    assert sl.explain_table(batch_models.wave, source, out, background=some, **SETTINGS).rows == 996


def test_a_job_that_is_done_asks_the_model_for_a_few_rows_only(source, tmp_path):
    asked = []

    def counting(a):
        asked.append(len(a))
        return batch_models.wave(a)

    sl.explain_table(counting, source, tmp_path / "out", **SETTINGS)
    assert sum(asked) > 256 * 996
    asked.clear()
    assert sl.explain_table(counting, source, tmp_path / "out", **SETTINGS).rows == 996
    assert sum(asked) < 16 * 1_000


def test_a_part_that_is_lost_is_made_again(source, tmp_path):
    for out in ("alone", "out"):
        sl.explain_table(batch_models.wave, source, tmp_path / out, **SETTINGS)
    (tmp_path / "out" / "part-00000003.parquet").unlink()
    with open(tmp_path / "out" / "part-00000005.parquet", "r+b") as file:
        file.truncate(100)
    with pytest.raises(sl.errors.UnreadableFile, match=r"part-00000003.parquet is missing, or is another"):
        sl.load(tmp_path / "out")
    sl.explain_table(batch_models.wave, source, tmp_path / "out", **SETTINGS)
    assert_same_bits(tmp_path / "alone", tmp_path / "out")


def test_ctrl_c_keeps_the_journal_and_ends_with_130(source, tmp_path):
    out = tmp_path / "out"
    command = [
        *(sys.executable, "-m", "smoothlime", "explain", "batch_models:slow_wave", source, "--out", out),
        *("--columns", "a,b,c", "--n-samples", "1024", "--path", HERE),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        deadline = time.monotonic() + 60
        while not (out / "_manifest.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert "rows are in" in said
    assert "Traceback" not in said
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert "996 rows explained" in done.stdout


class TestWorkers:
    def test_a_worker_that_dies_once_is_started_again(self, source, tmp_path):
        model = batch_models.DiesOnce(str(tmp_path / "died"))
        sl.explain_table(model, source, tmp_path / "out", workers=2, **SETTINGS)
        assert (tmp_path / "died").exists()
        sl.explain_table(batch_models.wave, source, tmp_path / "alone", **SETTINGS)
        assert_same_bits(tmp_path / "alone", tmp_path / "out")

    def test_a_block_that_kills_two_workers_goes_to_the_errors(self, frame, tmp_path):
        frame.loc[700, "c"] = 77
        frame.to_parquet(tmp_path / "rows.parquet")
        out = tmp_path / "out"
        settings = SETTINGS | {"block_rows": 256, "sigma": sl.Neighbourhood(0.5)}
        done = sl.explain_table(batch_models.deadly, tmp_path / "rows.parquet", out, workers=2, **settings)
        assert (done.rows, done.failed) == (744, 256)
        failed = read_errors(out)
        assert failed["row"].tolist() == list(range(512, 768))
        assert failed["reason"].str.contains(r"2 processes that explained its block died \(signal 9\)").all()


def test_writing_waits_for_nobody_and_errors_of_it_come_out(source, tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("as a bug would")

    monkeypatch.setattr("smoothlime.batch.run.record", broken)
    with pytest.raises(ZeroDivisionError, match="as a bug would"):
        sl.explain_table(batch_models.wave, source, tmp_path / "out", **SETTINGS)
