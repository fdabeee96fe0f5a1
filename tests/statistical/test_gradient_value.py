"""Gradients and values of the same draws, together: unbiased as far as one can see, better, and honest about it."""

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.draws.designs import DESIGNS
from smoothlime.draws.rotation import Rotation
from smoothlime.estimators import gradient_value as both
from smoothlime.estimators.gradient_value import are_inconsistent
from smoothlime.estimators.gradient_value import combine_gradients_with_values as combine

V = np.array([0.7, -0.5, 0.3, 0.2])
X = np.array([0.2, -0.2, 0.2, 0.1])
FULL = sl.Neighbourhood(covariance=np.eye(4) * 0.5 + 0.2)
W = np.array([0.1, 0.4, -0.6, 0.5])
BOTH = sl.SmoothGrad(control="values")


class Sum:
    """A sum of functions with known slopes: along one direction alone there would be nothing to combine."""

    outputs = ()

    def __init__(self, *parts):
        self.parts = parts

    def values(self, points):
        return sum(part.values(points) for part in self.parts)

    def values_and_gradients(self, points, weights):
        found = [part.values_and_gradients(points, weights) for part in self.parts]
        return sum(values for values, _ in found), sum(gradients for _, gradients in found)

    def slopes(self, x, around):
        return sum(part.slopes(x, around) for part in self.parts)


WAVES = Sum(known.Sine(V, 0.3), known.Sine(2 * W, -0.4))
STEEP = Sum(known.Probit(6 * V, -0.5), known.Probit(4 * W, 0.3))


def repeated(model, n, around=0.8, repeats=1_000, method=BOTH):
    rows = np.repeat(X[None], repeats, axis=0)
    return sl.explain(model, rows, method=method, sigma=around, n_samples=n, draws="independent")


def by_hand(gradients, slopes):
    """The combination of one axis, (g,) each, spelled out."""
    away = slopes - gradients
    a, d = gradients - gradients.mean(), away - away.mean()
    skewness = abs((a**3).mean() / (a**2).mean() ** 1.5)
    apart = abs(away.mean()) / (away.std(ddof=1) / np.sqrt(len(a)))
    trust = min(min(max(2 - skewness, 0), 1), min(max((6 - apart) / 2, 0), 1))
    said = []
    for g in range(len(a)):
        others = np.arange(len(a)) != g
        weight = min(max(-(a * d)[others].sum() / (d**2)[others].sum(), 0), 1)
        said.append(gradients[g] + trust * weight * away[g])
    return np.array(said)


class TestCombination:
    def test_is_what_the_docstring_says(self):
        rng = np.random.default_rng(0)
        gradients, slopes = rng.normal(size=(2, 3, 16, 5)) ** 3  # skewed, some more and some less
        expected = np.empty((3, 16, 5))
        for row in range(3):
            for axis in range(5):
                expected[row, :, axis] = by_hand(gradients[row, :, axis], slopes[row, :, axis])
        np.testing.assert_allclose(combine(gradients, slopes), expected, rtol=1e-12)
        assert not np.allclose(expected, gradients)

    def test_has_the_same_weights_for_the_outputs_of_a_row(self):
        rng = np.random.default_rng(1)
        gradients, slopes = rng.normal(size=(2, 3, 2, 16, 5))
        for each in (
            gradients,
            slopes,
        ):  # three outputs that add up to nothing, of which one is a thousand times larger
            each[:, 0] *= 1_000
        gradients, slopes = (
            np.concatenate([each, -each.sum(axis=1, keepdims=True)], axis=1) for each in (gradients, slopes)
        )
        said = combine(gradients.reshape(9, 16, 5), slopes.reshape(9, 16, 5), 3).reshape(3, 3, 16, 5)
        np.testing.assert_allclose(said.sum(axis=1), 0, atol=1e-9)
        assert not np.allclose(said, gradients)

    def test_outputs_have_the_same_say_in_them_however_large(self):
        gradients, slopes = np.random.default_rng(6).normal(size=(2, 2, 16, 5))
        larger = np.array([1_000.0, 1.0])[:, None, None]
        said = combine(gradients, slopes, 2)
        np.testing.assert_allclose(combine(larger * gradients, larger * slopes, 2), larger * said, rtol=1e-9)
        assert not np.allclose(said, combine(gradients, slopes))  # each by itself has other weights

    def test_lies_between_what_gradients_and_values_say(self):
        half = np.random.default_rng(3).normal(size=(1, 8, 3))
        gradients = np.concatenate([half, -half], axis=1)  # neither skewed nor off zero
        np.testing.assert_allclose(combine(gradients, 3 * gradients), gradients)  # would want less than no weight
        np.testing.assert_allclose(combine(gradients, gradients / 2), gradients / 2)  # would want twice all of it

    def test_leaves_values_out_that_say_something_else(self):
        rng = np.random.default_rng(2)
        gradients = rng.normal(size=(1, 16, 3))
        slopes = 0.1 * rng.normal(size=(1, 16, 3)) + [0.0, 2.0, 5.0]
        said = combine(gradients, slopes)
        assert not np.allclose(said[:, :, 0], gradients[:, :, 0])
        np.testing.assert_array_equal(said[:, :, 1:], gradients[:, :, 1:])
        np.testing.assert_array_equal(combine(gradients + 3, np.zeros((1, 16, 3))), gradients + 3)

    def test_of_gradients_that_agree_is_their_mean(self):
        gradients = np.full((1, 16, 3), 2.0)
        noisy = np.random.default_rng(0).normal(size=(1, 16, 3))
        np.testing.assert_array_equal(combine(gradients, noisy), gradients)
        np.testing.assert_array_equal(combine(gradients, gradients), gradients)

    def test_does_not_mind_the_scale(self):
        gradients, slopes = np.random.default_rng(0).normal(size=(2, 1, 16, 3))
        for scale in (1e-150, 1e100):
            np.testing.assert_allclose(
                combine(scale * gradients, scale * slopes),
                scale * combine(gradients, slopes),
            )

    def test_is_a_reason_to_look_closer_only_where_much_is_missing_and_surely(self):
        noise = np.random.default_rng(4).normal(size=(5, 16, 3))
        gradients = np.full((5, 16, 3), 2.0)
        slopes = gradients + 1e-3 * noise
        slopes[1, :, 2] += 1.0  # a tenth of the spread, and many standard errors: inconsistent
        slopes[2, :, 2] += 0.5  # many standard errors, but too little
        slopes[3, :, 2] = 3.0 + 4 * noise[3, :, 2]  # enough, but it may be chance
        slopes[4] += 10.0
        np.testing.assert_array_equal(
            are_inconsistent(gradients, slopes, np.array([9.0, 9.0, 9.0, 9.0, 0.0])), [False, True, False, False, False]
        )

    def test_is_no_reason_where_rows_are_so_many_that_one_of_them_is_so_far_by_chance(self):
        """A t of 15 degrees beyond 6.5: once in 100,000, so as soon as there are 1,000 rows of 100 features."""
        rng = np.random.default_rng(5)
        one = rng.normal(size=(1, 16, 1))
        one += 6.5 * one.std(ddof=1) / 4 - one.mean()
        few, many = (np.concatenate([one, np.zeros((rows - 1, 16, 1))]).repeat(100, axis=2) for rows in (1, 1_000))
        assert are_inconsistent(0 * few[..., :1], few[..., :1], np.ones(1)).tolist() == [True]
        assert not are_inconsistent(0 * many, many, np.ones(1_000)).any()

    @pytest.mark.parametrize("around", [sl.Neighbourhood([0.5, 0.8, 1.0, 0.3]), FULL], ids=["diagonal", "full"])
    @pytest.mark.parametrize("batch_size", ["auto", 50])
    def test_is_made_along_the_axes_before_the_turn(self, around, batch_size):
        f = STEEP
        e = sl.explain(f, X, sigma=around, n_samples=256, batch_size=batch_size)
        assert (e.provenance.method, e.design) == (BOTH, "aligned")
        points = e.perturbations()
        values, gradients = f.values_and_gradients(points, np.ones((256, 1)))
        turns, factor = Rotation.onto(e.directions), e.factor
        axes = turns.of(np.eye(4)[None])[0]  # rows: where each axis went
        before = factor.whiten(gradients) @ axes.T
        z = DESIGNS["aligned"].stream(4, 0).take(256)
        slopes = z * (values - values.mean())
        groups = [each.reshape(16, 16, 4).mean(axis=1) for each in (before, slopes)]
        said = np.stack([by_hand(groups[0][:, axis], groups[1][:, axis]) for axis in range(4)], axis=1)
        expected = factor.unwhiten(said @ axes)
        np.testing.assert_allclose(e.groups.pseudo[0], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(e.values[0], expected.mean(axis=0), rtol=1e-9)


class TestEstimates:
    @pytest.mark.parametrize("around", [sl.Neighbourhood([0.5, 0.8, 1.0, 0.3]), FULL], ids=["diagonal", "full"])
    @pytest.mark.parametrize("function", [WAVES, STEEP], ids=["waves", "steep"])
    @pytest.mark.parametrize("n", [64, 256])
    def test_a_bias_is_small_beside_the_error_bars(self, function, around, n):
        """The weights come from other groups, but of the same sequence: it is not quite unbiased, as the mean is."""
        e = repeated(function, n, around)
        error = e.values - function.slopes(X, around)
        said = np.sqrt((e.standard_error**2).mean(axis=0))
        assert (np.abs(error.mean(axis=0)) < 0.2 * said + 4 * error.std(axis=0) / np.sqrt(len(e))).all()

    def test_a_steep_model_needs_fewer_draws(self):
        truth = STEEP.slopes(X, sl.Neighbourhood(0.8))
        both, mean = (repeated(STEEP, 256, method=method, repeats=300) for method in (BOTH, "smoothgrad"))
        error = [((e.values - truth) ** 2).sum(axis=1).mean() for e in (both, mean)]
        assert error[0] < error[1] / 2
        assert np.median(both.radius) < 0.7 * np.median(mean.radius)

    def test_along_one_direction_the_mean_of_gradients_is_left_alone(self):
        f = known.Probit(6 * V, -0.5)
        one, other = (sl.explain(f, X, n_samples=256, method=method) for method in (BOTH, "smoothgrad"))
        np.testing.assert_allclose(one.values, other.values, rtol=1e-12)

    def test_a_linear_model_needs_nothing_and_a_flat_one_neither(self):
        linear = known.Linear(V, 0.3)
        np.testing.assert_allclose(sl.explain(linear, X, n_samples=64).values[0], V, rtol=1e-13)
        flat = sl.from_functions(values=lambda a: np.ones((len(a), 1)), gradients=np.zeros_like)
        e = sl.explain(flat, X, n_samples=256)
        np.testing.assert_array_equal(e.values, 0)
        np.testing.assert_array_equal(e.radius, 0)

    @pytest.mark.parametrize("n", [128, 256, 1_024])
    @pytest.mark.parametrize(
        "function",
        [
            Sum(known.Sine(8 * V), known.Sine(7 * W)),
            Sum(known.Absolute(V, 0.05), known.Relu(W, 0.3)),
            Sum(known.Probit(6 * V), known.Probit(9 * W, 0.3)),
            Sum(known.Probit(3 * V, -3.0), known.Probit(3 * W, -2.0)),
            Sum(known.Exponential(np.full(4, 0.6)), known.Sine(3 * V)),
            Sum(known.Cubic(V, 0.5), known.Cubic(W, -0.2)),
        ],
        ids=["fast waves", "kinks", "steep", "saturated", "growing", "cubic"],
    )  # fmt: skip
    def test_errors_do_not_say_less_than_there_is(self, assert_honest, function, n):
        e = repeated(function, n, repeats=600)
        truth = function.slopes(X, sl.Neighbourhood(0.8))
        assert_honest(e, truth)

    def test_never_much_worse_than_independent_draws(self):
        """Waves so fast that nothing is gained, and a mean that few draws decide."""
        waves = Sum(known.Sine(12 * V, 0.3), known.Sine(10 * W))
        for function in (waves, Sum(known.Probit(3 * V, -3.0), known.Probit(3 * W, -3.0))):
            truth = function.slopes(X, sl.Neighbourhood(0.8))
            ours = repeated(function, 256, repeats=1_500).values
            rows = np.repeat(X[None], 1_500, axis=0)
            settings = {"sigma": 0.8, "n_samples": 272, "draws": "independent", "method": "smoothgrad"}  # the pilot too
            plain = sl.explain(function, rows, design="iid", **settings).values
            error = [((each - truth) ** 2).sum(axis=1) for each in (ours, plain)]
            scatter = np.hypot(*(each.std() for each in error)) / np.sqrt(1_500)
            assert error[0].mean() <= 1.15**2 * error[1].mean() + 3 * scatter


class TestDisagreement:
    """Where a model jumps, or its values lose digits, values and gradients have different slopes."""

    @pytest.mark.parametrize("n", [256, 4_096])
    def test_jumps_are_left_to_the_gradients(self, n):
        """As documented: gradients do not see them. What is said is the mean gradient, not something between."""
        unit = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6))).Q
        smooth = Sum(known.Sine(2 * unit[0], 0.3), known.Probit(3 * unit[1], 0.5))
        f = Sum(*smooth.parts, known.Step(unit[0] + 0.3 * unit[2]))
        model = sl.from_functions(values=f.values, gradients=lambda a: smooth.values_and_gradients(a, 1.0)[1])
        with pytest.warns(sl.errors.JumpsUnseen, match="the gradients miss the jumps of this model"):
            e = sl.explain(model, np.zeros((60, 6)), n_samples=n, draws="independent")
        lower, upper = e.interval()
        truth = smooth.slopes(np.zeros(6), sl.Neighbourhood(1.0))
        assert ((lower <= truth) & (truth <= upper)).mean() > 0.9

    def test_the_output_and_the_row_that_jump_are_named(self):
        class JumpsFarOut(torch.nn.Module):
            def forward(self, a):
                smooth = torch.tanh(a @ a.new_tensor(V)) + torch.sin(a @ a.new_tensor(W))
                return torch.stack([smooth, smooth + (a[:, 0] > 20.0)], dim=1)

        rows = np.array([[0.0, 0.0, 0.0, 0.0], [20.0, 0.0, 0.0, 0.0], [20.0, 0.1, 0.0, 0.0]])
        with pytest.warns(sl.errors.JumpsUnseen, match="gradients of '1' are not its slopes around row 1 and 1 more:"):
            sl.explain_outputs(JumpsFarOut().double(), rows, n_samples=1_024)

    def test_values_without_their_last_digits_are_not_listened_to(self):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            base = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).eval()

        class Lifted(torch.nn.Module):
            def __init__(self, by):
                super().__init__()
                self.base, self.by = base, by

            def forward(self, a):
                return self.base(a) + self.by

        x = np.full((1, 6), 0.5)
        for sigma, by in ((0.1, 1e7), (1.0, 1e7), (1.0, 1e8)):
            plain = sl.explain(Lifted(0.0), x, sigma=sigma, n_samples=1_024, method="smoothgrad")
            e = sl.explain(Lifted(by), x, sigma=sigma, n_samples=1_024)
            assert (np.abs(e.values - plain.values) <= 4 * (e.standard_error + plain.standard_error)).all()


class TestTheLoop:
    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_groups_after_looks_are_those_of_one_long_run(self, draws):
        f = STEEP
        rows = np.stack([X, -X, 2 * X])
        with pytest.warns(sl.errors.NotConverged):
            looked = sl.explain(f, rows, rtol=0.0, atol=1e-12, max_samples=1_024, draws=draws)
        direct = sl.explain(f, rows, n_samples=1_024, draws=draws)
        np.testing.assert_allclose(looked.groups.pseudo, direct.groups.pseudo, rtol=1e-9, atol=1e-13)

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_rows_that_stay_keep_their_own_sums(self, draws):
        f = STEEP
        rows = np.stack([X, 6 * V, X + 0.3, -X])
        settings = {"rtol": 0.0, "atol": 0.004, "draws": draws, "sigma": 0.8}
        e = sl.explain(f, rows, **settings)
        assert len(set(e.n_samples)) > 1
        for row in range(4):
            alone = sl.explain(f, rows, n_samples=int(e.n_samples[row]), draws=draws, sigma=0.8)
            np.testing.assert_allclose(e.values[row], alone.values[row], rtol=1e-9, atol=1e-13)

    def test_outputs_that_add_up_have_slopes_that_do(self):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double().eval()
        each = sl.explain_outputs(sl.as_model(net, output="probability"), X, n_samples=64, sigma=2.0)
        assert all(e.provenance.method == BOTH for e in each.values())
        np.testing.assert_allclose(sum(e.values for e in each.values()), 0, atol=1e-14)

    def test_what_it_is_made_of_is_kept_in_files(self, tmp_path):
        e = sl.explain(known.Sine(V), X, n_samples=256)
        e.save(tmp_path / "e.json")
        loaded = sl.load(tmp_path / "e.json")
        assert loaded.provenance.method == BOTH
        np.testing.assert_array_equal(loaded.groups.pseudo, e.groups.pseudo)


class TestChoice:
    def test_it_is_the_default_from_64_draws_on(self):
        f = known.Sine(V)
        for n, method, design in ((32, sl.SmoothGrad(), "orthogonal"), (64, BOTH, "aligned"), (None, BOTH, "aligned")):
            e = sl.explain(f, X, n_samples=n)
            assert (e.provenance.method, e.design) == (method, design)
        assert sl.explain(f, X, n_samples=256, design="sobol").provenance.method == sl.SmoothGrad()
        assert sl.explain(f, X, n_samples=256, method="smoothgrad").provenance.method == sl.SmoothGrad()

    def test_other_draws_are_refused(self):
        with pytest.raises(sl.errors.InvalidArgument, match=r"control='values' looks along .* got design='iid'"):
            sl.explain(known.Sine(V), X, n_samples=256, method=BOTH, design="iid")

    def test_other_controls_are_refused(self):
        with pytest.raises(sl.errors.InvalidArgument, match="control must be one of 'none', 'values'"):
            sl.SmoothGrad(control="margin")

    def test_a_certificate_is_not_made_of_it(self):
        with pytest.raises(sl.errors.InvalidArgument, match="no bound for a control"):
            sl.explain(known.Sine(V), X, method=BOTH, guarantee="certified", gradient_bound=1.0)


def test_distances_are_in_standard_errors():
    away = np.random.default_rng(0).normal(0.3, 1.0, size=(5, 2, 16, 3))
    found = both._distance(away, away - away.mean(axis=2, keepdims=True))
    expected = np.abs(away.mean(axis=2)) / (away.std(axis=2, ddof=1) / 4)
    np.testing.assert_allclose(found[:, :, 0], expected)


def test_gradients_whose_squares_are_no_numbers_spoil_no_other_output():
    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steep = torch.nn.Parameter(torch.tensor(1e160, dtype=torch.float64))

        def forward(self, a):
            return torch.stack([torch.sin(self.steep * a.sum(1)), torch.tanh(a[:, 0] + a[:, 1] ** 2)], 1)

    rows, settings = np.full((1, 3), 0.1), {"n_samples": 1_024, "method": sl.SmoothGrad(control="values")}
    with np.errstate(all="ignore"):
        together = sl.explain_outputs(Mixed().eval(), rows, **settings)["1"]
    assert np.isfinite(together.values).all()
    assert np.isfinite(together.radius).all()
