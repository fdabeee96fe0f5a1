"""Progress: what a bar says of the time that is left, and parts of a work that count in the whole."""

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
    monkeypatch.setattr("time.time", found)
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
    assert "00:04:30" in shown
    assert "00:04:27" in later


def test_parts_count_in_the_whole():
    seen = []
    watch = _progress.Progress(lambda done, total: seen.append((done, total)), 100)
    for _ in range(2):
        part = watch.within()
        part(20, 40)
        part(40, 40)
    watch.advance(20)
    assert seen == [(20, 100), (40, 100), (60, 100), (80, 100), (100, 100)]
