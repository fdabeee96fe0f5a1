"""Shared by all tests: a few models, and which designs each method can use."""

import dataclasses
import json
import sys

import numpy as np
import pytest
import torch

from smoothlime import CLime, Differences, Lime, Neighbourhood, SmoothGrad, Stein

# browser needs a browser, data files that are not part of the repository, engines and frameworks environments of their
# own: `make test-browser`, `make test-data`, `make test-engines` and `make test-frameworks` name them
collect_ignore = ["browser", "data", "engines", "frameworks"]

torch.set_num_threads(1)  # the networks here are tiny: threads would only wait for each other

METHODS = (SmoothGrad, CLime, Stein, Differences)
LIME = Lime(kernel=1.5)  # with kernel=None it would be clime over again, to the last bit
COMBINATIONS = [(method.name, design) for method in METHODS for design in method.designs]
COMBINATIONS += [(LIME, design) for design in LIME.designs]
# what `auto` takes for few features. Aligned pairs, which it does not take there, are left out, as curves do not keep
# the promise: 95% intervals for the worst of three slopes of a probit held 86% at 1,024 draws (93% at 20 features)
COMBINATIONS += [(method, "aligned") for method in (SmoothGrad(control="values"), CLime(curves=True))]


def pytest_generate_tests(metafunc):
    """Tests that take `method` and `design` run over every combination that exists."""
    if {"method", "design"} <= set(metafunc.fixturenames):
        ids = [f"{_called(method)}-{design}" for method, design in COMBINATIONS]
        metafunc.parametrize(("method", "design"), COMBINATIONS, ids=ids)


def _called(method):
    if isinstance(method, str):
        return method
    return method.name + {"smoothgrad": "+values", "clime": "+curves"}.get(method.name, "")


@pytest.fixture
def seen_by():
    """What neighbourhood a method's slopes belong to: a kernel of width ω makes Σ narrower, Σ·ω²/(1 + ω²)."""

    def seen(method, neighbourhood):
        if not isinstance(method, Lime):
            return neighbourhood
        sigma = neighbourhood.sigma * method.kernel / (1 + method.kernel**2) ** 0.5
        return Neighbourhood(sigma, scale=neighbourhood.scale, covariance=neighbourhood.covariance)

    return seen


@pytest.fixture
def elu_network():
    """A small float64 network with two outputs, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(3, 8), torch.nn.ELU(), torch.nn.Linear(8, 2)]
        return torch.nn.Sequential(*layers).double().eval()


@pytest.fixture(scope="session")
def assert_same():
    """A check that two explanations or arrays are equal to the bit."""
    return lambda one, other: (_assert_same_array if isinstance(one, np.ndarray) else _assert_same)(one, other)


@pytest.fixture(scope="session")
def assert_honest():
    """A check that repeats of one explanation, as rows, say no less error than they have, and that intervals hold."""

    def check(e, truth):
        actual, said = ((e.values - truth) ** 2).sum(axis=1), (e.standard_error**2).sum(axis=1)
        scatter = np.hypot(actual.std(), said.std()) / np.sqrt(len(e))
        assert said.mean() >= 0.9 * actual.mean() - 4 * scatter
        lower, upper = e.interval()
        # a true 95% would fall below this once in 10,000 tests
        least = 0.95 - 4 * np.sqrt(0.95 * 0.05 / len(e))
        assert ((lower <= truth) & (truth <= upper)).mean(axis=0).min() >= least

    return check


def _assert_same_array(a, b):
    """Equal bit for bit, of one type; NaN equals NaN, and 0 differs from −0."""
    assert (a is None) == (b is None)
    if a is not None:
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))


def _assert_same(one, other):
    """Every field of two explanations is equal."""
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "groups":
            assert (a is None) == (b is None)
            for part in dataclasses.fields(a) if a is not None else ():
                _assert_same_array(getattr(a, part.name), getattr(b, part.name))
        elif isinstance(a, np.ndarray) or field.name == "selected":
            _assert_same_array(a, b)
        else:
            assert a == b, field.name
            assert type(a) is type(b), field.name
    for confidence in (0.5, 0.95):
        for a, b in zip(one.interval(confidence), other.interval(confidence), strict=True):
            _assert_same_array(a, b)


@pytest.fixture(scope="session")
def older():
    """What a version before digests, tolerances and shapes would have written, of the content of a file of today."""

    def make(text, version=4):
        plain = json.loads(text) | {"version": version}
        del plain["digests"], plain["input_shape"]
        for name in ("rtol", "atol"):
            del plain["provenance"][name]
        return plain

    return make


@pytest.fixture
def hide(monkeypatch):
    """Makes a machine without a library: it is not loaded, and the import system finds nothing."""

    class Hidden:
        def __init__(self, library):
            self.hidden = library

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == self.hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=self.hidden)

    def without(library):
        for name in [name for name in sys.modules if name.partition(".")[0] == library]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [Hidden(library), *sys.meta_path])

    return without
