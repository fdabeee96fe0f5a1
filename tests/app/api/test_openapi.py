"""The OpenAPI description, and all that it allows and forbids, asked by schemathesis."""

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from smoothlime.app.api import Limits, Served, create_app

from .conftest import TABLE, line

EXAMPLES = 100
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
"""All but that what fits the schema is accepted: no schema says where a model has an answer."""

ROUTES = (
    "POST /v1/models/line:explain", "POST /v1/models/mixed:explain", "GET /v1/models/line", "GET /v1/models/mixed",
    "GET /v1/models", "GET /v2/health/live", "GET /v2/health/ready", "GET /metrics",
)  # fmt: skip


def line_with_gaps(points):
    return line(np.nan_to_num(points))


def tolerant():
    """A pipeline that takes gaps and levels it has never seen."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore")
    prepare = ColumnTransformer([("n", numbers, ["age", "debt"]), ("w", levels, ["city"])])
    return make_pipeline(prepare, LogisticRegression()).fit(TABLE, TABLE["age"] > 42)


@pytest.fixture(scope="module")
def operations():
    background = np.random.default_rng(1).normal(size=(60, 3))
    models = {"line": Served(line_with_gaps, background), "mixed": Served(tolerant(), TABLE, target=1)}
    app = create_app(models, limits=Limits(rows=3, max_samples=512, seconds=60))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "localhost"})
    return {found.ok().label: found.ok() for found in schema.get_all_operations()}


def test_every_route_is_described(operations):
    assert set(operations) == set(ROUTES)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("route", ROUTES)
def test_nothing_is_found(operations, route, mode):
    operation = operations[route]
    if mode is GenerationMode.NEGATIVE and not operation.body:
        mode = GenerationMode.POSITIVE  # a path without parameters cannot be asked wrongly
    statuses = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        answer = case.call(headers={"Host": "localhost"})
        statuses.add(answer.status_code)
        # 413 is a refusal too, which schemathesis does not list
        checks = [each for each in CHECKS if answer.status_code != 413 or each is not negative_data_rejection]
        case.validate_response(answer, checks=checks)

    ask()
    if mode is GenerationMode.POSITIVE:  # the schema is not one that nothing fits
        assert 200 in statuses
