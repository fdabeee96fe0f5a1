"""What is it worth that the trees behind probabilities are known? And are errors of their jumps honest.

Small models of scikit-learn's own data, some rows of each, every class, narrow and wide neighbourhoods. A repeat is a
row: equal rows with independent draws, explained by jumps of the trees and by differences of predictions.

- gain: variance of the standardised slopes over the repeats, summed over features, of differences over that of jumps;
- per feature: share of intervals that hold the slope, over all cases;
- L2: cases in which fewer than 90% of the repeats lie within `radius` of the truth. Rows around which the model almost
  never moves are beyond any number of draws like these, and fail by differences too.

The truth is 200 times as many draws with another seed, for each feature by jumps or differences, whichever is more
precise.

    python benchmarks/bench_controls.py [--quick]
"""

from __future__ import annotations

from common import machine, markdown, write_lines  # before NumPy: it sets one thread

# isort: split
import argparse
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier

import smoothlime as sl

SEED = 0
DRAWS = (256, 1_024)
SIGMAS = (0.1, 0.3, 1.0)
MODELS: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
    "GradientBoosting, iris": (lambda: GradientBoostingClassifier(n_estimators=30, random_state=0), load_iris),
    "XGBoost, iris": (lambda: xgboost.XGBClassifier(n_estimators=40, max_depth=4, n_jobs=1), load_iris),
    "GradientBoosting, wine": (lambda: GradientBoostingClassifier(n_estimators=30, random_state=0), load_wine),
    "LightGBM, wine": (lambda: lightgbm.LGBMClassifier(n_estimators=40, verbose=-1, n_jobs=1), load_wine),
    "XGBoost, cancer": (lambda: xgboost.XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1), load_breast_cancer),
}


def judge(e: sl.Explanation, truth: np.ndarray) -> dict[str, float]:
    """Spread and coverages of many independent explanations of the same slopes (d,)."""
    lower, upper = e.interval(0.95)
    rounding = 1e-12 * np.abs(truth * e.std).max() / e.std
    away = np.linalg.norm((e.values - truth) * e.std, axis=1)
    return {
        "variance": float((e.values * e.std).var(axis=0, ddof=1).sum()),
        "claimed": float(((e.standard_error * e.std) ** 2).mean(axis=0).sum()),
        "feature_mean": float(((lower - rounding <= truth) & (truth <= upper + rounding)).mean()),
        "l2": float((away <= e.radius * (1 + 1e-9)).mean()),
    }


def measure(name: str, n: int, rows: int, repeats: int) -> Iterable[dict[str, Any]]:
    """One record per σ, row and class."""
    make, load = MODELS[name]
    data, labels = load(return_X_y=True)
    model = make().fit(data, labels)
    picked = np.random.default_rng(SEED).choice(len(data), rows, replace=False)
    for sigma in SIGMAS:
        asked = {"sigma": sl.Neighbourhood.from_data(data, sigma), "progress": False}
        for row in map(int, picked):
            answers, references = [], []
            for method in ("differences", "jumps"):
                x = np.repeat(data[[row]], repeats, axis=0)
                answers.append(
                    sl.explain_outputs(model, x, method=method, n_samples=n, draws="independent", seed=SEED, **asked)
                )
                references.append(
                    sl.explain_outputs(model, x[:1], method=method, n_samples=200 * n, seed=SEED + 1, **asked)
                )
            for output in list(answers[0])[-1 if len(answers[0]) == 2 else 0 :]:  # two classes mirror each other
                plain, control = (each[output] for each in references)
                is_better = control.standard_error < plain.standard_error
                truth = np.where(is_better, control.values, plain.values)[0]
                if not np.abs(truth).max():
                    continue
                found = [judge(each[output], truth) for each in answers]
                yield {
                    "model": name,
                    "sigma": sigma,
                    "row": row,
                    "output": output,
                    "n": n,
                    "repeats": repeats,
                    "seed": SEED,
                    "plain": found[0],
                    "control": found[1],
                }


def gain(record: dict[str, Any]) -> float:
    before, after = record["plain"]["variance"], record["control"]["variance"]
    return before / after if after else 1.0


def table(records: list[dict[str, Any]]) -> str:
    lines = []
    for n in sorted({each["n"] for each in records}):
        for name in MODELS:
            for sigma in SIGMAS:
                here = [each for each in records if (each["n"], each["model"], each["sigma"]) == (n, name, sigma)]
                if here:
                    lines.append((f"{n:,}", name, f"{sigma:g}", *summary(here)))
    head = ("n", "model", "σ", "cases", "gain: median (10% to 90%)", "per feature, differences", "jumps")
    return markdown((*head, "L2 below 90%, differences", "jumps", "both"), lines)


def summary(records: list[dict[str, Any]]) -> tuple[str, ...]:
    gains = np.array([gain(each) for each in records])
    low, middle, high = np.quantile(gains, (0.1, 0.5, 0.9))
    by_feature = [
        f"{100 * np.mean([each[key]['feature_mean'] for each in records]):.1f}" for key in ("plain", "control")
    ]
    short = np.array([[each[key]["l2"] < 0.9 for key in ("plain", "control")] for each in records])
    return (
        str(len(records)),
        f"{middle:.1f} ({low:.1f} to {high:.1f})",
        *by_feature,
        *(str(count) for count in (*short.sum(axis=0), short.all(axis=1).sum())),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few rows and repeats, 256 draws")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", sl.errors.NotConverged)
    facts = machine("scikit-learn", "xgboost-cpu", "lightgbm", "numba")
    records = []
    for n in DRAWS[:1] if quick else DRAWS:
        for name in MODELS:
            print(f"{name}, n = {n:,}", file=sys.stderr, flush=True)
            records += measure(name, n, *((3, 40) if quick else (12, 200)))
    path = write_lines("controls_quick" if quick else "controls", [each | facts for each in records])
    print(table(records))
    for n in sorted({each["n"] for each in records}):
        print(f"\nAll at n = {n:,}:", *summary([each for each in records if each["n"] == n]))
    print(f"\nsmoothlime {facts['versions']['smoothlime']}, commit {facts['commit']}; written to {path.name}")


if __name__ == "__main__":
    main()
