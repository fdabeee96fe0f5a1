"""Jumps of trees: their mean over all cells that thresholds cut out is the slope of the smoothed model."""

import itertools

import numpy as np
import pytest
from numba import types
from scipy.special import ndtr

from smoothlime import Neighbourhood
from smoothlime.exact.curves import Bend, Curve
from smoothlime.exact.trees.format import join_trees
from smoothlime.exact.trees.jumps import find_jumps, plan_jumps
from smoothlime.exact.trees.smoothing import smooth

TABLE = np.array([0.1, 0.3, 0.301, 0.8]), np.array([0.0, 0.2, 0.7, 1.0])
CURVES = {
    "logistic": (Curve("logistic"), 1),
    "both classes": (Curve("logistic", 1.7, mirrors=True), 1),
    "one against the rest": (Curve("logistic", 0.4), 3),
    "exponential": (Curve("exponential"), 1),
    "softmax": (Curve("softmax"), 3),
    "none": (Curve("identity"), 2),
    "sigmoid of a curve": (Curve("logistic", then=Bend("logistic", np.array([5.0]), np.array([-2.0]))), 1),
    "sigmoid of sums": (Curve("identity", then=Bend("logistic", np.array([2.0, 0.7]), np.array([0.1, 0.0]))), 2),
    "exponential of sums": (Curve("identity", then=Bend("exponential", np.full(1, 0.4), np.ones(1))), 1),
    "square": (Curve("exponential", 0.5, then=Bend("square", np.ones(1), np.zeros(1))), 1),
    "table": (Curve("logistic", then=Bend("table", np.ones(1), np.zeros(1), (TABLE,))), 1),
    "shares of tables": (Curve("softmax", then=Bend("table", np.ones(3), np.zeros(3), (TABLE,) * 3, shares=True)), 3),
    "shares of sigmoids": (Curve("identity", then=Bend("logistic", np.ones(2), np.zeros(2), shares=True)), 2),
}


def grow(rng, d, depth, width=1):
    """A random tree whose thresholds are tenths, so that trees share some, and paths come back to features."""
    tree = {name: [] for name in ("feature", "threshold", "left", "right", "nan_left", "value")}

    def add(level):
        at = len(tree["feature"])
        is_leaf = level == depth or (level > 1 and rng.random() < 0.15)
        tree["feature"].append(-1 if is_leaf else int(rng.integers(d)))
        tree["threshold"].append(0.0 if is_leaf else round(rng.normal(), 1))
        tree["nan_left"].append(bool(rng.random() < 0.5) and not is_leaf)
        tree["value"].append(rng.normal(size=width) if is_leaf else np.zeros(width))
        tree["left"].append(0)
        tree["right"].append(0)
        if not is_leaf:
            tree["left"][at] = add(level + 1)
            tree["right"][at] = add(level + 1)
        return at

    add(0)
    return tree | {"value": np.array(tree["value"])}


def ensemble(rng, d, k, depth=5, trees=6, wide=False, **more):
    """Trees of one output each, or with leaves of all of them."""
    wide = k > 1 and wide
    grown = [grow(rng, d, depth, k if wide else 1) for _ in range(trees)]
    target = [0 if wide else i % k for i in range(trees)]
    return join_trees(grown, base=rng.normal(size=k), n_features=d, target=target, **more)


def cells(trees, x, std):
    """A point in every cell (n, d), its chance (n,), and how that changes with each coordinate of x, (n, d)."""
    middles, chances, slopes = [], [], []
    for j in range(trees.n_features):
        inner = np.unique(trees.threshold[trees.feature == j])
        ends = np.concatenate([[-np.inf], inner, [np.inf]])
        z = (ends - x[j]) / std[j]
        few = np.zeros(1)
        middles.append(np.concatenate([inner[:1] - 0.05, (inner[1:] + inner[:-1]) / 2, inner[-1:] + 0.05])
                       if len(inner) else few)  # fmt: skip
        chances.append(np.diff(ndtr(z)))
        slopes.append(-np.diff(np.exp(-(z**2) / 2)) / np.sqrt(2 * np.pi) / std[j])
    points = np.array(list(itertools.product(*middles)))
    weight = np.array(list(itertools.product(*chances)))
    changes = np.array(list(itertools.product(*slopes)))
    rest = np.stack([np.delete(weight, j, axis=1).prod(axis=1) for j in range(len(x))], axis=1)
    return points, weight.prod(axis=1), changes * rest


def jumps_at(trees, curve, x, points, around, weights, controls, **more):
    factor = around.factor(trees.n_features)
    steps = (points - np.nan_to_num(x))[None][..., factor.free]
    return find_jumps(trees, plan_jumps(trees), curve, x[None], steps, factor, weights[None], controls[None], **more)


@pytest.mark.parametrize("word", [64, 0], ids=["words", "walks"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_their_mean_over_all_cells_is_the_slope_of_the_smoothed_model(name, d, wide, word):
    curve, k = CURVES[name]
    rng = np.random.default_rng(d)
    trees = ensemble(rng, d, k, wide=wide, averaged=wide and k > 1)
    x, std = rng.normal(size=d), np.array([0.5, 1.0, 0.8])[:d]
    weights, controls = rng.normal(size=(2, 2 if curve.mirrors else k)), rng.normal(size=(2, k))
    points, chance, change = cells(trees, x, std)
    found = jumps_at(trees, curve, x, points, Neighbourhood(std), weights, controls, word=word)
    outputs = weights @ curve.outputs(trees.predict(points)).T
    # beyond seven standard deviations nothing is looked at: a share of 3e-12 of the draws
    size = np.abs(outputs).max()
    is_near = (np.abs(points - x) < 6.9 * std).all(axis=1)
    np.testing.assert_allclose(found.outputs[0][:, is_near], outputs[:, is_near], rtol=0, atol=1e-13 * size)
    slopes = np.einsum("n,tnj->tj", chance, found.slopes[0])
    np.testing.assert_allclose(slopes, outputs @ change, rtol=0, atol=1e-10 * max(size, 1.0))
    margins = controls @ trees.predict(points).T
    of_margin = np.einsum("n,tnj->tj", chance, found.of_margin[0])
    np.testing.assert_allclose(of_margin, margins @ change, rtol=0, atol=1e-10 * np.abs(margins).max())


@pytest.mark.parametrize("name", CURVES)
def test_so_it_is_where_steps_are_correlated(name):
    """By quadrature over the other feature, whose cells a draw's jumps along an axis vary within; slopes from faces."""
    curve, k = CURVES[name]
    rng = np.random.default_rng(5)
    trees, x, covariance = ensemble(rng, 2, k), rng.normal(size=2), np.array([[0.5, 0.4], [0.4, 0.9]])
    around, weights = Neighbourhood(1.0, covariance=covariance), rng.normal(size=(1, 2 if curve.mirrors else k))
    nodes, shares = np.polynomial.legendre.leggauss(40)
    for j in range(2):
        other = 1 - j
        spread = np.sqrt(covariance[other, other])
        inner = np.unique(trees.threshold[trees.feature == other])
        reach = x[other] + 9 * spread * np.array([-1, 1])
        ends = np.concatenate([reach[:1], inner[(inner > reach[0]) & (inner < reach[1])], reach[1:]])
        ends = np.unique(np.concatenate([ends, np.linspace(*reach, 40)]))
        half = np.diff(ends)[:, None] / 2
        at = ((ends[1:] + ends[:-1])[:, None] / 2 + half * nodes).ravel()
        z = (at - x[other]) / spread
        chance = (half * shares).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / spread
        points = np.empty((len(at), 2))
        points[:, other], points[:, j] = at, x[j] + rng.normal(size=len(at))  # a draw's own coordinate says nothing
        found = jumps_at(trees, curve, x, points, around, weights, np.zeros((1, k)))
        truth = by_faces(trees, curve, weights[0], x, covariance, j)
        size = np.abs(found.outputs).max()
        assert abs(chance @ found.slopes[0, 0, :, j] - truth) < 1e-8 * max(size, 1.0)


def by_faces(trees, curve, weights, x, covariance, j):
    """Jumps across each face of a cell along feature j, by the density of j and the chance of the rest given that."""
    own, others = (np.unique(trees.threshold[trees.feature == i]) for i in (j, 1 - j))
    ends = np.concatenate([[-np.inf], others, [np.inf]])
    middles = np.concatenate([others[:1] - 0.05, (others[1:] + others[:-1]) / 2, others[-1:] + 0.05])
    std, pull = np.sqrt(covariance[j, j]), covariance[0, 1] / covariance[j, j]
    left = np.sqrt(covariance[1 - j, 1 - j] - covariance[0, 1] * pull)
    total = 0.0
    for t in own:
        points = np.empty((2, len(middles), 2))
        points[:, :, 1 - j], points[0, :, j], points[1, :, j] = middles, t - 0.01, t + 0.01
        below, above = (curve.outputs(trees.predict(side)) @ weights for side in points)
        chance = np.diff(ndtr((ends - x[1 - j] - pull * (t - x[j])) / left))
        total += np.exp(-(((t - x[j]) / std) ** 2) / 2) / np.sqrt(2 * np.pi) / std * chance @ (above - below)
    return total


def test_large_trees_and_many_give_what_small_words_give_and_threads_change_nothing():
    rng = np.random.default_rng(2)
    trees = ensemble(rng, 6, 3, depth=9, trees=9)
    per_tree = np.add.reduceat(trees.feature < 0, np.sort(trees.roots))
    assert per_tree.max() > 64
    x, curve = rng.normal(size=(3, 6)), Curve("softmax")
    factor = Neighbourhood([0.2, 0.4, 0.8, 1.6, 0.1, 0.3]).factor(6)
    steps = factor.steps(rng.normal(size=(1, 300, 6)))
    weights, controls = rng.normal(size=(2, 3, 2, 3))
    plan = plan_jumps(trees)
    found = [
        find_jumps(trees, plan, curve, x[:rows], steps, factor, weights[:rows], controls[:rows], word=word, threads=n)
        for rows, word, n in ((3, 64, 1), (3, 0, 1), (3, 64, 3), (1, 64, 2))
    ]
    for name in ("outputs", "slopes", "of_margin"):
        whole, walked, threaded, alone = (getattr(each, name) for each in found)
        np.testing.assert_allclose(walked, whole, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(threaded, whole)
        np.testing.assert_array_equal(alone, whole[:1])
    points = (x[:, None] + steps).reshape(-1, 6)
    outputs = curve.outputs(trees.predict(points)).reshape(3, 300, 3)
    np.testing.assert_allclose(found[0].outputs, weights @ outputs.swapaxes(1, 2), rtol=0, atol=1e-13)


def test_what_is_missing_or_held_decides_splits_and_has_no_slope():
    rng = np.random.default_rng(3)
    trees, curve = ensemble(rng, 3, 1, depth=6), Curve("logistic")
    weights = np.ones((1, 1))
    x = rng.normal(size=3)
    held = Neighbourhood([0.5, 1.0, 0.8], fixed=[1])
    points = x + np.array([0.5, 0.0, 0.8]) * rng.normal(size=(64, 3))
    found = jumps_at(trees, curve, x, points, held, weights, weights)
    np.testing.assert_allclose(found.outputs[0, 0], curve.outputs(trees.predict(points))[:, 0], atol=1e-13)
    free = jumps_at(trees, curve, x, points, Neighbourhood([0.5, 1.0, 0.8]), weights, weights)
    np.testing.assert_allclose(found.slopes[0, 0], free.slopes[0, 0][:, [0, 2]], atol=1e-13)
    gap = np.array([np.nan, x[1], x[2]])
    with_gap = jumps_at(trees, curve, gap, np.nan_to_num(points), held, weights, weights)
    as_asked = np.where(np.isnan(gap), np.nan, points)
    np.testing.assert_allclose(with_gap.outputs[0, 0], curve.outputs(trees.predict(as_asked))[:, 0], atol=1e-13)
    assert not with_gap.slopes[0, 0, :, 0].any()
    assert with_gap.slopes[0, 0, :, 1].any()


def test_what_is_missing_takes_no_part_in_correlations():
    rng = np.random.default_rng(4)
    trees, curve, x = ensemble(rng, 3, 1), Curve("logistic"), np.array([0.2, np.nan, -0.1])
    covariance = np.array([[1.0, 0.5, 0.3], [0.5, 2.0, -0.4], [0.3, -0.4, 0.8]])
    steps = rng.normal(size=(40, 3))
    weights = np.ones((1, 1))
    whole = jumps_at(
        trees, curve, x, np.nan_to_num(x) + steps, Neighbourhood(1.0, covariance=covariance), weights, weights
    )
    less = Neighbourhood(1.0, covariance=covariance, fixed=[1])
    part = jumps_at(trees, curve, x, np.nan_to_num(x) + steps, less, weights, weights)
    np.testing.assert_allclose(whole.slopes[0, 0][:, [0, 2]], part.slopes[0, 0], atol=1e-13)


def test_categories_that_are_held_choose_their_branch():
    tree = {
        "feature": [1, 0, -1, -1, 0, -1, -1], "threshold": [0.0, 0.3, 0, 0, -0.2, 0, 0], "left": [1, 2, 0, 0, 5, 0, 0],
        "right": [4, 3, 0, 0, 6, 0, 0], "nan_left": [True] + [False] * 6, "value": [0, 0, 1.0, 3.0, 0, -1.0, 4.0],
        "category_left": {0: [2, 5]},
    }  # fmt: skip
    trees = join_trees([tree], base=0.0, n_features=2)
    around, one = Neighbourhood(0.5, fixed=[1]), np.ones((1, 1))
    for level, threshold, height in ((5.0, 0.3, 2.0), (3.0, -0.2, 5.0), (np.nan, 0.3, 2.0)):
        x = np.array([0.1, level])
        found = jumps_at(trees, Curve("identity"), x, np.array([[0.4, 0.0]]), around, one, one)
        density = np.exp(-(((threshold - 0.1) / 0.5) ** 2) / 2) / np.sqrt(2 * np.pi) / 0.5
        np.testing.assert_allclose(found.slopes.ravel(), height * density, rtol=1e-13)


def test_of_a_plain_sum_the_mean_jumps_are_its_exact_slopes():
    rng = np.random.default_rng(6)
    trees = ensemble(rng, 8, 1, depth=6, trees=40)
    x, std = rng.normal(size=8), np.full(8, 0.6)
    one, n = np.ones((1, 1)), 20_000
    found = jumps_at(trees, Curve("identity"), x, x + std * rng.normal(size=(n, 8)), Neighbourhood(std), one, one)
    exact = smooth(trees, x[None], std).gradients[0, :, 0]
    slopes = found.slopes[0, 0]
    np.testing.assert_allclose(found.of_margin[0, 0], slopes, rtol=1e-12, atol=1e-13)
    error = slopes.std(axis=0) / np.sqrt(n)
    assert (np.abs(slopes.mean(axis=0) - exact) < 5 * error + 1e-8).all()


def test_the_kernel_is_compiled_once():
    from smoothlime.exact.trees import jump_kernel, jump_layout

    rng = np.random.default_rng(7)
    for around in (
        Neighbourhood(0.5),
        Neighbourhood([0.5, 1.0, 0.8], fixed=[1]),
        Neighbourhood(covariance=np.eye(3) + 0.1),
    ):
        for k, name in ((1, "logistic"), (3, "softmax")):
            trees, weights, x = ensemble(rng, 3, k), np.ones((1, k)), rng.normal(size=3)
            jumps_at(trees, Curve(name), x, x + rng.normal(size=(40, 3)), around, weights, weights)
    plain = [
        each for each in jump_kernel.find_jumps.signatures if types.none in each
    ]  # without a curve after the curve
    assert len(plain) == len(jump_layout.lay_row.signatures) == 1
