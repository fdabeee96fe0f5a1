import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.uncertainty.stopping import Stopping, plan_looks

V = np.array([0.7, -0.4, 0.3])
X = 0.5 * np.random.default_rng(0).normal(size=(5, 3))
F = known.Probit(2 * V, 0.1)


def test_looks_double_up_to_the_cap():
    assert plan_looks(256, 2_000) == (256, 512, 1_024, 2_000)
    assert plan_looks(256, 1_024) == (256, 512, 1_024)
    assert plan_looks(256, 256) == (256,)


def test_each_look_spends_its_share_of_the_chance_to_miss():
    assert Stopping((256, 512, 1_024, 2_048), 0.1, None, 0.95).miss == pytest.approx(0.0125)


def test_the_tolerance_is_the_larger_of_the_two():
    rule = Stopping((256,), 0.1, 0.02, 0.95)
    size, radius, spread = np.array([1.0, 0.1]), np.array([0.05, 0.05]), np.array([5.0, 5.0])
    np.testing.assert_allclose(rule.tolerance(size, radius, spread), [0.095, 0.02])
    automatic = Stopping((256,), 0.1, None, 0.95)
    np.testing.assert_allclose(automatic.tolerance(size, radius, spread), [0.095, 0.05])
    assert rule.is_reached(256, size, radius, spread).tolist() == [True, False]


def test_a_model_that_has_not_moved_is_not_believed_at_once():
    rule = Stopping(plan_looks(256, 100_000), 0.1, None, 0.95)
    nothing = np.zeros(1)
    assert not rule.is_reached(256, nothing, nothing, nothing).any()
    assert rule.is_reached(4_096, nothing, nothing, nothing).all()
    # of longer draws, which see less of what lies close to x, as many must be normal ones
    assert not rule.is_reached(4_096, nothing, nothing, nothing, longer=1 / 3).any()
    assert rule.is_reached(8_192, nothing, nothing, nothing, longer=1 / 3).all()
    for design, n in (("iid", 4_096), ("auto", 8_192)):
        e = sl.explain(lambda a: np.zeros(len(a)), X, method="clime", design=design)
        assert (e.n_samples == n).all()
        assert e.converged.all()


def test_a_probability_is_good_enough_at_a_floor():
    rule = Stopping(plan_looks(256, 100_000), 0.05, None, 0.95, floor=0.005)
    size, radius = np.array([1e-4, 0.2, 0.06]), np.array([0.004, 0.006, 0.004])
    spread = np.array([0.1, 0.3, 0.6])
    np.testing.assert_allclose(rule.tolerance(size, radius, spread), [0.005, 0.05 * 0.194, 0.006])
    assert rule.is_reached(256, size, radius, spread).all()
    assert rule.told == 0.005
    assert (Stopping((256,), 0.05, None, 0.95).told, Stopping((256,), 0.05, 0.02, 0.95).told) == (None, 0.02)


def test_a_probability_that_was_near_zero_at_all_draws_is_not_believed_at_once():
    rule = Stopping(plan_looks(256, 100_000), 0.05, None, 0.95, floor=0.005)
    size, radius, spread = np.array([0.001, 0.001]), np.array([0.0, 0.0009]), np.array([0.002, 0.002])
    # 5% of what was seen is reached by the first row, only the floor by the second
    assert rule.is_reached(2_048, size, radius, spread).tolist() == [True, False]
    assert rule.is_reached(4_096, size, radius, spread).tolist() == [True, True]


class Probabilities:
    """Two outputs, p and 1 - p, of a ridge function that are known to lie between 0 and 1, without gradients."""

    outputs = ("no", "yes")

    def __init__(self, function, output_range=(0.0, 1.0)):
        self.function, self.output_range = function, output_range

    def values(self, points):
        p = self.function.values(points)[:, 0]
        return np.column_stack([1 - p, p])


class WithGradients(Probabilities):
    def values_and_gradients(self, points, weights):
        _, slope = self.function.values_and_gradients(points, np.ones((len(points), 1)))
        return self.values(points), (weights[:, 1] - weights[:, 0])[:, None] * slope


SURE = known.Probit(np.array([1.5, -1.0, 0.5]), -5.0)
"""A classifier that is nearly sure at x = 0, where its slope is 0.022."""


@pytest.mark.parametrize(
    ("target", "output_range", "atol"),
    [
        ("yes", (0.0, 1.0), 0.005),
        ("predicted", (0.0, 1.0), 0.005),
        ({"yes": 1, "no": -1}, (0.0, 1.0), 0.005),
        ({"yes": 0.5}, (0.0, 1.0), 0.005),
        ({"yes": 100}, (0.0, 1.0), None),
        ({"yes": 2, "no": -1}, (0.0, 1.0), None),
        ("yes", (0.0, 1.5), None),
        ("yes", (0.0, np.inf), None),
        ("yes", None, None),
    ],
)
def test_what_is_known_to_be_narrow_has_the_floor(target, output_range, atol):
    model = Probabilities(SURE, output_range)
    e = sl.explain(model, np.zeros(3), target=target, n_samples=256)
    assert (e.provenance.rtol, e.provenance.atol) == (0.05, atol)
    assert sl.explain(model, np.zeros(3), target=target, n_samples=256, atol=0.01).provenance.atol == 0.01


def test_the_caller_may_know_the_range():
    f = lambda a: SURE.values(a)[:, 0]
    plain = sl.explain(f, np.zeros(3))
    told = sl.explain(f, np.zeros(3), output_range=(0, 1))
    assert (plain.provenance.atol, told.provenance.atol) == (None, 0.005)
    assert told.n_samples[0] < plain.n_samples[0]
    certified = {"guarantee": "certified", "method": "clime", "n_samples": 1_000}
    assert sl.explain(f, np.zeros(3), output_range=(0, 1), **certified).provenance.atol == 0.005
    assert sl.explain(f, np.zeros(3), output_range=(0, 2), **certified).provenance.atol is None


@pytest.mark.parametrize("kind", [Probabilities, WithGradients])
def test_a_probability_that_hardly_moves_takes_few_draws(kind):
    settings = {"target": "yes", "max_samples": 70_000, "progress": False}
    truth = SURE.slopes(np.zeros((1, 3)), sl.Neighbourhood(1.0))[0]
    assert 0.02 < np.linalg.norm(truth) < 0.025
    before = sl.explain(kind(SURE, None), np.zeros(3), **settings)
    e = sl.explain(kind(SURE), np.zeros(3), **settings)
    assert e.converged.all()
    assert 4 * e.n_samples[0] <= before.n_samples[0]
    assert np.linalg.norm(e.values[0] - truth) <= e.radius[0] <= 0.005
    outputs = sl.explain_outputs(kind(SURE), np.zeros(3), max_samples=70_000)
    assert [(each.provenance.atol, each.n_samples[0]) for each in outputs.values()] == [(0.005, e.n_samples[0])] * 2


def test_margins_and_regressions_are_held_to_what_they_were():
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.svm import SVC

    rows = np.random.default_rng(1).normal(size=(60, 3))
    models = {
        "probability": KNeighborsClassifier().fit(rows, rows[:, 0] > 0),
        "margin": SVC().fit(rows, rows[:, 0] > 0),
        "value": KNeighborsRegressor().fit(rows, rows[:, 0]),
    }
    atol = {
        name: sl.explain(
            model,
            X,
            target=None if name == "value" else 1,
            n_samples=256,
            output="margin" if name == "margin" else "probability",
        ).provenance.atol
        for name, model in models.items()
    }
    assert atol == {"probability": 0.005, "margin": None, "value": None}
    import torch

    module = torch.nn.Linear(3, 2)
    atol = {
        output: sl.explain(sl.as_model(module.eval(), output=output), X, target=1, n_samples=256).provenance.atol
        for output in ("probability", None)
    }
    assert atol == {"probability": 0.005, None: None}


def test_a_fixed_number_of_draws_is_judged_by_the_floor_too():
    settings = {"target": "yes", "n_samples": 2_048, "method": "clime", "design": "iid"}
    e = sl.explain(Probabilities(SURE), np.zeros(3), **settings)
    strict = sl.explain(Probabilities(SURE), np.zeros(3), atol=0, **settings)
    np.testing.assert_array_equal(e.radius, strict.radius)
    assert (e.converged.all(), strict.converged.any()) == (bool(e.radius[0] <= 0.005), False)


def test_a_path_over_sigma_has_the_floor():
    path = sl.sigma_path(Probabilities(SURE), np.zeros(3), [0.1, 1.0], target="yes")
    assert [e.provenance.atol for e in path] == [0.005, 0.005]


def test_the_tolerance_is_told_where_all_rows_are_within_it():
    e = sl.explain(Probabilities(SURE), np.zeros((2, 3)), target="yes")
    assert "draws per row, to 5% or 0.005, seed 0" in str(e)
    assert repr(e).endswith(", to 5% or 0.005>")
    with pytest.warns(errors.NotConverged, match=r"the tolerance of 5% or 0\.005 for 'yes'"):
        late = sl.explain(Probabilities(SURE), np.zeros((2, 3)), target="yes", method="clime", max_samples=512)
    assert "0.005" not in repr(late)
    assert "to 5%" not in str(late)
    assert " or 0.5, seed" in str(100 * e)
    assert "to 5%" not in str(e + e)
    assert "to 5%" not in str(sl.explain(F, X, sigma=0.6))


def test_the_forecast_follows_the_root_of_n():
    rule = Stopping(plan_looks(256, 100_000), 0.1, None, 0.95)
    radius, tolerance = np.array([0.2, 0.1, 9.0]), np.array([0.1, 0.1, 0.001])
    assert rule.forecast(256, radius, tolerance).tolist() == [1_024, 256, 100_000]


RTOLS = {"smoothgrad": 0.015, "clime": 0.01, "stein": 0.015, "differences": 0.015}


@pytest.mark.parametrize("method", RTOLS)
def test_rows_stop_on_their_own_and_keep_their_promise(method):
    e = sl.explain(F, X, method=method, sigma=0.6, rtol=RTOLS[method])
    assert e.converged.all()
    assert len(set(e.n_samples.tolist())) > 1
    size = np.linalg.norm(e.standardised, axis=1)
    assert (e.radius <= np.maximum(RTOLS[method] * size, 0.01 * np.sqrt(size**2 + 1))).all()
    truth = F.slopes(X, sl.Neighbourhood(0.6))
    assert (np.linalg.norm((e.values - truth) * 0.6, axis=1) <= e.radius).all()


def test_no_options_draw_until_five_percent():
    e = sl.explain(F, X, sigma=0.6)
    assert e.converged.all()
    spread = np.sqrt(np.linalg.norm(e.standardised, axis=1) ** 2 / e.fidelity)
    assert (e.radius <= np.maximum(0.05 * np.linalg.norm(e.standardised, axis=1), 0.0101 * spread)).all()


def test_a_row_does_not_depend_on_the_company_it_keeps():
    together = sl.explain(F, X, sigma=0.6, method="clime")
    alone = [sl.explain(F, row, sigma=0.6, method="clime") for row in X]
    assert together.n_samples.tolist() == [int(e.n_samples[0]) for e in alone]
    np.testing.assert_allclose(together.values, np.concatenate([e.values for e in alone]), rtol=1e-12)
    small = sl.explain(F, X, sigma=0.6, method="clime", batch_size=50)
    assert together.n_samples.tolist() == small.n_samples.tolist()
    np.testing.assert_allclose(together.values, small.values, rtol=1e-12)


def test_rows_with_draws_of_their_own_stop_on_their_own():
    e = sl.explain(F, X, sigma=0.6, method="clime", design="iid", draws="independent")
    for row in range(len(e)):
        points = e.perturbations(row)
        assert len(points) == e.n_samples[row]
        fit = np.linalg.lstsq(np.column_stack([np.ones(len(points)), points]), F.values(points)[:, 0], rcond=None)[0]
        np.testing.assert_allclose(e.values[row], fit[1:], rtol=1e-8)


def test_a_fixed_number_of_draws_is_the_same_as_stopping_there():
    e = sl.explain(F, X[:1], sigma=0.6, method="clime", design="iid")
    fixed = sl.explain(F, X[:1], sigma=0.6, method="clime", design="iid", n_samples=int(e.n_samples[0]))
    np.testing.assert_allclose(fixed.values, e.values, rtol=1e-12)
    np.testing.assert_allclose(fixed.standard_error, e.standard_error, rtol=1e-9)
    assert (fixed.radius < e.radius).all()  # one look spends all of the chance to miss


def test_the_cap_is_loud():
    with pytest.warns(errors.NotConverged, match=r"5 of 5 rows did not reach .* within 512 draws: row 0 \(radius"):
        e = sl.explain(F, X, sigma=0.6, method="clime", design="iid", rtol=0.001, atol=0, max_samples=512)
    assert not e.converged.any()
    assert (e.n_samples == 512).all()
    assert np.isfinite(e.radius).all()


def test_a_fixed_number_of_draws_is_quiet_and_says_whether_it_was_enough():
    e = sl.explain(F, X, sigma=0.6, method="clime", n_samples=256, rtol=0.001, atol=0)
    assert not e.converged.any()
    assert sl.explain(F, X, sigma=0.6, method="clime", n_samples=256, rtol=0.9).converged.all()


def test_the_scale_of_differences_is_that_of_the_neighbourhood():
    """Its radii are wider than normal; weights undo that, or the automatic tolerance would be too generous."""
    from smoothlime.draws.designs import DESIGNS
    from smoothlime.estimators import Batch, Differences, GroupedDraws
    from smoothlime.estimators.protocol import Drawn, Setup

    n, design = 60_000, DESIGNS["differences"]
    for d, function in ((1, known.Linear([2.0])), (3, known.Sine(3 * V, 0.2))):
        z = design.stream(d, 0).take(n)
        factor = sl.Neighbourhood(1.0).factor(d)
        method = Differences()
        state = method.start(Setup(1, 1, factor, design, looks=(n,), is_shared=True))
        draws = GroupedDraws(z[None, None], is_shared=True)
        method.update(state, slice(0, 1), slice(0, 1), Batch(draws, function.values(z).reshape(1, 1, -1)))
        method.update_shared(state, slice(0, 1), draws)
        drawn = Drawn(n, np.array([float(n)]), factor, design, miss=0.05, targets=1)
        found = method.finish(state, drawn).spread[0]
        truth = function.values(np.random.default_rng(0).standard_normal((200_000, d))).std()
        assert found == pytest.approx(truth, rel=0.03)


def test_nothing_to_find_stops_by_the_absolute_tolerance():
    flat = known.Sine(V, np.pi / 2)
    e = sl.explain(flat, np.zeros((1, 3)), sigma=0.6, method="differences")
    assert e.converged.all()
    assert e.n_samples[0] < 20_000


def test_all_outputs_of_a_row_stop_together():
    model = sl.from_functions(
        values=lambda a: np.column_stack([F.values(a), known.Sine(3 * V).values(a)]), outputs=("easy", "hard")
    )
    each = sl.explain_outputs(model, X, sigma=0.6, method="clime", design="iid")
    assert each["easy"].n_samples.tolist() == each["hard"].n_samples.tolist()
    assert each["hard"].converged.all()


def test_the_forecast_is_that_of_the_output_that_takes_longest():
    """Least squares knows a line after the first look, and the row goes on for its other output."""
    model = sl.from_functions(
        values=lambda a: np.column_stack([a @ V, known.Sine(3 * V).values(a)]), outputs=("line", "wave")
    )
    seen = []
    sl.explain_outputs(
        model, X[:1], sigma=0.6, method="clime", design="iid", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1][0] > 2_000
    assert all(done <= total for done, total in seen)


def test_progress_adds_up_to_what_was_drawn():
    seen = []
    e = sl.explain(F, X, sigma=0.6, progress=lambda done, total: seen.append((done, total)), method="clime")
    assert seen[-1][0] == e.n_samples.sum()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"rtol": -0.1}, errors.InvalidArgument, r"rtol must be finite and >= 0; got -0.1"),
        ({"rtol": 1.0}, errors.InvalidArgument, r"rtol must be below 1; got 1.0"),
        ({"atol": -1}, errors.InvalidArgument, r"atol must be finite and >= 0; got -1"),
        ({"atol": "small"}, errors.WrongType, r"atol must be a number or 'auto'; got 'small'"),
        ({"rtol": 0, "atol": 0}, errors.InvalidArgument, r"rtol and atol are both 0: no number of draws is enough"),
        ({"max_samples": 100}, errors.TooFewDraws, r"max_samples=100 is below the first look, at 258 draws"),
        ({"confidence": 1.5}, errors.InvalidArgument, r"confidence must lie strictly between 0 and 1; got 1.5"),
        ({"guarantee": "sure"}, errors.InvalidArgument, r"guarantee must be one of 'approximate', 'certified'"),
    ],
)
def test_bad_tolerances_say_what_is_wrong(arguments, kind, message):
    with pytest.raises(kind, match=message):
        sl.explain(F.values, X, **arguments)
