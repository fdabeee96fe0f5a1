"""Smoothed trees against leaf boxes summed one by one, differences, sampling and the trees themselves."""

import dataclasses

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from smoothlime.errors import InvalidArgument, MissingExtra, NoClosedForm
from smoothlime.exact.trees import plan as planning
from smoothlime.exact.trees.format import as_threshold, join_trees
from smoothlime.exact.trees.kernel import DEGREE, STEPS
from smoothlime.exact.trees.smoothing import smooth

LEAF = {"feature": [-1], "threshold": [0.0], "left": [0], "right": [0], "nan_left": [False], "value": [2.5]}


def grow(rng, depth, d, thresholds, width=1, p_leaf=0.15, categories=()):
    """A random tree; thresholds come from a short list, so that they repeat, and contradict those above."""
    tree = {"feature": [], "threshold": [], "left": [], "right": [], "nan_left": [], "value": [], "category_left": {}}

    def node(level):
        at = len(tree["feature"])
        is_leaf = level == depth or rng.random() < p_leaf
        j = int(rng.integers(d))
        tree["feature"].append(-1 if is_leaf else j)
        tree["threshold"].append(0.0 if is_leaf else float(rng.choice(thresholds)))
        tree["nan_left"].append(bool(rng.random() < 0.5) and not is_leaf)
        tree["value"].append(rng.normal(size=width) if is_leaf else np.zeros(width))
        tree["left"].append(0)
        tree["right"].append(0)
        if not is_leaf:
            if j in categories:
                tree["category_left"][at] = rng.choice(5, size=rng.integers(3), replace=False)
            tree["left"][at] = node(level + 1)
            tree["right"][at] = node(level + 1)
        return at

    node(0)
    return tree


def boxes(trees, root, x):
    """(leaf, {feature: (lo, hi)}) for every leaf a row can reach; missing features and categories are decided."""
    todo = [(root, {})]
    while todo:
        node, box = todo.pop()
        j, t = trees.feature[node], trees.threshold[node]
        if j < 0:
            yield node, box
            continue
        lo, hi = box.get(j, (-np.inf, np.inf))
        if np.isnan(x[j]):
            todo.append((trees.left[node] if trees.nan_left[node] else trees.right[node], box))
        elif trees.is_categorical[node]:
            listed = trees.category[trees.category_first[node] : trees.category_first[node + 1]]
            todo.append((trees.left[node] if int(x[j]) in listed else trees.right[node], box))
        else:
            todo.append((trees.left[node], {**box, j: (lo, min(hi, t))}))
            todo.append((trees.right[node], {**box, j: (max(lo, t), hi)}))


def by_boxes(trees, x, std):
    """E f (k,) and its gradient (d, k), leaf by leaf."""
    value, gradient = trees.base.copy(), np.zeros((len(x), trees.k))
    for tree, root in enumerate(trees.roots):
        for leaf, box in boxes(trees, root, x):
            v = np.zeros(trees.k)
            if trees.value.shape[1] == 1:
                v[trees.target[tree]] = trees.value[leaf, 0]
            else:
                v[:] = trees.value[leaf]
            v = v * trees.scale
            chance, slope = {}, {}
            for j, (lo, hi) in box.items():
                if std[j] == 0:
                    chance[j], slope[j] = float(lo < x[j] <= hi), 0.0
                elif lo >= hi:
                    chance[j], slope[j] = 0.0, 0.0
                else:
                    around = norm(x[j], std[j])
                    chance[j] = around.cdf(hi) - around.cdf(lo)
                    slope[j] = around.pdf(lo) - around.pdf(hi)
            value += v * np.prod(list(chance.values()))
            for j in box:
                gradient[j] += v * slope[j] * np.prod([chance[i] for i in box if i != j])
    return value, gradient


@st.composite
def problems(draw):
    """An ensemble, rows on and off its thresholds, and how far each feature is perturbed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, n_trees = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    thresholds = [*rng.normal(size=draw(st.integers(1, 5))).round(2), 0.5]
    thresholds += draw(st.sampled_from([[], [np.inf], [-np.inf], [np.inf, -np.inf, 0.5]]))
    layout = draw(st.sampled_from(["one", "vector", "class per tree"]))
    categories = draw(st.sampled_from([(), (0,)]))
    width = 3 if layout == "vector" else 1
    trees = [grow(rng, draw(st.integers(0, 6)), d, thresholds, width, categories=categories) for _ in range(n_trees)]
    k = 1 if layout == "one" else 3
    ensemble = join_trees(
        trees, base=rng.normal(size=k), n_features=d, averaged=draw(st.booleans()),
        target=rng.integers(3, size=n_trees) if layout == "class per tree" else None,
    )  # fmt: skip
    rows = rng.choice([*[t for t in thresholds if np.isfinite(t)], 0.0, 1.0, 2.0, -3.3, np.nan], size=(3, d))
    std = np.array(draw(st.lists(st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 0.7, 3.0, 1e6]), min_size=d, max_size=d)))
    std[list(categories)] = 0.0
    return ensemble, rows, std


@settings(max_examples=250, deadline=None)
@given(problems())
def test_smoothed_trees_equal_the_sum_over_their_leaf_boxes(problem):
    trees, rows, std = problem
    got = smooth(trees, rows, std)
    size = np.abs(trees.value).max(axis=1)[trees.feature < 0].sum() + np.abs(trees.base).max()
    for at, row in enumerate(rows):
        value, gradient = by_boxes(trees, row, std)
        np.testing.assert_allclose(got.values[at], value, rtol=0, atol=1e-13 * size)
        apart = np.abs(got.gradients[at] - gradient)
        assert (apart <= got.radius[at][:, None]).all()
        white = std[:, None] * gradient  # in units of σ, which differ by many orders here
        for o in np.flatnonzero(
            np.linalg.norm(white, axis=0) > 1e-3 * size
        ):  # not where all cancels, or is in the tails
            assert np.linalg.norm(std * apart[:, o]) <= 1e-9 * np.linalg.norm(white[:, o])


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(0, 1000))
def test_weights_give_the_weighted_sum_of_outputs(problem, seed):
    trees, rows, std = problem
    weights = np.random.default_rng(seed).normal(size=(len(rows), trees.k))
    weights[1] = weights[0]
    every, mixed = smooth(trees, rows, std), smooth(trees, rows, std, weights=weights)
    assert mixed.values.shape == (len(rows), 1)
    assert mixed.gradients.shape == (len(rows), trees.n_features, 1)
    np.testing.assert_allclose(mixed.values[:, 0], (every.values * weights).sum(axis=1), rtol=1e-9, atol=1e-12)
    expected = np.einsum("rdk,rk->rd", every.gradients, weights)
    factor = 1 + np.abs(weights).sum(axis=1)[:, None]
    assert (np.abs(mixed.gradients[:, :, 0] - expected) <= factor * every.radius + mixed.radius).all()


@settings(max_examples=60, deadline=None)
@given(problems())
def test_fixed_features_give_the_prediction_itself(problem):
    trees, rows, _ = problem
    got = smooth(trees, rows, np.zeros(trees.n_features))
    np.testing.assert_allclose(got.values, trees.predict(rows), rtol=1e-13, atol=1e-13)
    assert (got.gradients == 0).all()
    assert (got.radius == 0).all()


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(5)
    thresholds = [*rng.normal(size=40), np.inf]
    return join_trees([grow(rng, 7, 4, thresholds, p_leaf=0.05) for _ in range(12)], base=0.3, n_features=4)


def test_small_sigma_gives_the_prediction(forest):
    rows = np.random.default_rng(0).normal(size=(50, 4))
    np.testing.assert_allclose(smooth(forest, rows, np.full(4, 1e-9)).values, forest.predict(rows), atol=1e-12)


def test_gradient_is_the_derivative_of_the_mean(forest):
    rows, std = np.random.default_rng(1).normal(size=(20, 4)), np.array([0.1, 0.5, 1.0, 2.0])
    rows[0, 2] = np.nan
    got = smooth(forest, rows, std).gradients[:, :, 0]
    for j in range(4):
        step = 1e-4 * std[j] * np.eye(4)[j]
        apart = smooth(forest, rows + step, std).values - smooth(forest, rows - step, std).values
        np.testing.assert_allclose(got[:, j], apart[:, 0] / (2e-4 * std[j]), atol=1e-6)
    assert got[0, 2] == 0


def test_sampling_agrees(forest):
    rng, std = np.random.default_rng(2), np.array([0.3, 0.5, 1.0, 0.2])
    x = np.array([0.2, -0.4, 0.1, 0.6])
    z = rng.normal(size=(200_000, 4))
    up, down = (forest.predict(x + sign * std * z)[:, 0] for sign in (1, -1))
    got = smooth(forest, x, std)
    draws = 0.5 * (up - down)[:, None] * z / std
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(z))
    assert (np.abs(draws.mean(axis=0) - got.gradients[0, :, 0]) <= 4 * error).all()
    assert (error < 0.02 * np.abs(got.gradients).max()).all()
    middle = 0.5 * (up + down)
    assert abs(middle.mean() - got.values[0, 0]) <= 4 * middle.std() / np.sqrt(len(z))


@pytest.mark.parametrize("sigma", [0.4, 0.02])
def test_answers_depend_neither_on_tables_nor_on_threads_nor_on_the_other_rows(forest, monkeypatch, sigma):
    rows, std = np.random.default_rng(3).normal(size=(150, 4)), np.full(4, sigma)
    rows[7, 1] = np.nan
    one = smooth(forest, rows, std, threads=1)
    plan = planning.make_plan(forest)
    assert len(plan.table_bunch) == len(plan.roots) + 1 == 2
    for other in (smooth(forest, rows, std, threads=3), smooth(forest, rows[:30], std)):
        n = len(other.values)
        np.testing.assert_array_equal(one.gradients[:n], other.gradients)
        np.testing.assert_array_equal(one.values[:n], other.values)
    alone = np.stack([smooth(forest, row, std).gradients[0] for row in rows[:30]])
    np.testing.assert_array_equal(one.gradients[:30], alone)
    for name, most in (("TABLE", 45), ("BUNCH", 1)):
        monkeypatch.setattr(planning, name, most)
        again = planning.make_plan(forest)
        assert len(again.table_bunch) > 2
        assert name == "TABLE" or (again.roots == 1).all()
        found = smooth(forest, rows, std, plan=again).gradients
        np.testing.assert_allclose(found, one.gradients, rtol=0, atol=1e-13 / sigma)


def test_rows_that_cannot_be_written_to_and_lists_are_taken(forest):
    rows = np.zeros((2, 4))
    rows.flags.writeable = False
    got = smooth(forest, rows, [0.1] * 4)
    np.testing.assert_array_equal(got.values, smooth(forest, rows.tolist(), np.full(4, 0.1)).values)


def test_trees_of_one_leaf_and_no_tree_at_all_are_constants():
    for trees, expected in (([LEAF, LEAF], 6.0), ([], 1.0)):
        got = smooth(join_trees(trees, base=1.0, n_features=2), np.zeros((3, 2)), [1.0, 1.0])
        assert (got.values == expected).all()
        assert (got.gradients == 0).all()
        assert (join_trees(trees, base=1.0, n_features=2).predict(np.zeros((3, 2))) == expected).all()


def test_zero_counts_as_missing_where_it_is_fixed_but_not_where_it_is_perturbed():
    step = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
            "nan_left": [False, False, False], "value": [0.0, -1.0, 1.0]}  # fmt: skip
    trees = join_trees([step], base=0.0, n_features=1, zero_is_missing=np.array([True]))
    assert trees.predict([[0.0], [0.1]]).tolist() == [[1.0], [-1.0]]
    assert smooth(trees, [[0.0]], [0.0]).values[0, 0] == 1.0
    assert smooth(trees, [[0.0]], [1e-3]).values[0, 0] == pytest.approx(-1.0)


def test_radius_counts_the_branches_left_out():
    """3e-14 of the mass, halved seven times: each part is left out, and together they are more than rounding."""
    tree = {"feature": [0, -1], "threshold": [norm.ppf(3e-14), 0.0], "left": [2, 0], "right": [1, 0],
            "nan_left": [False] * 2, "value": [0.0, 0.0]}  # fmt: skip
    for at in range(255):
        is_leaf = at >= 127
        tree["feature"].append(-1 if is_leaf else int(np.log2(at + 1)) + 1)
        tree["threshold"].append(0.0)
        tree["left"].append(0 if is_leaf else 2 * at + 3)
        tree["right"].append(0 if is_leaf else 2 * at + 4)
        tree["nan_left"].append(False)
        tree["value"].append(float(is_leaf))
    trees = join_trees([tree], base=0.0, n_features=8)
    got = smooth(trees, np.zeros(8), np.ones(8))
    value, gradient = by_boxes(trees, np.zeros(8), np.ones(8))
    assert value == pytest.approx(3e-14)
    assert got.values[0, 0] == pytest.approx(value[0] / 2, rel=1e-2)  # as if it were 0.5, the middle of all leaves
    apart = np.abs(got.gradients[0] - gradient)
    assert (apart[:, 0] > planning.make_plan(trees).rounding).any()  # is more than is allowed to rounding
    assert (apart <= got.radius[0][:, None]).all()
    assert got.radius.max() < 1e-12


def test_radius_holds_where_the_errors_of_all_thresholds_add_up():
    """A notch around every edge between two cells of the table, up or down as φ is too small or too large there."""
    edges = np.arange(-191, 192) / STEPS
    signs = np.sign(np.polynomial.hermite_e.hermeval(edges, [0] * DEGREE + [1]))
    thresholds = np.repeat(edges, 2) + np.tile([-(2.0**-12), 2.0**-12], len(edges))
    leaves = np.concatenate([np.stack([-signs, signs], axis=1).ravel(), [-1.0]])
    n = len(thresholds)
    tree = {"feature": [0] * n + [-1] * (n + 1), "threshold": [*thresholds, *np.zeros(n + 1)],
            "left": [*range(n, 2 * n), *np.zeros(n + 1)], "right": [*range(1, n), 2 * n, *np.zeros(n + 1)],
            "nan_left": [False] * (2 * n + 1), "value": [*np.zeros(n), *leaves]}  # fmt: skip
    for trees in (join_trees([tree], base=0.0, n_features=1), join_trees([tree] * 5, base=0.0, n_features=1)):
        got = smooth(trees, [0.0], [1.0])
        with mpmath.workdps(30):
            jumps = zip(np.diff(leaves), thresholds, strict=True)
            truth = trees.n_trees * sum(float(jump) * mpmath.npdf(float(t)) for jump, t in jumps)
            off = float(abs(got.gradients[0, 0, 0] - truth))
        assert off > trees.n_trees * 1.2e-13  # else this could not see that the bound has to grow with the thresholds
        assert off <= got.radius[0, 0] < trees.n_trees * 1e-11


def test_radius_goes_by_how_much_trees_vary_and_not_by_how_large_they_are(forest):
    level = dataclasses.replace(forest, value=np.where(forest.feature[:, None] < 0, forest.value + 2.0**20, 0.0))
    rows, std = np.random.default_rng(1).normal(size=(20, 4)), np.full(4, 0.5)
    one, other = smooth(forest, rows, std), smooth(level, rows, std)
    assert (np.abs(one.gradients - other.gradients) <= (one.radius + other.radius)[:, :, None]).all()
    np.testing.assert_allclose(other.values - one.values, forest.n_trees * 2.0**20, rtol=1e-14)
    assert one.radius.max() < 3e-11
    assert other.radius.max() < 1e-7 * np.abs(one.gradients).max()


@settings(max_examples=400, deadline=None)
@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False), st.booleans())
def test_thresholds_reproduce_comparisons_in_single_precision(t, anywhere, strict):
    c = float(as_threshold(t, single=True, strict=strict))
    near = np.array([t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), c, np.nextafter(c, np.inf), anywhere])
    with np.errstate(over="ignore"):
        single = near.astype(np.float32)
    expected = single < np.float32(t) if strict else single <= np.float32(t)
    if np.isfinite(t):
        np.testing.assert_array_equal(near <= c, expected)


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30))
def test_thresholds_in_double_precision_against_rows_in_single(t, anywhere):
    c = float(as_threshold(t, single=True, strict=False))
    near = np.array([t, c, np.nextafter(c, np.inf), np.nextafter(c, -np.inf), anywhere])
    np.testing.assert_array_equal(near <= c, near.astype(np.float32).astype(np.float64) <= t)


def test_strict_comparisons_in_double_precision():
    assert as_threshold(1.0, single=False, strict=True) < 1.0
    assert as_threshold(1.0, single=False, strict=False) == 1.0


def test_bad_arguments_are_named(forest):
    rows = np.zeros((2, 4))
    with pytest.raises(InvalidArgument, match="X has 3 features but the trees were fitted with 4"):
        smooth(forest, rows[:, :3], np.ones(4))
    with pytest.raises(InvalidArgument, match="X has 3 features but the trees were fitted with 4"):
        forest.predict(rows[:, :3])
    for std in (np.ones(3), [1, 1, 1, -1.0], [1, 1, 1, np.inf]):
        with pytest.raises(InvalidArgument, match="std must hold 4 finite numbers >= 0, one per feature"):
            smooth(forest, rows, std)
    with pytest.raises(InvalidArgument, match=r"weights must have one number per output, \(1,\) or \(2, 1\)"):
        smooth(forest, rows, np.ones(4), weights=np.ones(2))


def test_categories_cannot_be_perturbed():
    split = {**LEAF, "feature": [0, -1, -1], "threshold": [0.0] * 3, "left": [1, 0, 0], "right": [2, 0, 0],
             "nan_left": [False] * 3, "value": [0.0, 1.0, 2.0], "category_left": {0: [1, 3]}}  # fmt: skip
    trees = join_trees([split], base=0.0, n_features=2)
    assert trees.categorical_features == (0,)
    assert trees.predict([[1.0, 0], [2.0, 0], [3.0, 0], [np.nan, 0]])[:, 0].tolist() == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(NoClosedForm, match=r"split on categories of feature 0.*List it in `fixed`.*method='clime'"):
        smooth(trees, [[1.0, 0.0]], [1.0, 1.0])


def test_no_category_is_in_an_empty_list():
    """Not even one too large for an integer, which processors turn into the number that stands for none."""
    split = {**LEAF, "feature": [0, -1, -1], "threshold": [0.0] * 3, "left": [1, 0, 0], "right": [2, 0, 0],
             "nan_left": [False] * 3, "value": [0.0, 1.0, 2.0], "category_left": {0: []}}  # fmt: skip
    trees = join_trees([split], base=0.0, n_features=1)
    for x in (0.0, 3.0, 1e300, -1e300, -(2.0**63), np.inf):
        assert trees.predict([[x]]) == smooth(trees, [[x]], [0.0]).values == 2.0


def test_without_numba_the_extra_is_named(forest, hide, monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "smoothlime.exact.trees.kernel", raising=False)
    hide("numba")
    with pytest.raises(MissingExtra, match=r"numba is needed to smooth trees.*smoothlime\[trees\]"):
        smooth(forest, np.zeros(4), np.ones(4))
