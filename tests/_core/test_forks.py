"""Processes that were forked give what their parent gives, where libraries compute in several threads."""

import inspect
import subprocess
import sys

import smoothlime as sl

FORKED = """
import multiprocessing

import lightgbm
import numpy as np
import torch
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier

import smoothlime as sl

torch.set_num_threads(2)
torch.manual_seed(0)
X = np.random.default_rng(0).normal(size=(5_000, 4))  # enough for several threads
LABEL = (X[:, 0] > 0).astype(int)
FEW = {"n_estimators": 5, "n_jobs": 2}
MODELS = {
    "xgboost": xgboost.XGBClassifier(**FEW).fit(X, LABEL),
    "booster": xgboost.train({"nthread": 2}, xgboost.DMatrix(X, LABEL), 5),
    "lightgbm": lightgbm.LGBMClassifier(verbose=-1, **FEW).fit(X, LABEL),
    "histograms": HistGradientBoostingClassifier(max_iter=5).fit(X, LABEL),
    "torch": torch.nn.Sequential(torch.nn.Linear(4, 256), torch.nn.Tanh(), torch.nn.Linear(256, 2)).eval(),
}


def slopes(name):
    methods = ["smoothgrad"] if name == "torch" else ["auto", "clime"]
    target = None if name == "booster" else 1
    return [sl.explain(MODELS[name], X[:20], target=target, method=each, n_samples=256).values for each in methods]


before = {name: slopes(name) for name in MODELS}
with multiprocessing.get_context("fork").Pool(1) as pool:
    for name in MODELS:
        try:
            found = pool.apply_async(slopes, [name]).get(60)
        except multiprocessing.TimeoutError:
            print(name, "hangs")
            break
        is_same = all(np.allclose(a, b, rtol=1e-5, atol=1e-7) for a, b in zip(before[name], found, strict=True))
        print(name, "gives the same" if is_same else "differs")
    pool.terminate()
"""

ERRORS = """
import contextvars, os
import smoothlime as sl
held = contextvars.ContextVar("held")
held.set(3.0)
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    sl.explain(lambda a: a[:, 0], [1.0], sigma=-1.0)
except sl.errors.InvalidArgument as err:
    e = sl.explain(lambda a: held.get() * a[:, 0], [1.0], n_samples=64)
    print(err.argument, e.values.round(6))
"""


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout.strip().splitlines()


def test_a_forked_process_gives_the_same():
    names = ["xgboost", "booster", "lightgbm", "histograms", "torch"]
    assert run(FORKED) == [f"{name} gives the same" for name in names]


def test_errors_and_context_of_a_forked_process_are_those_of_the_call():
    assert run(ERRORS) == ["sigma [[3.]]"]


def test_whatever_asks_a_model_survives_a_fork():
    for name in sl.__all__:
        thing = getattr(sl, name)
        if (
            inspect.isfunction(thing)
            and "model" in list(inspect.signature(thing).parameters)[:1]
            and name != "as_model"
        ):
            assert hasattr(thing, "__wrapped__"), f"{name} asks a model: put @survives_fork above it"
