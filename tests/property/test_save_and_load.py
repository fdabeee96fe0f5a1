"""What is saved is loaded equal to the bit, whatever it is; hypothesis looks for an explanation for which it is not."""

import dataclasses
import tempfile
import warnings
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known

METHODS = (sl.SmoothGrad(), sl.CLime(), sl.CLime(ridge=0.1), sl.Stein(), sl.Differences())
PLAIN = [
    (method, design)
    for method in METHODS
    for design in method.designs
    if not (design.startswith("aligned") and getattr(method, "ridge", 0))  # which are refused together
]
CERTIFIED = [(sl.SmoothGrad(), "certified"), (sl.CLime(), "certified"), (sl.Stein(), "certified")]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)  # any character; surrogates are no text
ANY_NUMBER = st.floats(width=64)


@st.composite
def explanations(draw):
    """Any method and design, neighbourhood and names; some rows of it, or a combination of two."""
    d = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    method, design = draw(st.sampled_from(PLAIN + CERTIFIED))
    names = draw(st.lists(TEXT, min_size=d, max_size=d, unique=True))
    output = draw(TEXT)
    more = {"method": method, "sigma": neighbourhood(draw, d, names, rng), "n_samples": 256}
    more["seed"] = draw(st.integers(0, 2**70))
    more["draws"] = draw(st.sampled_from(["shared", "independent"]))
    if design == "certified":
        is_gradient = method.name == "smoothgrad"
        more |= {"guarantee": "certified"} | ({"gradient_bound": 50.0} if is_gradient else {"output_range": (-1, 1)})
    else:
        more["design"] = "auto" if design == "differences" else design
    rows = rng.normal(size=(3, d))

    def explain(**changed):
        f = known.Sine(rng.normal(size=d), rng.normal())
        gradients = lambda a: f.values_and_gradients(a, np.ones((len(a), 1)))[1]
        model = sl.from_functions(values=f.values, gradients=gradients, feature_names=names, outputs=[output])
        return sl.explain(model, rows, **more | changed)

    e = explain()
    shape = draw(st.sampled_from(["whole", "rows", "multiple", "sum", "mixed draws"]))
    if shape == "rows":
        return e[draw(st.lists(st.integers(0, 2), max_size=4))]
    if shape == "multiple":
        return draw(st.sampled_from([-1e6, -1 / 3, 0.0, 1e-9, 7.0])) * e
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.ErrorsAdded)
        if shape == "sum":
            return e - explain()
        if shape == "mixed draws":
            return e + explain(seed=more["seed"] + 1)
    return e


def neighbourhood(draw, d, names, rng):
    """Any Σ, with some features held fixed by position or name."""
    fixed = draw(st.sets(st.integers(0, d - 1), max_size=d - 1))
    fixed = [names[j] if draw(st.booleans()) else j for j in sorted(fixed)]
    kind = draw(st.sampled_from(["number", "by feature", "scale", "covariance"]))
    if kind == "covariance":
        root = rng.normal(size=(d, d)) + np.eye(d)
        return sl.Neighbourhood(0.3, covariance=root @ root.T + 0.1 * np.eye(d), fixed=fixed)
    sigma = rng.uniform(0.1, 1, size=d) if kind == "by feature" else float(rng.uniform(0.1, 1))
    return sl.Neighbourhood(sigma, scale=rng.uniform(0.1, 9, size=d) if kind == "scale" else None, fixed=fixed)


@settings(max_examples=80, deadline=None)
@given(explanations(), st.sampled_from([".json", ".parquet"]))
def test_what_is_saved_is_loaded_equal_to_the_bit(assert_same, e, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"e{suffix}"
        e.save(path)
        again = sl.load(path)
    assert_same(e, again)
    assert_same(0.3 * e, 0.3 * again)
    if e.groups is not None and len(e) and e.provenance.draws == "shared":
        other = e if e.directions is not None else e[[0] * len(e)]  # rows that are turned apart do not combine
        assert_same(e - other, again - other)  # loaded and fresh: the same draws
    if e.groups is not None and len(e) and np.isfinite(e.x).all():
        assert_same(e.perturbations(0), again.perturbations(0))


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY_NUMBER, min_size=4, max_size=4), st.sampled_from([".json", ".parquet"]))
def test_any_number_comes_back(assert_same, numbers, suffix):
    e = sl.explain(lambda a: a.sum(axis=1), np.zeros((2, 2)), method="clime", n_samples=64)
    values = np.array(numbers).reshape(2, 2)
    odd = dataclasses.replace(e, values=values, x=np.where(np.isnan(values), 7.0, -values))  # nothing is marked missing
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"e{suffix}"
        odd.save(path)
        again = sl.load(path)
    assert_same(odd.values, again.values)
    assert_same(odd.x, again.x)
