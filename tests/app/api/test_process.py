"""`smoothlime serve` as a process: what it answers under load, how it starts and how it stops."""

import signal
import threading
import time

import httpx
import pytest
from click.testing import CliRunner

from smoothlime.cli import main

from . import load


def test_five_hundred_requests_are_answered_rightly_or_refused_with_a_reason(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = load.run(500)
    assert done["seen"] == {200: 450, 400: 10, 404: 5, 413: 10, 422: 25}
    assert "smoothlime_requests_total 500\n" in done["metrics"]
    assert "smoothlime_refused_total 50\n" in done["metrics"]
    assert "smoothlime_failed_total 0\n" in done["metrics"]
    assert "smoothlime_rows_total 450\n" in done["metrics"]
    early, late = done["memory"]
    assert late < early + 30, done["memory"]  # MB
    assert done["code"] == 0
    assert done["said"] == "smoothlime: stopped\n"


@pytest.fixture
def folder(tmp_path):
    load.make_folder(tmp_path)
    slow = "import time\n\ndef line(a):\n    time.sleep(0.3)\n    return a @ [2.0, -1.0, 0.5]\n"
    (tmp_path / "served_models.py").write_text(slow)
    return tmp_path


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_what_runs_is_finished_before_the_end(folder, told):
    process, address = load.start(folder)
    answers = []

    def ask():
        body = {"instances": [[1, 2, 3]], "parameters": {"n_samples": 64}}
        answers.append(httpx.post(f"{address}/v1/models/line:explain", json=body, timeout=60, trust_env=False))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)  # the model is slow, and called several times
    process.send_signal(told)
    thread.join(60)
    assert answers[0].status_code == 200
    assert process.wait(30) == 0
    assert process.stderr.read() == "smoothlime: stopped\n"
    process.stderr.close()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--host", "0.0.0.0"], "others can reach --host '0.0.0.0', so requests need a token: --token-env NAME"),
        (["--token-env", "NO_SUCH_TOKEN"], "--token-env names 'NO_SUCH_TOKEN', and there is no such environment"),
        (["--token-env", "SHORT_TOKEN"], "token must be 16 or more letters and digits"),
        (["--api", "line"], "--api must be NAME=MODEL, such as credit=model.ubj; got 'line'"),
        (["--api", "line=served_models:line"], "--api names 'line' twice"),
        (["--api", "a b=served_models:line"], "has the name 'a b'; a name is letters, digits"),
        (["--background", "other=a.csv"], "there is no file 'other=a.csv'"),
        (["some.ubj"], "give --api NAME=MODEL for a service, or MODEL and TABLE for a page, not both"),
        (["--rows", "3"], "--rows is for a page; a service takes its rows from requests"),
        (["--scale", "ags=log"], "--scale names 'ags', which is not a column"),
        (["--max-rows", "0"], "--max-rows must be a whole number >= 1; got 0"),
        (["--timeout", "0"], "--timeout must be more than 0; got 0"),
        (["--sigma", "-1"], "sigma must be"),
        (["--host", "256.1.1.1", "--token-env", "LONG_TOKEN"], "of 256.1.1.1 cannot be used"),
    ],
)
def test_services_that_cannot_start_say_why(folder, monkeypatch, more, said):
    monkeypatch.setenv("SHORT_TOKEN", "secret")
    monkeypatch.setenv("LONG_TOKEN", "0123456789abcdef")
    (folder / "at_once.py").write_text(load.MODEL)
    arguments = ["serve", "--path", str(folder), "--api", "line=at_once:line", "--port", "0"]
    arguments += ["--background", str(folder / "background.csv"), "--columns", "age,debt,pay"]
    more = [each.replace("served_models", "at_once") for each in more]
    done = CliRunner().invoke(main, [*arguments, *more])
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "Traceback" not in done.output
    assert "secret" not in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give MODEL and TABLE for a page, or --api NAME=MODEL and --background FILE for a service"),
        (["m.ubj", "t.csv", "--timeout", "3"], "--timeout is for a service: give --api NAME=MODEL with it"),
        (["m.ubj", "t.csv", "--token-env", "A"], "--token-env is for a service"),
        (["--api", "a=m.ubj"], "--background has no file for 'a'"),
    ],
)
def test_pages_and_services_are_told_apart(arguments, said):
    done = CliRunner().invoke(main, ["serve", *arguments])
    assert done.exit_code == 2, done.output
    assert said in done.output
