"""Aligned draws: turned and still normal, unbiased, better than independent ones, with errors that do not say less."""

import dataclasses
import json

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.draws.designs import DESIGNS, PARTS
from smoothlime.draws.far_draws import FAR
from smoothlime.draws.keys import pilot_draws
from smoothlime.draws.long_draws import SHARE, long_draws
from smoothlime.draws.rotation import (
    DIRECTIONS,
    PILOTS,
    Rotation,
    filled_up,
    leading_directions,
    pilot_count,
    quotients,
    with_steps,
)
from smoothlime.estimators.hermite import HermiteBasis
from smoothlime.estimators.least_squares import PilotResiduals
from smoothlime.sampling.defaults import choose_method

V = np.array([0.7, -0.5, 0.3, 0.2])
X = np.array([0.2, -0.2, 0.2, 0.1])
FULL = sl.Neighbourhood(covariance=np.eye(4) * 0.5 + 0.2)


def two_waves(size=1.0):
    """A sum of waves along two directions, with its slope."""
    one, other = known.Sine(V, 0.3), known.Sine(2 * V[::-1], -0.4)
    model = sl.from_functions(
        values=lambda a: size * (one.values(a) + other.values(a)),
        gradients=lambda a: size * (one.values_and_gradients(a, 1.0)[1] + other.values_and_gradients(a, 1.0)[1]),
    )
    return model, lambda x, around: size * (one.slopes(x, around) + other.slopes(x, around))


def aligned(model, rows, **given):
    return sl.explain(model, rows, method="smoothgrad", design="aligned", **given)


def repeated(model, n, around=0.8, repeats=2_000, design="aligned"):
    rows = np.repeat(X[None], repeats, axis=0)
    return sl.explain(model, rows, method="smoothgrad", design=design, sigma=around, n_samples=n, draws="independent")


def fitted(terms, values, weights):
    """Slopes of a line, and of what is fitted besides it, by weighted least squares."""
    root = np.sqrt(weights)
    terms = np.column_stack([np.ones(len(terms)), terms])
    return np.linalg.lstsq(root[:, None] * terms, root * values, rcond=None)[0][1:]


class TestTurns:
    @pytest.mark.parametrize("d", [1, 2, 5, 30])
    def test_they_take_the_first_axes_to_the_directions_and_keep_all_lengths(self, d):
        rng = np.random.default_rng(d)
        k = min(d, DIRECTIONS)
        directions = np.linalg.qr(rng.standard_normal((7, d, k))).Q.swapaxes(1, 2)
        turned = Rotation.onto(directions).of(np.eye(d)[None])
        np.testing.assert_allclose(turned @ turned.swapaxes(1, 2), np.broadcast_to(np.eye(d), (7, d, d)), atol=1e-14)
        onto = np.einsum("rkd,rkd->rk", turned[:, :k], directions)
        np.testing.assert_allclose(np.abs(onto), 1, atol=1e-14)

    def test_without_directions_nothing_turns(self):
        z = np.random.default_rng(0).standard_normal((1, 9, 3))
        np.testing.assert_array_equal(Rotation.onto(np.zeros((2, 3, 3))).of(z), np.repeat(z, 2, axis=0))

    def test_an_axis_that_is_a_direction_already_loses_no_digits(self):
        directions = np.eye(4)[None, :2] + 1e-9
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        turned = Rotation.onto(directions).of(np.eye(4)[None])[0]
        np.testing.assert_allclose(turned @ turned.T, np.eye(4), atol=1e-14)


class TestDirections:
    def test_they_span_what_gradients_span_largest_first(self):
        rng = np.random.default_rng(1)
        basis = np.linalg.qr(rng.standard_normal((12, 3))).Q.T
        gradients = rng.standard_normal((4, PILOTS[1], 3)) * [10.0, 1.0, 0.1] @ basis
        found = leading_directions(gradients)
        three = np.diag(np.arange(DIRECTIONS) < 3).astype(float)
        np.testing.assert_allclose(
            found @ found.swapaxes(1, 2), np.broadcast_to(three, (4, DIRECTIONS, DIRECTIONS)), atol=1e-10
        )
        np.testing.assert_allclose(found @ basis.T @ basis, found, atol=1e-10)
        assert (np.abs(found[:, 0] @ basis[0]) > 0.99).all()

    @pytest.mark.parametrize("d", [1, 3, 7, 30])
    @pytest.mark.parametrize("seen", [0, 1, 4])
    def test_chance_makes_the_others_where_there_are_few(self, d, seen):
        rng = np.random.default_rng(seen)
        k = min(d, 5)
        known = np.linalg.qr(rng.standard_normal((6, d, k))).Q.swapaxes(1, 2)
        known[:, seen:] = 0.0
        for spare in (rng.standard_normal((1, DIRECTIONS, d)), rng.standard_normal((6, DIRECTIONS, d))):
            found = filled_up(known, spare)
            assert found.shape == (6, min(d, DIRECTIONS), d)
            one = np.broadcast_to(np.eye(found.shape[1]), (6, *[found.shape[1]] * 2))
            np.testing.assert_allclose(found @ found.swapaxes(1, 2), one, atol=1e-12)
            np.testing.assert_allclose(found[:, :seen], known[:, :seen], atol=1e-12)
            together = np.concatenate([known[:, :seen], np.broadcast_to(spare, (6, DIRECTIONS, d))], axis=1)
            basis = np.linalg.qr(together[:, : found.shape[1]].swapaxes(1, 2)).Q
            if seen == 0:
                np.testing.assert_allclose(found @ basis @ basis.swapaxes(1, 2), found, atol=1e-12)

    def test_rounding_makes_no_direction(self):
        rng = np.random.default_rng(2)
        gradients = np.ones((1, PILOTS[1], 4)) + 1e-6 * rng.standard_normal((1, PILOTS[1], 4))
        found = leading_directions(gradients)
        np.testing.assert_allclose(np.abs(found[0, 0]), 0.5, atol=1e-5)
        assert not found[0, 1:].any()

    def test_a_flat_model_has_none(self):
        assert not leading_directions(np.zeros((2, PILOTS[1], 3))).any()


class TestEstimates:
    @pytest.mark.parametrize("around", [sl.Neighbourhood([0.5, 0.8, 1.0, 0.3]), FULL], ids=["diagonal", "full"])
    def test_they_are_unbiased(self, around):
        model, slopes = two_waves()
        e = repeated(model, 64, around)
        spread = e.values.std(axis=0, ddof=1)
        np.testing.assert_array_less(np.abs(e.values.mean(axis=0) - slopes(X, around)[0]), 4 * spread / np.sqrt(len(e)))

    def test_they_are_far_better_than_independent_draws_on_smooth_functions(self):
        model, slopes = two_waves()
        truth = slopes(X, sl.Neighbourhood(0.8))
        error = {
            design: ((repeated(model, 256, repeats=400, design=design).values - truth) ** 2).sum(axis=1).mean()
            for design in ("iid", "sobol", "aligned")
        }
        assert error["aligned"] < error["iid"] / 20
        assert error["aligned"] < error["sobol"] / 4

    @pytest.mark.parametrize("n", [256, 1_024])
    @pytest.mark.parametrize(
        "function",
        [known.Sine(8 * V), known.Relu(V, 0.1), known.Absolute(V, 0.05), known.Exponential(V), known.Probit(6 * V)],
        ids=["fast wave", "kink", "kink at x", "growing", "steep"],
    )
    def test_errors_do_not_say_less_than_there_is_even_where_nothing_is_gained(self, assert_honest, function, n):
        e = repeated(function, n)
        truth = function.slopes(X, sl.Neighbourhood(0.8))
        assert_honest(e, truth)

    def test_a_linear_model_needs_nothing_and_a_flat_one_neither(self):
        linear = sl.from_functions(values=lambda a: a @ V, gradients=lambda a: np.tile(V, (len(a), 1)))
        e = aligned(linear, X, n_samples=256)
        np.testing.assert_allclose(e.values[0], V, rtol=1e-14)
        flat = sl.from_functions(values=lambda a: np.ones(len(a)), gradients=np.zeros_like)
        e = aligned(flat, X, n_samples=256)
        assert not e.values.any()
        assert not e.standard_error.any()


class TestTheLoop:
    def test_groups_after_looks_are_those_of_one_long_run(self):
        model, _ = two_waves()
        looked = aligned(model, X, rtol=0.001, atol=0.0, sigma=0.5)
        n = int(looked.n_samples[0])
        assert n > 512
        at_once = aligned(model, X, n_samples=n, sigma=0.5)
        np.testing.assert_allclose(looked.values, at_once.values, rtol=1e-12)
        np.testing.assert_allclose(looked.standard_error, at_once.standard_error, rtol=1e-9)
        np.testing.assert_allclose(looked.smoothed, at_once.smoothed, rtol=1e-12)
        assert (looked.groups.sizes == n / PARTS).all()

    def test_groups_are_runs_of_one_sequence(self):
        model, _ = two_waves()
        e = aligned(model, X, n_samples=512, sigma=0.5)
        points = e.perturbations()
        by_run = model.values_and_gradients(points, np.ones((512, 1)))[1].reshape(PARTS, -1, 4).mean(axis=1)
        np.testing.assert_allclose(e.groups.pseudo[0], by_run, rtol=1e-10)
        np.testing.assert_allclose(e.values[0], by_run.mean(axis=0), rtol=1e-12)

    @pytest.mark.parametrize("batch_size", [7, 64, 10_000])
    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_batches_do_not_change_the_answer(self, batch_size, draws):
        model, _ = two_waves()
        rows = X + np.linspace(0, 1, 5)[:, None]
        given = {"rtol": 0.01, "sigma": 0.5, "draws": draws}
        one, other = aligned(model, rows, **given), aligned(model, rows, batch_size=batch_size, **given)
        np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
        np.testing.assert_allclose(one.standard_error, other.standard_error, rtol=1e-9)
        np.testing.assert_array_equal(one.n_samples, other.n_samples)

    def test_rows_alone_are_what_they_are_among_others(self):
        model, _ = two_waves()
        rows = X + np.linspace(0, 1, 5)[:, None]
        together = aligned(model, rows, n_samples=256)
        for row, alone in enumerate(rows):
            np.testing.assert_allclose(aligned(model, alone, n_samples=256).values[0], together.values[row], rtol=1e-12)

    def test_float32_networks_agree_over_batch_sizes(self, elu_network):
        net = elu_network.float()
        rows = np.random.default_rng(0).standard_normal((9, 3))
        one, other = (aligned(net, rows, target=0, n_samples=512, batch_size=size) for size in (50, 5_000))
        size = np.linalg.norm(one.values, axis=1, keepdims=True)
        np.testing.assert_array_less(np.abs(one.values - other.values) / size, 1e-6)

    def test_fixed_features_are_left_alone(self):
        model, _ = two_waves()
        around = sl.Neighbourhood(0.5, fixed=[1])
        e = aligned(model, X, sigma=around, n_samples=1_024)
        assert np.isnan(e.values[0, 1])
        assert (e.perturbations()[:, 1] == X[1]).all()
        assert e.directions.shape == (1, 3, 3)

    def test_the_cap_is_rounded_down_to_a_whole_sequence(self):
        model, _ = two_waves()
        with pytest.warns(sl.errors.NotConverged):
            e = aligned(model, X, rtol=1e-6, atol=0.0, max_samples=1_000)
        assert e.n_samples[0] == 512
        assert e.n_evaluations[0] == 512 + PILOTS[1] + 5

    def test_too_many_features_are_refused_by_name(self):
        linear = sl.from_functions(values=lambda a: a.sum(axis=1), gradients=np.ones_like)
        with pytest.raises(sl.errors.InvalidArgument, match="design='aligned' goes up to"):
            aligned(linear, np.zeros(21_202), n_samples=16)

    def test_methods_without_gradients_cannot_use_it(self):
        with pytest.raises(sl.errors.InvalidArgument, match="cannot use design 'aligned'"):
            sl.explain(lambda a: a[:, 0], X, method="stein", design="aligned")


class TestTogether:
    def test_outputs_share_their_draws(self, elu_network):
        both = sl.explain_outputs(elu_network, X[:3], n_samples=512, design="aligned")
        one, other = both.values()
        np.testing.assert_array_equal(one.directions, other.directions)
        difference = one - other  # no warning: errors are combined
        contrast = sl.explain(elu_network, X[:3], target={"0": 1, "1": -1}, n_samples=512, design="iid")
        assert difference.groups is not None
        assert (np.abs(difference.values - contrast.values) <= 4 * contrast.standard_error + 1e-12).all()

    @pytest.mark.parametrize("method", ["smoothgrad", "clime"])
    def test_outputs_have_the_same_say_in_where_draws_are_turned_however_large(self, method):
        def outputs(larger):
            v, w = np.array([1.0, -0.5, 0.3]), np.array([0.2, 0.9, -0.7])

            def values(a):
                return np.stack([larger * np.sin(a @ v), np.tanh(a @ w)], axis=1)

            def gradients(a):
                return np.stack([larger * np.outer(np.cos(a @ v), v), np.outer(1 - np.tanh(a @ w) ** 2, w)], axis=1)

            return sl.from_functions(values=values, gradients=gradients)

        found = [
            sl.explain_outputs(outputs(larger), [0.1, 0.2, -0.3], n_samples=512, design="aligned", method=method)
            for larger in (1.0, 1e4)
        ]
        one, other = (next(iter(each.values())).directions for each in found)
        np.testing.assert_allclose(other, one, atol=1e-9)

    def test_a_multiple_of_a_model_is_turned_alike(self):
        (model, _), (double, _) = two_waves(), two_waves(2.0)
        difference = 2 * aligned(model, X, n_samples=256) - aligned(double, X, n_samples=256)
        np.testing.assert_allclose(difference.values, 0, atol=1e-14)

    def test_slices_files_and_replays_keep_the_directions(self, tmp_path):
        model, _ = two_waves()
        rows = X + np.linspace(0, 1, 3)[:, None]
        e = aligned(model, rows, n_samples=256)
        np.testing.assert_array_equal(e[1].perturbations(), e.perturbations(1))
        for suffix in ("json", "parquet"):
            e.save(tmp_path / f"e.{suffix}")
            loaded = sl.load(tmp_path / f"e.{suffix}")
            np.testing.assert_array_equal(loaded.directions, e.directions)
            np.testing.assert_array_equal(loaded.perturbations(2), e.perturbations(2))

    def test_files_from_before_there_were_directions_are_read(self, tmp_path, older):
        model, _ = two_waves()
        e = sl.explain(model, X, design="orthogonal", n_samples=64)
        assert e.directions is None
        plain = older(e.to_json())
        del plain["directions"]
        path = tmp_path / "old.json"
        path.write_text(json.dumps(plain))
        assert sl.load(path).directions is None

    def test_explanations_turned_differently_are_not_combined_group_by_group(self):
        model, _ = two_waves()
        e = aligned(model, X, n_samples=256)
        other = dataclasses.replace(e, directions=-e.directions)
        with pytest.warns(sl.errors.ErrorsAdded):
            assert (e - other).groups is None


class TestLeastSquares:
    def test_curves_are_uncorrelated_with_each_other_and_with_every_line(self):
        """Products of Gauss–Hermite rules integrate these polynomials exactly."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(8)
        d = 3
        z = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
        weight = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * d, indexing="ij")), axis=0).reshape(-1)
        for of_pairs, count in ((False, 3 + 6 + 12 + 6), (True, 3 + 3 + 6 + 1 + 3)):
            curves = HermiteBasis(of_pairs=of_pairs)
            terms = curves.extend(z)
            assert terms.shape[1] == curves.count(d) == count
            np.testing.assert_allclose(weight @ terms, 0, atol=1e-12)
            np.testing.assert_allclose(terms.T @ (weight[:, None] * terms), np.eye(count), atol=1e-11)
        np.testing.assert_allclose(HermiteBasis(of_pairs=True).extend(-z), -HermiteBasis(of_pairs=True).extend(z))

    def test_curves_of_pairs_go_along_five_coordinates(self):
        wide = HermiteBasis(of_pairs=True)
        assert wide.count(20) == 20 + 5 + 20 + 10 + 3
        assert [wide.fitted(20, n) for n in (128, 256, 512, 1_024)] == [20, 20, 20, 58]
        assert wide.fitted(64, 1_024) == 74
        assert wide.fitted(64, 2_048) == 102

    def test_it_is_least_squares_with_curves_on_the_draws_before_they_are_turned(self):
        f = known.Sine(V, 0.3)
        e = sl.explain(f.values, X, method=sl.CLime(curves=True), sigma=FULL, n_samples=1_024)
        base, weights = long_draws(DESIGNS["aligned"].stream(4, 0).take(1_024))
        fit = fitted(HermiteBasis(of_pairs=False).extend(base), f.values(e.perturbations())[:, 0], weights)[:4]
        turned = Rotation.onto(e.directions).of(fit[None, None])[0, 0]
        np.testing.assert_allclose(e.values[0], np.linalg.solve(e.factor.lower.T, turned), rtol=1e-9)

    def test_what_the_curves_can_follow_costs_little(self):
        cubic = lambda a: (a @ V) ** 3 - (a @ V) ** 2 + a @ [1.0, 2.0, 3.0, 4.0]
        e = sl.explain(cubic, X, sigma=0.5, n_samples=1_024)
        assert (e.provenance.method, e.design) == (sl.CLime(curves=True), "aligned")
        s, spread = X @ V, 0.25 * V @ V
        truth = (3 * (s**2 + spread) - 2 * s) * V + [1.0, 2.0, 3.0, 4.0]
        plain = sl.explain(cubic, X, sigma=0.5, n_samples=1_024, method="clime", design="sobol")
        assert np.abs(e.values - truth).max() < 0.05 * np.abs(plain.values - truth).max()

    @pytest.mark.parametrize("n", [256, 1_024, 2_048])
    @pytest.mark.parametrize("design", ["aligned", "aligned-pairs"])
    @pytest.mark.parametrize(
        "function",
        [
            known.Step(V, 0.1), known.Sine(8 * V), known.Absolute(V, 0.05), known.Probit(6 * V),
            known.Exponential(np.full(4, 0.6)),  # exp(1.2 s): half of its slope comes from one draw in twenty
        ],
        ids=["step", "fast wave", "kink", "steep", "growing"],
    )  # fmt: skip
    def test_errors_do_not_say_less_than_there_is(self, assert_honest, function, n, design):
        rows = np.repeat(X[None], 600, axis=0)
        around = sl.Neighbourhood(0.8)
        method = sl.CLime(curves=True)
        e = sl.explain(
            function.values, rows, method=method, design=design, sigma=around, n_samples=n, draws="independent"
        )
        truth = function.slopes(X, around)
        assert_honest(e, truth)

    def test_pairs_are_points_of_the_net_and_their_mirrors(self):
        z = DESIGNS["aligned-pairs"].stream(4, 3).take(64)
        np.testing.assert_array_equal(z[0::2], DESIGNS["aligned"].stream(4, 3).take(32))
        np.testing.assert_array_equal(z[1::2], -z[0::2])
        assert [DESIGNS["aligned-pairs"].whole(n, 4) for n in (10, 17, 33)] == [32, 32, 64]
        assert DESIGNS["aligned-pairs"].below(31, 4) == 0

    @pytest.mark.parametrize("batch_size", ["auto", 37])
    def test_pairs_are_fitted_by_least_squares_too(self, batch_size):
        """What is even in the model and in the curves is orthogonal to all that is fitted: halves of differences do."""
        d, n = 20, 1_024
        v = np.linspace(-0.5, 0.6, d)
        f = lambda a: np.tanh(a @ v) + (a @ v[::-1]) ** 2
        around = sl.Neighbourhood(covariance=0.3 * np.eye(d) + 0.1)
        e = sl.explain(f, np.full(d, 0.1), sigma=around, n_samples=n, batch_size=batch_size)
        assert (e.provenance.method, e.design) == (sl.CLime(curves=True), "aligned-pairs")
        values = f(e.perturbations())
        base, weights = long_draws(DESIGNS["aligned"].stream(d, 0).take(n // 2))
        halves = (values[0::2] - values[1::2]) / 2
        root = np.sqrt(weights)
        fit = np.linalg.lstsq(root[:, None] * HermiteBasis(of_pairs=True).extend(base), root * halves, rcond=None)[0][
            :d
        ]
        turned = Rotation.onto(e.directions).of(fit[None, None])[0, 0]
        np.testing.assert_allclose(e.values[0], np.linalg.solve(e.factor.lower.T, turned), rtol=1e-7)

    def test_pairs_need_fewer_draws_where_features_are_many(self):
        d = 40
        rng = np.random.default_rng(0)
        inner, outer = rng.normal(size=(d, 12)) / np.sqrt(d), rng.normal(size=12)
        f = lambda a: np.tanh(2 * a @ inner) @ outer
        rows = np.repeat(rng.normal(size=(1, d)), 24, axis=0)
        settings = {"n_samples": 1_024, "draws": "independent", "method": sl.CLime(curves=True)}
        truth = sl.explain(f, rows[0], n_samples=2**17, method="clime", design="aligned-pairs").values[0]
        error = {}
        for design in ("aligned", "aligned-pairs"):
            e = sl.explain(f, rows, design=design, **settings)
            error[design] = ((e.values - truth) ** 2).sum(axis=1).mean()
            lower, upper = e.interval()
            assert ((lower <= truth) & (truth <= upper)).mean() > 0.92
        assert error["aligned-pairs"] < 0.8 * error["aligned"]

    def test_looks_merge_groups_of_pairs(self):
        f = lambda a: np.tanh(a.sum(axis=1))
        with pytest.warns(sl.errors.NotConverged):
            looked = sl.explain(f, np.full(20, 0.1), rtol=0.0, atol=1e-9, max_samples=2_048)
        assert looked.design == "aligned-pairs"
        direct = sl.explain(f, np.full(20, 0.1), n_samples=int(looked.n_samples[0]))
        # the pilots differ in size, and with them the directions; the groups are of one size all the same
        np.testing.assert_allclose(looked.groups.sizes, direct.groups.sizes)
        assert (np.abs(looked.values - direct.values) < 6 * (looked.standard_error + direct.standard_error)).all()

    def test_without_curves_it_is_least_squares_on_the_points(self):
        f = known.Sine(V, 0.3)
        e = sl.explain(f.values, X, method="clime", design="aligned", sigma=FULL, n_samples=64)
        points = e.perturbations()
        away = (points - X) @ np.linalg.inv(e.factor.lower).T
        fit = fitted(points, f.values(points)[:, 0], 1 / (1 - SHARE + SHARE * (away**2).mean(axis=1)))
        np.testing.assert_allclose(e.values[0], fit, rtol=1e-9)

    def test_the_pilot_is_counted(self):
        for n, draws in ((256, 8), (1_024, 16), (None, 8)):  # about an eighth of the budget, at most 16 draws
            e = sl.explain(known.Sine(V).values, X, n_samples=n)
            far = FAR if n is None else 0
            assert e.n_evaluations[0] == e.n_samples[0] + draws * 5 + far + 5
        wide = sl.explain(lambda a: a.sum(axis=1), np.zeros(20), n_samples=1_024)
        assert wide.n_evaluations[0] == 1_024 + 8 * 21 + FAR + 5  # a line is looked at further out in any case

    def test_outputs_share_their_draws(self):
        model = lambda a: np.column_stack([np.sin(a @ V), np.cos(a @ V[::-1])])
        one, other = sl.explain_outputs(model, X, n_samples=512).values()
        both = sl.explain(lambda a: model(a) @ [1.0, -1.0], X, n_samples=512)
        difference = one - other
        assert difference.groups is not None
        assert (np.abs(difference.values - both.values) <= 5 * (both.standard_error + difference.standard_error)).all()

    @pytest.mark.parametrize(("n", "terms"), [(32, 4), (64, 14), (512, 14), (1_024, 32)])
    def test_few_draws_are_fitted_with_few_curves(self, n, terms):
        """Higher degrees follow tails that few draws do not show, and errors would be too small."""
        f = known.Sine(V, 0.3).values
        e = sl.explain(f, X, method=sl.CLime(curves=True), n_samples=n)
        base, weights = long_draws(DESIGNS["aligned"].stream(4, 0).take(n))
        fit = fitted(HermiteBasis(of_pairs=False).extend(base)[:, :terms], f(e.perturbations())[:, 0], weights)[:4]
        np.testing.assert_allclose(e.values[0], Rotation.onto(e.directions).of(fit[None, None])[0, 0], rtol=1e-8)

    def test_looks_go_from_few_to_all_of_them(self):
        f = known.Sine(3 * V, 0.3).values
        e = sl.explain(f, X, method=sl.CLime(curves=True), rtol=0.04, atol=0.0, sigma=0.5)
        n = int(e.n_samples[0])
        assert n > 1_024
        base, weights = long_draws(DESIGNS["aligned"].stream(4, 0).take(n))
        fit = fitted(HermiteBasis(of_pairs=False).extend(base), f(e.perturbations())[:, 0], weights)[:4]
        np.testing.assert_allclose(0.5 * e.values[0], Rotation.onto(e.directions).of(fit[None, None])[0, 0], rtol=1e-8)

    def test_a_cap_below_what_it_needs_is_left_to_differences(self):
        steep = lambda a: np.tanh(a.sum(axis=1))
        with pytest.warns(sl.errors.NotConverged):
            assert sl.explain(steep, np.full(120, 0.1), max_samples=500, rtol=0.01).method == "differences"
        with pytest.raises(sl.errors.TooFewDraws, match="for differences"):
            sl.explain(steep, np.full(120, 0.1), max_samples=200)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"curves": True, "ridge": 0.1}, "without a penalty"),
            ({"curves": 1}, "curves must be True or False; got 1"),
        ],
    )
    def test_settings_that_do_not_go_together_are_refused(self, settings, message):
        with pytest.raises(sl.errors.InvalidArgument, match=message):
            sl.CLime(**settings)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "d", "gain"),
        [("steep", 1, 6), ("quick", 1, 4), ("steep", 4, 1.4), ("quick", 4, 3.5), ("steep", 7, 1.3), ("quick", 7, 2.8)],
    )
    def test_are_left_out_where_groups_agree_better_without_most_of_them(self, name, d, gain):
        """Curves do not follow a steep flank or a quick wave; evenly spread draws do better by themselves."""
        v = np.linspace(1, 2, d) / np.linalg.norm(np.linspace(1, 2, d))
        f = {"steep": known.Probit(8 * v, 2.0), "quick": known.Sine(3 * v, 0.3)}[name]
        truth, rows = f.slopes(np.zeros(d), sl.Neighbourhood(1.0)), np.zeros((150, d))
        e = sl.explain(f.values, rows, n_samples=1_024, draws="independent")
        assert e.provenance.method == sl.CLime(curves=True)
        error = np.linalg.norm(e.values - truth, axis=1)
        assert (error <= e.radius).mean() >= 0.97
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("smoothlime.estimators.clime.EVEN_TOGETHER", 0)  # no choice: what is fitted to more features
            fitted = sl.explain(f.values, rows, n_samples=1_024, draws="independent")
        always = np.linalg.norm(fitted.values - truth, axis=1)
        assert gain * np.sqrt((error**2).mean()) < np.sqrt((always**2).mean())
        assert gain * np.median(e.radius) < np.median(fitted.radius)

    @pytest.mark.parametrize("d", [3, 10])
    def test_one_output_does_not_take_them_from_another(self, d):
        """Few draws carry a rare output, and curves would follow them; those of the output beside it stay."""
        v = np.ones(d) / np.sqrt(d)
        smooth, rare = known.Sine(v, 0.3), known.Probit(3 * v, -7.6)
        rows = np.zeros((4, d))
        both = sl.explain_outputs(lambda a: np.column_stack([smooth.values(a), rare.values(a)]), rows, n_samples=1_024)
        alone = sl.explain(smooth.values, rows, n_samples=1_024, method=sl.CLime(curves=True))
        assert both["0"].radius.max() < 5 * alone.radius.max()  # another pilot, but the same fit
        truth = smooth.slopes(np.zeros(d), sl.Neighbourhood(1.0))
        assert np.linalg.norm(both["0"].values - truth, axis=1).max() < 2e-3 * np.linalg.norm(truth)

    @pytest.mark.parametrize("d", [3, 8])
    @pytest.mark.parametrize(
        ("function", "slope"),
        [(lambda s: 10 * s + np.sinh(s), 10 + np.exp(0.5)),
         (lambda s: 100 * s + np.exp(1.5 * s), 100 + 1.5 * np.exp(1.125))],
    )  # fmt: skip
    def test_intervals_of_few_draws_hold_where_a_line_hides_the_tails(self, d, function, slope):
        """The line has all the variance, so that no count of draws that carry it shows how few are in the tails."""
        u = np.sqrt(np.arange(d, 0, -1.0))
        u /= np.linalg.norm(u)
        for n in (256, 512):
            e = sl.explain(lambda a: function(a @ u), np.zeros((600, d)), n_samples=n, draws="independent", seed=7)
            low, high = e.interval()
            held = ((low <= slope * u) & (slope * u <= high)).mean(axis=1)
            assert held.mean() > 0.95 - 3 * held.std() / np.sqrt(len(held))
            assert (np.linalg.norm(e.values - slope * u, axis=1) <= e.radius).mean() > 0.95

    @pytest.mark.parametrize(
        ("function", "slope"),
        [(lambda s: 100 * s + np.exp(2 * s), 100 + 2 * np.exp(2)),
         (lambda s: 1_000 * s + np.sinh(2 * s), 1_000 + 2 * np.exp(2)),
         (lambda s: 5 * np.sin(s) + np.sinh(1.5 * s) / 2, 5 * np.exp(-0.5) + 0.75 * np.exp(1.125)),
         (lambda s: s + s**9 / 30_000, 1 + 945 / 30_000)],
    )  # fmt: skip
    def test_intervals_hold_almost_as_often_as_they_say_where_pairs_show_little_of_the_tails(self, function, slope):
        """When draws that carry the model itself were counted, these held 79 to 82%."""
        d = 20
        u = np.sqrt(np.arange(d, 0, -1.0))
        u /= np.linalg.norm(u)
        e = sl.explain(lambda a: function(a @ u), np.zeros((400, d)), n_samples=1_024, draws="independent", seed=11)
        low, high = e.interval()
        assert ((low <= slope * u) & (slope * u <= high)).mean() > 0.91
        assert (np.linalg.norm(e.values - slope * u, axis=1) <= e.radius).mean() > 0.95

    @pytest.mark.parametrize("d", [3, 8, 20])
    def test_curves_do_not_follow_tails_whatever_line_lies_beside_them(self, d, monkeypatch):
        """They are fitted where enough draws, or pairs, carry what a line leaves, however steep the line is."""
        u = np.ones(d) / np.sqrt(d)
        settings = {"n_samples": 1_024, "method": sl.CLime(curves=True)}

        def found(function, fewest_effective=None):
            with monkeypatch.context() as patched:
                if fewest_effective is not None:
                    patched.setattr(HermiteBasis, "fewest_effective", fewest_effective)
                return sl.explain(lambda a: function(a @ u), np.zeros(d), **settings).values

        for line in (0.0, 1e3):
            growing, wave = (
                lambda s, line=line: np.sinh(2 * s) + line * s,
                lambda s, line=line: np.sin(2 * s) + line * s,
            )
            np.testing.assert_array_equal(found(growing), found(growing, np.inf))
            assert np.abs(found(growing) - found(growing, 0)).max() > 1e-3
            np.testing.assert_array_equal(found(wave), found(wave, 0))
            if d > 7:  # with fewer features groups may agree better without curves
                assert np.abs(found(wave) - found(wave, np.inf)).max() > 1e-3

    @pytest.mark.parametrize("batch_size", ["auto", 37])
    @pytest.mark.parametrize("d", [4, 20])
    def test_what_carries_a_model_is_counted_beside_the_pilots_line(self, d, batch_size, monkeypatch):
        seen = []
        count = PilotResiduals.effective_sample_size
        monkeypatch.setattr(
            PilotResiduals, "effective_sample_size", lambda *given: seen.append(count(*given)) or seen[-1]
        )
        v = np.linspace(0.2, 0.5, d)
        f = lambda a: 40 * (a @ v) + np.exp(a @ v)
        e = sl.explain(f, np.zeros(d), n_samples=1_024, batch_size=batch_size, method=sl.CLime(curves=True))
        z = pilot_draws(pilot_count("values", d, 1_024), d, 0, None)
        slopes = quotients(f(with_steps(z))[None], d).mean(axis=1)[0]
        points = e.perturbations()
        left = f(points) - points @ slopes
        left = (left[0::2] - left[1::2]) / 2 if e.design == "aligned-pairs" else left - left.mean()
        left -= left.mean()
        np.testing.assert_allclose(seen[0], (left**2).sum() ** 2 / (left**4).sum(), rtol=1e-9)

    def test_curves_need_aligned_draws(self):
        with pytest.raises(sl.errors.InvalidArgument, match="Use design='aligned'"):
            sl.explain(known.Sine(V).values, X, method=sl.CLime(curves=True), design="sobol")

    def test_a_penalty_is_refused(self):
        with pytest.raises(sl.errors.InvalidArgument, match="leave ridge out"):
            sl.explain(known.Sine(V).values, X, method=sl.CLime(ridge=0.1), design="aligned")

    def test_looks_merge_their_groups(self):
        f = known.Sine(3 * V)
        e = sl.explain(f.values, X, rtol=0.02, atol=0.0, method="clime", design="aligned", sigma=0.5)
        n = int(e.n_samples[0])
        assert n > 512
        points = e.perturbations()
        values, weights = f.values(points)[:, 0], 1 / (1 - SHARE + SHARE * ((points - X) ** 2).mean(axis=1) / 0.5**2)
        fit = lambda kept: fitted(points[kept], values[kept], weights[kept])
        run = np.arange(n) // (n // PARTS)
        np.testing.assert_allclose(e.values[0], fit(run >= 0), rtol=1e-8)
        pseudo = [PARTS * fit(run >= 0) - (PARTS - 1) * fit(run != each) for each in range(PARTS)]
        np.testing.assert_allclose(e.groups.pseudo[0], pseudo, rtol=1e-6)


@pytest.mark.parametrize(("d", "n", "takes"), [(84, 1_024, "clime"), (85, 1_024, "differences"), (85, 1_032, "clime")])
def test_predictions_are_asked_at_turned_draws_from_twelve_for_each_feature(d, n, takes):
    assert choose_method("auto", has_gradients=False, d=d, n=n).name == takes


@pytest.mark.parametrize(
    ("d", "n", "most", "takes"),
    [
        (1_100, None, None, "differences"), (1_100, 4_400, None, "differences"), (1_100, 2_300, None, "differences"),
        (1_100, None, 4_399, "differences"), (4_096, None, None, "differences"), (4_097, None, None, "clime"),
    ],
)  # fmt: skip
def test_more_than_a_thousand_features_are_left_to_differences(d, n, most, takes):
    assert choose_method("auto", has_gradients=False, d=d, n=n, most=most).name == takes


@pytest.mark.parametrize("budget", [{"n_samples": 2_200}, {"max_samples": 4_399}])
def test_too_few_draws_of_many_features_are_told_how_many_would_do(budget):
    f, x = lambda a: a[:, 0], np.zeros(1_100)
    with pytest.raises(sl.errors.TooFewDraws, match="4400"):
        sl.explain(f, x, **budget)
    assert sl.explain(f, x, **dict.fromkeys(budget, 4_400)).method == "differences"


@pytest.mark.parametrize(
    ("d", "n", "design"),
    [(9, 1_024, "aligned"), (16, 4_096, "aligned"), (9, None, "aligned"), (17, 2_048, "aligned-pairs"),
     (17, None, "aligned-pairs")],
)  # fmt: skip
def test_pairs_are_for_many_features(d, n, design):
    e = sl.explain(lambda a: np.tanh(a.sum(axis=1)), np.zeros(d), sigma=0.1, n_samples=n, progress=False)
    assert (e.method, e.design) == ("clime", design)
