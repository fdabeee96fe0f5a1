"""What the live page is told: looks that end in what `explain` says, and errors in words; stale questions end."""

import asyncio
import json
import threading
import time

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import smoothlime as sl
from smoothlime.app.live import demo, looks
from smoothlime.app.live.looks import Question
from smoothlime.app.live.page import as_html, create_page
from smoothlime.app.live.subject import Subject, outputs_of, target_named
from smoothlime.app.live.worker import Stopped, Worker, complaint
from smoothlime.errors import InvalidArgument

TOKEN = "token"
CHANCE = "chance of default"


@pytest.fixture(scope="module")
def loans():
    return demo.loans()


class Client:
    """Asks an application without a server."""

    def __init__(self, application):
        self.application = application

    def get(self, path):
        return asyncio.run(self._ask("GET", path))

    def post(self, path, **settings):
        return asyncio.run(self._ask("POST", path, **settings))

    async def _ask(self, method, path, **settings):
        transport = httpx.ASGITransport(self.application)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1/{TOKEN}/") as client:
            return await client.request(method, path, timeout=60, **settings)


def client_of(subject):
    return Client(create_page(subject, token=TOKEN))


async def endless():
    for _ in range(5):
        yield b"x" * 500_000


@pytest.fixture(scope="module")
def client(loans):
    return client_of(loans)


def lines(answer):
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, 40),
            "income": rng.normal(30.0, 5.0, 40),
            "city": rng.choice(["Rome", "Oslo", "Lima"], 40),
            "member": rng.choice([True, False], 40),
        }
    )


def of_frame(frame, **settings):
    model = lambda t: np.tanh(np.asarray(t["age"], float) / 50) + (np.asarray(t["city"]) == "Rome") * 0.2
    return Subject(model, frame, frame, tuple(frame.columns), ("output",), **settings)


# ---- the made-up model


def test_the_gradients_of_the_demo_are_those_of_its_values(loans):
    x, step = loans.rows, 1e-5
    by_hand = demo.gradients(x)
    for j in range(6):
        up, down = x.copy(), x.copy()
        up[:, j] += step
        down[:, j] -= step
        slope = (demo.values(up) - demo.values(down))[:, 0] / (2 * step)
        np.testing.assert_allclose(by_hand[:, 0, j], slope, atol=1e-8)
    assert not by_hand[:, 1].any()


def test_the_demo_has_good_and_bad_applicants_and_is_always_the_same(loans):
    chance = demo.values(loans.rows)[:, 0]
    assert chance.min() < 0.05
    assert chance.max() > 0.6
    np.testing.assert_array_equal(loans.rows, demo.applicants())
    assert np.isfinite(loans.rows).all()


# ---- answers


def test_the_answer_is_what_explain_says(loans, client):
    *before, last = lines(client.post("explain", json={"row": 0, "target": CHANCE, "sigma": 0.4, "rtol": 0.01}))
    expected = sl.explain(
        loans.model, loans.rows[0], background=loans.rows, sigma=0.4, fixed=["purpose", "home"], target=CHANCE,
        rtol=0.01, max_samples=looks.MOST_SAMPLES,
    )  # fmt: skip
    np.testing.assert_array_equal(np.array(last["done"]["values"], float), expected.values)
    np.testing.assert_allclose(np.array(last["done"]["half"], float), expected.half_width(0.05), rtol=1e-8)
    np.testing.assert_array_equal(last["done"]["switches"]["effect"][0][1:3], expected.switches.effect[0][1:3])
    assert last["done"]["n_samples"] == expected.n_samples.tolist()
    assert last["warnings"] == []
    draws = [each["look"]["n_samples"][0] for each in before]
    assert draws == [256 * 2**k for k in range(len(draws))]
    assert draws[-1] == expected.n_samples[0]
    radii = [each["look"]["radius"][0] for each in before]
    assert radii[-1] < radii[0]
    np.testing.assert_allclose(before[-1]["look"]["values"][0], expected.values[0, :6], rtol=1e-5)
    np.testing.assert_allclose(before[-1]["look"]["half"][0], expected.half_width(0.05)[0, :6], rtol=1e-3)


def test_categories_have_their_names_not_their_codes(loans, client):
    said = lines(client.post("explain", json={"row": 0, "target": CHANCE, "method": "clime"}))[-1]["done"]
    assert set(said["switches"]["levels"]) == {"car", "house", "study", "business", "rents", "owns"}
    assert said["switches"]["own"] == [loans.cells_of(0)[6:]]


def test_changes_are_those_of_the_row(loans, client):
    changes = {"income": 55.5, "purpose": "study"}
    said = lines(client.post("explain", json={"row": 0, "target": CHANCE, "changes": changes}))[-1]["done"]
    row = loans.rows[:1].copy()
    row[0, 0], row[0, 6] = 55.5, 2
    assert said["prediction"] == [demo.values(row)[0, 0]]
    assert said["x"][0][0] == 55.5
    assert said["switches"]["own"][0][0] == "study"


def test_gradients_and_predictions_are_compared(client):
    [said] = lines(client.post("compare", json={"row": 0, "target": CHANCE}))
    assert said["agrees"] is True
    assert said["verdict"].startswith("Gradients and predictions agree within")
    assert set(said["compared"]) == {"smoothgrad", "clime"}
    [said] = lines(client.post("compare", json={"row": 0, "target": "interest rate"}))
    assert said["agrees"] is False
    assert "piecewise constant" in said["verdict"]
    [said] = lines(client_of(of_frame(table())).post("compare", json={"row": 0}))
    assert said["compared"] is None
    assert "needs gradients" in said["why"]


@pytest.mark.parametrize("target", [CHANCE, "interest rate"])
def test_contributions_add_up_whatever_the_gradients_say(loans, client, target):
    [said] = lines(client.post("contributions", json={"row": 5, "target": target}))
    found = sum(bar["value"] for bar in said["bars"])
    here = demo.values(loans.rows[5:6])[0, demo.OUTPUTS.index(target)]
    base = demo.values(loans.rows)[:, demo.OUTPUTS.index(target)].mean()
    assert abs(found - (here - base)) < 0.25 * abs(here - base) + 0.1 * demo.values(loans.rows).std()
    assert ("They come from predictions" in said["said"]) == (target == "interest rate")


@pytest.mark.parametrize("target", [CHANCE, "interest rate"])
def test_interactions_are_those_of_the_model(loans, client, target):
    [said] = lines(client.post("interactions", json={"row": 0, "target": target}))
    assert said["bars"][0]["name"] == "income × debt"  # debt counts relative to income
    assert said["bars"][0]["upper"] < 0
    method = "auto" if target == CHANCE else "clime"
    found = sl.interactions(
        loans.model, loans.rows[0], background=loans.rows, sigma=0.5, fixed=loans.fixed, target=target, method=method,
        rtol=0.02, max_samples=looks.MOST_SAMPLES,
    )  # fmt: skip
    assert [bar["value"] for bar in said["bars"][:3]] == [pair.standardised for pair in found.top(3)]
    np.testing.assert_allclose(said["bars"][0]["lower"], found.top(1)[0].lower * loans_std(found), rtol=1e-6)
    assert "linear" in said["said"]
    assert ("From predictions" in said["said"]) == (target == "interest rate")


def loans_std(found):
    return found.explanation.std[0] * found.explanation.std[1]


def test_methods_cannot_be_compared_on_ranks_and_that_is_said(client):
    [said] = lines(client.post("compare", json={"row": 0, "target": CHANCE, "scale": "ranks"}))
    assert said["compared"] is None
    assert "gradients do not see" in said["why"]


def test_the_report_is_a_page_of_the_row(client):
    answer = client.post("report", json={"row": 2, "target": CHANCE, "changes": {"age": 30}})
    assert answer.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "<h1>Loans, a made-up model: applicant 3 with changes</h1>" in answer.text
    assert answer.text.count("<script") == 4


def test_warnings_are_told(client):
    said = lines(client.post("explain", json={"row": 0, "target": "interest rate"}))[-1]
    assert any("gradients" in each and "jumps" in each for each in said["warnings"])


# ---- what is wrong


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "the question is not JSON"),
        ("[]", "the question must be a JSON object; got a list"),
        ('{"sigma": -1}', "sigma must be a number above 0; got -1"),
        ('{"sigma": true}', "sigma must be a number above 0; got True"),
        ('{"rtol": "x"}', "rtol must be a number above 0; got 'x'"),
        ('{"sigma": 1e999}', "sigma must be a number above 0; got inf"),
        ('{"method": "magic"}', "method must be one of auto, smoothgrad"),
        ('{"method": []}', "method must be one of auto, smoothgrad"),
        ('{"scale": "cubic"}', "scale must be one of linear"),
        ('{"target": 3}', "target must be the name of an output; got 3"),
        (b"\xff\xfe", "the question is not JSON"),
        (b"[" * 100_000, "the question is not JSON"),
    ],
)
@pytest.mark.parametrize("where", ["explain", "report"])
def test_a_question_that_means_nothing_is_refused(client, where, body, words):
    answer = client.post(where, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(words)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"row": 200}, "row must be a whole number from 0 to 199; got 200"),
        ({"row": "1"}, "row must be a whole number from 0 to 199; got '1'"),
        ({"row": True}, "row must be a whole number"),
        ({"changes": [1]}, "changes must be an object of names and values"),
        ({"changes": {"shoe": 1}}, "changes names 'shoe', which is not a column"),
        ({"changes": {"age": "old"}}, "'age' must be a finite number; got 'old'"),
        ({"changes": {"age": 10**400}}, "'age' must be a finite number; got 1000"),
        ({"changes": {"purpose": "boat"}}, "'purpose' must be one of car, house, study, business; got 'boat'"),
        ({"target": "shoe size"}, "target 'shoe size' is not an output"),
    ],
)
def test_what_cannot_be_answered_is_said_in_the_stream(client, question, words):
    [said] = lines(client.post("explain", json={"target": CHANCE} | question))
    assert said["error"].startswith(words)


def test_a_model_that_raises_shows_its_error_and_the_server_goes_on(loans, caplog):
    def model(a):
        if a[0, 0] > 50:
            raise RuntimeError("<b>no such income</b>")
        return a[:, 0]

    rows = np.column_stack([np.linspace(1, 60, 20), np.linspace(0, 1, 20)])
    client = client_of(Subject(model, rows, rows, ("income", "b"), ("output",)))
    for path in ("explain", "compare", "contributions"):
        [said] = lines(client.post(path, json={"row": 19}))[-1:]
        if path != "compare":
            assert "<b>no such income</b>" in said["error"]
    assert client.post("report", json={"row": 19}).status_code == 400
    assert "done" in lines(client.post("explain", json={"row": 0}))[-1]


def test_our_own_mistakes_are_logged_and_told_by_kind(caplog, loans):
    worker, said, done = Worker(), [], threading.Event()
    worker.submit(lambda emit, stop: 1 / 0, said.append, lambda _: done.set(), threading.Event())
    assert done.wait(10)
    assert said == [{"error": "ZeroDivisionError: division by zero"}]
    assert "a question could not be answered" in caplog.text
    assert complaint(InvalidArgument("sigma must be")) == {"error": "sigma must be"}


def test_rows_that_are_not_there_and_other_addresses_are_errors(client):
    assert client.get("rows/3").json()["cells"][-2:] == demo.loans().cells_of(3)[-2:]
    assert client.get("rows/200").status_code == 404
    assert client.get("nothing").status_code == 404
    assert client.get("explain").status_code == 405


def test_a_body_of_any_length_is_not_read(client):
    assert client.post("explain", content=b"x" * 2_000_000).status_code == 413
    answer = client.post("explain", content=endless())
    assert answer.status_code == 400
    assert answer.json() == {"error": "the question is too long"}


# ---- stale questions


def test_a_question_that_nobody_waits_for_is_stopped_at_its_next_look(loans):
    stop, seen = threading.Event(), []

    def emit(said):
        seen.append(said)
        stop.set()

    with pytest.raises(Stopped):
        looks.answer(loans, Question.read({"target": CHANCE, "rtol": 1e-4}), emit, stop)
    assert len(seen) == 1


def test_a_question_whose_asker_has_gone_does_not_keep_others_waiting():
    calls = []

    def slow(a):
        calls.append(len(a))
        time.sleep(0.02)
        return np.sin(a[:, 0]) * np.sign(a[:, 1])

    rows = np.random.default_rng(0).normal(size=(30, 2))
    subject = Subject(slow, rows, rows, ("a", "b"), ("output",))
    worker, gone, done = Worker(), threading.Event(), threading.Event()
    seen = []

    def job(emit, stop):
        return looks.answer(subject, Question.read({"rtol": 1e-6, "method": "clime"}), emit, stop)

    def leave(said):
        seen.append(said)
        gone.set()

    worker.submit(job, leave, lambda _: None, gone)
    worker.submit(lambda emit, stop: emit({"begun": 1}), seen.append, lambda _: None, gone)
    worker.submit(lambda emit, stop: emit({"next": 1}), seen.append, lambda _: done.set(), threading.Event())
    assert done.wait(30)
    assert [next(iter(each)) for each in seen] == ["look", "next"]


# ---- tables


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_rows_of_any_frame_are_shown_and_changed(library):
    frame = table()
    frame.loc[2, "income"] = np.nan
    native = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pl.from_pandas(frame).to_arrow()}[library]
    subject = of_frame(native) if library != "pyarrow" else Subject(None, native, native, tuple(frame.columns), ("y",))
    assert subject.columns[2].levels == ("Lima", "Oslo", "Rome")
    assert subject.columns[3].levels == ("False", "True")
    assert subject.columns[0].is_number
    assert subject.cells_of(2)[1] is None
    one = subject.changed(5, {"age": 33, "city": "Oslo", "member": "True", "income": 12.5})
    shown = Subject(None, one, one, tuple(frame.columns), ("y",))
    assert shown.cells_of(0) == [33.0, 12.5, "Oslo", "True"]
    half = subject.changed(5, {"age": 33.5})
    assert Subject(None, half, half, tuple(frame.columns), ("y",)).cells_of(0)[0] == 33.5
    assert subject.cells_of(5)[0] == float(frame["age"][5])  # the table itself stays as it is


def test_a_category_keeps_its_type_when_it_is_changed():
    frame = table().astype({"city": "category"})
    one = of_frame(frame).changed(0, {"city": "Lima"})
    assert one["city"].dtype == frame["city"].dtype
    assert one["city"].iloc[0] == "Lima"


def test_a_table_with_gaps_is_explained_and_may_be_filled():
    frame = table().astype({"age": float})
    frame.loc[0, "age"] = np.nan
    model = lambda t: np.tanh(np.nan_to_num(np.asarray(t["age"], float)) / 50)
    client = client_of(Subject(model, frame, frame, tuple(frame.columns), ("output",)))
    assert lines(client.post("explain", json={"row": 0}))[-1]["done"]["missing"] == [[0]]
    assert lines(client.post("explain", json={"row": 0, "changes": {"age": 40}}))[-1]["done"]["missing"] == [[]]


def test_columns_that_never_change_or_have_too_many_levels_have_no_control():
    frame = pd.DataFrame({"id": [f"n{k}" for k in range(99)], "one": np.ones(99), "x": np.arange(99.0)})
    columns = Subject(None, frame, frame, tuple(frame.columns), ("y",), fixed=("x",)).columns
    assert columns[0].levels == ()
    assert not columns[0].is_number
    assert not columns[2].is_number  # held fixed
    assert columns[1].step > 0


def test_outputs_are_asked_for_where_the_model_does_not_name_them():
    two = lambda a: np.column_stack([a[:, 0], -a[:, 0]])
    assert outputs_of(two, np.zeros((1, 2)), sigma=1.0) == ("0", "1")
    assert [target_named(each, ("no", "yes")) for each in (None, 0, "yes", "predicted")] == [
        None, "no", "yes", "predicted"
    ]  # fmt: skip
    predicted = Subject(two, np.zeros((3, 2)), None, ("a", "b"), ("no", "yes"), target="predicted")
    assert '"outputs":["no","yes","predicted"]' in as_html(predicted).replace(", ", ",").replace(": ", ":")
    assert Subject(two, np.zeros((1, 2)), None, ("a", "b"), ("no", "yes")).first_target == "yes"
    assert Subject(two, np.zeros((1, 2)), None, ("a", "b"), ("a", "b", "c")).first_target == "a"
    assert Subject(two, np.zeros((1, 2)), None, ("a", "b"), ("y",)).first_target is None
