"""Progress: what a bar says of the time that is left, and parts of a work that count in the whole."""

import subprocess
import sys
import threading

import pytest

from smoothlime._core import progress as _progress


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr("tqdm.std.time", found)
    monkeypatch.setattr("time.monotonic", found)
    return found


def test_a_bar_that_comes_late_forecasts_from_the_beginning(clock, capsys):
    with _progress.Progress(True, 100) as watch:
        clock.now += 30
        watch.advance(10)  # 3 seconds each
        shown = capsys.readouterr().err
        clock.now += 3
        watch.advance(1)
        later = capsys.readouterr().err
    assert "10%" in shown
    assert "<04:30" in shown
    assert "<04:27" in later


def test_parts_count_in_the_whole():
    seen = []
    watch = _progress.Progress(lambda done, total: seen.append((done, total)), 100)
    for _ in range(2):
        part = watch.within()
        part(20, 40)
        part(40, 40)
    watch.advance(20)
    assert seen == [(20, 100), (40, 100), (60, 100), (80, 100), (100, 100)]


def test_a_new_forecast_changes_the_bar_that_is_shown(clock, capsys):
    with _progress.Progress(True, 100) as watch:
        clock.now += 30
        watch.advance(10)
        watch.expect(10)
        clock.now += 3
        watch.advance(1)
        assert "11.0/20.0" in capsys.readouterr().err
    assert "100%" in capsys.readouterr().err  # what was foreseen and not needed does not count


def test_only_a_terminal_or_a_notebook_makes_auto_show_a_bar(clock, capsys, monkeypatch):
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        with _progress.Progress("auto", 10, label="measuring") as watch:
            clock.now += 30
            watch.advance(10)
        assert ("measuring" in capsys.readouterr().err) is is_terminal


def test_an_interrupted_bar_leaves_the_terminal_on_a_fresh_line(clock, capsys):
    def interrupted():
        with _progress.Progress(True, 10) as watch:
            clock.now += 30
            watch.advance(5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    shown = capsys.readouterr().err
    assert "50%" in shown
    assert shown.endswith("\n")


def test_tqdm_is_loaded_only_when_a_bar_is_shown():
    code = "\n".join(
        [
            "import sys",
            "from smoothlime._core import progress",
            "with progress.Progress(True, 10) as watch: watch.advance(10)",
            "print('tqdm' in sys.modules)",
            "progress.SHOW_AFTER = -1.0",
            "with progress.Progress(True, 10) as watch: watch.advance(10)",
            "print('tqdm' in sys.modules)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_bar_leaves_no_thread_behind(clock, capsys):
    before = threading.active_count()
    with _progress.Progress(True, 10) as watch:
        clock.now += 30
        watch.advance(5)
    assert "explaining" in capsys.readouterr().err
    assert threading.active_count() == before
