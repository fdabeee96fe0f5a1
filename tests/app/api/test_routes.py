"""The routes: what is asked rightly is answered as `explain` does, what is asked wrongly is refused with its reason."""

import json
import threading
import time

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import smoothlime as sl
from smoothlime.app.api import Limits, Served, create_app
from smoothlime.errors import InvalidArgument, WrongType

from .conftest import TABLE, WEIGHTS, line


def ask(client, name, instances, **parameters):
    return client.post(f"/v1/models/{name}:explain", json={"instances": instances, "parameters": parameters})


def test_a_line_has_its_coefficients(client):
    rows = [[0.5, 1.0, -2.0], [3.0, 0.0, 1.0]]
    answer = ask(client, "line", rows)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    np.testing.assert_allclose(told["predictions"], np.array(rows) @ WEIGHTS)
    for each in told["explanations"]:
        np.testing.assert_allclose([each["values"][f"x{j}"] for j in range(3)], WEIGHTS, atol=1e-9)
        assert each["converged"]


def test_objects_and_lists_and_text_and_gaps(client, mixed):
    instances = [{"city": "b", "age": 30, "debt": 1.5}, [50.0, 2, "a"]]
    told = ask(client, "mixed", instances).json()
    X = pd.DataFrame({"age": [30.0, 50.0], "debt": [1.5, 2.0], "city": ["b", "a"]})
    e = sl.explain(mixed, X, background=TABLE, sigma=0.5, target="yes", switches=False)
    about = {"output": "yes", "method": e.method, "design": e.design, "seed": e.seed, "is_exact": e.is_exact}
    assert told["about"] == about
    np.testing.assert_allclose(told["predictions"], e.prediction, rtol=1e-12)
    low, high = e.interval()
    for i, each in enumerate(told["explanations"]):
        found = np.array([np.nan if v is None else v for v in each["values"].values()])
        np.testing.assert_allclose(found, e.values[i], rtol=1e-9)
        assert each["values"]["city"] is None
        np.testing.assert_allclose(each["lower"]["age"], low[i, 0], rtol=1e-9)
        np.testing.assert_allclose(each["upper"]["age"], high[i, 0], rtol=1e-9)
    gap = ask(client, "line", [[None, 1.0, 1.0]])
    assert gap.status_code == 422  # the line takes no gaps
    assert "Row 0 has gaps in 'x0'" in gap.json()["error"]


def test_settings_are_those_of_explain(client):
    given = {"method": "clime", "n_samples": 300, "seed": 7, "sigma": 0.25, "confidence": 0.9, "rtol": 0.5}
    one, two = (ask(client, "line", [[0.1, 0.2, 0.3]], **given) for _ in range(2))
    assert one.content == two.content
    told = one.json()
    assert told["about"]["seed"] == 7
    assert told["explanations"][0]["n_samples"] >= 300
    contrast = ask(client, "mixed", [[40, 1, "a"]], target={"yes": 1, "no": -1}).json()
    single = ask(client, "mixed", [[40, 1, "a"]], target="yes").json()
    np.testing.assert_allclose(contrast["predictions"][0], 2 * single["predictions"][0] - 1)
    assert ask(client, "mixed", [[40, 1, "a"]], target="predicted").status_code == 200
    assert ask(client, "mixed", [[40, 1, "a"]], output="margin", target=1).json()["about"]["is_exact"]


def with_parameters(text):
    return b'{"instances": [[1, 2, 3]], "parameters": ' + text + b"}"


REFUSED = [
    (b"{", 400, "the body is no JSON: Expecting property name"),
    (b"", 400, "the body is no JSON"),
    (b"\xff", 400, "the body is no JSON"),
    (b'{"instances": [[NaN, 1, 2]]}', 400, "NaN is not in JSON; write null for what is missing"),
    (b"[" * 50_000, 400, "it is nested too deep"),
    (b'{"instances": [[1, 2, ' + b"9" * 6000 + b"]]}", 400, "the body is no JSON"),
    (b"[]", 422, 'the body must be an object with a list "instances"'),
    (b'{"rows": []}', 422, 'the body must be an object with a list "instances"'),
    (b'{"instances": []}', 422, "instances must be a list of one or more rows"),
    (b'{"instances": {}}', 422, "instances must be a list of one or more rows"),
    (b'{"instances": [1]}', 422, "instances[0] has 1; it must be a list or an object of 3: x0, x1, x2"),
    (b'{"instances": [[1, 2]]}', 422, "instances[0] has 2 values"),
    (b'{"instances": [[1, 2, 3], [1, 2, 3, 4]]}', 422, "instances[1] has 4 values"),
    (b'{"instances": [[1, 2, "NaN"]]}', 422, 'x2 of instances[0] must be a number or null; got "NaN"'),
    (b'{"instances": [[1, 2, true]]}', 422, "x2 of instances[0] must be a number or null; got true"),
    (b'{"instances": [[1, 2, 1e999]]}', 422, "x2 of instances[0] must be a number or null"),
    (b'{"instances": [[1, 2, ' + b"9" * 400 + b"]]}", 422, "x2 of instances[0] must be a number or null"),
    (b'{"instances": [[1, 2, 1e308]]}', 422, ""),
    (b'{"instances": [{"x0": 1, "x1": 2}]}', 422, 'instances[0] has no "x2"; the columns are x0, x1, x2'),
    (b'{"instances": [{"x0": 1, "x1": 2, "x2": 3, "x3": 4}]}', 422, 'instances[0] has an unknown "x3"'),
    (b'{"instances": [[1, 2, 3]], "other": 1}', 422, 'the body has "other"; it may have'),
    (with_parameters(b"[]"), 422, "parameters must be an object"),
    (with_parameters(b'{"model": 1}'), 422, 'parameters has "model"; a request may choose'),
    (with_parameters(b'{"sigma": 0}'), 422, "parameters.sigma must be a number from 0.001"),
    (with_parameters(b'{"rtol": "1"}'), 422, "parameters.rtol must be a number from 0.01"),
    (with_parameters(b'{"seed": -1}'), 422, "parameters.seed must be a whole number from 0"),
    (with_parameters(b'{"n_samples": 1e9}'), 422, "parameters.n_samples must be a whole"),
    (with_parameters(b'{"n_samples": 2}'), 422, "n_samples"),
    (with_parameters(b'{"method": "lime"}'), 422, "parameters.method must be one of auto"),
    (with_parameters(b'{"method": ["auto"]}'), 422, "parameters.method must be one of auto"),
    (with_parameters(b'{"method": "exact"}'), 422, "exact"),
    (with_parameters(b'{"target": []}'), 422, "parameters.target must be the name or"),
    (with_parameters(b'{"target": "\\ud800"}'), 422, "target"),
    (b'{"instances": [' + b"[1, 2, 3]," * 20 + b"[1, 2, 3]]}", 413, "instances has 21 rows, and the limit is 20"),
    (b" " * 50_001, 413, "the body is larger than 50000 bytes, which is the limit"),
]


@pytest.mark.parametrize(("body", "status", "reason"), REFUSED)
def test_what_is_wrong_is_said(client, body, status, reason):
    answer = client.post("/v1/models/line:explain", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert reason in answer.json()["error"]
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([40, 1, 3], "city of instances[0] must be text or null; got 3"),
        ([40, 1, "\ud800"], "city of instances[0] must be text or null"),
        (["40", 1, "a"], 'age of instances[0] must be a number or null; got "40"'),
        ([40, 1, "c"], "the model failed at these instances, or around them"),
    ],
)
def test_kinds_of_columns_are_checked(client, value, reason):
    body, headers = json.dumps({"instances": [value]}), {"Content-Type": "application/json"}
    answer = client.post("/v1/models/mixed:explain", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert reason in answer.json()["error"]


def test_what_a_model_says_of_this_machine_stays_here(client, caplog):
    answer = ask(client, "broken", [[1, 2, 3]])
    assert answer.status_code == 422
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "secret" in caplog.text


def test_a_bug_shows_no_trace(models, monkeypatch, caplog):
    monkeypatch.setattr(Served, "explain", lambda *_, **__: 1 / 0)
    with TestClient(create_app(models), base_url="http://localhost") as client:
        answer = ask(client, "line", [[1, 2, 3]])
        counters = client.get("/metrics").text
    assert answer.status_code == 500
    assert answer.json() == {"error": "this is an error of the service; its log says more"}
    assert "smoothlime_failed_total 1" in counters
    assert "ZeroDivisionError" in caplog.text


def test_paths_and_methods(client):
    assert client.get("/v1/models").json() == {"models": ["line", "mixed", "broken", "slow"]}
    told = client.get("/v1/models/mixed").json()
    assert told["ready"] is True
    assert told["columns"][2] == {"name": "city", "kind": "text"}
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    for path in ("/v1/models/other", "/v1/models/other:explain", "/nothing", "/v1/models/", "/v1/models/line:predict"):
        answer = client.post(path, json={"instances": [[1, 2, 3]]}) if "other:" in path else client.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]
    for method, path in (("GET", "/v1/models/line:explain"), ("POST", "/v1/models/line"), ("DELETE", "/metrics")):
        answer = client.request(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"]
    answer = client.post("/v1/models/line:explain", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert answer.json()["error"] == "Content-Type must be application/json; got text/plain"


def test_counters_count(client):
    ask(client, "line", [[1, 2, 3], [1, 2, 4]], n_samples=64)
    ask(client, "line", [[1, 2]])
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = dict(each.rsplit(" ", 1) for each in answer.text.splitlines() if not each.startswith("#"))
    assert lines["smoothlime_requests_total"] == "2"
    assert lines["smoothlime_refused_total"] == "1"
    assert lines["smoothlime_rows_total"] == "2"
    assert int(lines["smoothlime_evaluations_total"]) >= 128
    assert len(lines) == 5
    assert answer.text.count("# TYPE") == 5


def test_what_takes_too_long_is_let_go(models):
    limits = Limits(seconds=0.3, workers=1)
    with TestClient(create_app(models, limits=limits), base_url="http://localhost") as client:
        answer = ask(client, "slow", [[1, 2, i] for i in range(200)], n_samples=20_000, method="stein")
        assert answer.status_code == 504
        assert "this took longer than the limit of 0.3 s" in answer.json()["error"]
        work = client.app.state.service.work
        deadline = time.monotonic() + 20
        while work.inside and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not work.inside  # the thread has stopped by itself, long before its end


def test_more_than_may_wait_are_told_to_come_again(models):
    limits, answers = Limits(waiting=2, workers=1), []
    with TestClient(create_app(models, limits=limits), base_url="http://localhost") as client:

        def one():
            answers.append(ask(client, "slow", [[1, 2, 3]], n_samples=64))

        threads = [threading.Thread(target=one) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    statuses = [each.status_code for each in answers]
    assert statuses.count(200) >= 2
    assert set(statuses) == {200, 429}
    busy = next(each for each in answers if each.status_code == 429)
    assert busy.headers["retry-after"] == "1"
    assert "come again" in busy.json()["error"]


def test_an_application_may_be_started_again(models):
    app = create_app(models)
    for _ in range(2):
        with TestClient(app, base_url="http://localhost") as client:
            assert ask(client, "line", [[1, 2, 3]]).status_code == 200


def test_a_service_that_closes_takes_nothing(models):
    with TestClient(create_app(models), base_url="http://localhost") as client:
        client.app.state.service.work.is_closing = True
        answer = ask(client, "line", [[1, 2, 3]])
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert client.get("/v2/health/ready").status_code == 503
        assert client.get("/v2/health/live").status_code == 200


DATES = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-01-02"]), "a": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda: create_app({}), InvalidArgument, "models is empty"),
        (lambda: create_app({"a/b": Served(line, np.eye(3))}), InvalidArgument, "models has the name 'a/b'"),
        (lambda: create_app({"a": line}), WrongType, r"models must map names to Served\(model, background\); 'a' is a"),
        (
            lambda: create_app({"a": Served(line, np.eye(3))}, token="short"),
            InvalidArgument,
            "token must be 16 or more",
        ),
        (lambda: Limits(rows=0), InvalidArgument, "rows must be a whole number >= 1"),
        (lambda: Limits(seconds=0), InvalidArgument, "seconds must be more than 0"),
        (lambda: Served(line, DATES), InvalidArgument, "column 'when' of the background holds Datetime.*leave it out"),
    ],
)
def test_services_that_cannot_be_are_refused(made, error, said):
    with pytest.raises(error, match=said):
        made()


def test_a_background_without_a_column_of_the_model_is_refused(mixed):
    with pytest.raises(InvalidArgument, match="background has no column 'debt', which the model takes"):
        Served(mixed, TABLE[["age", "city"]])
