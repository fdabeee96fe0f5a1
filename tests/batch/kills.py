"""Jobs in processes that are killed at named points or after some seconds; one line of JSON in, one line out.

Everything is imported once, and each job runs in a fork. `python tests/batch/kills.py 50` kills one job fifty times.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import batch_models
import numpy as np
import pandas as pd
import pyarrow.parquet

import smoothlime as sl
from smoothlime.batch import journal, parts
from smoothlime.io import files

POINTS = ("before a rename", "between rename and journal", "within a line", "after a line", "before a manifest")
SETTINGS = {"columns": ["a", "b", "c"], "n_samples": 256, "sigma": 0.5, "block_rows": 64, "progress": False}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point, count):
    """Have this process kill itself when it gets to a point for the count-th time."""
    seen = {"times": 0}

    def is_due():
        seen["times"] += 1
        return seen["times"] == count

    def before(module, name, is_meant=lambda *_: True):
        usual = getattr(module, name)

        def killed(*args, **settings):
            if is_meant(*args) and is_due():
                die()
            return usual(*args, **settings)

        setattr(module, name, killed)

    if point == "before a rename":
        before(files.os, "replace", lambda _, target: "part-" in str(target))
    elif point == "between rename and journal":
        before(journal.Journal, "add")
    elif point == "before a manifest":
        before(files.os, "replace", lambda _, target: str(target).endswith("_manifest.json"))
    elif point == "after a line":
        usual = journal.Journal.add

        def add(self, entry):
            usual(self, entry)
            if is_due():
                die()

        journal.Journal.add = add
    elif point == "within a line":

        def cut_short(self, entry):
            if is_due():
                self._file.write(b'{"block": 3, "ro')
                die()
            return usual_add(self, entry)

        usual_add = journal.Journal.add
        journal.Journal.add = cut_short


def run(asked):
    """A job in a fork of this process: how it ended, and what it said if it failed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        said = ""
        try:
            if asked.get("point"):
                arm(asked["point"], asked.get("count", 1))
            if asked.get("most_bytes"):
                resource.setrlimit(resource.RLIMIT_FSIZE, (asked["most_bytes"],) * 2)
            model = getattr(batch_models, asked.get("model", "wave"))
            sl.explain_table(model, asked["source"], asked["out"], **SETTINGS | asked.get("settings", {}))
        except BaseException as err:
            said = f"{type(err).__name__}: {err}"
        os.write(write, said.encode())
        os._exit(1 if said else 0)
    os.close(write)
    if asked.get("after") is not None:
        time.sleep(asked["after"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read) as file:
        return {"status": os.waitstatus_to_exitcode(status), "said": file.read()}


def main():
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


def fifty(times):
    """Kill one job so many times, at all points in turn and at random moments, and compare with one left alone."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((64 * 150, 3)), columns=["a", "b", "c"])
    rows.loc[rng.choice(len(rows), 40, replace=False), "c"] = np.inf
    with tempfile.TemporaryDirectory() as folder:
        rows.to_parquet(f"{folder}/rows.parquet", row_group_size=1_000)
        asked = {"source": f"{folder}/rows.parquet", "model": "slow_wave"}
        assert run(asked | {"out": f"{folder}/alone"})["status"] == 0
        kills = dict.fromkeys([*POINTS, "at a random moment"], 0)
        while sum(kills.values()) < times:
            name = min(kills, key=kills.get)
            how = {"point": name, "count": int(rng.integers(1, 4))}
            if name == "at a random moment":
                how = {"after": float(rng.uniform(0, 1.5))}
            elif name == "before a manifest":
                how["count"] = 1
            done = run(asked | {"out": f"{folder}/killed"} | how)
            if done["status"] != -signal.SIGKILL:  # the job is done: begin anew
                assert done == {"status": 0, "said": ""}, done
                check(folder)
                for path in sorted(Path(f"{folder}/killed").rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
                continue
            kills[name] += 1
        assert run(asked | {"out": f"{folder}/killed"}) == {"status": 0, "said": ""}
        check(folder)
    print(f"{sum(kills.values())} kills, all columns equal to the bit: {kills}")


def check(folder):
    for inside in ("", "/_errors"):
        one, other = (pd.read_parquet(f"{folder}/{name}{inside}") for name in ("alone", "killed"))
        first = one.columns[0]
        pd.testing.assert_frame_equal(
            one.sort_values(first, ignore_index=True), other.sort_values(first, ignore_index=True), check_exact=True
        )


if __name__ == "__main__":
    assert parts, pyarrow
    fifty(int(sys.argv[1])) if len(sys.argv) > 1 else main()
