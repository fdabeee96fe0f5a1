"""The OpenAPI description, and all that it allows and forbids, asked by schemathesis."""

import json

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from smoothlime.app import Limits, Served, create_app

from .conftest import TABLE, line

EXAMPLES = 100


@pytest.fixture(scope="module")
def app(mixed):
    models = {"line": Served(line, np.random.default_rng(1).normal(size=(60, 3))), "mixed": Served(mixed, TABLE)}
    return create_app(models, limits=Limits(rows=3, max_samples=512, seconds=60))


@pytest.fixture(scope="module")
def described(app):
    return schemathesis.openapi.from_dict(json.loads(json.dumps(app.state.service.openapi)))


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_is_found(case, app):
    case.call_and_validate(app=app, headers={"Host": "localhost"})
