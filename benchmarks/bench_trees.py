"""How long does an exact explanation of a tree ensemble take? Against shap.TreeExplainer.

XGBoost with 500 trees of depth 6, and a scikit-learn forest of 300 trees grown out, both classifiers on 11 standard
normal features. `smooth` gives E f and its whole gradient with a bound on the error; TreeExplainer, path-dependent,
gives its own attributions of the same output. One thread, CPU time, interleaved; the table shows the median over rounds
per row, and the ratio of medians. Reading the model, the plan, later calls of `explain` for one row, and the first call
in a new process are timed apart, the first call without and with the compiled code on disk.

Two threads against one: wall time on 16,384 rows (1,024 of the forest), as CPU time would count both, interleaved; the
ratio of medians. The fastest rounds are in the record too, as a program that takes one of two processors slows two
threads and not one. Accuracy: the gradient against a sum over every leaf of the same trees, box by box, with sums that
do not round; ‖difference‖ / ‖gradient‖, the worst row.

With --probabilities, and nothing else then: probabilities of boosted classifiers, drawn by `jumps` to the default
tolerance, second call, against TreeExplainer's interventional probabilities with 100 background rows, which has none
for three classes. Then how the time goes with trees and with draws, and two threads against one.

    python benchmarks/bench_trees.py [--quick] [--probabilities]
"""

from __future__ import annotations

from common import interleaved, machine, publish, write_lines  # before NumPy: it sets one thread

# isort: split
import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import shap
import xgboost
from scipy.special import ndtr
from sklearn.ensemble import RandomForestClassifier
from tables import probabilities_long, trees_long

import smoothlime as sl
from smoothlime.exact.trees.format import TreeEnsemble
from smoothlime.exact.trees.plan import make_plan
from smoothlime.exact.trees.read.recognise import read_trees
from smoothlime.exact.trees.smoothing import smooth

SEED = 0
D = 11
ROWS = 64
SIGMAS = (0.1, 0.316, 1.0)
PROBABILITY_ROWS = 32
THREADED_ROWS, THREADED_ROUNDS = {"XGBoost": 16_384, "random forest": 1_024}, 15
"""Half a second each, and several blocks of rows for each thread."""
BRUTE_ROWS = 8
FIRST_CALL = """
import time
start = time.perf_counter()
import numpy as np
from smoothlime.exact.trees.format import join_trees
from smoothlime.exact.trees.smoothing import smooth
tree = {"feature": [0, -1, -1], "threshold": [0.0, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
        "nan_left": [True, False, False], "value": [0.0, -1.0, 1.0]}
trees = join_trees([tree], base=0.0, n_features=1)
before = time.perf_counter()
import numba
imported = time.perf_counter()
smooth(trees, [[0.0]], [1.0])
print(imported - before, time.perf_counter() - imported)
"""


def models(quick: bool) -> dict[str, tuple[Any, str, Any]]:
    """Name of each model to the model, the output that is explained, and its weights."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(4_000, D))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    y = (signal + 0.7 * rng.normal(size=len(X)) > 0.3).astype(int)
    share = 10 if quick else 1
    boosted = xgboost.XGBClassifier(n_estimators=500 // share, max_depth=6, learning_rate=0.1, n_jobs=1)
    forest = RandomForestClassifier(300 // share, random_state=SEED)
    return {
        "XGBoost": (boosted.fit(X, y), "margin", None),
        "random forest": (forest.fit(X[:2_500], y[:2_500]), "probability", [0.0, 1.0]),
    }


def measure(name: str, model: Any, output: str, weights: Any, quick: bool) -> list[dict[str, Any]]:
    """Times, threads and accuracy of one model."""
    trees = read_trees(model, output)
    assert trees is not None
    about = {"model": name, "trees": trees.n_trees}
    timed = times(name, model, output, weights, quick)
    return [
        *timed,
        about | threads(trees, weights, THREADED_ROWS[name], quick),
        *(about | each for each in accuracy(trees, weights)),
    ]


def times(name: str, model: Any, output: str, weights: Any, quick: bool) -> list[dict[str, Any]]:
    """Seconds per row, ours at each σ and TreeExplainer's."""
    rows = np.random.default_rng(SEED + 1).normal(size=(ROWS, D))
    start = time.perf_counter()
    trees = read_trees(model, output)
    assert trees is not None
    read = time.perf_counter() - start
    smooth(trees, rows[:1], np.ones(D), weights=weights)  # compiled, or loaded from disk
    start = time.perf_counter()
    plan = make_plan(trees)
    planned = time.perf_counter() - start
    explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    few = rows if name == "XGBoost" else rows[:8]
    jobs: dict[Any, Any] = {
        f"exact, σ = {sigma:g}": (
            lambda sigma=sigma: smooth(trees, rows, np.full(D, sigma), weights=weights, plan=plan, threads=1),
            ROWS,
        )
        for sigma in SIGMAS
    }
    jobs["shap.TreeExplainer"] = (lambda: explainer.shap_values(few, check_additivity=False), len(few))
    asked = {"output": "margin"} if output == "margin" else {"target": 1}
    jobs["explain"] = lambda: sl.explain(model, rows[0], progress=False, **asked), 1
    seconds = interleaved({key: job for key, (job, _) in jobs.items()}, 3 if quick else 9)
    again = statistics.median(seconds.pop("explain"))
    per_row = {key: statistics.median(each) / jobs[key][1] for key, each in seconds.items()}
    return [
        {
            "what": "time", "model": name, "nodes": len(plan.nodes), "trees": trees.n_trees,
            "thresholds": len(plan.threshold), "who": key,
            "seconds_per_row": per_row[key], "times_faster": per_row["shap.TreeExplainer"] / per_row[key],
            "spread": float(np.ptp(np.percentile(seconds[key], [25, 75]))) / jobs[key][1],
            "read_seconds": read, "plan_seconds": planned,
            "explain_seconds": again,
        }
        for key in per_row
    ]  # fmt: skip


def threads(trees: TreeEnsemble, weights: Any, count: int, quick: bool) -> dict[str, Any]:
    """Wall time of one thread over that of two, σ = 1: medians, and the fastest rounds for comparison."""
    rows = np.random.default_rng(SEED + 2).normal(size=(count, D))
    given = {"weights": weights, "plan": make_plan(trees)}
    jobs = {most: lambda most=most: smooth(trees, rows, np.ones(D), **given, threads=most) for most in (1, 2)}
    seconds = interleaved(jobs, 3 if quick else THREADED_ROUNDS, time.perf_counter)
    return {
        "what": "threads", "rows": count, "sigma": 1.0, "rounds": len(seconds[1]),
        "seconds": {most: statistics.median(each) for most, each in seconds.items()},
        "speedup": statistics.median(seconds[1]) / statistics.median(seconds[2]),
        "speedup_of_fastest": min(seconds[1]) / min(seconds[2]),
    }  # fmt: skip


def accuracy(trees: TreeEnsemble, weights: Any) -> list[dict[str, Any]]:
    """Relative error of the gradient at each σ, on the worst row."""
    rows = np.random.default_rng(SEED + 3).normal(size=(BRUTE_ROWS, D))
    found = []
    for sigma in SIGMAS:
        got = smooth(trees, rows, np.full(D, sigma), weights=weights).gradients[:, :, 0]
        truth = np.stack([by_boxes(trees, row, sigma, weights) for row in rows])
        relative = np.linalg.norm(got - truth, axis=1) / np.linalg.norm(truth, axis=1)
        found.append(
            {"what": "accuracy", "sigma": sigma, "rows": len(rows), "relative_error": float(relative.max())}
        )  # fmt: skip
    return found


def boxes(trees: TreeEnsemble) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every leaf's node, and the lower and upper ends of its box, (leaves, d)."""
    leaves, lows, highs = [], [], []
    todo = [(int(root), np.full(D, -np.inf), np.full(D, np.inf)) for root in trees.roots]
    while todo:
        node, low, high = todo.pop()
        j, t = trees.feature[node], trees.threshold[node]
        if j < 0:
            leaves.append(node)
            lows.append(low)
            highs.append(high)
            continue
        under, over = high.copy(), low.copy()
        under[j], over[j] = min(high[j], t), max(low[j], t)
        todo += [(int(trees.left[node]), low, under), (int(trees.right[node]), over, high)]
    return np.array(leaves), np.array(lows), np.array(highs)


def by_boxes(trees: TreeEnsemble, x: np.ndarray, sigma: float, weights: Any) -> np.ndarray:
    """∂/∂x_j of Σ leaf · Π P(low_i < a_i ≤ high_i), (d,): the formula itself, without the kernel's short cuts."""
    leaves, lows, highs = boxes(trees)
    value = trees.value[leaves] @ (np.ones(1) if weights is None else np.asarray(weights)) * trees.scale
    low, high = ((ends - x) / sigma for ends in (lows, highs))
    high = np.maximum(low, high)  # a box that contradicts itself is empty
    # in the upper tail from the other side, where 1 - Φ keeps its digits
    chance = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    slope = (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)) / np.sqrt(2 * np.pi) / sigma
    others = [np.prod(np.delete(chance, j, axis=1), axis=1) for j in range(D)]
    return np.array([math.fsum(value * slope[:, j] * others[j]) for j in range(D)])


def boosted_classifiers(quick: bool) -> dict[str, tuple[Any, np.ndarray]]:
    """Name of each to the fitted classifier and the rows it was fitted on."""
    import lightgbm

    share = 10 if quick else 1
    xgb = lambda trees, depth: xgboost.XGBClassifier(
        n_estimators=trees // share, max_depth=depth, learning_rate=0.1, n_jobs=1
    )
    makers: dict[str, tuple[int, int, Any]] = {
        "XGBoost 200 × 5": (12, 2, lambda: xgb(200, 5)),
        "XGBoost 500 × 6": (11, 2, lambda: xgb(500, 6)),
        "LightGBM 100 × 31 leaves": (
            30, 2, lambda: lightgbm.LGBMClassifier(n_estimators=100 // share, num_leaves=31, n_jobs=1, verbose=-1),
        ),
        "XGBoost, three classes × 100 × 5": (12, 3, lambda: xgb(100, 5)),
    }  # fmt: skip
    with contextlib.suppress(ImportError):
        import catboost

        quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
        makers["CatBoost 200 × 6"] = 11, 2, lambda: catboost.CatBoostClassifier(200 // share, depth=6, **quiet)
    found = {}
    for name, (d, classes, make) in makers.items():
        rng = np.random.default_rng(SEED)
        X = rng.normal(size=(4_000, d))
        signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 + 0.7 * rng.normal(size=len(X))
        y = np.digitize(signal, [0.3] if classes == 2 else [-0.3, 0.9])
        found[name] = make().fit(X, y), X
    return found


def probabilities(name: str, model: Any, X: np.ndarray, quick: bool) -> list[dict[str, Any]]:
    """Milliseconds per row to the default tolerance, at two σ, and TreeExplainer's."""
    rows = np.random.default_rng(SEED + 1).normal(size=(PROBABILITY_ROWS, X.shape[1]))
    jobs: dict[Any, Any] = {
        sigma: lambda sigma=sigma: sl.explain(model, rows, sigma=sigma, target=1, progress=False)
        for sigma in (0.3, 1.0)
    }
    explained = {sigma: job() for sigma, job in jobs.items()}
    with contextlib.suppress(Exception):  # it has none for three classes, and says so in many ways
        explainer = shap.TreeExplainer(
            model, X[:100], model_output="probability", feature_perturbation="interventional"
        )
        explainer.shap_values(rows[:1], check_additivity=False)
        jobs["shap"] = lambda: explainer.shap_values(rows, check_additivity=False)
    with one_processor():
        seconds = interleaved(jobs, 3 if quick else 7)
    shap_seconds = statistics.median(seconds["shap"]) / len(rows) if "shap" in seconds else None
    records = []
    for sigma, e in explained.items():
        own = statistics.median(seconds[sigma]) / len(rows)
        records.append({
            "what": "probability", "model": name, "features": X.shape[1], "sigma": sigma, "method": e.method,
            "seconds_per_row": own, "shap_seconds_per_row": shap_seconds,
            "times_shap": None if shap_seconds is None else own / shap_seconds,
            "converged": float(e.converged.mean()), "draws": float(np.median(e.n_samples)),
            "most_draws": int(e.n_samples.max()), "evaluations": float(e.n_evaluations.mean()), "rows": len(rows),
        })  # fmt: skip
    return records


def costs(quick: bool) -> list[dict[str, Any]]:
    """How the time of one call goes with draws and with trees, and wall time of one thread over that of two."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(4_000, D))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=len(X)) > 0.3).astype(int)
    sizes = (100, 200, 400)
    models = {
        n: xgboost.XGBClassifier(n_estimators=n, max_depth=5, learning_rate=0.1, n_jobs=1).fit(X, y) for n in sizes
    }
    rows = rng.normal(size=(16, D))
    ask = lambda trees, n: sl.explain(models[trees], rows, target=1, method="jumps", n_samples=n, progress=False)
    jobs = {(trees, n): lambda trees=trees, n=n: ask(trees, n) for trees in sizes for n in (512, 1_024, 2_048)}
    with one_processor():
        seconds = interleaved(jobs, 3 if quick else 5)
    found = [
        {"what": "cost", "trees": trees, "draws": n, "seconds_per_row": statistics.median(each) / len(rows)}
        for (trees, n), each in seconds.items()
    ]
    both = {1: lambda: one_threaded(lambda: ask(400, 2_048)), 2: lambda: ask(400, 2_048)}
    wall = interleaved(both, 3 if quick else 9, time.perf_counter)
    speedups = statistics.median(wall[1]) / statistics.median(wall[2]), min(wall[1]) / min(wall[2])
    return [*found, {"what": "jump threads", "speedup": speedups[0], "speedup_of_fastest": speedups[1]}]


@contextlib.contextmanager
def one_processor() -> Any:
    """Keep to one processor: as many threads as it may use is what `explain` takes."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def one_threaded(job: Any) -> Any:
    with one_processor():
        return job()


def first_calls() -> dict[str, float]:
    """Seconds to import numba, and of the first call: compiling, and with the compiled code found on disk."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "NUMBA_CACHE_DIR": folder}
        runs = [
            subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=True, env=env)
            for _ in range(3)
        ]
    found = [[float(each) for each in run.stdout.split()] for run in runs]
    return {"import_numba": found[2][0], "first_ever": found[0][1], "first_in_process": min(found[1][1], found[2][1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trees, three rounds")
    parser.add_argument("--probabilities", action="store_true", help="of boosted classifiers, and nothing else")
    asked = parser.parse_args()
    quick = asked.quick
    if asked.probabilities:
        facts = machine("numba", "shap", "xgboost-cpu", "lightgbm", "catboost") | {"seed": SEED}
        drawn = [
            each for name, about in boosted_classifiers(quick).items() for each in probabilities(name, *about, quick)
        ]
        publish("trees_probabilities", [*drawn, *costs(quick)], facts, probabilities_long(drawn), quick=quick)
        return
    facts = machine("numba", "shap", "xgboost-cpu", "scikit-learn") | {"seed": SEED} | first_calls()
    records = [each for name, about in models(quick).items() for each in measure(name, *about, quick)]
    path = write_lines("trees_quick" if quick else "trees", [each | facts for each in records])
    print(trees_long(records))
    for name in ("XGBoost", "random forest"):
        one = next(each for each in records if each["model"] == name)
        two = next(each for each in records if (each["model"], each["what"]) == (name, "threads"))
        apart = max(each["relative_error"] for each in records if (each["model"], each["what"]) == (name, "accuracy"))
        print(
            f"\n{name}: {one['nodes']} splits, {one['thresholds']} thresholds in tables;"
            f" read and proved in {one['read_seconds']:.2f} s, planned in {1e3 * one['plan_seconds']:.0f} ms,"
            f" explained again in {1e3 * one['explain_seconds']:.1f} ms a row;"
            f" two threads {two['speedup']:.2f} times as fast as one; off by {apart:.0e} of the gradient"
        )
    print(
        f"\nimport of numba {facts['import_numba']:.2f} s; first call {facts['first_ever']:.1f} s when it compiles,"
        f" {facts['first_in_process']:.2f} s in later processes"
    )
    print(f"\n{facts['cpu']}, one thread of {facts['cores']} cores; {facts['versions']}; written to {path.name}")


if __name__ == "__main__":
    main()
