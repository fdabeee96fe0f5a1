"""What does one row take, beside the model's own calls? Three models that people have, at the default settings.

The second call and later ones, as a service would see them: the library has met the model before. Each is timed beside
its bare calls: every call of the model that `explain` makes is recorded once, with its points, and replayed without us.
For a torch module these are evaluations with gradients, for the others predictions. Wall time, one thread, interleaved.

    python benchmarks/bench_latency.py [--quick]
"""

from __future__ import annotations

from common import interleaved, is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import latency

import smoothlime as sl

SEED = 0
GOALS = {"XGBoost 500 × 6, margin": "5 ms", "loan pipeline, probability": "1.5 × its calls + 5 ms"}

Job = Callable[[], Any]


def boosted() -> tuple[Job, Any, str]:
    """A margin with a closed form."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(2_000, 11))
    model = xgboost.XGBClassifier(n_estimators=500, max_depth=6, n_jobs=1).fit(X, X[:, 0] + X[:, 1] * X[:, 2] > 0)
    return lambda: sl.explain(model, X[0], output="margin", sigma=0.3, progress=False), model, "predict"


def pipeline() -> tuple[Job, Any, str]:
    """The README's loans: two rows of a data frame, and a logistic regression behind transformers."""
    loans = pd.DataFrame(
        {
            "income": [21_000, 48_000, 35_000, 60_000, 27_000, 39_000],
            "age": [23, 51, 40, 35, 62, 30],
            "city": ["York", "Bath", "York", "Leeds", "Bath", "York"],
        }
    )
    columns = make_column_transformer((StandardScaler(), ["income", "age"]), (OneHotEncoder(), ["city"]))
    model = make_pipeline(columns, LogisticRegression()).fit(loans, ["no", "yes", "no", "yes", "yes", "no"])

    def job() -> Any:
        return sl.explain(model, loans.head(2), background=loans, sigma=0.5, target="yes", progress=False)

    return job, model, "predict_proba"


def network() -> tuple[Job, Any, str]:
    """A small torch module, by gradients."""
    torch.manual_seed(SEED)
    net = torch.nn.Sequential(torch.nn.Linear(15, 10), torch.nn.ReLU(), torch.nn.Linear(10, 2)).eval()
    row = np.random.default_rng(SEED).normal(size=15)
    return lambda: sl.explain(net, row, target=1, progress=False), net, "forward"


CASES = {
    "XGBoost 500 × 6, margin": boosted,
    "loan pipeline, probability": pipeline,
    "torch network 15-10-2": network,
}


def recorded(job: Job, model: Any, method: str) -> list[tuple[Any, dict[str, Any]]]:
    """The arguments of every call of a model's method during a job."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    original = getattr(model, method)

    def note(*given: Any, **named: Any) -> Any:
        kept = tuple(each.detach().clone() if isinstance(each, torch.Tensor) else each for each in given)
        calls.append((kept, named))
        return original(*given, **named)

    setattr(model, method, note)
    try:
        job()
    finally:
        delattr(model, method)
    return calls


def replay(model: Any, method: str, calls: list[tuple[Any, dict[str, Any]]]) -> Job:
    """The same calls, one after the other; of a torch module each with a backward pass."""

    def job() -> None:
        for given, named in calls:
            if isinstance(model, torch.nn.Module):
                points = given[0].requires_grad_(True)
                torch.autograd.grad(model(points)[:, 1].sum(), points)
            else:
                getattr(model, method)(*given, **named)

    return job


def main() -> None:
    quick = is_quick(__doc__ or "", "three rounds")
    torch.set_num_threads(1)
    records = []
    for name, make in CASES.items():
        job, model, method = make()
        before = time.perf_counter()
        job()
        first = time.perf_counter() - before
        job()
        calls = recorded(job, model, method)
        jobs: dict[Any, Job] = {"explain": job, "bare": replay(model, method, calls)}
        seconds = interleaved(jobs, 3 if quick else 41, clock=time.perf_counter)
        records.append(
            {
                "model": name, "first": first, "calls": len(calls), "goal": GOALS.get(name, ""),
                "seconds": statistics.median(seconds["explain"]), "fastest": min(seconds["explain"]),
                "bare": statistics.median(seconds["bare"]), "rounds": len(seconds["explain"]), "seed": SEED,
            }
        )  # fmt: skip
    packages = ("scikit-learn", "torch", "xgboost-cpu", "pandas")
    publish("latency", records, machine(*packages), latency(records), quick=quick)


if __name__ == "__main__":
    main()
