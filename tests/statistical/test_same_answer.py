"""What "the same answer" means: bit for bit in the same call, to rounding in any other arrangement."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import testing as known

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(7, 3))
F = known.Sine(V, 0.3)


def explain(x=X, **more):
    return sl.explain(F, x, **{"sigma": 0.6, "n_samples": 96, **more})


def test_the_same_call_gives_the_same_bits(method, design):
    for draws in ("shared", "independent"):
        first, second = (explain(method=method, design=design, draws=draws) for _ in range(2))
        np.testing.assert_array_equal(first.values, second.values)
        np.testing.assert_array_equal(first.standard_error, second.standard_error)


def test_batch_size_changes_rounding_only(method, design):
    for draws in ("shared", "independent"):
        reference = explain(method=method, design=design, draws=draws)
        for batch_size in (1, 5, 33, 96, 200, 10_000):
            other = explain(method=method, design=design, draws=draws, batch_size=batch_size)
            np.testing.assert_allclose(other.values, reference.values, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(other.standard_error, reference.standard_error, rtol=1e-9, atol=1e-13)
            np.testing.assert_allclose(other.fidelity, reference.fidelity, rtol=1e-9)


def test_rows_do_not_depend_on_the_company_they_keep(method, design):
    together = explain(method=method, design=design)
    alone = [explain(row, method=method, design=design) for row in X]
    backwards = explain(X[::-1], method=method, design=design)
    np.testing.assert_allclose(together.values, np.concatenate([e.values for e in alone]), rtol=1e-12)
    np.testing.assert_allclose(together.values, backwards.values[::-1], rtol=1e-12)


def test_panels_change_rounding_only(method, design, monkeypatch):
    import sys

    reference = {draws: explain(method=method, design=design, draws=draws) for draws in ("shared", "independent")}
    monkeypatch.setattr(sys.modules["smoothlime.sampling.loop"], "STATE_BYTES", 1)
    for draws, expected in reference.items():
        found = explain(method=method, design=design, draws=draws)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
        np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-9)


@pytest.mark.parametrize("batch_size", [10, 96, "auto"])
def test_directions_may_be_added_up_sooner_or_later(monkeypatch, batch_size):
    """Of few rows they wait; where rows are more than features, or they have waited for long, they are added up."""
    settings = {"method": "differences", "n_samples": 1_200, "batch_size": batch_size}
    waiting, together = explain(X[:2], **settings), explain(X, **settings)
    monkeypatch.setattr("smoothlime.estimators.differences.WAITING", 0)
    at_once = explain(X[:2], **settings)
    for other in (together[:2], at_once):
        np.testing.assert_allclose(waiting.values, other.values, rtol=1e-12)
        np.testing.assert_allclose(waiting.standard_error, other.standard_error, rtol=1e-9)


def test_independent_rows_have_draws_of_their_own():
    e = explain(np.repeat(X[:1], 3, axis=0), draws="independent", method="clime")
    assert len(np.unique(e.values[:, 0])) == 3
    shared = explain(np.repeat(X[:1], 3, axis=0), method="clime")
    assert len(np.unique(shared.values[:, 0])) == 1


def test_a_float32_network_agrees_with_itself_in_any_batch(elu_network):
    network = elu_network.float()
    reference = sl.explain(network, X, target=0, n_samples=256)
    for batch_size in (7, 256, 1_000):
        other = sl.explain(network, X, target=0, n_samples=256, batch_size=batch_size)
        np.testing.assert_allclose(other.values, reference.values, rtol=1e-6)


@pytest.mark.parametrize("batch_size", ["auto", 33])  # in parts, sums are not centred by accident: the intercept counts
@pytest.mark.parametrize("draws", ["shared", "independent"])
def test_least_squares_on_the_replayed_points_gives_the_same_slopes(draws, batch_size):
    e = explain(method="clime", design="iid", draws=draws, batch_size=batch_size)
    for row in range(len(e)):
        points = e.perturbations(row)
        assert points.shape == (96, 3)
        fit = np.linalg.lstsq(np.column_stack([np.ones(96), points]), F.values(points)[:, 0], rcond=None)[0]
        np.testing.assert_allclose(e.values[row], fit[1:], rtol=1e-10)


def test_the_mean_gradient_on_the_replayed_points_gives_the_same_slopes(elu_network):
    import torch

    e = sl.explain(elu_network, X, target=1, method="smoothgrad", design="iid", draws="independent", n_samples=64)
    for row in range(len(e)):
        points = torch.tensor(e.perturbations(row), requires_grad=True)
        (gradient,) = torch.autograd.grad(elu_network(points)[:, 1].sum(), points)
        np.testing.assert_allclose(e.values[row], gradient.mean(dim=0), rtol=1e-12)


def test_every_point_that_was_evaluated_is_replayed(method, design):
    seen = []
    model = sl.from_functions(
        values=lambda a: (seen.append(a.copy()), F.values(a))[1],
        gradients=lambda a: F.values_and_gradients(a, 1.0)[1],
    )
    e = sl.explain(model, X[:1], method=method, design=design, sigma=0.6, n_samples=48, batch_size=10)
    evaluated = np.concatenate(seen)
    has_gradients = method in ("smoothgrad", sl.SmoothGrad(control="values"))
    pilot = 12 if has_gradients else 2 * 4  # comes first: gradients, or draws with a step along each feature
    before = 2 + 3 + pilot * design.startswith("aligned")  # x twice, and once beside two other points
    assert len(evaluated) == e.n_evaluations[0] == e.n_samples[0] + before
    np.testing.assert_array_equal(evaluated[:3], np.repeat(X[:1], 3, axis=0))
    replayed = e.perturbations(0)
    # where draws are turned, by matrix products, their last digit depends on the shape of the batch
    atol = 1e-14 if design.startswith("aligned") else 0.0
    np.testing.assert_allclose(np.sort(evaluated[before:], axis=0), np.sort(replayed, axis=0), rtol=0, atol=atol)
