"""Explanations of all kinds, to be shown in pages."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import smoothlime as sl

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>window.broken = 1</script>",
    "\"'><img src=x onerror=alert(2)>",
    "{{ 7 * 7 }} &amp; <!--",
    "年齢\u202e\x1b[2J",
)


def loans(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": np.round(rng.lognormal(10, 0.5, n)),
            "debt": np.round(rng.gamma(2, 4000, n)),
            "late": rng.poisson(0.6, n).astype(float),
            "idle": rng.normal(size=n),
            "purpose": rng.choice(["car", "home", "study"], n),
        }
    )


def risk(table):
    score = 1 - np.log(np.clip(table["income"], 2e3, None) / 2e4) + table["debt"] / 9000 + 0.5 * table["late"].fillna(0)
    score = score + table["purpose"].map({"car": 0.0, "home": -0.6, "study": 0.4}).astype(float)
    return 1 / (1 + np.exp(-score.to_numpy(float)))


def with_switches():
    table = loans()
    return sl.explain(risk, table.head(30), background=table, sigma=0.5, n_samples=256)


def on_scales():
    table = loans()
    scale = {"income": "log", "late": "ranks"}
    return sl.explain(risk, table.head(4), background=table, sigma=0.5, scale=scale, n_samples=256, switches=False)


def with_gaps():
    table = loans()
    rows = table.head(3).copy()
    rows.loc[1, "late"] = np.nan
    return sl.explain(risk, rows, background=table, sigma=0.5, n_samples=256)


def exact():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4))
    classifier = LogisticRegression().fit(X, X[:, 0] - X[:, 1] > 0)
    return sl.explain(classifier, X[:5], background=X, sigma=0.5, target=1)


def one_row():
    return sl.explain(lambda a: a[:, 0] * a[:, 1], [1.0, 2.0], sigma=0.1)


def large():
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(1_000, 50)), rng.normal(size=50)
    return sl.explain(lambda a: np.tanh(a @ weights / 3), X, n_samples=256)


class HostileModel:
    """Names of features and outputs that would be markup if a page took them for it."""

    outputs = (f"risk {HOSTILE[0]}",)
    feature_names = HOSTILE

    def values(self, points):
        return (points @ np.arange(1.0, 6.0))[:, None]


def hostile():
    rows = np.random.default_rng(3).normal(size=(3, 5))
    return sl.explain(HostileModel(), rows, sigma=0.5)


KINDS = (with_switches, on_scales, with_gaps, exact, one_row)
