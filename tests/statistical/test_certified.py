"""Certified radii hold: misses at most delta, by a binomial test, on smooth, stepped and extremal functions."""

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.draws.designs import DESIGNS
from smoothlime.estimators import Batch, GroupedDraws
from smoothlime.estimators.certified import CertifiedSmoothGrad
from smoothlime.estimators.protocol import Drawn, Setup
from smoothlime.space.neighbourhood import Factor

REPEATS = 500
LIMIT = 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)


def unit(d):
    v = np.cos(1.0 + 2.0 * np.arange(d))
    return v / np.linalg.norm(v)


class Slab(known.RidgeFunction):
    """1 where |v·a| > 1: the function with the most curved explanation that a range allows; w(0) = 0."""

    def __init__(self, v):
        from scipy.stats import norm

        super().__init__(
            known.Profile(
                lambda s: (np.abs(s) > 1).astype(float),
                np.zeros_like,
                lambda m, t: norm.sf((1 - m) / t) + norm.cdf((-1 - m) / t),
                lambda m, t: (norm.pdf((1 - m) / t) - norm.pdf((1 + m) / t)) / t,
            ),
            v,
        )


BOUNDED = {
    "probit": lambda d: known.Probit(2 * unit(d), 0.3),
    "steep": lambda d: known.Probit(20 * unit(d), 5.0),
    "step": lambda d: known.Step(unit(d), 0.2),
    "slab": lambda d: Slab(unit(d)),
    "rare": lambda d: known.Step(unit(d), -2.5),
}
NEIGHBOURHOODS = {
    "diagonal": lambda d: sl.Neighbourhood(np.linspace(0.5, 1.5, d) if d > 1 else 0.7),
    "full": lambda d: sl.Neighbourhood(0.8, covariance=0.5 * np.eye(d) + 0.5),
}


def missed(function, neighbourhood, d, **more):
    x = np.full(d, 0.1)
    e = sl.explain(
        function, np.repeat(x[None], REPEATS, axis=0), sigma=neighbourhood, draws="independent",
        guarantee="certified", **more,
    )  # fmt: skip
    truth = function.slopes(x, neighbourhood)
    distance = np.linalg.norm((e.values - truth) * e.std, axis=1)
    return (distance > e.radius).mean(), e, distance


@pytest.mark.slow
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("method", ["stein", "clime"])
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_from_the_output_range_hold(name, method, around):
    for d, n in ((1, 500), (5, 3_000)):
        share, e, distance = missed(
            BOUNDED[name](d), NEIGHBOURHOODS[around](d), d, method=method, output_range=(0, 1), n_samples=n
        )
        assert share <= LIMIT
        assert e.provenance.guarantee == "certified"
        # a bound that says nothing would hold, too; the largest possible slope is 0.4
        assert (e.radius < max(40 * np.quantile(distance, 0.95), 0.1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("around", NEIGHBOURHOODS)
@pytest.mark.parametrize("name", ["probit", "absolute", "relu"])
def test_bounds_from_a_gradient_bound_hold(name, around):
    for d, n in ((1, 300), (20, 2_000)):
        v = unit(d)
        function, bound = {
            "probit": (known.Probit(2 * v, 0.3), 2 / np.sqrt(2 * np.pi)),
            "absolute": (known.Absolute(v), 1.0),  # gradients on the sphere: the extremal case
            "relu": (known.Relu(v, -1.5), 1.0),
        }[name]
        share, e, distance = missed(
            function, NEIGHBOURHOODS[around](d), d, method="smoothgrad", gradient_bound=bound * (1 + 1e-9), n_samples=n
        )
        assert share <= LIMIT
        assert (e.radius < 40 * np.quantile(distance, 0.95)).all()


@pytest.mark.slow
def test_certified_stopping_keeps_its_promise():
    function, neighbourhood = BOUNDED["probit"](3), sl.Neighbourhood(1.0)
    share, e, distance = missed(function, neighbourhood, 3, method="clime", output_range=(0, 1), atol=0.05)
    assert e.converged.all()
    assert share <= LIMIT
    size = np.linalg.norm(function.slopes(np.full(3, 0.1), neighbourhood))
    assert (distance <= np.maximum(0.05, 0.05 * size)).mean() >= 0.95


def test_probabilities_know_their_range(elu_network):
    model = sl.as_model(elu_network, output="probability")
    e = sl.explain(model, np.zeros((2, 3)), target=0, guarantee="certified", method="clime", atol=0.1)
    assert e.converged.all()
    assert e.design == "iid"
    assert "certified at 0.95 confidence for outputs between 0 and 1" in str(e)


def test_contrasts_stretch_a_known_range(elu_network):
    """A range that is the model's own is not that of a contrast; one given by the caller is taken as it is."""
    model = sl.as_model(elu_network, output="probability")
    for target, text in (({"0": 2.0}, "between 0 and 2"), ({"0": 1, "1": -1}, "between -1 and 1")):
        e = sl.explain(model, np.zeros(3), target=target, guarantee="certified", method="clime", n_samples=500)
        assert text in e.provenance.assumes
        certificate = sl.certify(model, [[0.0, 0.0, 0.0]], sigma=1.0, target=target)
        assert text in certificate.assumes
        assert certificate.lipschitz[0] == pytest.approx(0.48394 * 2, rel=1e-4)


@pytest.mark.parametrize("output_range", [(0, 1), (0, 0.05)], ids=["fixed bound", "adaptive bound"])
def test_intervals_of_certified_slopes_are_their_own(output_range):
    """Stein's certified estimate is not the plain one; its standard errors must be of what is reported."""
    d = 8
    function = sl.from_functions(values=lambda a: 0.02 + 0.02 * known.Probit(np.eye(d)[0]).values(a)[:, 0])
    e = sl.explain(
        function, np.zeros((400, d)), method="stein", guarantee="certified", output_range=output_range, n_samples=1_000,
        draws="independent",
    )  # fmt: skip
    truth = 0.02 * known.Probit(np.eye(d)[0]).slopes(np.zeros((1, d)), sl.Neighbourhood(1.0))
    lower, upper = e.interval(0.95)
    covered = ((lower <= truth) & (truth <= upper)).mean()
    assert 0.92 <= covered <= 0.98
    np.testing.assert_allclose(e.standard_error.mean(), e.values.std(axis=0).mean(), rtol=0.15)


def test_sums_of_certified_explanations_promise_less():
    more = {"guarantee": "certified", "output_range": (0, 1), "method": "clime", "n_samples": 500}
    f = known.Probit([2.0, 1.0])
    one = sl.explain(f, [0.1, 0.2], **more)
    both = one + one
    assert both.provenance.guarantee == "certified"
    assert both.provenance.confidence == pytest.approx(0.9)
    np.testing.assert_allclose(both.radius, 2 * one.radius)
    with pytest.warns(errors.ErrorsAdded):
        mixed = one + sl.explain(f, [0.1, 0.2], method="clime", design="iid", n_samples=500)
    assert mixed.provenance.guarantee == "approximate"
    assert mixed.provenance.assumes == ""


def test_what_is_known_of_a_model_is_not_taken_in_silence():
    with pytest.raises(errors.InvalidArgument, match="output_range is for guarantee='certified'"):
        sl.explain(known.Probit([1.0]), [0.0], output_range=(0, 1), atol=0.01)
    with pytest.raises(errors.InvalidArgument, match="gradient_bound is for guarantee='certified'"):
        sl.explain(known.Probit([1.0]), [0.0], gradient_bound=1.0)
    assert sl.explain(known.Probit([1.0]), [0.0], output_range=(0, 1)).provenance.atol == 0.005


def test_a_gradient_bound_of_a_network_certifies_it(elu_network):
    bound = sl.gradient_bound(elu_network)
    e = sl.explain(elu_network, np.zeros(3), target=0, guarantee="certified", gradient_bound=bound, atol=0.1)
    assert e.method == "smoothgrad"
    assert e.converged.all()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({}, errors.InvalidArgument, r"needs output_range=\(lowest, highest\) for clime"),
        ({"method": "smoothgrad"}, errors.InvalidArgument, r"needs gradient_bound for smoothgrad"),
        ({"method": "differences"}, errors.InvalidArgument, r"has no bound for method 'differences'"),
        ({"method": sl.CLime(ridge=1)}, errors.InvalidArgument, r"has no bound for a ridge penalty"),
        ({"method": sl.CLime(curves=True)}, errors.InvalidArgument, r"has no bound for curves; use method='clime'"),
        ({"output_range": (0, 1), "design": "sobol"}, errors.InvalidArgument, r"needs iid draws.*got design='sobol'"),
        ({"output_range": (0.2, 0.8)}, errors.ModelError, r"the model returned .* outside output_range=\(0.2, 0.8\)"),
        ({"gradient_bound": 0.1}, errors.ModelError, r"gradient of length .* beyond gradient_bound=0.1"),
        ({"gradient_bound": 0}, errors.InvalidArgument, r"gradient_bound must be > 0"),
        ({"output_range": (1, 1)}, errors.InvalidArgument, r"lowest first"),
    ],
)
def test_promises_that_cannot_be_kept_are_not_made(arguments, kind, message):
    with pytest.raises(kind, match=message):
        sl.explain(known.Probit([2.0, 1.0]), [0.1, 0.2], guarantee="certified", **arguments)


def test_the_pilot_is_in_the_mean_that_is_reported_and_not_in_the_one_that_is_bounded():
    """Gradients of 0.1 in the pilot and 0.26 after it: what is reported lies a quarter of the difference off."""
    factor, method = Factor(1, np.arange(1), np.ones(1)), CertifiedSmoothGrad(gradient_bound=1.0)
    design = DESIGNS["iid"]
    state = method.start(Setup(1, 32, factor, design, looks=(256,), is_shared=True))
    for gradient, b in ((0.1, 2), (0.26, 6)):
        draws = GroupedDraws(np.zeros((1, 32, b, 1)), is_shared=True)
        batch = Batch(draws, np.zeros((1, 32, b)), np.full((1, 32, b, 1), gradient))
        method.update(state, slice(0, 1), slice(0, 32), batch)
        if b == 2:
            method.end_pilot(state, 64, 256)
    estimate = method.finish(state, Drawn(256, np.full(32, 8.0), factor, design, miss=0.05, targets=1))
    # docs/theory/bounds.md: reach is the bound and the pilot's mean; a pilot without variance asks for the largest λ
    reach, tilt, main, level = 1.1, 0.9, 192, np.log(2 / 0.025)
    psi = np.log(np.exp(tilt) - 2 * tilt) - np.log(1 - tilt)
    bounded = reach * level / (tilt * main) + psi * 0.16**2 / (reach * tilt)
    assert estimate.values[0, 0] == pytest.approx(0.22)
    assert estimate.radius[0] == pytest.approx(bounded + 0.16 / 4)


def test_least_squares_is_as_sure_as_the_estimate_that_is_bounded_is_near():
    f, settings = known.Probit([1.5, -1.0], 0.4), {"guarantee": "certified", "output_range": (0, 1)}
    stein, clime = (
        sl.explain(f, [0.2, 0.1], method=method, n_samples=4_000, **settings) for method in ("stein", "clime")
    )
    apart = np.linalg.norm(clime.standardised - stein.standardised, axis=1)
    assert apart > 0.01 * stein.radius  # seen by far, if it were left out
    np.testing.assert_allclose(clime.radius, stein.radius + apart, rtol=1e-9)


def test_what_clipping_may_hide_is_added_to_the_radius():
    """Of a constant nothing is left to clip, but of another model in this range it might: docs/theory/bounds.md."""
    from scipy.stats import norm

    e = sl.explain(
        lambda a: np.full(len(a), 0.5), [0.0], method="stein", n_samples=4_000, guarantee="certified",
        output_range=(0, 1),
    )  # fmt: skip
    half, q, main = 0.5, np.sqrt(2 * np.log(4_000)), 4_000 - 64
    hidden = 2 * half * (norm.pdf(q) - q * norm.cdf(-q))
    assert hidden > 1e-6
    np.testing.assert_allclose(e.radius, half * q * np.log(2 / 0.025) / (0.9 * main) + hidden, rtol=1e-9)
