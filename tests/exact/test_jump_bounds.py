"""Bounds on jumps hold for every draw, and are met by the trees that jump most."""

import numpy as np
import pytest

from smoothlime import Neighbourhood
from smoothlime.exact.bent_trees import BentTrees
from smoothlime.exact.curves import Curve
from smoothlime.exact.trees.form import TreesForm
from smoothlime.exact.trees.format import join_trees
from smoothlime.exact.trees.jump_bounds import bound_axes
from smoothlime.exact.trees.jumps import find_jumps
from smoothlime.sampling.exact_route import AGREES
from smoothlime.sampling.tree_bounds import bound_jumps

from .test_jumps import CURVES, ensemble

PEAK = 1 / np.sqrt(2 * np.pi)
NAMED = [name for name, (curve, _) in CURVES.items() if name != "exponential" and curve.then is None]


def jumps_and_bounds(trees, curve, x, around, weights, n=4_000, seed=0):
    """Jumps of outputs and of the margin (n, t, f) and their bounds (t, f), around one row."""
    bent, factor = BentTrees(TreesForm(trees), curve), around.factor(trees.n_features)
    rows = x[None]
    controls = curve.gradient(bent.form.values(rows), weights[None])
    z = np.random.default_rng(seed).normal(size=(1, n, len(factor.free))) * 2  # rarer draws than there will be
    found = find_jumps(
        trees, bent.form.jump_plan, curve, rows, factor.steps(z), factor, weights[None], controls, threads=1
    )
    known = bent.margin_slopes(rows, factor, controls) if factor.is_diagonal else None
    bounds = bound_jumps(bent, rows, factor, weights[None], controls, known, 1e-9)
    control = None if known is None else found.of_margin[0] - known[0][:, None]
    return found.slopes[0], control, bounds


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", NAMED)
def test_no_draw_jumps_further(name, wide, is_full):
    curve, k = CURVES[name]
    rng = np.random.default_rng(1)
    for d, sigma in ((1, 0.7), (3, 0.2), (4, 1.5)):
        trees = ensemble(rng, d, k, wide=wide, averaged=wide and k > 1)
        covariance = np.eye(d) + 0.7 * (1 - np.eye(d))
        around = Neighbourhood(sigma, covariance=covariance) if is_full else Neighbourhood(np.full(d, sigma))
        weights = rng.normal(size=(3, 2 if curve.mirrors else k))
        jumps, control, bounds = jumps_and_bounds(trees, curve, rng.normal(size=d), around, weights)
        assert (np.abs(jumps).max(axis=1) <= bounds.slopes[0] * (1 + 1e-12)).all()
        whole = np.abs(weights).sum(axis=1) if name != "none" else np.full(3, np.inf)
        assert (np.abs(jumps).max(axis=1) <= bounds.peaks[0] * whole[:, None]).all()
        if not is_full:
            assert (np.abs(control).max(axis=1) <= bounds.controls[0] * (1 + 1e-9) + 1e-12).all()
        # all but the rounding of the model is next to nothing
        size = np.abs(weights).sum(axis=1) * BentTrees(TreesForm(trees), curve).size(np.zeros((1, d)))
        stretch = np.sqrt(1 / 0.3) if is_full and d > 1 else 1.0
        np.testing.assert_allclose(bounds.off[0], np.sqrt(2 / np.pi) * AGREES * size * stretch, rtol=1e-3)
        assert (bounds.off_of_control < 1e-7).all()


@pytest.mark.parametrize("width", [1, 2])
def test_along_an_axis_both_branches_of_its_tests_are_met_and_one_of_all_others(width):
    """By hand: x1 chooses between two stairs in x0, of which one goes up and down again."""
    tree = {
        "feature": [1, 0, -1, 0, -1, -1, 0, -1, -1],
        "threshold": [0.0, -0.3, 0, 0.5, 0, 0, 0.1, 0, 0],
        "left": [1, 2, 0, 4, 0, 0, 7, 0, 0],
        "right": [6, 3, 0, 5, 0, 0, 8, 0, 0],
        "nan_left": [False] * 9,
        "value": np.array([[0.0], [0], [1.0], [0], [4.0], [1.5], [0], [2.0], [1.0]]) * np.arange(1, width + 1),
    }
    trees = join_trees([tree], base=np.zeros(width), n_features=2)
    form, std = TreesForm(trees), np.array([0.8, 0.5])
    factor, x = Neighbourhood(std).factor(2), np.array([[0.05, 0.2]])
    weights = np.array([[[1.0, 0.0], [-1.0, 1.0]]])[:, :, :width]
    found = bound_axes(trees, form.jump_plan, x, factor, weights)

    def density(t, j):
        return PEAK * np.exp(-0.5 * ((t - x[0, j]) / std[j]) ** 2) / std[j]

    one = 3 * density(-0.3, 0) - 2.5 * density(0.5, 0)
    other = -density(0.1, 0)
    np.testing.assert_allclose(found.high[0, 0, 0], max(one, other), rtol=1e-12)
    np.testing.assert_allclose(found.low[0, 0, 0], min(one, other), rtol=1e-12)
    np.testing.assert_allclose(found.ranges[0, 0], [3.0, 3.0])
    np.testing.assert_allclose(found.ranges[0, -1], np.array([3.0, 3.0]) * width)
    if width == 2:
        np.testing.assert_allclose(found.high[0, 1, 0], max(one, other), rtol=1e-12)  # 2 − 1 times the first
    else:
        np.testing.assert_allclose(found.high[0, 1, 0], -min(one, other), rtol=1e-12)
    np.testing.assert_array_equal(found.thresholds[0], [3, 1])
    np.testing.assert_allclose(found.peaks[0], [max(density(t, 0) for t in (-0.3, 0.1, 0.5)), density(0.0, 1)])


def test_a_step_at_x_meets_its_bound():
    tree = {"feature": [0, -1, -1], "threshold": [0.3, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
            "nan_left": [False] * 3, "value": [0.0, -4.0, 4.0]}  # fmt: skip
    trees, curve = join_trees([tree], base=0.0, n_features=1), Curve("logistic", mirrors=True)
    around, weights = Neighbourhood(0.5), np.array([[0.0, 1.0]])
    jumps, control, bounds = jumps_and_bounds(trees, curve, np.array([0.3]), around, weights, n=8)
    height = 1 / (1 + np.exp(-4.0)) - 1 / (1 + np.exp(4.0))
    np.testing.assert_allclose(jumps, height * PEAK / 0.5, rtol=1e-12)
    np.testing.assert_allclose(bounds.slopes[0, 0, 0], height * PEAK / 0.5, rtol=1e-12)
    np.testing.assert_allclose(bounds.peaks[0, 0, 0], PEAK / 0.5, rtol=1e-12)
    np.testing.assert_allclose(bounds.controls[0], 0, atol=1e-9)
    np.testing.assert_allclose(control, 0, atol=1e-9)


def test_what_is_missing_or_out_of_reach_does_not_jump():
    rng = np.random.default_rng(3)
    trees, curve = ensemble(rng, 3, 1, depth=6), Curve("logistic")
    x, weights = np.array([np.nan, 0.1, 500.0]), np.ones((1, 1))
    for around in (Neighbourhood(0.7), Neighbourhood(0.7, covariance=np.eye(3) + 0.2)):
        _, _, bounds = jumps_and_bounds(trees, curve, x, around, weights, n=8)
        np.testing.assert_array_equal(bounds.slopes[0, 0] > 0, [False, True, False])


def test_softmax_moves_no_further_than_log_odds_allow():
    """Pairs of distributions whose log odds are as far apart as they may be, among them the worst two."""
    from scipy.special import softmax

    from smoothlime.sampling.tree_bounds import oscillation

    rng = np.random.default_rng(4)
    for k in (2, 3, 6):
        ranges, w = rng.exponential(size=(1, k, 1)), rng.normal(size=(1, 1, k))
        bound = oscillation(Curve("softmax", 0.8), w, ranges)[0, 0, 0]
        m = 3 * rng.normal(size=(50_000, k))
        moved = m + ranges[0, :, 0] * rng.choice([-1.0, 0.0, 1.0], size=m.shape)
        seen = np.abs((softmax(0.8 * moved, axis=1) - softmax(0.8 * m, axis=1)) @ w[0, 0]).max()
        assert seen <= bound
        assert seen > 0.5 * bound or k > 2


def test_the_kernel_is_compiled_once():
    from smoothlime.exact.trees import bound_kernel, jump_layout

    rng = np.random.default_rng(7)
    for around in (Neighbourhood(0.5), Neighbourhood([0.5, 1.0, 0.8], fixed=[1]), Neighbourhood(covariance=np.eye(3))):
        for k, wide in ((1, False), (3, False), (3, True)):
            trees = ensemble(rng, 3, k, wide=wide)
            curve = Curve("softmax" if k > 1 else "logistic")
            jumps_and_bounds(trees, curve, rng.normal(size=3), around, np.ones((2, k)), n=40)
    assert len(bound_kernel.bound_jumps.signatures) == len(jump_layout.lay_row.signatures) == 1
