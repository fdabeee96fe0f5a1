"""An estimator is one file: two that live here alone go through `explain`, with error bars and stopping."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known
from smoothlime._core.xp import merge_groups
from smoothlime.errors import InvalidArgument
from smoothlime.estimators.least_squares import Sums, estimate, fit_all, ridge_fit
from smoothlime.estimators.protocol import Batch, Estimate, Estimator, ValueSums
from smoothlime.space.neighbourhood import Factor

V = np.array([0.9, -0.7, 0.4, 0.2])
X = np.array([0.3, -0.2, 0.1, 0.5])
AROUND = sl.Neighbourhood([0.8, 1.0, 1.2, 0.7])
ROWS = 1_000


def sine_and_wave(z):
    """Draws and two waves along the first axis, less what they have in common with a line or a constant."""
    first = z[..., 0]
    waves = [np.sin(2 * first) - 2 * np.exp(-2.0) * first, np.cos(2 * first) - np.exp(-2.0)]
    return np.concatenate([z, np.stack(waves, axis=-1)], axis=-1)


@dataclass(frozen=True, slots=True)
class Waves(Estimator):
    """Least squares on rotated draws and a basis of its own, of what the line that the pilot saw leaves."""

    name: ClassVar[str] = "waves"
    needs: ClassVar[str] = "values"
    designs: ClassVar[tuple[str, ...]] = ("aligned",)
    rotation: ClassVar[str] = "required"

    @dataclass(slots=True)
    class State:
        sums: Sums
        line: np.ndarray

        def keep(self, rows):
            self.sums.keep(rows)
            self.line = self.line[rows]

        def merge(self):
            self.sums.merge()

    def fewest(self, d, *, is_paired):
        return 4 * (d + 3)

    def start(self, setup):
        sums = Sums(setup.rows, setup.groups, setup.d + 2, is_shared=setup.is_shared)
        return self.State(sums, setup.pilot_slopes)

    def update(self, state, rows, groups, batch):
        left = dataclasses.replace(
            batch,
            draws=batch.draws.extended(sine_and_wave),
            values=batch.values - batch.draws.along(state.line[rows]),
        )
        state.sums.add_values(rows, groups, left, None)
        if not batch.draws.is_shared:
            state.sums.add_draws(rows, groups, left.draws, None)

    def update_shared(self, state, groups, draws):
        state.sums.add_draws(slice(None), groups, draws.extended(sine_and_wave), None)

    def finish(self, state, drawn):
        terms = drawn.d + 2
        plain = Factor(terms, np.arange(terms), np.ones(terms))
        fitted = fit_all(state.sums, drawn.sizes, plain, ridge_fit(plain, 0.0, drawn.n))
        found = estimate(state.sums, drawn.sizes, plain, fitted)
        line = np.concatenate([state.line, np.zeros((len(state.line), 2))], axis=1)
        with_line = dataclasses.replace(found, values=found.values + line, pseudo=found.pseudo + line[:, None])
        return drawn.to_features(with_line)


@dataclass(frozen=True, slots=True)
class Quotients(Estimator):
    """Mean of central quotients along each axis, less a line in the draws that a pilot of its own has fitted."""

    step: float = 1e-3

    name: ClassVar[str] = "quotients"
    needs: ClassVar[str] = "values"
    designs: ClassVar[tuple[str, ...]] = ("iid", "sobol")
    evaluations_per_draw: ClassVar[int] = 1 + 2 * len(X)

    class State:
        def __init__(self, setup):
            self.values = ValueSums(setup.rows, setup.groups)
            self.slopes = np.zeros((setup.rows, setup.groups, setup.d))
            self.squares = np.zeros((setup.rows, setup.d))
            self.count = np.zeros((setup.rows, setup.groups))
            self.gram = np.zeros((setup.rows, setup.d + 1, setup.d + 1))
            self.cross = np.zeros((setup.rows, setup.d + 1, setup.d))
            self.line = None

        def keep(self, rows):
            self.values.keep(rows)
            for name in ("slopes", "squares", "count", "line"):
                setattr(self, name, getattr(self, name)[rows])

        def merge(self):
            for sums in (self.values.first, self.slopes, self.count):
                merge_groups(sums)

    def fewest(self, d, *, is_paired):
        return 2 * self.pilot(d)

    def pilot(self, d):
        return 64

    def start(self, setup):
        return self.State(setup)

    def sample(self, model):
        values = model.values().values
        slopes = []
        for axis in np.eye(model.points.shape[-1]):
            above, below = (model.values_at(model.points + sign * self.step * axis) for sign in (1, -1))
            slopes.append((above - below) / (2 * self.step))
        return Batch(model.draws, values, samples=np.stack(slopes, axis=-1))

    def update(self, state, rows, groups, batch):
        z = np.broadcast_to(batch.draws.z, batch.samples.shape)
        if state.line is None:
            basis = np.concatenate([np.ones((*z.shape[:3], 1)), z], axis=-1)
            state.gram[rows] += np.einsum("rgbi,rgbj->rij", basis, basis)
            state.cross[rows] += np.einsum("rgbi,rgbj->rij", basis, batch.samples)
            return
        state.values.add(rows, groups, batch.values)
        left = batch.samples - np.einsum("rgbi,rij->rgbj", z, state.line[rows])
        state.slopes[rows, groups] += left.sum(axis=2)
        state.squares[rows] += np.einsum("rgbj,rgbj->rj", left, left)
        state.count[rows, groups] += z.shape[2]

    def end_pilot(self, state, n, cap):
        state.line = np.linalg.solve(state.gram, state.cross)[:, 1:]

    def finish(self, state, drawn):
        groups = len(drawn.sizes)
        count, total = state.count[:, :groups], state.slopes[:, :groups]
        n, slopes = count.sum(axis=1, keepdims=True), total.sum(axis=1) / count.sum(axis=1)[:, None]
        variance = state.values.variance(count[0])
        return Estimate(
            values=slopes,
            pseudo=total / count[:, :, None],
            resolution=np.sqrt(np.maximum(state.squares / n - slopes**2, 0.0)) / n,
            smoothed=state.values.mean(count[0]),
            variance=variance,
            spread=np.sqrt(variance),
        )


@pytest.mark.parametrize("method", [Waves(), Quotients()], ids=lambda method: method.name)
class TestEstimatorsOfThisFile:
    @pytest.mark.parametrize("function", [known.Sine(V, 0.3), known.Probit(2 * V, 0.2), known.Exponential(V / 2, 0.1)])
    def test_give_honest_error_bars(self, method, function, assert_honest):
        e = sl.explain(function, np.tile(X, (ROWS, 1)), method=method, sigma=AROUND, n_samples=512, draws="independent")
        truth = function.slopes(X[None], AROUND)
        off = (e.values - truth).mean(axis=0)
        # unbiased but for the order 1/n of least squares, which lies within one standard error of a single fit
        assert (np.abs(off) < 5 * e.values.std(axis=0) / np.sqrt(ROWS) + 0.2 * e.standard_error.mean(axis=0)).all()
        assert_honest(e, truth)

    def test_stop_where_the_tolerance_is_reached(self, method):
        function = known.Sine(V, 0.3)
        e = sl.explain(function, np.tile(X, (200, 1)), method=method, sigma=AROUND, rtol=0.02, draws="independent")
        off = np.linalg.norm((e.values - function.slopes(X[None], AROUND)) * e.neighbourhood.factor(4).std, axis=1)
        assert e.converged.all()
        assert (e.n_samples < 100_000).all()
        assert (off > np.maximum(e.radius, 0.02 * np.linalg.norm(e.standardised, axis=1))).mean() < 0.05

    def test_answer_alike_whatever_the_batches_and_however_draws_are_dealt(self, method):
        settings = {"method": method, "sigma": AROUND, "n_samples": 1_024}
        rows = X + np.linspace(0, 1, 5)[:, None]
        for draws in ("shared", "independent"):
            whole, parts = (
                sl.explain(known.Sine(V, 0.3), rows, draws=draws, batch_size=size, **settings) for size in (10_000, 100)
            )
            np.testing.assert_allclose(parts.values, whole.values, rtol=1e-12)
            np.testing.assert_allclose(parts.standard_error, whole.standard_error, rtol=1e-9)

    def test_say_what_they_cost(self, method):
        e = sl.explain(known.Sine(V, 0.3), X, method=method, sigma=AROUND, n_samples=512)
        fewest = e.n_samples * method.evaluations_per_draw
        assert (e.n_evaluations > fewest).all()
        assert (e.n_evaluations < fewest + 400).all()  # f(x), its checks, and a pilot that finds rotations
        assert e.method == method.name


def test_a_rotation_and_a_basis_take_up_what_would_be_noise():
    function = known.Sine(2 * V / np.linalg.norm(AROUND.factor(4).steps(np.eye(4)) @ V), 0.3)  # a wave of the basis
    settings = {"sigma": AROUND, "n_samples": 512, "draws": "independent"}
    rows, truth = np.tile(X, (50, 1)), function.slopes(X[None], AROUND)
    with_waves, without = (
        np.square(sl.explain(function, rows, method=method, design=design, **settings).values - truth).mean()
        for method, design in ((Waves(), "aligned"), (sl.CLime(), "iid"))
    )
    assert with_waves < without / 100


def test_a_pilot_that_fits_a_line_leaves_nothing_of_a_quadratic():
    function = known.Quadratic(np.diag([1.0, -2.0, 0.5, 3.0]), V)
    e = sl.explain(function, X, method=Quotients(), sigma=AROUND, design="iid", n_samples=512)
    np.testing.assert_allclose(e.values, function.slopes(X[None], AROUND), rtol=1e-7)


def test_required_rotations_have_their_design_chosen():
    assert sl.explain(known.Sine(V), X, method=Waves(), n_samples=512).design == "aligned"
    with pytest.raises(InvalidArgument, match="waves"):
        sl.explain(known.Sine(V), X, method=Waves(), design="iid", n_samples=512)
