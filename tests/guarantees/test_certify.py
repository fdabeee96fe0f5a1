"""Certificates against functions that attain them, and against a search for anything that breaks them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.guarantees.lipschitz import GRADIENT_CURVE, RANGE_CURVE, RANGE_SLOPE, gradient_distance, range_distance
from smoothlime.guarantees.residual import residual_bound

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(160)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def smoothed_slope(profile, at):
    """E[z f(at + z)] in one dimension, for steps and kinks too: a fine grid of the normal density."""
    z = np.linspace(-9, 9, 400_001)
    return np.trapezoid(z * profile(at + z) * norm.pdf(z), z)


class TestRange:
    def test_the_constants_are_what_they_say(self):
        z = np.linspace(-12, 12, 2_000_001)
        assert pytest.approx(np.trapezoid(np.abs(z**2 - 1) * norm.pdf(z), z) / 2, rel=1e-8) == RANGE_SLOPE
        third = np.trapezoid(np.abs(z**3 - 3 * z) * norm.pdf(z), z) / 2
        assert third <= RANGE_CURVE <= third * (1 + 1e-6)
        assert pytest.approx(np.trapezoid(np.abs(z**2 - 1) * norm.pdf(z), z), rel=1e-8) == GRADIENT_CURVE

    def test_the_slab_attains_the_lipschitz_constant(self):
        """1{|z| > 1} changes its slope by 0.48394 per unit at 0."""
        step = 1e-3
        slope = (norm.pdf(1 - step) - norm.pdf(1 + step)) / step
        assert slope <= RANGE_SLOPE
        assert slope == pytest.approx(RANGE_SLOPE, rel=1e-5)

    @pytest.mark.parametrize("rho", [0.05, 0.5, 1.0, 3.0, 8.0])
    def test_the_distance_bound_is_attained(self, rho):
        """By the sign of the derivative of p_x − p_x': one outside ±t*, zero inside."""
        h = rho / 2
        z = np.linspace(-14, 14, 2_000_001)
        difference = np.gradient(norm.pdf(z - h) - norm.pdf(z + h), z)
        attained = np.trapezoid(np.abs(difference), z) / 2
        assert attained == pytest.approx(float(range_distance(np.array(rho))), rel=1e-5)

    def test_it_is_linear_near_and_flat_far(self):
        rho = np.array([1e-7, 50.0])
        np.testing.assert_allclose(range_distance(rho) / [1e-7, 1.0], [RANGE_SLOPE, 2 / np.sqrt(2 * np.pi)], rtol=1e-6)


class TestGradient:
    def test_the_absolute_value_attains_it_at_every_distance(self):
        for rho in (0.01, 0.3, 2.0):
            moved = known.Absolute([1.0]).slopes([[rho / 2], [-rho / 2]], sl.Neighbourhood(1.0))
            assert moved[0, 0] - moved[1, 0] == pytest.approx(float(gradient_distance(np.array(rho))), rel=1e-12)

    def test_the_papers_constant_is_broken_by_it(self):
        """G/(2σ) = 0.5 for G = σ = 1; the slope of E|x + z|' at 0 is 0.798."""
        certificate = sl.certify(None, [[0.0]], sigma=1.0, gradient_bound=1.0)
        moved = known.Absolute([1.0]).slopes([[0.05], [-0.05]], sl.Neighbourhood(1.0))
        change = moved[0, 0] - moved[1, 0]
        assert certificate.paper_lipschitz * 0.1 < change
        assert change <= certificate.bound(0.1)[0] * (1 + 1e-12) <= certificate.lipschitz[0] * 0.1

    def test_a_smooth_function_breaks_it_too(self):
        """√(x² + 0.01) is smooth, has slopes below 1, and changes faster than 0.5 per unit."""
        values = [smoothed_slope(lambda a: np.sqrt(a**2 + 0.01), at) for at in (0.05, -0.05)]
        assert values[0] - values[1] > 0.5 * 0.1


PROFILES = {
    "probit": lambda k, c: lambda s: norm.cdf(k * s + c),
    "step": lambda k, c: lambda s: (s + c > 0).astype(float),
    "slab": lambda k, c: lambda s: (np.abs(s + c) > 1 / k).astype(float),
    "sine": lambda k, c: lambda s: 0.5 + 0.5 * np.sin(k * s + c),
    "comb": lambda k, c: lambda s: (np.sin(k * s + c) > 0).astype(float),
}


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(PROFILES)),
    st.floats(0.1, 20),
    st.floats(-3, 3),
    st.floats(-4, 4),
    st.floats(1e-3, 6),
    st.floats(0.05, 5),
)
def test_no_function_of_one_feature_moves_more_than_its_range_allows(name, k, c, x, rho, sigma):
    profile = PROFILES[name](k, c)
    slopes = [smoothed_slope(lambda s: profile(sigma * s), at) for at in (x, x + rho)]
    certificate = sl.certify(None, [[sigma * x]], sigma=sigma, output_range=(0, 1))
    slack = 1e-4  # of the grid, at jumps
    assert abs(slopes[1] - slopes[0]) <= certificate.bound(rho)[0] + slack
    assert certificate.bound(rho)[0] <= certificate.lipschitz[0] * rho * (1 + 1e-12)
    raw = sl.certify(None, [[sigma * x]], sigma=sigma, output_range=(0, 1), units="raw")
    np.testing.assert_allclose(raw.bound(rho * sigma) * sigma, certificate.bound(rho), rtol=1e-9)


def random_neighbourhood(rng, d, full):
    root = rng.normal(size=(d, d)) + np.eye(d)
    if full:
        return sl.Neighbourhood(covariance=root @ root.T + 0.05 * np.eye(d))
    return sl.Neighbourhood(rng.uniform(0.2, 3, d))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.01, 4), st.booleans())
def test_no_network_moves_more_than_allowed_in_any_neighbourhood(seed, d, rho, full):
    """Mixtures of probits and of ridge steps, whose slopes are known for any Σ, moved in random directions."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) + np.eye(d)
    neighbourhood = (
        sl.Neighbourhood(covariance=root @ root.T + 0.05 * np.eye(d))
        if full
        else sl.Neighbourhood(rng.uniform(0.2, 3, d))
    )
    weights = rng.dirichlet(np.ones(4))
    signs = rng.choice([-1, 1], 4)
    parts = [
        (known.Probit, known.Step)[int(rng.integers(2))](rng.normal(size=d) * rng.choice([0.3, 3]), rng.normal())
        for _ in range(4)
    ]
    factor = neighbourhood.factor(d)
    direction = rng.normal(size=d)
    step = factor.steps(direction / np.linalg.norm(direction)) * rho
    x = rng.normal(size=d)

    def slopes(at):
        return sum(w * s * part.slopes(at, neighbourhood)[0] for w, s, part in zip(weights, signs, parts, strict=True))

    change = np.linalg.norm((slopes(x + step) - slopes(x)) * factor.std)
    lowest, highest = -weights[signs < 0].sum(), weights[signs > 0].sum()  # the tightest range there is
    certificate = sl.certify(None, x, sigma=neighbourhood, output_range=(lowest, highest))
    assert change <= certificate.bound(rho)[0] + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.01, 4), st.booleans())
def test_no_kinked_network_moves_more_than_its_gradient_bound_allows(seed, d, rho, full):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) + np.eye(d)
    neighbourhood = (
        sl.Neighbourhood(covariance=root @ root.T + 0.05 * np.eye(d))
        if full
        else sl.Neighbourhood(rng.uniform(0.2, 3, d))
    )
    parts = [
        (known.Absolute, known.Relu, known.Sine)[int(rng.integers(3))](rng.normal(size=d), rng.normal())
        for _ in range(3)
    ]
    bound = sum(np.linalg.norm(part.v) for part in parts)  # every profile has slope at most 1
    factor = neighbourhood.factor(d)
    direction = rng.normal(size=d)
    step = factor.steps(direction / np.linalg.norm(direction)) * rho
    x = rng.normal(size=d)
    change = sum(part.slopes(x + step, neighbourhood)[0] - part.slopes(x, neighbourhood)[0] for part in parts)
    certificate = sl.certify(None, x, sigma=neighbourhood, gradient_bound=bound)
    assert np.linalg.norm(change * factor.std) <= certificate.bound(rho)[0] * (1 + 1e-12)


class TestResidual:
    def test_it_holds_and_is_sharp_for_smooth_functions(self):
        """√2·(residual) bounds the curvature; 400 runs, each may fail with 5%."""
        function, neighbourhood = known.Probit([1.0, 0.5], 0.4), sl.Neighbourhood(0.8)
        x = np.array([[0.3, -0.2]])
        variance = function.values(np.random.default_rng(1).normal(x, 0.8, (2_000_000, 2))).var()
        explained = ((function.slopes(x, neighbourhood) * 0.8) ** 2).sum()
        truth = np.sqrt(variance - explained)
        found = np.array(
            [
                residual_bound(z, function.values(x + 0.8 * z)[:, 0], (0.0, 1.0), 450, 0.05)
                for z in np.random.default_rng(2).standard_normal((400, 3_000, 2))
            ]
        )
        assert (found < truth).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
        assert np.median(found) < 2 * truth

    def test_the_local_bound_holds_and_beats_the_global_one_nearby(self):
        function, neighbourhood = known.Probit([1.0, 0.5], 0.4), sl.Neighbourhood(0.8)
        x = np.array([[0.3, -0.2]])
        local = sl.certify(function, x, sigma=neighbourhood, output_range=(0, 1), n_samples=20_000)
        everywhere = sl.certify(function, x, sigma=neighbourhood, output_range=(0, 1))
        assert local.confidence == 0.95
        assert "residual" in local.kind
        for rho in (0.05, 0.2, 1.0, 4.0):
            step = 0.8 * rho * np.array([[0.8, 0.6]])
            change = np.linalg.norm(
                (function.slopes(x + step, neighbourhood) - function.slopes(x, neighbourhood)) * 0.8
            )
            assert change <= local.bound(rho)[0] <= everywhere.bound(rho)[0]
        assert local.bound(0.05)[0] < 0.5 * everywhere.bound(0.05)[0]

    def test_gradients_sharpen_it(self):
        function = known.Probit([1.0, 0.5], 0.4)
        more = {"sigma": 0.8, "output_range": (0, 1), "n_samples": 5_000}
        with_bound = sl.certify(function, [[0.3, -0.2]], gradient_bound=0.45, **more)
        assert (with_bound.bound(0.5) < sl.certify(function, [[0.3, -0.2]], **more).bound(0.5)).all()


class TestResult:
    def test_radius_is_the_inverse_of_bound(self):
        certificate = sl.certify(None, np.zeros((2, 3)), sigma=0.5, output_range=(0, 2))
        for change in (1e-6, 0.1, 1.0):
            np.testing.assert_allclose(certificate.bound(certificate.radius(change)), change, rtol=1e-6)
        assert np.isinf(certificate.radius(5.0)).all()
        assert (certificate.radius(0) < 1e-12).all()

    def test_explanations_bring_their_own_noise(self):
        e = sl.explain(known.Probit([1.0, 0.5]), [[0.3, -0.2]], sigma=0.8)
        certificate = sl.certify(None, e, output_range=(0, 1))
        plain = sl.certify(None, e.x, sigma=0.8, output_range=(0, 1))
        np.testing.assert_allclose(certificate.bound(0.3), plain.bound(0.3) + 2 * e.radius)
        assert certificate.radius(e.radius[0])[0] == 0

    def test_probabilities_know_their_range_and_no_call_is_made(self):
        class Counting:
            calls = 0
            outputs = ("p",)
            output_range = (0.0, 1.0)

            def values(self, points):
                Counting.calls += 1
                return np.zeros((len(points), 1))

        assert sl.certify(Counting(), [[0.0]], sigma=1.0).lipschitz[0] == pytest.approx(RANGE_SLOPE)
        assert Counting.calls == 0

    def test_it_prints_what_is_promised_and_assumed(self):
        text = str(sl.certify(None, [[0.0]], sigma=0.5, output_range=(0, 1), gradient_bound=1.0))
        for words in ("changes by at most", "certified", "outputs between 0 and 1", "no longer than 1", "too small"):
            assert words in text

    def test_the_smaller_certificate_is_taken(self):
        assert sl.certify(None, [[0.0]], sigma=0.1, output_range=(0, 1), gradient_bound=1.0).kind == "gradient"
        assert sl.certify(None, [[0.0]], sigma=10.0, output_range=(0, 1), gradient_bound=1.0).kind == "range"


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"sigma": 1.0}, errors.InvalidArgument, r"certify needs output_range=\(lowest, highest\) or gradient_bound"),
        ({"output_range": (0, 1)}, errors.InvalidArgument, r"sigma is needed"),
        ({"sigma": 1.0, "output_range": (0, 1), "n_samples": 10}, errors.InvalidArgument, r"n_samples=10 is too few"),
        (
            {"sigma": 1.0, "gradient_bound": 1, "n_samples": 100},
            errors.InvalidArgument,
            r"needs the model and output_range",
        ),
        (
            {"sigma": [1.0, 2.0], "output_range": (0, 1), "units": "raw"},
            errors.InvalidArgument,
            r"units='raw' needs the same",
        ),
        (
            {"sigma": 1.0, "output_range": (0, 0.5), "n_samples": 200},
            errors.ModelError,
            r"outside output_range=\(0, 0.5\)",
        ),
        (
            {"sigma": 1e-200, "output_range": (0, 1), "units": "raw"},
            errors.InvalidArgument,
            r"units='raw' needs a sigma between .*; got 1e-200",
        ),
        (
            {"sigma": 1e200, "gradient_bound": 1.0, "units": "raw"},
            errors.InvalidArgument,
            r"units='raw' needs a sigma between .*; got 1e\+200",
        ),
        ({"sigma": 1.0, "output_range": (0, 1), "units": "metres"}, errors.InvalidArgument, r"units must be one of"),
    ],
)
def test_bad_certificates_say_what_is_missing(arguments, kind, message):
    with pytest.raises(kind, match=message):
        sl.certify(known.Probit([3.0, 1.0]), [[0.0, 0.0]], **arguments)


def test_a_full_covariance_counts_distances_as_no_single_feature_does():
    """One deviation of one of two features that move together is seven of the neighbourhood."""
    covariance = np.array([[1.0, 0.99], [0.99, 1.0]])
    certificate = sl.certify(None, [[0.0, 0.0]], sigma=sl.Neighbourhood(covariance=covariance), output_range=(0, 1))
    step = np.array([0.1, 0.0])
    distance = np.sqrt(step @ np.linalg.solve(covariance, step))
    lower = np.linalg.cholesky(covariance)
    across = np.linalg.solve(lower, step) / distance

    def slopes(row):  # of 1{|v·z| > 1} around the middle of the step: the model that moves most
        at = across @ np.linalg.solve(lower, row - step / 2)
        return np.linalg.solve(lower.T, across * (norm.pdf(at - 1) - norm.pdf(at + 1)))

    moved = np.linalg.norm(slopes(step) - slopes(np.zeros(2)))
    assert 0.1 * certificate.lipschitz[0] < moved <= certificate.bound(distance)[0]
    said = str(certificate)
    assert "per unit of Mahalanobis distance that its row moves" in said
    assert "At a tenth of that distance: at most 0.4835." in said
    assert "standard deviation" not in said
    alone = sl.certify(None, [[0.0, 0.0]], sigma=sl.Neighbourhood(covariance=np.eye(2)), output_range=(0, 1))
    assert "per neighbourhood standard deviation that its row moves" in str(alone)


def test_distances_and_changes_are_not_negative():
    certificate = sl.certify(None, [[0.0]], sigma=1.0, output_range=(0, 1))
    with pytest.raises(errors.InvalidArgument, match="distance must be >= 0"):
        certificate.bound(-1)
    with pytest.raises(errors.InvalidArgument, match="change must be >= 0"):
        certificate.radius(-1)
    with pytest.raises(errors.InvalidArgument, match="distance must be one number, or one for each of 1 rows"):
        certificate.bound([0.1, 0.2])
    assert certificate.bound(1e300)[0] == certificate.bound(100.0)[0]


def test_tiny_distances_are_not_rounded_below_the_truth():
    rho = np.array([1e-15, 1e-12, 1e-6, 1e-3])
    np.testing.assert_allclose(range_distance(rho) / rho, RANGE_SLOPE, rtol=1e-6)


class TestExplanations:
    """What is explained only the caller knows; a range of the model's own may not be that of a margin or a contrast."""

    def two(self):
        class Two:
            outputs = ("a", "b")
            output_range = (0.0, 1.0)

            def values(self, points):
                outside = (np.abs(points[:, 0]) > 1).astype(float)
                return np.column_stack([outside, 1 - outside])

        return Two()

    def test_a_range_is_never_guessed_for_them(self):
        e = sl.explain(self.two(), [[0.0], [1.0]], target={"a": 1, "b": -1}, method="clime", n_samples=2_000)
        with pytest.raises(errors.InvalidArgument, match="certify needs output_range"):
            sl.certify(self.two(), e)
        change = abs(e.standardised[1] - e.standardised[0])[0]
        assert change <= sl.certify(self.two(), e, output_range=(-1, 1)).bound(1.0)[0]

    def test_their_own_chance_to_miss_counts_at_both_ends(self):
        e = sl.explain(self.two(), [[0.0]], target="a", method="clime", n_samples=2_000)
        certificate = sl.certify(None, e, output_range=(0, 1))
        assert certificate.confidence == pytest.approx(0.9)
        assert certificate.guarantee == "approximate"
        assert "approximate, from range" in str(certificate)

    def test_jumps_and_fixed_features_are_among_the_assumptions(self):
        assert "no jumps" in sl.certify(None, [[0.0]], sigma=1.0, output_range=(0, 1)).assumes
        held = sl.certify(None, [[0.0, 0.0]], sigma=sl.Neighbourhood(fixed=(1,)), output_range=(0, 1))
        assert "fixed features that stay as they are" in held.assumes

    def test_names_come_from_data_frames(self):
        import pandas as pd

        frame = pd.DataFrame({"u": [0.0], "v": [1.0]})
        assert len(sl.certify(None, frame, sigma=sl.Neighbourhood(fixed="v"), output_range=(0, 1))) == 1


class TestSameQuestion:
    """Residuals are of the model and target given; what they promise of an explanation holds only if it is of them."""

    def boosted(self):
        points = np.random.default_rng(0).normal(size=(300, 1))
        return GradientBoostingClassifier(n_estimators=20, random_state=0).fit(points, (points[:, 0] > 0).astype(int))

    def test_a_margin_is_not_certified_by_probabilities(self):
        model = self.boosted()
        e = sl.explain(model, [[0.0]], output="margin", method="exact")
        with pytest.raises(errors.InvalidArgument, match=r"not what was explained: at row 0 .*sl\.as_model\(model"):
            sl.certify(model, e, output_range=(-25, 25), target="1", n_samples=2_000)
        asked = sl.as_model(model, output="margin")
        certificate = sl.certify(asked, e, output_range=(-25, 25), n_samples=2_000)
        moved = sl.explain(model, [[0.01]], output="margin", method="exact")
        assert np.linalg.norm(moved.standardised - e.standardised) <= certificate.bound(0.01)[0]

    def test_multiples_and_contrasts_are_told_by_what_they_predict(self):
        model = self.boosted()
        question = {"sigma": 1.0, "method": "clime", "n_samples": 512}
        e = sl.explain(model, [[0.3]], target="1", **question)
        contrast = sl.explain(model, [[0.3]], target={"1": 1, "0": -1}, **question)
        for what, limits in ((10 * e, (0, 10)), (contrast, (-1, 1))):
            with pytest.raises(errors.InvalidArgument, match="model and target are not what was explained"):
                sl.certify(model, what, output_range=limits, target="1", n_samples=500)
        for what, limits, target in ((10 * e, (0, 10), {"1": 10}), (contrast, (-1, 1), {"1": 1, "0": -1})):
            assert sl.certify(model, what, output_range=limits, target=target, n_samples=500).residual is not None

    def test_and_by_their_names_where_all_predict_nothing(self):
        def odd(points):
            return np.tanh(points[:, 0])

        e = sl.explain(odd, [[0.0]], method="clime", n_samples=512)
        assert e.prediction[0] == 0
        with pytest.raises(errors.InvalidArgument, match="'output' = 0, and the explanation '10·output' = 0"):
            sl.certify(odd, 10 * e, output_range=(-10, 10), n_samples=500)
        named = sl.as_model(odd, outputs=["score"])
        with pytest.raises(errors.InvalidArgument, match="'score' = 0, and the explanation 'output' = 0"):
            sl.certify(named, e, output_range=(-1, 1), n_samples=500)

    def test_classes_predicted_at_each_row_are_compared_row_by_row(self):
        model = self.boosted()
        e = sl.explain(model, [[-1.0], [1.0]], target="predicted", method="clime", n_samples=512)
        assert len(sl.certify(model, e, output_range=(0, 1), target="predicted", n_samples=500)) == 2
        with pytest.raises(errors.InvalidArgument, match="at row 0 they say '1'"):
            sl.certify(model, e, output_range=(0, 1), target="1", n_samples=500)

    def test_rounding_is_no_other_question(self):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)).eval()
        model = sl.as_model(net, output="probability")
        e = sl.explain(model, np.random.default_rng(0).normal(size=(5, 3)), target=1, n_samples=64)
        assert len(sl.certify(model, e, output_range=(0, 1), target=1, n_samples=500)) == 5


class TestContrasts:
    """A bound on the gradient of any single output is not one on that of a contrast."""

    def test_certificates_of_contrasts_hold(self):
        net = _kinked(1.0, -1.0)
        target = {0: 5, 1: -5}
        bound = sl.gradient_bound(net)
        certificate = sl.certify(net, [[0.0]], sigma=1.0, target=target, gradient_bound=bound)
        truth = 10 * (norm.cdf(0.5) - 0.5)  # of 10·relu, between 0 and 0.5
        assert (
            truth
            <= certificate.bound(0.5)
            <= 10 * sl.certify(net, [[0.0]], sigma=1.0, target=0, gradient_bound=bound).bound(0.5) * (1 + 1e-12)
        )
        found = sl.robustness(net, [[0.0]], sigma=1.0, target=target, gradient_bound=bound, spread=0.5, n_samples=256)
        assert found.population <= found.ceiling

    def test_and_so_do_certified_errors(self):
        net = _kinked(1.0, -1.0)
        e = sl.explain(
            net, [[0.0]], sigma=1.0, target={0: 5, 1: -5}, method="smoothgrad", guarantee="certified", n_samples=4_096,
            gradient_bound=sl.gradient_bound(net),
        )  # fmt: skip
        assert abs(e.values[0, 0] - 5.0) <= e.radius[0]

    def test_small_weights_do_not_shrink_what_was_declared(self):
        whole = sl.certify(None, [[0.0]], sigma=1.0, gradient_bound=1.0)
        part = sl.certify(None, [[0.0]], sigma=1.0, gradient_bound=1.0, target={0: 0.5})
        assert part.lipschitz == whole.lipschitz


def _kinked(*heads):
    """relu(a) times each of the heads."""
    net = torch.nn.Sequential(
        torch.nn.Linear(1, 1, bias=False), torch.nn.ReLU(), torch.nn.Linear(1, len(heads), bias=False)
    )
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[2].weight.copy_(torch.tensor(heads)[:, None])
    return net.double().eval()


def test_an_explanation_that_contradicts_what_is_declared_is_not_certified():
    e = sl.explain(lambda a: 5 * np.tanh(3 * a[:, 0]), [[0.0], [1.0]], sigma=0.5, n_samples=256)
    with pytest.raises(errors.ModelError, match=r"at row 1, outside output_range=\(-1, 1\)"):
        sl.certify(None, e, output_range=(-1, 1))
    with pytest.raises(errors.ModelError, match=r"around row 0, beyond gradient_bound=1: the promise would be void"):
        sl.certify(None, e, gradient_bound=1.0)
    assert len(sl.certify(None, e, output_range=(-5, 5), gradient_bound=15.0)) == 2


class TestPredicted:
    """The class predicted at a row is held fixed: that is said, and it is what the bound is of."""

    def boundary(self):
        points = np.random.default_rng(0).normal(size=(400, 2))
        model = LogisticRegression(C=100).fit(points, (points[:, 0] > 0).astype(int))
        return model, -model.intercept_[0] / model.coef_[0, 0]

    def test_it_is_said_for_rows_and_for_explanations(self):
        model, x = self.boundary()
        words = "the output predicted at a row is explained where the row moves, too"
        assert words in str(sl.certify(model, [[x, 0.0]], sigma=0.5, target="predicted"))
        assert words in sl.certify(None, [[x, 0.0]], sigma=0.5, output_range=(0, 1), target="predicted").assumes
        e = sl.explain(model, [[x, 0.0]], sigma=0.5, target="predicted")
        assert words in sl.certify(model, e, output_range=(0, 1)).assumes
        assert words not in sl.certify(model, [[x, 0.0]], sigma=0.5, target="1").assumes
        e = sl.explain(model, [[x, 0.0]], sigma=0.5, target="1")
        assert words not in sl.certify(model, e, output_range=(0, 1)).assumes

    def test_the_class_of_the_row_moves_no_further_than_that(self):
        model, x = self.boundary()
        bound = sl.certify(model, [[x, 0.0]], sigma=0.5, target="predicted").bound(0.004)
        for name in ("0", "1"):
            e = sl.explain(model, [[x - 1e-3, 0.0], [x + 1e-3, 0.0]], sigma=0.5, target=name)
            assert np.linalg.norm(np.diff(e.standardised, axis=0)) <= bound[0]


@pytest.mark.filterwarnings("ignore::smoothlime.errors.ErrorsAdded")
def test_sums_promise_no_more_than_their_parts():
    f = known.Probit([2.0])
    by = {method: sl.explain(f, [0.2], method=method, n_samples=256) for method in ("lime", "smoothgrad", "clime")}
    for other in ("smoothgrad", "clime"):
        for e in (by["lime"] + by[other], by[other] - by["lime"]):
            with pytest.raises(errors.InvalidArgument, match="does not hold for explanations by lime"):
                sl.certify(None, e, output_range=(-1, 2))
    for e in (by["smoothgrad"] - by["clime"], by["clime"] - by["smoothgrad"]):
        assert "no jumps" in sl.certify(None, e, output_range=(-1, 1)).assumes
    assert "no jumps" not in sl.certify(None, by["clime"], output_range=(0, 1)).assumes


@pytest.mark.parametrize("method", ["lime", sl.Lime(kernel=0.3), sl.Lime(kernel=None, features=1)])
def test_explanations_by_lime_are_not_certified(method):
    """A kernel of width 0.3 moves by 1.11 where the bound would be 0.11."""
    e = sl.explain(lambda a: (np.abs(a[:, 0]) > 0.3) * 1.0, [[-0.1, 0.0]], method=method, n_samples=512)
    with pytest.raises(errors.InvalidArgument, match="does not hold for explanations by lime: a kernel smooths less"):
        sl.certify(None, e, output_range=(0, 1))


def test_a_confidence_next_to_nothing_gives_a_number():
    found = [
        sl.certify(known.Probit([3.0]), [[0.3]], sigma=1.0, output_range=(0, 1), n_samples=500, confidence=confidence)
        for confidence in (1e-300, 1e-6, 0.5)
    ]
    at = np.array([each.bound(0.1)[0] for each in found])
    assert np.isfinite(at).all()
    assert (np.diff(at) >= 0).all()


def test_the_papers_constant_is_called_too_small_only_where_it_is():
    for bound, is_named in ((0.5, True), (2.0, False)):  # from the gradient; and from the range, which promises more
        said = str(sl.certify(None, [[0.0, 0.0]], sigma=1.0, output_range=(0, 1), gradient_bound=bound))
        assert ("The paper's constant, 0.25, is too small" in said) is is_named
        assert ("The paper's constant" in said) is is_named


@pytest.mark.parametrize("model", ["named", "unnamed", None])
@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ({}, errors.InvalidArgument, "target must give some output a weight other than 0"),
        ({"0": 0.0}, errors.InvalidArgument, "target must give some output a weight other than 0"),
        ({"0": np.nan}, errors.InvalidArgument, "weights must be finite numbers"),
        ({"0": np.inf}, errors.InvalidArgument, "weights must be finite numbers"),
        ({"0": True}, errors.InvalidArgument, "weights must be finite numbers"),
        ({"0": "x"}, errors.InvalidArgument, "weights must be finite numbers"),
        (1.5, errors.WrongType, "target must be an output's position or name"),
        (-1, errors.InvalidArgument, "target -1 is out of range"),
        (True, errors.InvalidArgument, "target must be an output's position or name, which True is not"),
        ("zz", errors.InvalidArgument, "target 'zz' is not an output"),
        ({"zz": 1}, errors.InvalidArgument, "target 'zz' is not an output"),
        (7, errors.InvalidArgument, "target 7 is out of range"),
    ],
)
def test_targets_are_checked_though_nothing_is_asked(model, target, kind, message):
    net = _kinked(1.0, -1.0)
    asked = {"named": sl.as_model(net, outputs=["0", "1"]), "unnamed": net, None: None}[model]
    question = {"sigma": 1.0, "target": target, "gradient_bound": 2.0}
    is_possible = (target == 7 and model != "named") or (model is None and "zz" in str(target))
    if is_possible:  # only an evaluation could tell
        assert len(sl.certify(asked, [[0.0]], **question)) == 1
        return
    with pytest.raises(kind, match=message):
        sl.certify(asked, [[0.0]], **question)
    if model is not None:
        with pytest.raises(kind, match=message):
            sl.explain(asked, [[0.0]], guarantee="certified", method="smoothgrad", n_samples=200, **question)


def test_targets_that_can_be_asked_for_are_taken():
    net = _kinked(1.0, -1.0)
    for target in (None, 0, np.int64(1), "1", "predicted", {0: 1, "1": -1}, {"0": 2.0}):
        for model in (net, sl.as_model(net, outputs=["0", "1"]), None):
            assert len(sl.certify(model, [[0.0]], sigma=1.0, target=target, gradient_bound=2.0)) == 1


def test_distances_that_are_no_numbers_are_refused():
    certificate = sl.certify(None, [[0.0]], sigma=1.0, output_range=(0, 1))
    for ask, name in ((certificate.bound, "distance"), (certificate.radius, "change")):
        with pytest.raises(errors.WrongType, match=f"{name} must hold numbers; got text"):
            ask("a")
        with pytest.raises(errors.WrongType, match=f"{name} must be one number, .*; got None"):
            ask(None)
        with pytest.raises(errors.InvalidArgument, match=f"{name} must be >= 0; got nan"):
            ask(float("nan"))


@pytest.mark.parametrize(
    "arguments",
    [{"output_range": (-1e308, 1e308), "sigma": 1.0}, {"gradient_bound": 1e308, "sigma": 1e10}],
)
def test_certificates_too_large_for_a_number_are_refused(arguments):
    with pytest.raises(errors.InvalidArgument, match="the certificate is too large for a number"):
        sl.certify(None, [[0.0]], **arguments)


def test_the_sampling_error_of_what_is_reported_is_said():
    e = sl.explain(known.Probit([1.0, 0.5]), [[0.3, -0.2]], sigma=0.8, method="clime", n_samples=64)
    said = str(sl.certify(None, e, output_range=(0, 1)))
    assert f"that its row moves plus {2 * e.radius[0]:.3g} of sampling error" in said
    assert "sampling error" not in str(sl.certify(None, e.x, sigma=0.8, output_range=(0, 1)))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nope", "the model gives them no names: give a position"),
        (-1, "target -1 is out of range; positions begin at 0"),
    ],
)
def test_a_target_of_outputs_without_names_is_told_without_made_up_ones(target, message):
    """Before the model was asked nobody knows how many outputs it has."""
    two = lambda a: np.tanh(a[:, :2])
    with pytest.raises(sl.errors.InvalidArgument, match=message):
        sl.explain(two, np.zeros(5), guarantee="certified", output_range=(-1, 1), target=target, n_samples=3_000)
