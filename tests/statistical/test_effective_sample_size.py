"""Where few draws carry a model's variance, few degrees of freedom are left: intervals say so, and hold."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.uncertainty.jackknife import t_quantile

V = np.array([0.7, -0.5, 0.3, 0.2])
X = np.zeros(4)
RARE = known.Probit(3 * V, -7.6)  # its boundary is 2.7 σ away: one draw in two hundred crosses it
GROWING = known.Exponential(2.5 * V / np.linalg.norm(V))  # exp(2.5 s): most of its slope comes from beyond 2.5 σ
METHODS = [
    {"method": "clime", "design": "iid"},
    {"method": "stein", "design": "iid"},
    {"method": "differences"},
    {"method": sl.CLime(curves=True)},
]


def effective_sample_size(values):
    centred = values - values.mean()
    return (centred**2).sum() ** 2 / (centred**4).sum()


class TestCount:
    @pytest.mark.parametrize("settings", METHODS[:2], ids=["clime", "stein"])
    @pytest.mark.parametrize("batch_size", ["auto", 70])
    def test_is_that_of_the_values_whatever_they_are_measured_from(self, settings, batch_size):
        for size, shift in ((1.0, 0.0), (1e-3, 5.0)):
            f = lambda a, size=size, shift=shift: size * RARE.values(a)[:, 0] + shift
            e = sl.explain(f, X, n_samples=640, batch_size=batch_size, **settings)
            expected = effective_sample_size(f(e.perturbations()))
            assert 1 < expected < 30
            np.testing.assert_allclose(e.degrees_of_freedom, max(1, expected - 1), rtol=1e-6)

    def test_of_differences_is_that_of_half_differences(self):
        e = sl.explain(RARE.values, X, n_samples=800, method="differences")
        values = RARE.values(e.perturbations())[:, 0]
        halves = (values[0::2] - values[1::2]) / 2
        expected = (halves**2).sum() ** 2 / (halves**4).sum()
        np.testing.assert_allclose(e.degrees_of_freedom, max(1, expected - 1), rtol=1e-9)

    @pytest.mark.parametrize("settings", METHODS, ids=["clime", "stein", "differences", "curves"])
    def test_changes_nothing_where_all_draws_do_their_share(self, settings):
        for f in (known.Sine(V, 0.3), known.Probit(3 * V, 0.2), known.Step(V, 0.1), known.Linear(V, 1.0)):
            e = sl.explain(f.values, X, n_samples=1_024, **settings)
            assert e.degrees_of_freedom == (e.groups.sizes > 0).sum() - 1

    @pytest.mark.parametrize("settings", METHODS, ids=["clime", "stein", "differences", "curves"])
    @pytest.mark.parametrize("f", [RARE, known.Probit(3 * V, 0.2)], ids=["few", "all"])
    def test_does_not_depend_on_the_size_of_the_values(self, settings, f):
        expected = sl.explain(f.values, X, n_samples=1_024, **settings)
        for size in (1e-100, 1e80, 1e100):
            e = sl.explain(lambda a, size=size: size * f.values(a), X, n_samples=1_024, **settings)
            np.testing.assert_allclose(e.degrees_of_freedom, expected.degrees_of_freedom, rtol=1e-9)
            np.testing.assert_allclose(e.values / size, expected.values, rtol=1e-9)
            np.testing.assert_allclose(e.radius / size, expected.radius, rtol=1e-9)

    def test_of_a_flat_model_is_all(self):
        e = sl.explain(lambda a: np.ones(len(a)), X, n_samples=256, method="clime", design="iid")
        assert e.degrees_of_freedom == 31
        np.testing.assert_array_equal(e.interval(), np.zeros((2, 1, 4)))


class TestIntervals:
    @pytest.mark.parametrize("settings", METHODS, ids=["clime", "stein", "differences", "curves"])
    @pytest.mark.parametrize("n", [256, 1_024])
    def test_hold_more_often_where_few_draws_decide(self, settings, n):
        """Groups alone would say too little: the draws that matter come together, or not at all."""
        e = sl.explain(
            GROWING.values, np.repeat(X[None], 1_000, axis=0), n_samples=n, draws="independent", sigma=1.0, **settings
        )
        truth = GROWING.slopes(X, sl.Neighbourhood(1.0))
        lower, upper = e.interval()
        held = ((lower <= truth) & (truth <= upper)).mean()
        assert held >= 0.88
        groups = (e.groups.sizes[0] > 0).sum()
        narrower = t_quantile(groups - 1.0, 0.975) / t_quantile(e.degrees_of_freedom, 0.975)
        inside = np.abs(e.values - truth) <= narrower[:, None] * (upper - lower) / 2
        assert inside.mean() < held - min(0.01, 0.4 * (1 - held))
        assert (np.linalg.norm(e.values - truth, axis=1) <= e.radius).mean() >= 0.88

    def test_are_the_same_after_a_file_and_for_slices_and_sums(self, tmp_path):
        e = sl.explain(RARE.values, np.stack([X, 4 * V]), n_samples=512, method="clime", design="iid")
        assert e.degrees_of_freedom[0] < e.degrees_of_freedom[1] == 31
        e.save(tmp_path / "e.json")
        np.testing.assert_array_equal(sl.load(tmp_path / "e.json").interval(), e.interval())
        for row in range(2):
            np.testing.assert_array_equal(e[row].interval()[0][0], e.interval()[0][row])
        twice = e + e
        np.testing.assert_array_equal(twice.degrees_of_freedom, e.degrees_of_freedom)
        np.testing.assert_allclose(twice.half_width(0.05), 2 * e.half_width(0.05), rtol=1e-12)

    def test_curves_of_high_degree_do_not_follow_few_draws(self):
        f = RARE.values
        e = sl.explain(f, np.stack([X, 3 * V]), n_samples=1_024, method=sl.CLime(curves=True), draws="independent")
        alone = sl.explain(f, X, n_samples=1_024, method=sl.CLime(curves=True), draws="independent")
        np.testing.assert_allclose(e.values[0], alone.values[0], rtol=1e-9)
        truth = RARE.slopes(X, sl.Neighbourhood(1.0))
        rows = np.repeat(X[None], 300, axis=0)
        many = sl.explain(f, rows, n_samples=1_024, method=sl.CLime(curves=True), draws="independent")
        error = many.values - truth
        # a mean of 300: with all curves it lies 8 of its standard errors towards 0
        assert (np.abs(error.mean(axis=0)) < 4.5 * error.std(axis=0) / np.sqrt(300)).all()
