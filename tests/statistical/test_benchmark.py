"""`benchmark`: measured errors are the true ones, and independent draws get better as n^(-1/2)."""

import re
import time

import numpy as np
import pytest

import smoothlime as sl
from smoothlime.benchmarking import contenders
from smoothlime.benchmarking.benchmark import Reference, _apart, _Truth, benchmark, crossing
from smoothlime.errors import TooFewDraws, WrongType
from smoothlime.plots.contest import as_text


def test_errors_are_those_of_known_slopes():
    # E(‖ŵ − w‖² / ‖w‖²) of SmoothGrad from n iid draws is Var(h') / (n E(h')²) for a ridge function h(v·a)
    v, x, tau = np.array([0.6, -0.8]), np.array([0.3, 0.1]), 0.5
    model = sl.testing.Sine(v)
    mean = np.cos(v @ x) * np.exp(-(tau**2) / 2)
    square = (1 + np.cos(2 * v @ x) * np.exp(-2 * tau**2)) / 2
    expected = np.sqrt((square - mean**2) / mean**2)
    repeats = 400
    found = benchmark(
        model, x, sigma=tau, methods=["smoothgrad"], designs=["iid"], draws=[64, 256], repeats=repeats, progress=False
    )
    (plain,) = found.contenders
    # the square of an error is nearly χ²₁ times its mean, so its mean over repeats has relative error √(2/repeats);
    # half of it for the root; 4.9 standard errors miss once in a million
    allowed = 4.9 * np.sqrt(2 / repeats) / 2
    for n, error in zip(plain.draws, plain.errors, strict=True):
        assert error * np.sqrt(n) / expected == pytest.approx(1, abs=allowed)
    assert allowed < 0.2  # σ for σ² or a lost root would show


def test_a_gradient_that_misses_jumps_is_not_held_against_predictions():
    # gradients of a step are zero; what is left is the slope of the linear part, and it is exact by gradients
    jumps = sl.from_functions(
        values=lambda a: a[:, 0] + 2.0 * (a[:, 1] > 0), gradients=lambda a: np.tile([1.0, 0.0], (len(a), 1))
    )
    with pytest.warns(sl.errors.JumpsUnseen, match="the gradient of 'x1' is zero although the output follows it"):
        found = benchmark(jumps, [0.2, 0.1], sigma=0.5, draws=[64, 256], repeats=3, progress=False)
    errors = {(each.method, each.design): each.errors[-1] for each in found.contenders}
    assert errors["smoothgrad", "iid"] < 1e-12
    assert 0.01 < errors["clime", "iid"] < 0.5
    # ∂F/∂x₁ = 2 φ(0.1/0.5)/0.5 is what the gradients miss; relative to the length of both slopes
    missed = 2 * np.exp(-(0.2**2) / 2) / np.sqrt(2 * np.pi) / 0.5
    assert found.apart == pytest.approx(missed / np.hypot(missed, 1), abs=0.02)
    assert "slopes differ by up to 8" in as_text(found)
    assert "Methods from predictions are right" in as_text(found)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_that_are_right_are_not_said_to_miss_anything(seed):
    rng = np.random.default_rng(seed)
    curved, line = (
        sl.testing.Sine(rng.normal(size=3)),
        sl.from_functions(
            values=lambda a: a @ [1.0, 2.0, 3.0], gradients=lambda a: np.tile([1.0, 2.0, 3.0], (len(a), 1))
        ),
    )
    for model in (curved, line):
        found = benchmark(
            model, rng.normal(size=(6, 3)), methods=["smoothgrad", "clime"], designs=["iid"], draws=[64, 128],
            repeats=2, seed=seed, progress=False,
        )  # fmt: skip
        assert len(found.references) == 2
        assert found.apart is None
        assert "slopes differ" not in as_text(found)


def test_gradients_are_said_to_miss_something_beyond_chance_and_a_hundredth_of_the_slope():
    def truth(slopes, error):
        return _Truth(np.array(slopes), np.array(error), Reference("", "", "", 0, 0.0))

    values = truth([[3.0, 4.0], [0.0, 1.0]], [0.0, 0.001])
    for offset, error, apart in ((0.04, 0.0, None), (0.5, 0.0, 0.1), (0.5, 0.2, None)):  # of a slope of length 5
        gradients = truth([[3.0 + offset, 4.0], [0.0, 1.0]], [error, 0.001])
        found = _apart({"gradients": gradients, "values": values})
        assert found == (None if apart is None else pytest.approx(apart))
    assert _apart({"values": values}) is None


def test_draws_that_are_enough_once_blocks_are_whole_are_tried():
    """Differences on 3 features need two bases, 12 draws; 7 are rounded up to as many, and 6 are one basis."""
    pair = ("differences", "differences")
    assert contenders.with_enough_draws([pair], [6, 7, 64], 3) == ({pair: [7, 64]}, ())
    assert sl.explain(sl.testing.Sine(np.ones(3)), np.zeros(3), method="differences", n_samples=7).n_samples == 12


def test_progress_is_told_during_the_larger_run_and_adds_up():
    seen = []
    benchmark(
        lambda a: np.tanh(a).sum(axis=1), [[0.1, 0.2]], methods=["clime"], designs=["iid"], draws=[64, 2**16],
        repeats=2, progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    done, total = seen[-1]
    assert done == pytest.approx(total, rel=0.01)
    assert [each for each, _ in seen] == sorted(each for each, _ in seen)
    assert seen[0][0] < 2**18  # of 2**20, where it is told only at the end nobody sees whether it goes on


def test_a_slow_model_is_asked_little_before_the_forecast(monkeypatch):
    asked = []

    def slow(a):
        asked.append(len(a))
        time.sleep(0.002 * len(a))
        return np.tanh(a).sum(axis=1)

    def stop(said):
        raise KeyboardInterrupt(said)

    monkeypatch.setattr("smoothlime.benchmarking.timing.QUICK", 0.01)
    with pytest.raises(KeyboardInterrupt, match=r"model evaluations, about \d+ minutes") as told:
        benchmark(slow, [[0.1, 0.2]], say=stop, progress=False)
    assert sum(asked) < 100  # about 1,000 where it is always asked about 256 points
    evaluations, minutes = (int(each.replace(",", "")) for each in re.findall(r"[\d,]+\d", str(told.value)))
    assert 0.002 * evaluations / 60 - 1 < minutes < 0.006 * evaluations / 60  # machines that are busy sleep longer


@pytest.mark.parametrize("seed", [0.5, "a", None])
def test_a_seed_that_is_none_is_named(seed):
    with pytest.raises(WrongType, match="seed must be a whole number; got"):
        benchmark(lambda a: a.sum(axis=1), [0.1, 0.2], seed=seed, progress=False)


def test_crossings_lie_on_straight_lines_in_logarithms():
    n = np.array([64, 128, 256, 512])
    errors = 3 / np.sqrt(n)
    assert crossing(n.tolist(), errors.tolist(), 0.2) == pytest.approx(225)
    assert crossing(n.tolist(), errors.tolist(), 1.0) == 64
    assert crossing(n.tolist(), errors.tolist(), 0.1) is None


def test_every_evaluation_is_charged():
    asked = []

    def model(a):
        asked.append(len(a))
        return np.tanh(a).sum(axis=1)

    found = benchmark(model, [[0.1, 0.2]], methods=["differences"], draws=[64, 128], repeats=2, progress=False)
    (only,) = found.contenders
    asked.clear()
    sl.explain(model, [[0.1, 0.2]], method="differences", n_samples=128)
    assert only.evaluations[-1] == sum(asked)


def test_kernels_that_leave_too_few_draws_are_left_out(monkeypatch):
    narrow = sl.Lime(kernel=lambda distance: np.exp(-50 * distance**2))
    monkeypatch.setitem(contenders.METHODS, "lime", narrow)
    settings = {"designs": ["iid"], "draws": [64, 128], "repeats": 2, "progress": False}
    found = benchmark(lambda a: np.tanh(a).sum(axis=1), [0.1, 0.2, 0.3], methods=["clime", "lime"], **settings)
    assert [each.method for each in found.contenders] == ["clime"]
    assert [(each.method, each.fewest) for each in found.left_out] == [("lime", 129)]
    with pytest.raises(TooFewDraws, match="draws must go beyond 128: kernels leave too few of them for lime"):
        benchmark(lambda a: np.tanh(a).sum(axis=1), [0.1, 0.2, 0.3], methods=["lime"], **settings)
