"""Asks a service in a process of its own very often, many at a time, one in ten wrongly: `python load.py COUNT`."""

import asyncio
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

import smoothlime as sl

AT_ONCE = 64
WEIGHTS = [2.0, -1.0, 0.5]
NAMES = ["age", "debt", "pay"]
MODEL = f"line = lambda a: a @ {WEIGHTS}\n"


def make_folder(folder):
    """A line, trees, and their background; the trees' model comes back."""
    import xgboost

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=NAMES)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(
        table, table["age"] + table["debt"] ** 2 > 1
    )
    model.save_model(folder / "trees.ubj")
    (folder / "served_models.py").write_text(MODEL)
    table.assign(label=1).to_csv(folder / "background.csv", index=False)
    return model, table


def start(folder, *more):
    """The process, and its address."""
    command = [sys.executable, "-m", "smoothlime", "serve", "--port", "0", "--path", str(folder), *more]
    command += ["--api", "line=served_models:line", "--api", f"trees={folder / 'trees.ubj'}", "--target", "trees=1"]
    command += ["--background", f"trees={folder / 'background.csv'},line={folder / 'three.csv'}"]
    pd.read_csv(folder / "background.csv")[NAMES].to_csv(folder / "three.csv", index=False)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"at (http://\S+)", line)
        if found:
            return process, found.group(1)
    raise AssertionError(process.wait())


def body(*rows, **parameters):
    return json.dumps({"instances": list(rows), "parameters": parameters}).encode()


WRONG = [
    ("line", b'{"instances": [[1, 2,', 400, "the body is no JSON"),
    ("line", body([1, 2]), 422, "instances[0] has 2 values"),
    ("trees", body([1, 2, "NaN"]), 422, 'must be a number or null; got "NaN"'),
    ("trees", b'{"instances": [[1, 2, NaN]]}', 400, "NaN is not in JSON"),
    ("line", body([1, 2, {"a": 1}]), 422, "must be a number or null"),
    ("line", body(*[[1, 2, 3]] * 1001), 413, "instances has 1001 rows"),
    ("line", b" " * (2**20 + 1), 413, "the body is larger than"),
    ("other", body([1, 2, 3]), 404, "there is no model 'other'"),
    ("trees", body({"age": 1, "debt": 2}), 422, 'instances[0] has no "pay"'),
    ("line", body([1, 2, 3], n_samples=10**9), 422, "parameters.n_samples must be"),
]


async def ask_all(address, count, model, table, memory):
    """Every answer, checked; how many there were of each status."""
    rng, seen = random.Random(0), collections.Counter()
    expected = sl.explain(model, table, sigma=0.5, background=table, target=1, output="margin", switches=False)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(i):
        async with room:
            seen[await (wrong if i % 10 == 9 else right)(i)] += 1
            if i == count // 5:
                memory.append(memory_of(memory[0]))

    async def post(name, content):
        headers = {"Content-Type": "application/json"}
        return await client.post(f"/v1/models/{name}:explain", content=content, headers=headers)

    async def wrong(i):
        name, content, status, reason = WRONG[i // 10 % len(WRONG)]
        answer = await post(name, content)
        assert answer.status_code == status, (answer.status_code, answer.text)
        assert reason in answer.json()["error"], answer.text
        return status

    async def right(i):
        at = rng.randrange(len(table))
        row = table.iloc[at].tolist()
        if i % 2:
            answer = await post("line", body(row, seed=i % 5, n_samples=64))
            values, prediction = np.array(WEIGHTS), np.dot(row, WEIGHTS)
        else:
            answer = await post("trees", body(dict(zip(NAMES, row, strict=True)), output="margin"))
            values, prediction = expected.values[at], expected.prediction[at]
        assert answer.status_code == 200, (answer.status_code, answer.text)
        told = answer.json()
        np.testing.assert_allclose(list(told["explanations"][0]["values"].values()), values, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(told["predictions"][0], prediction, rtol=1e-6)
        return 200

    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(one(i) for i in range(count)))
        metrics = (await client.get("/metrics")).text
    return seen, metrics


def memory_of(pid):
    """MB that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def run(count):
    """The same in a folder of its own; how it went."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, table = make_folder(folder)
        process, address = start(folder)
        try:
            memory, began = [process.pid], time.monotonic()
            seen, metrics = asyncio.run(ask_all(address, count, model, table, memory))
            seconds = time.monotonic() - began
            memory.append(memory_of(process.pid))
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
            code = process.wait(30)
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
    return {
        "seen": dict(seen), "metrics": metrics, "memory": memory[1:], "seconds": seconds, "said": said, "code": code,
    }  # fmt: skip


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print(json.dumps(run(int(sys.argv[1])), indent=1))
