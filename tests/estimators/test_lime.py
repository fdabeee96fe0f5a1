"""LIME against scikit-learn on the very points that were evaluated, and against C-LIME where it must be the same."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LinearRegression, Ridge, lars_path

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.estimators import sparse

D = 5
V = np.array([1.3, -0.8, 0.5, 0.0, 0.2])
X = np.random.default_rng(2).normal(size=(3, D))
ROOT = np.random.default_rng(3).normal(size=(D, D))
NEIGHBOURHOODS = {
    "diagonal": sl.Neighbourhood([0.3, 2.0, 0.8, 1.1, 0.5]),
    "full": sl.Neighbourhood(0.6, covariance=ROOT @ ROOT.T + 0.5 * np.eye(D)),
}
WIDTH = 1.4
ARRAYS = ("values", "standard_error", "radius", "smoothed", "fidelity", "converged", "n_samples", "prediction")


def f(a):
    return np.sin(a @ V) + 0.3 * a[:, 0] * a[:, 1] + 0.4 * a[:, 4]


def explain(around="diagonal", x=X, n_samples=512, **settings):
    more = {name: settings.pop(name) for name in ("design", "draws", "batch_size") if name in settings}
    method = sl.Lime(**{"kernel": WIDTH, **settings})
    return sl.explain(f, x, method=method, sigma=NEIGHBOURHOODS[around], n_samples=n_samples, **more)


def distances(e, row):
    steps = (e.perturbations(row) - e.x[row])[:, e.factor.free]
    lower = np.diag(e.factor.lower) if e.factor.is_diagonal else e.factor.lower
    return np.linalg.norm(np.linalg.solve(lower, steps.T), axis=0)


def weights(e, row, width=WIDTH):
    return np.exp(-(distances(e, row) ** 2) / (2 * width**2))


def refit(e, row, regressor, kept=slice(None), width=WIDTH):
    """Slopes of a scikit-learn regressor (a function of Σπ) on some features; 0 for the others."""
    points, pi = e.perturbations(row), weights(e, row, width)
    slopes = np.zeros(points.shape[1])
    slopes[kept] = regressor(pi.sum()).fit(points[:, kept], f(points), sample_weight=pi).coef_
    return slopes


def plain(total):
    return LinearRegression()


# ---- the flat kernel is C-LIME


@pytest.mark.parametrize("kernel", [None, np.ones_like], ids=["none", "ones"])
@pytest.mark.parametrize("draws", ["shared", "independent"])
@pytest.mark.parametrize("design", sl.Lime.designs)
def test_a_flat_kernel_is_clime_to_the_last_bit(design, draws, kernel):
    for sigma in NEIGHBOURHOODS.values():
        for more in ({"n_samples": 48}, {"n_samples": 1_000, "batch_size": 333}, {"rtol": 0.2}):
            one, other = (
                sl.explain(f, X, method=method, sigma=sigma, design=design, draws=draws, **more)
                for method in (sl.CLime(), sl.Lime(kernel=kernel))
            )
            for name in ARRAYS:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
            np.testing.assert_array_equal(one.groups.pseudo, other.groups.pseudo)
            np.testing.assert_array_equal(one.groups.resolution, other.groups.resolution)
            assert other.selected is None


def test_a_flat_kernel_with_ridge_has_the_slopes_and_errors_of_clime():
    one, other = (
        sl.explain(f, X, method=method, sigma=0.5, n_samples=512, design="iid")
        for method in (sl.CLime(ridge=0.3), sl.Lime(kernel=None, ridge=0.3))
    )
    for name in ("values", "standard_error", "radius"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_scale_of_a_kernel_does_not_matter():
    one = explain(kernel=lambda d: np.exp(-(d**2) / 4))
    for scale in (1e-9, 7.0):
        other = explain(kernel=lambda d, scale=scale: scale * np.exp(-(d**2) / 4))
        for name in ("values", "standard_error", "radius", "fidelity"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)


def test_a_width_is_the_function_it_stands_for_and_auto_the_width_of_the_lime_package():
    for kernel, width in ((WIDTH, WIDTH), ("auto", 0.75 * np.sqrt(D))):
        one = explain(kernel=kernel)
        other = explain(kernel=lambda d, width=width: np.sqrt(np.exp(-(d**2) / width**2)))
        for name in ("values", "standard_error", "fidelity"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)


# ---- against scikit-learn


@pytest.mark.parametrize("design", ["iid", "orthogonal"])
@pytest.mark.parametrize("draws", ["shared", "independent"])
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize(
    ("settings", "regressor"),
    [
        ({}, plain),
        ({"ridge": 0.3}, lambda total: Ridge(0.3 * total)),
        ({"lasso": 0.3}, lambda total: Lasso(0.15, tol=1e-14, max_iter=100_000)),
        ({"lasso": 0.02}, lambda total: Lasso(0.01, tol=1e-14, max_iter=100_000)),
    ],
    ids=["plain", "ridge", "lasso", "small lasso"],
)
def test_slopes_are_those_of_scikit_learn_with_sample_weights(settings, regressor, around, draws, design):
    e = explain(around, draws=draws, design=design, **settings)
    for row in range(len(X)):
        expected = refit(e, row, regressor)
        np.testing.assert_allclose(e.values[row], expected, atol=1e-10 * np.abs(expected).max())
        np.testing.assert_array_equal(e.values[row] == 0, expected == 0)


@pytest.mark.parametrize("settings", [{}, {"ridge": 0.3}, {"lasso": 0.1}, {"features": 2}], ids=str)
def test_standard_errors_repeat_the_whole_fit_without_each_group(settings):
    e = explain("full", design="iid", x=X[:1], **settings)
    group = np.arange(512) % 32
    points, pi = e.perturbations(0), weights(e, 0)

    def fit(kept):
        if "features" in settings:
            return chosen_by_brute_force(points[kept], pi[kept], 2)
        regressor = {"ridge": Ridge(0.3 * pi[kept].sum()), "lasso": Lasso(0.05, tol=1e-14, max_iter=100_000)}
        model = regressor.get(next(iter(settings), ""), LinearRegression())
        return model.fit(points[kept], f(points[kept]), sample_weight=pi[kept]).coef_

    without = np.array([fit(group != g) for g in range(32)])
    pseudo = 32 * fit(group >= 0) - 31 * without
    np.testing.assert_allclose(e.standard_error[0], pseudo.std(axis=0, ddof=1) / np.sqrt(32), rtol=1e-8, atol=1e-12)
    if e.selected is not None:
        np.testing.assert_allclose(e.selected[0], (without != 0).mean(axis=0))


def chosen_by_brute_force(points, pi, most):
    """Greedy forward selection by refitting every candidate."""
    kept = []
    for _ in range(most):
        scores = {
            j: LinearRegression()
            .fit(points[:, [*kept, j]], f(points), sample_weight=pi)
            .score(points[:, [*kept, j]], f(points), sample_weight=pi)
            for j in set(range(points.shape[1])) - set(kept)
        }
        kept.append(max(scores, key=scores.get))
    slopes = np.zeros(points.shape[1])
    slopes[kept] = LinearRegression().fit(points[:, kept], f(points), sample_weight=pi).coef_
    return slopes


@pytest.mark.parametrize("draws", ["shared", "independent"])
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("features", range(1, D + 1))
class TestSelection:
    def test_forward_is_what_brute_force_finds(self, features, around, draws):
        e = explain(around, features=features, draws=draws)
        for row in range(len(X)):
            expected = chosen_by_brute_force(e.perturbations(row), weights(e, row), features)
            np.testing.assert_allclose(e.values[row], expected, atol=1e-10 * np.abs(expected).max())
            np.testing.assert_array_equal(e.values[row] == 0, expected == 0)

    def test_highest_keeps_the_largest_standardised_slopes(self, features, around, draws):
        e = explain(around, features=features, select="highest", ridge=0.1, draws=draws)
        for row in range(len(X)):
            all_of_them = refit(e, row, lambda total: Ridge(0.1 * total))
            kept = np.argsort(-np.abs(all_of_them * e.std))[:features]
            expected = refit(e, row, lambda total: Ridge(0.1 * total), kept)
            np.testing.assert_allclose(e.values[row], expected, atol=1e-10 * np.abs(expected).max())

    def test_lasso_path_keeps_what_stands_first_in_lars_path(self, features, around, draws):
        e = explain(around, features=features, select="lasso_path", draws=draws)
        for row in range(len(X)):
            points, pi = e.perturbations(row) / e.std, weights(e, row)
            centred = (points - np.average(points, axis=0, weights=pi)) * np.sqrt(pi)[:, None]
            values = (f(e.perturbations(row)) - np.average(f(e.perturbations(row)), weights=pi)) * np.sqrt(pi)
            kept = first_to_stand(centred, values, features)
            expected = refit(e, row, plain, np.flatnonzero(kept))
            np.testing.assert_allclose(e.values[row], expected, atol=1e-10 * np.abs(expected).max())


def first_to_stand(points, values, count):
    """Features of scikit-learn's path when it first holds so many: between two knots, as one may leave at the next."""
    _, _, slopes = lars_path(points, values, method="lasso")
    between = (slopes[:, 1:] + slopes[:, :-1] != 0).T
    return next(stands for stands in between if stands.sum() >= count)


def test_paths_on_which_features_leave_and_return():
    rng = np.random.default_rng(0)
    left = 0
    for _ in range(150):
        d = int(rng.integers(3, 9))
        points = rng.normal(size=(60, d)) @ (rng.normal(size=(d, d)) + 0.5 * np.eye(d))
        points -= points.mean(axis=0)
        values = points @ rng.normal(size=d) + rng.normal(size=60)
        values -= values.mean()
        gram, cross = (points.T @ points / 60)[None], (points.T @ values / 60)[None]
        _, _, slopes = lars_path(points, values, method="lasso")
        left += (np.diff((slopes != 0).sum(axis=0)) < 0).any()
        for count in range(1, d + 1):
            np.testing.assert_array_equal(
                sparse.first_in_path(gram, cross, count)[0], first_to_stand(points, values, count)
            )
        for penalty in np.abs(cross).max() * np.array([0.5, 0.05, 0.005]):
            found = sparse.lasso(gram, cross, np.full(d, penalty))[0]
            theirs = Lasso(penalty, fit_intercept=False, tol=1e-15, max_iter=1_000_000).fit(points, values).coef_
            np.testing.assert_allclose(found, theirs, atol=1e-8 * np.abs(theirs).max())
    assert left > 5  # else this would not test what it says


def test_features_that_tie_join_together():
    gram, cross = np.eye(4)[None], np.array([[2.0, -2.0, 2.0, 1.0]])
    np.testing.assert_allclose(sparse.lasso(gram, cross, np.full(4, 0.5)), [[1.5, -1.5, 1.5, 0.5]])
    np.testing.assert_array_equal(sparse.first_in_path(gram, cross, 3), [[True, True, True, False]])


def test_a_lasso_that_misses_its_optimality_conditions_says_so():
    collinear = np.ones((1, 3, 3)) + 1e-13 * np.diag([1.0, -1.0, 2.0])
    with pytest.raises(errors.SingularFit, match="the lasso did not converge"):
        sparse.lasso(collinear, np.array([[1.0, 1.3, -0.7]]), np.full(3, 1e-3))


def test_the_best_pair_is_found_where_greed_is_enough():
    e = explain(features=2, x=X[:1], n_samples=4_096)
    points, pi = e.perturbations(0), weights(e, 0)
    scores = {
        pair: LinearRegression()
        .fit(points[:, pair], f(points), sample_weight=pi)
        .score(points[:, pair], f(points), sample_weight=pi)
        for pair in combinations(range(D), 2)
    }
    assert tuple(np.flatnonzero(e.values[0])) == max(scores, key=scores.get)


# ---- what comes with the slopes


def test_selected_says_how_often_each_feature_was_kept():
    e = explain(features=2)
    assert e.selected.shape == e.values.shape
    np.testing.assert_allclose(e.selected.sum(axis=1), 2)
    assert ((e.selected >= 0) & (e.selected <= 1)).all()
    assert explain().selected is None
    assert explain(ridge=0.1).selected is None
    everyone = explain(features=D)
    np.testing.assert_array_equal(everyone.selected, 1)
    np.testing.assert_allclose(everyone.values, explain().values, rtol=1e-9)


def test_features_that_say_nothing_are_not_kept():
    def first_two(a):
        return 3 * a[:, 0] - a[:, 1]

    for select in ("forward", "highest", "lasso_path"):
        e = sl.explain(first_two, X, method=sl.Lime(features=4, select=select), n_samples=256)
        np.testing.assert_allclose(e.values, np.tile([3.0, -1.0, 0, 0, 0], (3, 1)), rtol=1e-10)
        np.testing.assert_array_equal(e.values[:, 2:], 0)
        np.testing.assert_array_equal(e.selected, np.tile([1.0, 1, 0, 0, 0], (3, 1)))
        flat = sl.explain(lambda a: np.full(len(a), 2.0), X, method=sl.Lime(features=4, select=select), n_samples=256)
        np.testing.assert_array_equal(flat.values, 0)
        np.testing.assert_array_equal(flat.selected, 0)
        np.testing.assert_array_equal(flat.fidelity, 1)


def test_a_lasso_that_leaves_nothing_has_fidelity_0():
    e = explain(lasso=100.0)
    for each in (e.values, e.standard_error, e.selected, e.fidelity):
        np.testing.assert_array_equal(each, 0)


def test_fixed_features_are_not_selected_from():
    neighbourhood = sl.Neighbourhood(0.5, fixed=(0,))
    e = sl.explain(f, X, method=sl.Lime(features=2), sigma=neighbourhood, n_samples=256)
    assert np.isnan(e.selected[:, 0]).all()
    assert ((e.values[:, 1:] != 0).sum(axis=1) == 2).all()
    with pytest.raises(errors.InvalidArgument, match=r"features=5 are to be kept, but only 4 are perturbed"):
        sl.explain(f, X, method=sl.Lime(features=5), sigma=neighbourhood, n_samples=256)


@pytest.mark.parametrize(
    "settings", [{}, {"ridge": 0.3}, {"lasso": 0.1}, {"features": 2}, {"kernel": None, "lasso": 0.1}]
)
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
def test_fidelity_is_the_weighted_r_squared(around, settings):
    e = explain(around, n_samples=2**15, **settings)
    for row in range(len(X)):
        points = e.perturbations(row)
        pi = np.ones(len(points)) if "kernel" in settings else weights(e, row)
        left = f(points) - points @ e.values[row]
        r_squared = 1 - (np.cov(left, aweights=pi) / np.cov(f(points), aweights=pi))
        np.testing.assert_allclose(e.fidelity[row], r_squared, atol=2e-3)
        np.testing.assert_allclose(e.smoothed[row], f(points).mean(), rtol=1e-9)


def test_the_resolution_of_nets_is_the_largest_share_of_the_weight():
    e = explain(design="sobol", x=X[:1], n_samples=4_096)
    points, pi = e.perturbations(0), weights(e, 0)
    left = np.cov(f(points) - points @ e.values[0], aweights=pi, ddof=0)
    spread = np.cov(((points - X[0]) / e.std).T, aweights=pi, ddof=0).diagonal().mean()
    expected = np.sqrt(left / spread) * pi.max() / pi.sum() / e.std
    np.testing.assert_allclose(e.groups.resolution[0], expected, rtol=1e-9)


def test_blocks_of_problems_change_nothing(monkeypatch):
    import sys

    for settings in ({"features": 3}, {"features": 3, "select": "lasso_path"}, {"lasso": 0.1}):
        for draws in ("shared", "independent"):
            whole = explain("full", draws=draws, **settings)
            with monkeypatch.context() as patched:
                patched.setattr(sys.modules["smoothlime.estimators.lime"], "BLOCK_BYTES", 3_000)
                parts = explain("full", draws=draws, **settings)
            np.testing.assert_allclose(parts.values, whole.values, rtol=1e-12, atol=1e-14)
            np.testing.assert_array_equal(parts.selected, whole.selected)


def test_several_outputs_share_their_weights():
    both = sl.explain_outputs(
        lambda a: np.column_stack([f(a), a @ V]), X, method=sl.Lime(kernel=WIDTH, features=2), n_samples=256,
        draws="independent",
    )  # fmt: skip
    first, second = both.values()
    alone = sl.explain(f, X, method=sl.Lime(kernel=WIDTH, features=2), n_samples=256, draws="independent")
    np.testing.assert_allclose(first.values, alone.values, rtol=1e-10)
    np.testing.assert_array_equal((second.values != 0).sum(axis=1), 2)


# ---- kernels that leave too little


def test_the_share_of_effective_draws_is_the_one_that_is_planned_with():
    for d, width in ((1, 0.5), (3, 0.8), (6, 2.0)):
        r = np.linalg.norm(np.random.default_rng(d).standard_normal((400_000, d)), axis=1)
        pi = np.exp(-(r**2) / (2 * width**2))
        share = pi.sum() ** 2 / (pi**2).sum() / len(pi)
        assert sl.Lime(kernel=width).fewest(d, is_paired=False) == pytest.approx(4 * (d + 1) / share, rel=0.03, abs=1)
        assert sl.Lime(kernel=width).fewest(d, is_paired=True) == pytest.approx(8 * (d + 1) / share, rel=0.03, abs=1)


def test_a_narrow_kernel_is_refused_before_anything_is_drawn():
    with pytest.raises(errors.TooFewDraws, match=r"n_samples=100 is too few for lime .*a wider kernel needs fewer"):
        explain(kernel=0.3, n_samples=100)
    for width in (1e-2, 1e-8, 1e-200):
        with pytest.raises(errors.TooFewDraws, match=r"max_samples=100000 is below the first look.*a wider kernel"):
            sl.explain(f, X, method=sl.Lime(kernel=width))
    assert explain(kernel=1e200).converged.shape == (3,)


def test_a_narrow_kernel_starts_to_look_later():
    function = known.Linear(V)
    narrow, wide = (sl.explain(function, X, method=sl.Lime(kernel=width), design="iid") for width in (0.4, 3.0))
    assert narrow.n_samples.min() > wide.n_samples.min() == 256
    np.testing.assert_allclose(narrow.values, np.tile(V, (3, 1)), atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda d: (d < 0.7) * 1.0,
            r"the kernel <lambda> leaves \d+\.\d effective draws of 512, and 5 features need 12",
        ),
        (np.zeros_like, r"the kernel zeros_like leaves 0\.0 effective draws of 512"),
    ],
)
def test_a_function_that_leaves_few_draws_is_refused(kernel, message):
    for draws in ("shared", "independent"):
        with pytest.raises(errors.TooFewDraws, match=message + r".*Widen the kernel, raise n_samples"):
            explain(kernel=kernel, draws=draws, design="iid")


def test_weight_on_one_group_alone_is_refused():
    """Without that group there would be nothing left to fit."""
    from smoothlime.draws.designs import DESIGNS
    from smoothlime.estimators import Batch, GroupedDraws
    from smoothlime.estimators.protocol import Drawn, Setup

    z = np.random.default_rng(0).standard_normal((1, 4, 50, 2))
    z[:, 1:] *= 100
    method, factor, design = sl.Lime(kernel=lambda d: (d < 20) * 1.0), sl.Neighbourhood().factor(2), DESIGNS["iid"]
    draws = GroupedDraws(z, is_shared=True)
    state = method.start(Setup(1, 4, factor, design, looks=(200,), is_shared=True))
    method.update(state, slice(0, 1), slice(0, 4), Batch(draws, z.sum(axis=3)))
    method.update_shared(state, slice(0, 4), draws)
    with pytest.raises(errors.TooFewDraws, match="3 without any one group"):
        method.finish(state, Drawn(200, np.full(4, 50.0), factor, design, miss=0.05, targets=1))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda d: d[:3], r"the kernel <lambda> must return one weight per distance, shape \(512,\); got shape \(3,\)"),
        (np.negative, r"the kernel negative must return finite weights >= 0; got -\d"),
        (lambda d: np.full_like(d, np.nan), r"must return finite weights >= 0; got nan at distance"),
        (lambda d: np.full_like(d, np.inf), r"must return finite weights >= 0; got inf at distance"),
    ],
)
def test_functions_that_are_not_kernels(kernel, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        explain(kernel=kernel, design="iid")


def test_a_kernel_that_returns_words_is_refused():
    with pytest.raises(errors.WrongType, match="what the kernel <lambda> returns must hold numbers"):
        explain(kernel=lambda d: ["near"] * len(d))


def test_a_kernel_cannot_spoil_the_distances():
    def careless(distances):
        distances *= -0.5 * distances
        return np.exp(distances, out=distances)

    np.testing.assert_allclose(explain(kernel=careless, batch_size=100).values, explain(kernel=1.0).values, rtol=1e-10)


# ---- settings


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"kernel": 0}, errors.InvalidArgument, r"kernel must be 'auto', None, a finite width > 0 .*; got 0"),
        ({"kernel": -1.5}, errors.InvalidArgument, r"a finite width > 0 .*; got -1.5"),
        ({"kernel": np.inf}, errors.InvalidArgument, r"a finite width > 0 .*; got inf"),
        ({"kernel": "gauss"}, errors.InvalidArgument, r"kernel must be 'auto'.*; got 'gauss'"),
        ({"kernel": True}, errors.WrongType, r"kernel must be 'auto'.*; got True"),
        ({"kernel": [1.0]}, errors.WrongType, r"kernel must be 'auto'.*; got \[1.0\]"),
        ({"ridge": -1}, errors.InvalidArgument, r"ridge must be finite and >= 0; got -1"),
        ({"ridge": "much"}, errors.WrongType, r"ridge must be a number; got 'much'"),
        ({"lasso": np.nan}, errors.InvalidArgument, r"lasso must be finite and >= 0; got nan"),
        ({"ridge": 1, "lasso": 2}, errors.InvalidArgument, r"give ridge or lasso, not both; got ridge=1 and lasso=2"),
        ({"lasso": 1, "features": 2}, errors.InvalidArgument, r"give features or lasso, not both; got features=2"),
        ({"features": 0}, errors.InvalidArgument, r"features must be a whole number >= 1; got 0"),
        ({"features": 1.5}, errors.WrongType, r"features must be a whole number; got 1.5"),
        ({"select": "highest"}, errors.InvalidArgument, r"select='highest' says how to choose, but not how many"),
        (
            {"select": "lasso_path", "lasso": 1},
            errors.InvalidArgument,
            r"select='lasso_path' says how to choose, but not",
        ),
        ({"select": "best"}, errors.InvalidArgument, r"select must be one of 'forward', 'highest', 'lasso_path'"),
    ],
)
def test_settings_that_cannot_be_used(settings, kind, message):
    with pytest.raises(kind, match=message):
        sl.Lime(**settings)


def test_settings_are_shown_where_they_differ():
    assert repr(sl.Lime()) == "Lime()"
    assert repr(sl.Lime(kernel=None, ridge=0.25)) == "Lime(kernel=None, ridge=0.25)"
    assert (
        repr(sl.Lime(kernel=np.exp, features=2, select="highest")) == "Lime(kernel=exp, features=2, select='highest')"
    )
    assert sl.Lime(features=2, select="highest") == sl.Lime(features=2, select="highest") != sl.Lime(features=2)


def test_more_features_than_there_are_is_refused():
    with pytest.raises(errors.InvalidArgument, match=r"features=6 are to be kept, but only 5 are perturbed"):
        explain(features=6)


def test_there_is_no_certificate_for_lime():
    with pytest.raises(errors.InvalidArgument, match=r"has no bound for method 'lime'"):
        sl.explain(f, X, method="lime", guarantee="certified", output_range=(-3, 3))


def test_the_ceiling_of_robustness_is_not_claimed_for_a_kernel():
    more = {"sigma": 0.5, "output_range": (-9, 9), "n_samples": 64, "neighbours": 2}
    assert sl.robustness(f, X, method="clime", **more).ceiling is not None
    for method in ("lime", sl.Lime(kernel=2.0)):
        assert sl.robustness(f, X, method=method, **more).ceiling is None


def test_lime_is_a_method_by_name():
    e = sl.explain(f, X, method="lime", n_samples=512)
    assert e.method == "lime"
    assert e.design == sl.explain(f, X, method="clime", n_samples=512).design
    np.testing.assert_array_equal(e.values, sl.explain(f, X, method=sl.Lime(), n_samples=512).values)
    with pytest.raises(errors.InvalidArgument, match="'differences', 'lime', 'jumps'; got 'line'"):
        sl.explain(f, X, method="line")
