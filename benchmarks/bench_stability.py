"""Does an explanation change when it is made again? Ours, captum and lime: the spread over seeds, and the top features.

Each explains the same rows with 20 seeds. Spread: the standard deviation over seeds of all attributions of a row, as a
length, over the length of their mean. Top 1 and top 3: how often two runs disagree about the feature with the largest
attribution, or about the set of the three largest. All are means over rows.

First everyone as they come, without any setting: ours asks for 5% error and draws until it is there, lime takes 5,000
points and bins, captum five noisy copies. Then all with the same number of evaluations, captum also with abs=False:
its default averages absolute gradients, which cannot cancel, and only with abs=False is it SmoothGrad and asked what
ours is. Networks on 11 made-up features and on 15 of breast cancer, standardised, σ = 1, which is captum's default and
ours; and a forest, which is exact for us. The libraries answer different questions (slopes, contributions of bins, mean
absolute gradients), so that spreads are compared, not answers.

    python benchmarks/bench_stability.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, publish  # before NumPy: it sets one thread

# isort: split
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import rivals
import torch
import workloads
from tables import stability
from workloads import TARGET, Workload

import smoothlime as sl
from smoothlime.errors import SmoothlimeWarning

SEEDS = 20
EQUAL = (256, 1_024)
LIME_DRAWS, CAPTUM_DRAWS = 5_000, 5
"""Their defaults, which are not passed but counted."""

Answers = Callable[[int], tuple[np.ndarray, float]]
"""A seed to attributions (r, d), and the evaluations per row."""


def ours(workload: Workload, model: Any, **settings: Any) -> Answers:
    """`explain`, with nothing but a seed where no settings are given."""

    def answer(seed: int) -> tuple[np.ndarray, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmoothlimeWarning)  # a row that does not converge shows in the numbers
            e = sl.explain(model, workload.rows, seed=seed, progress=False, **(workload.arguments or {}), **settings)
        return e.standardised, float(e.n_evaluations.mean())

    return answer


def others(attribute: rivals.Attribute, workload: Workload, draws: int, default: int = 0) -> Answers:
    """captum or lime; draws = 0 leaves their default alone."""
    return lambda seed: (attribute(workload.rows, draws, seed), draws or default)


def contestants(workload: Workload) -> dict[tuple[str, str], Answers]:
    """(who, setting) to answers."""
    if workload.is_tree:
        predict = workload.with_values.predict_proba
        return {
            ("smoothlime", "default"): ours(workload, workload.with_values),
            ("lime", "default"): others(
                rivals.lime_default(predict, TARGET, workload.x_train), workload, 0, LIME_DRAWS
            ),
        }
    predict = rivals.predictions(workload.module)
    lime = rivals.lime_default(predict, TARGET, workload.x_train)
    captum = rivals.captum_default(workload.module, TARGET)
    found = {
        ("smoothlime", "default"): ours(workload, workload.with_gradients),
        ("smoothlime, predictions only", "default"): ours(workload, workload.with_values),
        ("captum", "default"): others(captum, workload, 0, CAPTUM_DRAWS),
        ("lime", "default"): others(lime, workload, 0, LIME_DRAWS),
    }
    for n in EQUAL:
        setting = f"{n:,} evaluations"
        found |= {
            ("smoothlime", setting): ours(workload, workload.with_gradients, n_samples=n),
            ("smoothlime, predictions only", setting): ours(workload, workload.with_values, n_samples=n),
            ("captum, abs=False", setting): others(rivals.captum(workload.module, TARGET, 1.0), workload, n),
            ("captum", setting): others(captum, workload, n),
            ("lime", setting): others(lime, workload, n),
        }
    return found


def steadiness(answers: np.ndarray) -> dict[str, np.ndarray]:
    """Of attributions (seeds, r, d), for each row: relative spread, and how often two runs disagree."""
    spread = np.sqrt(answers.var(axis=0, ddof=1).sum(axis=1))
    length = np.linalg.norm(answers.mean(axis=0), axis=1)
    order = np.argsort(-np.abs(answers), axis=2, kind="stable")
    top3 = np.sort(order[..., :3], axis=2)
    one, other = np.triu_indices(len(answers), k=1)
    return {
        "spread": spread / length,
        "top1_changes": (order[one, :, 0] != order[other, :, 0]).mean(axis=0),
        "top3_changes": (top3[one] != top3[other]).any(axis=2).mean(axis=0),
    }


def measure(workload: Workload, seeds: int) -> list[dict[str, Any]]:
    """A record per contestant and setting."""
    records = []
    for (who, setting), answer in contestants(workload).items():
        runs = [answer(seed) for seed in range(1, seeds + 1)]
        by_row = steadiness(np.stack([values for values, _ in runs]))
        about = {"workload": workload.name, "who": who, "setting": setting, "rows": len(workload.rows), "seeds": seeds}
        means = {name: float(values.mean()) for name, values in by_row.items()}
        errors = {f"{name}_se": float(values.std(ddof=1) / np.sqrt(len(values))) for name, values in by_row.items()}
        records.append({**about, "evaluations": float(np.mean([count for _, count in runs])), **means, **errors})
    return records


def main() -> None:
    quick = is_quick(__doc__ or "", "one network and a small forest, two seeds")
    torch.set_num_threads(1)
    chosen = [*workloads.networks(True)[1 if quick else 0 :], workloads.trees(quick)[1]]
    records = [each for workload in chosen for each in measure(workload, 2 if quick else SEEDS)]
    facts = machine("torch", "captum", "lime", "scikit-learn") | {"seed": 1}
    publish("stability", records, facts, stability(records), quick=quick)


if __name__ == "__main__":
    main()
