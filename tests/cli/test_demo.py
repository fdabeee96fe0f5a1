"""`smoothlime demo` and `smoothlime serve`: the address that they print, and what they refuse."""

import re
import signal
import socket
import subprocess
import sys

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from smoothlime.cli import main

MODELS = """
import time
import numpy as np
slow = lambda a: (time.sleep(3 * (len(a) > 2)), a[:, 0])[1]
two = lambda a: np.column_stack([np.tanh(a[:, 0]), a[:, 1]])
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "served.py").write_text(MODELS)
    rows = np.random.default_rng(0).normal(size=(6, 2))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="age,debt", comments="")
    return tmp_path


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize("command", ["demo", "serve"])
def test_the_whole_address_is_printed_and_an_interrupt_ends_it(command, folder):
    port = free_port()
    arguments = ["served:two", str(folder / "rows.csv"), "--path", str(folder)] if command == "serve" else []
    run = [sys.executable, "-m", "smoothlime", command, *arguments, "--port", str(port), "--no-browser"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            address = running.stdout.readline().strip()
            assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/[\w-]{{32}}/", address)
            page = httpx.get(address)
            assert page.status_code == 200
            assert ("Loans, a made-up model" if command == "demo" else "served:two around rows.csv") in page.text
            question = {"row": 1, "target": "1"} if command == "serve" else {}
            asked = httpx.post(f"{address}explain", json=question, timeout=60)
            assert ('"done"' if command == "serve" else "the model has 2 outputs") in asked.text
        finally:
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=20)
    assert running.returncode == 0
    assert errors == ""


def test_an_interrupt_ends_an_answer_that_is_under_way_without_a_word(folder):
    arguments = ["served:slow", str(folder / "rows.csv"), "--path", str(folder), "--no-browser"]
    run = [sys.executable, "-m", "smoothlime", "serve", *arguments]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            address = running.stdout.readline().strip()
            with httpx.stream("POST", f"{address}explain", json={"row": 1}, timeout=30) as answer:
                assert answer.status_code == 200
                running.send_signal(signal.SIGINT)
                assert answer.read() == b""
            _, errors = running.communicate(timeout=20)
        finally:
            running.kill()
    assert running.returncode == 0
    assert errors == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--port", "99999"], "--port must be from 0 to 65535; got 99999"),
        (["demo", "--host", "203.0.113.1"], "--port 0 of 203.0.113.1 cannot be used"),
        (["demo", "--host", "no such host"], "cannot be used"),
        (["serve", "served:two", "none.csv"], "there is no file 'none.csv'"),
        (["serve", "served:two", "rows.csv", "--scale", "age=ranks"], "--scale must be one word here"),
        (["serve", "served:three", "rows.csv"], "'served' has no 'three'"),
        (["serve", "served:two", "rows.csv", "--target", "zebra"], "--target 'zebra' is not an output"),
        (["serve", "served:two", "rows.csv", "--target", "2"], "--target 2 is out of range"),
    ],
)
def test_what_cannot_be_served_is_said(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    more = ["--path", str(folder)] if arguments[0] == "serve" else []
    done = CliRunner().invoke(main, [*arguments, *more, "--no-browser"])
    assert done.exit_code == 2, done.output
    assert words in done.output


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(main, ["demo", "--port", str(port), "--no-browser"])
    assert done.exit_code == 2
    assert f"--port {port} of 127.0.0.1 cannot be used: Address already in use" in done.output


@pytest.mark.parametrize("command", ["demo", "serve"])
def test_without_the_extra_its_name_is_said(hide, command, folder):
    hide("starlette")
    arguments = ["served:two", str(folder / "rows.csv"), "--path", str(folder)] if command == "serve" else []
    done = CliRunner().invoke(main, [command, *arguments])
    assert done.exit_code == 2
    assert "pip install 'smoothlime[app]'" in done.output
