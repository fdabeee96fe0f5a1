"""Models that the tests of the service explain."""

import time

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from smoothlime.app.api import Limits, Served, create_app

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"age": RNG.normal(40, 10, 80), "debt": RNG.exponential(2, 80), "city": RNG.choice(["a", "b"], 80)}
)
WEIGHTS = np.array([2.0, -1.0, 0.5])


def line(points):
    return points @ WEIGHTS


def slow(points):
    time.sleep(0.05)
    return points @ WEIGHTS


def broken(points):
    msg = "secret: /etc/passwd"
    raise RuntimeError(msg)


@pytest.fixture(scope="session")
def mixed():
    """A pipeline of numbers and text."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    prepare = ColumnTransformer([("n", StandardScaler(), ["age", "debt"]), ("w", OneHotEncoder(), ["city"])])
    label = np.where(TABLE["age"] + 5 * (TABLE["city"] == "b") > 42, "yes", "no")
    return make_pipeline(prepare, LogisticRegression()).fit(TABLE, label)


@pytest.fixture(scope="session")
def models(mixed):
    background = np.random.default_rng(1).normal(size=(60, 3))
    return {
        "line": Served(line, background),
        "mixed": Served(mixed, TABLE, target="yes"),
        "broken": Served(broken, background),
        "slow": Served(slow, background),
    }


@pytest.fixture
def client(models):
    app = create_app(models, limits=Limits(rows=20, size=50_000, workers=2))
    with TestClient(app, base_url="http://localhost") as client:
        yield client
