"""Rows that would stop are looked at further out, once; what the model has no answer for there is left out."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.draws.far_draws import FAR, far_draws
from smoothlime.uncertainty.stopping import BELIEVED_CONSTANT

V = np.array([0.6, -0.8, 0.3])
X = np.random.default_rng(2).standard_normal((4, 3))
ASKED = 2 + 3 * (np.arange(4) == 0)
"""Model rows asked for each row of a table besides draws: f(x) twice, and the first beside two others."""


class Counted:
    """A function that knows at how many points it was asked."""

    def __init__(self, f):
        self.f, self.points = f, 0

    def __call__(self, a):
        self.points += len(a)
        return self.f(a)


def line(a):
    return a @ V


def bent(a):
    """A kink 3.2 standard deviations away from the origin."""
    return 0.01 * (a @ V) + np.maximum(a @ V - 3.2 * np.linalg.norm(V), 0.0)


def explain(model, x=X, **more):
    return sl.explain(model, x, **{"method": "differences", **more})


def limited(limit, refuse, f=line):
    """A function with answers within so many units of the origin only."""

    def answer(a):
        is_far = np.linalg.norm(a, axis=1) > limit
        if refuse == "raises" and is_far.any():
            msg = "out of range"
            raise ValueError(msg)
        return np.where(is_far, {"NaN": np.nan, "inf": np.inf}.get(refuse, 0.0), f(a))

    return answer


class TestCounting:
    @pytest.mark.parametrize("rows", [1, 4])
    def test_every_point_is_counted(self, rows):
        for f in (line, bent, lambda a: np.sin(a @ V), lambda a: np.exp(a @ V)):
            model = Counted(f)
            e = explain(model, X[:rows], rtol=0.1)
            assert e.n_evaluations.sum() == model.points

    def test_a_row_is_asked_once_however_often_it_is_looked_at(self):
        """The kink is seen from afar before it is met: the row would stop at each of several looks."""
        f = known.Relu(V, -3.4 * np.linalg.norm(V))
        gradients = Counted(lambda a: 0.02 * V + f.values_and_gradients(a, np.ones((len(a), 1)))[1])
        model = sl.from_functions(values=lambda a: 0.02 * a @ V + f.values(a)[:, 0], gradients=gradients)
        with pytest.warns(errors.NotConverged):
            e = sl.explain(model, np.zeros((4, 3)), method="smoothgrad", design="iid", max_samples=2_048, rtol=0.01)
        assert (e.n_samples == 2_048).all()
        assert (e.n_evaluations == 2_048 + ASKED + FAR).all()
        assert gradients.points == 4 * (2_048 + FAR)

    def test_outputs_share_their_points(self):
        model = Counted(lambda a: np.column_stack([line(a), 2 * line(a), np.sin(a[:, 0])]))
        each = sl.explain_outputs(model, X, method="differences", rtol=0.1)
        assert each["0"].n_evaluations.sum() == model.points
        np.testing.assert_array_equal(each["0"].n_evaluations, each["2"].n_evaluations)

    def test_a_certificate_needs_no_look(self):
        model = Counted(lambda a: 1 / (1 + np.exp(-a @ V)))
        e = sl.explain(model, X[:1], guarantee="certified", output_range=(0, 1), rtol=0.5, atol=0.3)
        assert e.n_evaluations.sum() == e.n_samples.sum() + 5 == model.points


class TestFixedNumbers:
    def test_nothing_is_spent_beyond_them_where_errors_are_not_zero(self):
        e = explain(lambda a: np.sin(a @ V), n_samples=1_024, rtol=0.5)
        assert e.converged.all()
        assert (e.n_evaluations == e.n_samples + ASKED).all()

    @pytest.mark.parametrize(("n", "far"), [(252, 0), (258, FAR)])
    def test_a_line_is_looked_at_where_draws_are_enough_for_intervals(self, n, far):
        e = explain(line, n_samples=n)
        assert e.converged.all()
        assert (e.n_evaluations == n + ASKED + far).all()
        assert (e.is_indicative == (far == 0)).all()

    def test_a_kink_further_out_is_seen(self):
        model = Counted(bent)
        e = explain(model, np.zeros((1, 3)), n_samples=258, seed=2)
        assert not e.converged.any()
        assert e.radius[0] > 10 * np.linalg.norm(e.half_width(0.05)[0])
        assert e.n_evaluations[0] == model.points > 258 + 5 + FAR  # and differences at a few of the far points


class TestPointsWithoutAnAnswer:
    @pytest.mark.parametrize("refuse", ["raises", "NaN", "inf"])
    @pytest.mark.parametrize("batch_size", [7, 64, 4_096])
    def test_they_are_left_out(self, refuse, batch_size):
        x = np.zeros((2, 3))
        far = np.linalg.norm(far_draws(3, 0, None), axis=1)
        limit = np.sort(far)[-10]  # more than any draw needs, less than some far ones
        e = explain(limited(limit, refuse), x, batch_size=batch_size)
        whole = explain(line, x, batch_size=batch_size)
        np.testing.assert_array_equal(e.values, whole.values)
        np.testing.assert_array_equal(e.n_evaluations, whole.n_evaluations)
        assert e.converged.all()

    def test_what_others_say_still_counts(self):
        """Half of the far points are refused, on the side that matters not."""
        x, model = np.zeros((1, 3)), lambda a: np.where(a @ V < -4.5, np.nan, bent(a))
        e, whole = (explain(f, x, n_samples=258, seed=2) for f in (model, bent))
        assert e.radius[0] == whole.radius[0] > 0
        assert not e.converged.any()

    @pytest.mark.parametrize("refuse", ["raises", "NaN"])
    def test_where_none_answers_a_line_takes_many_draws_and_the_user_is_told(self, refuse):
        """In 40 features draws are 4 to 9 long, far ones 10 or more."""
        v = np.ones(40)
        model = limited(9.5, refuse, lambda a: a @ v)
        with pytest.warns(errors.FarUnseen, match=r"any of the 64 points, .*: row 0, 1\."):
            e = explain(model, np.zeros((2, 40)))
        assert e.converged.all()
        assert (e.n_samples >= BELIEVED_CONSTANT).all()
        assert (e.radius < 1e-12).all()

    def test_what_bends_near_its_row_needs_no_more_draws_for_that(self):
        v = np.full(40, 0.03)
        with pytest.warns(errors.FarUnseen):
            e = explain(limited(9.5, "NaN", lambda a: np.sin(a @ v)), np.zeros((1, 40)), rtol=0.1)
        whole = explain(lambda a: np.sin(a @ v), np.zeros((1, 40)), rtol=0.1)
        assert e.n_samples[0] == whole.n_samples[0] < BELIEVED_CONSTANT

    def test_numbers_beyond_all_range_are_no_concern(self):
        def huge(a):
            return line(a) + np.exp(150 * np.maximum(np.abs(a).max(axis=1) - 5.0, 0.0)) - 1.0

        e = explain(huge, np.zeros((1, 3)), n_samples=258)
        assert np.isfinite(e.radius).all()


class TestSameAnswer:
    @pytest.mark.parametrize("draws", ["shared", "independent"])
    @pytest.mark.parametrize("f", [line, lambda a: np.sin(a @ V), lambda a: np.exp(a @ V)])
    def test_batches_and_other_rows_do_not_matter(self, f, draws):
        settings = {"draws": draws, "rtol": 0.1}
        whole = explain(f, **settings)
        for batch_size in (33, 100, 2_048):
            other = explain(f, batch_size=batch_size, **settings)
            np.testing.assert_allclose(other.radius, whole.radius, rtol=1e-12, atol=1e-13)
            np.testing.assert_array_equal(other.n_evaluations, whole.n_evaluations)
        if draws == "shared":
            for row in range(4):
                np.testing.assert_allclose(explain(f, X[row], **settings).radius[0], whole.radius[row], atol=1e-13)

    def test_files_keep_it(self, tmp_path):
        e = explain(bent, np.zeros((1, 3)), n_samples=258, seed=2)
        e.save(tmp_path / "e.json")
        again = sl.load(tmp_path / "e.json")
        assert (again.radius == e.radius).all()
        assert (again.n_evaluations == e.n_evaluations).all()
        np.testing.assert_array_equal(again.perturbations(), e.perturbations())
