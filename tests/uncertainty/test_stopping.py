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


def test_the_forecast_follows_the_root_of_n():
    rule = Stopping(plan_looks(256, 100_000), 0.1, None, 0.95)
    radius, tolerance = np.array([0.2, 0.1, 9.0]), np.array([0.1, 0.1, 0.001])
    assert rule.forecast(256, radius, tolerance).tolist() == [1_024, 256, 100_000]


@pytest.mark.parametrize("method", ["smoothgrad", "clime", "stein", "differences"])
def test_rows_stop_on_their_own_and_keep_their_promise(method):
    e = sl.explain(F, X, method=method, sigma=0.6, rtol=0.015)
    assert e.converged.all()
    assert len(set(e.n_samples.tolist())) > 1
    size = np.linalg.norm(e.standardised, axis=1)
    assert (e.radius <= np.maximum(0.015 * size, 0.01 * np.sqrt(size**2 + 1))).all()
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
