"""Properties that hold for any neighbourhood, rows and draws; hypothesis looks for a counterexample."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.draws.blocks import Layout
from smoothlime.draws.designs import DESIGNS
from smoothlime.uncertainty.jackknife import pseudo_values, standard_error

DIMENSION = st.integers(1, 5)
SEED = st.integers(0, 2**32)
NUMBER = st.floats(-3, 3, allow_nan=False, width=32)


def random_problem(seed, d):
    """A smooth function, rows and a full covariance, all from one seed."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) + np.eye(d)
    neighbourhood = sl.Neighbourhood(0.5, covariance=root @ root.T + 0.1 * np.eye(d))
    return known.Sine(rng.normal(size=d), rng.normal()), rng.normal(size=(3, d)), neighbourhood


@settings(max_examples=40, deadline=None)
@given(SEED, DIMENSION, st.sampled_from(["clime", "smoothgrad", "differences"]))
def test_linear_functions_are_exact_in_any_neighbourhood(seed, d, method):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=d)
    _, rows, neighbourhood = random_problem(seed, d)
    e = sl.explain(known.Linear(v, 1.0), rows, method=method, sigma=neighbourhood, n_samples=96, seed=seed)
    np.testing.assert_allclose(e.values, np.repeat(v[None], 3, axis=0), atol=1e-8 * max(1, np.abs(v).max()))


@settings(max_examples=30, deadline=None)
@given(SEED, DIMENSION, st.sampled_from(["iid", "antithetic", "orthogonal", "sobol"]), st.integers(1, 400))
def test_any_batch_size_gives_the_same_answer(seed, d, design, batch_size):
    f, rows, neighbourhood = random_problem(seed, d)
    settings_ = {"method": "clime", "design": design, "sigma": neighbourhood, "n_samples": 96, "seed": seed}
    np.testing.assert_allclose(
        sl.explain(f, rows, **settings_, batch_size=batch_size).values,
        sl.explain(f, rows, **settings_).values,
        rtol=1e-9,
        atol=1e-11,
    )


@settings(max_examples=30, deadline=None)
@given(SEED, DIMENSION, NUMBER, NUMBER)
def test_arithmetic_is_linear(seed, d, alpha, beta):
    f, rows, neighbourhood = random_problem(seed, d)
    g, _, _ = random_problem(seed + 1, d)
    both = {
        name: sl.explain(h, rows, method="clime", sigma=neighbourhood, n_samples=96) for name, h in (("f", f), ("g", g))
    }
    mixed = sl.explain(
        lambda a: alpha * f.values(a) + beta * g.values(a), rows, method="clime", sigma=neighbourhood, n_samples=96
    )
    combined = alpha * both["f"] + beta * both["g"]
    np.testing.assert_allclose(combined.values, mixed.values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(combined.standard_error, mixed.standard_error, rtol=1e-6, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(DESIGNS)), DIMENSION, st.lists(st.integers(0, 70), min_size=1, max_size=6), SEED)
def test_streams_do_not_depend_on_how_they_are_taken(name, d, counts, seed):
    whole = DESIGNS[name].stream(d, seed).take(sum(counts))
    stream = DESIGNS[name].stream(d, seed)
    np.testing.assert_array_equal(np.concatenate([stream.take(count) for count in counts]), whole)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 500), st.integers(1, 300), st.integers(1, 10))
def test_chunks_cover_every_draw_once(block, groups, blocks, limit, restart):
    layout = Layout(block, groups)
    n, first = block * blocks, block * (blocks // restart)
    counted = np.zeros(groups)
    total = 0
    for start, stop in ((0, first), (first, n)):
        for chunk in layout.chunks(start, stop, limit):
            width = chunk.groups.stop - chunk.groups.start
            assert chunk.n % (width * block) == 0
            counted[chunk.groups] += chunk.n / width
            total += chunk.n
    assert total == n
    np.testing.assert_array_equal(counted[counted > 0], layout.sizes(n))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (1, 6, 2), elements=NUMBER), st.lists(st.integers(1, 9), min_size=6, max_size=6))
def test_the_jackknife_of_a_weighted_mean_is_its_textbook_form(groups, counts):
    """For equal groups: the standard error of a mean; for any: zero exactly when groups agree."""
    sizes = np.array(counts, dtype=float)
    mean = (groups * sizes[:, None]).sum(axis=1) / sizes.sum()
    without = ((groups * sizes[:, None]).sum(axis=1, keepdims=True) - groups * sizes[:, None]) / (sizes.sum() - sizes)[
        :, None
    ]
    pseudo = pseudo_values(mean, without, sizes)
    np.testing.assert_allclose(pseudo, groups, atol=1e-9)
    found = standard_error(pseudo, sizes)
    if len(set(counts)) == 1:
        np.testing.assert_allclose(found, groups.std(axis=1, ddof=1) / np.sqrt(6), atol=1e-9)
    spread = np.ptp(groups, axis=1)
    assert (found[spread == 0] < 1e-8).all()  # but for rounding
    assert (found[spread > 1e-6] > 1e-8).all()
