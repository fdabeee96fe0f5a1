"""Which scale should a table be explained in? Five tables, boosted models, σ in the units of each scale.

- impossible: share of draws with a negative value in a column that is never negative;
- beyond: share of draws with a value below the smallest or above the largest that the table has in some column;
- fidelity: median over rows of the share of the model's local variation that is linear;
- gap: median over rows of |F(x) − f(x)|, as a share of the standard deviation of f over all rows.

The two files from UCI come from $SMOOTHLIME_DATA, the cache or the UCI archive.

    python benchmarks/bench_scales.py [--quick]
"""

from __future__ import annotations

from common import is_quick, machine, markdown, publish  # before NumPy: it sets one thread

# isort: split
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import smoothlime as sl
from smoothlime.paper.datasets import NUMERICAL, bankruptcy_columns, shopping_columns
from smoothlime.paper.fetching import BANKRUPTCY, SHOPPING, fetch
from smoothlime.paper.parsing import parse_arff, parse_csv, read_text

SIGMAS = (0.5, 1.0)
SCALES = ("linear", "auto", "ranks")
SEED = 1
N_SAMPLES = 1_024


def tables() -> dict[str, tuple[Any, Any, Any]]:
    """Columns, labels and a model of each table; rows of the bankruptcy file with gaps are left out."""
    shop = parse_csv(read_text(fetch(SHOPPING)))
    companies = parse_arff(read_text(fetch(BANKRUPTCY)))
    x, y = bankruptcy_columns(companies, [name for name in companies.names if name != "class"])
    whole = ~np.isnan(x).any(axis=1)
    found = {
        "online shopping": (*shopping_columns(shop, NUMERICAL), HistGradientBoostingClassifier(random_state=0)),
        "bankruptcy": (x[whole], y[whole], HistGradientBoostingClassifier(random_state=0)),
    }
    loaded = {"breast cancer": load_breast_cancer(), "wine": load_wine()}
    for name, data in loaded.items():
        found[name] = data.data, data.target, HistGradientBoostingClassifier(random_state=0)
    data = load_diabetes(scaled=False)
    found["diabetes"] = data.data, data.target, HistGradientBoostingRegressor(random_state=0)
    return found


def measure(rows: int) -> list[dict[str, Any]]:
    """A record for each table, σ and scale."""
    records = []
    for name, (x, y, model) in tables().items():
        model.fit(x, y)
        is_classifier = hasattr(model, "classes_")
        target = 0 if name == "wine" else 1 if is_classifier else None
        every = model.predict_proba(x)[:, target] if is_classifier else model.predict(x)
        asked = x[np.random.default_rng(SEED).choice(len(x), rows, replace=False)]
        for sigma in SIGMAS:
            for scale in SCALES:
                records.append(one(model, asked, x, sigma, scale, target) | {"table": name, "rows": rows})
                records[-1]["gap"] /= float(every.std())
    return records


def one(model: Any, asked: Any, x: Any, sigma: float, scale: str, target: int | None) -> dict[str, Any]:
    """What one neighbourhood does around some rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of draws beyond the data: that is what is measured
        e = sl.explain(
            model, asked, sigma=sigma, background=x, scale=scale, target=target, n_samples=N_SAMPLES, method="clime"
        )
    beyond, impossible = np.empty((2, len(asked)))
    for row in range(len(asked)):
        points = e.perturbations(row)
        beyond[row] = ((points < x.min(axis=0)) | (points > x.max(axis=0))).any(axis=1).mean()
        impossible[row] = ((points < 0) & (x.min(axis=0) >= 0)).any(axis=1).mean()
    return {
        "sigma": sigma,
        "scale": scale,
        "impossible": float(impossible.mean()),
        "beyond": float(beyond.mean()),
        "fidelity": float(np.nanmedian(e.fidelity)),
        "gap": float(np.median(np.abs(e.smoothed - e.prediction))),
    }


def table(records: Any) -> str:
    """The lines of the table in the docs."""
    lines = [
        (
            each["table"],
            f"{each['sigma']:g}",
            each["scale"],
            f"{each['impossible']:.1%}",
            f"{each['beyond']:.1%}",
            f"{each['fidelity']:.2f}",
            f"{each['gap']:.2f}",
        )
        for each in records
    ]
    header = ("table", "σ", "scale", "impossible draws", "beyond the data", "median fidelity", "median gap")
    return markdown(header, lines)


def main() -> None:
    quick = is_quick(__doc__ or "", "10 rows of each table")
    records = measure(10 if quick else 100)
    publish("scales", records, machine("scikit-learn"), table(records), quick=quick)


if __name__ == "__main__":
    main()
