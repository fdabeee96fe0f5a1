"""What is missing at a row is held there and has no slope; all else is as if the row had never had that feature."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

import smoothlime as sl
from smoothlime import errors

C = np.array([0.8, -0.5, 0.3, 0.6])
COVARIANCE = np.array([[1.0, 0.6, 0.2, 0.0], [0.6, 2.0, -0.4, 0.3], [0.2, -0.4, 0.5, 0.1], [0.0, 0.3, 0.1, 1.5]])
SIGMA = 0.5
AROUND = {
    "diagonal": sl.Neighbourhood(SIGMA, scale=np.sqrt(np.diag(COVARIANCE))),
    "full": sl.Neighbourhood(SIGMA, covariance=COVARIANCE),
}
ROWS = np.array(
    [
        [0.3, 0.2, -0.5, 1.0],
        [0.3, np.nan, -0.5, 1.0],
        [-0.4, 0.9, 0.1, 0.2],
        [np.nan, 0.2, -0.5, np.nan],
        [0.3, 0.2, np.nan, 1.0],
        [np.nan, -0.7, 0.4, np.nan],
    ]
)
GAPS = np.isnan(ROWS)
WHOLE = [0, 2]
WAYS = {
    "smoothgrad": [sl.SmoothGrad(), "iid", "antithetic", "orthogonal", "sobol", "aligned"],
    "smoothgrad with values": [sl.SmoothGrad(control="values"), "aligned"],
    "clime": [sl.CLime(), "iid", "antithetic", "orthogonal", "sobol", "aligned"],
    "clime with curves": [sl.CLime(curves=True), "aligned", "aligned-pairs"],
    "clime with ridge": [sl.CLime(ridge=0.2), "iid", "sobol"],
    "stein": [sl.Stein(), "iid", "antithetic", "sobol"],
    "differences": [sl.Differences(), "differences"],
    "lime": [sl.Lime(), "iid", "orthogonal"],
    "lime of two features": [sl.Lime(features=2), "iid"],
    "lime of distances": [sl.Lime(kernel=lambda r: 1 / (1 + r)), "iid"],
    "lasso": [sl.Lime(kernel=None, lasso=0.05), "iid"],
}
CASES = [(way, design) for way, (_, *designs) in WAYS.items() for design in designs]


def probit(a):
    return norm.cdf(np.nan_to_num(a) @ C)


def probit_gradient(a):
    """NaN by what is missing, as where a library multiplies 0 by NaN."""
    slopes = norm.pdf(np.nan_to_num(a) @ C)[:, None] * C
    return np.where(np.isnan(a), np.nan, slopes)[:, None, :]


MODEL = sl.from_functions(values=probit, gradients=probit_gradient)


def covariance(around, kept):
    matrix = COVARIANCE if around == "full" else np.diag(np.diag(COVARIANCE))
    return SIGMA**2 * matrix[np.ix_(kept, kept)]


def truth(row, around):
    """Slopes of the smoothed probit, of what the row has: by hand, from the marginal law."""
    kept = ~np.isnan(row)
    middle, width = row[kept] @ C[kept], np.sqrt(1 + C[kept] @ covariance(around, kept) @ C[kept])
    slopes = np.full(len(row), np.nan)
    slopes[kept] = C[kept] * norm.pdf(middle / width) / width
    return slopes, norm.cdf(middle / width)


def explain(way, design, rows=ROWS, around="full", n=512, model=MODEL, **more):
    sigma = AROUND[around] if isinstance(around, str) else around
    return sl.explain(model, rows, method=WAYS[way][0], design=design, sigma=sigma, n_samples=n, **more)


def same(one, other, *, to_the_bit):
    """To the bit; or to the last digit or so, which depends on how many rows matrix products are made of."""
    for name in ("values", "standard_error", "radius", "fidelity", "smoothed", "prediction", "n_samples"):
        tolerance = {"rtol": 0.0, "atol": 0.0} if to_the_bit else {"rtol": 1e-10, "atol": 1e-13}
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), **tolerance, err_msg=name)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("way", "design"), CASES)
class TestEveryMethod:
    def test_a_gap_is_a_feature_held_fixed_there(self, way, design, around):
        e = explain(way, design, around=around)
        np.testing.assert_array_equal(np.isnan(e.values), GAPS)
        np.testing.assert_array_equal(np.isnan(e.standard_error), GAPS)
        np.testing.assert_array_equal(e.missing, GAPS)
        for row in np.flatnonzero(GAPS.any(axis=1)):
            given = AROUND[around]
            fixed = sl.Neighbourhood(
                given.sigma, scale=given.scale, covariance=given.covariance, fixed=np.flatnonzero(GAPS[row]).tolist()
            )
            alone = explain(way, design, ROWS[[row]], around=fixed)
            same(e[row], alone, to_the_bit=False)
            np.testing.assert_allclose(e[row].interval(0.9), alone.interval(0.9), rtol=1e-9, atol=1e-12)
            together = [each.interval(0.9, simultaneous=True) for each in (e[row], alone)]
            np.testing.assert_allclose(*together, rtol=1e-9, atol=1e-12)

    def test_rows_without_gaps_do_not_notice(self, way, design, around):
        same(
            explain(way, design, around=around)[WHOLE],
            explain(way, design, ROWS[WHOLE], around=around),
            to_the_bit=True,
        )

    def test_its_points_are_drawn_again(self, way, design, around):
        e = explain(way, design, around=around)
        asked = []

        def noting(a):
            asked.append(np.array(a))
            return probit(a)

        model = noting
        if WAYS[way][0].needs == "gradients":
            model = sl.from_functions(values=noting, gradients=probit_gradient)
        explain(way, design, around=around, model=model)
        asked = np.concatenate(asked)
        for row in (0, 3):
            points = e.perturbations(row)
            np.testing.assert_array_equal(np.isnan(points), np.broadcast_to(GAPS[row], points.shape))
            seen = asked[(np.isnan(asked) == GAPS[row]).all(axis=1)]
            first = seen[:, np.flatnonzero(~GAPS[row])[0]]
            nearest = np.abs(first[:, None] - points[None, :40, np.flatnonzero(~GAPS[row])[0]]).min(axis=0)
            assert nearest.max() < 1e-12


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(
    "way", ["smoothgrad", "smoothgrad with values", "clime", "clime with curves", "stein", "differences"]
)
def test_slopes_are_those_of_the_marginal_law(way, around):
    e = explain(way, WAYS[way][-1], around=around, n=16_384)
    for row in range(len(ROWS)):
        slopes, smoothed = truth(ROWS[row], around)
        apart = np.abs(e.values[row] - slopes) / np.maximum(e.standard_error[row], 1e-9)
        assert np.nanmax(apart) < 6, row
        assert np.nanmax(e.standard_error[row]) < 0.01  # it would have seen the slopes of another law
        if way != "differences":
            assert abs(e.smoothed[row] - smoothed) < 0.005


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("way", ["smoothgrad", "clime", "differences"])
def test_lines_are_exact(way, around):
    line = sl.from_functions(
        values=lambda a: np.nan_to_num(a) @ C + 1,
        gradients=lambda a: np.where(np.isnan(a), np.nan, C)[:, None, :],
    )
    e = explain(way, WAYS[way][-1], around=around, model=line)
    np.testing.assert_allclose(e.values, np.where(GAPS, np.nan, np.tile(C, (len(ROWS), 1))), atol=1e-12)
    assert np.nanmax(e.standard_error) < 1e-12


@pytest.mark.parametrize("around", AROUND)
def test_differences_are_exact_for_quadratics(around):
    matrix = np.array([[1.0, 0.3, 0, 0], [0.3, -0.5, 0.2, 0], [0, 0.2, 0.7, 0.1], [0, 0, 0.1, 0.4]])
    e = explain(
        "differences", "differences", around=around, model=lambda a: ((z := np.nan_to_num(a)) @ matrix * z).sum(axis=1)
    )
    slopes = np.where(GAPS, np.nan, 2 * np.nan_to_num(ROWS) @ matrix)
    np.testing.assert_allclose(e.values, slopes, atol=1e-12)


@pytest.mark.parametrize(("way", "design"), [("clime", "iid"), ("stein", "sobol"), ("differences", "differences")])
@pytest.mark.parametrize("around", AROUND)
def test_a_row_without_its_column_says_the_same(way, design, around):
    """The column dropped from rows, covariance and function, which never saw it."""
    e = explain(way, design, around=around)
    for row in (1, 3, 4):
        kept = np.flatnonzero(~GAPS[row])
        without = sl.Neighbourhood(1.0, covariance=covariance(around, kept))
        alone = explain(way, design, ROWS[[row]][:, kept], around=without, model=lambda a, c=C[kept]: norm.cdf(a @ c))
        np.testing.assert_allclose(e.values[[row]][:, kept], alone.values, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(e.radius[row], alone.radius[0], rtol=1e-10)


@pytest.mark.parametrize(
    ("way", "design", "around"),
    [
        ("clime", "iid", "full"),
        ("clime with curves", "aligned", "full"),
        ("stein", "iid", "full"),
        ("smoothgrad", "antithetic", "diagonal"),
        ("differences", "differences", "full"),
    ],
)
def test_intervals_hold_as_often_as_they_say(way, design, around):
    """2,000 rows of one call, three of four with gaps, with draws of their own; of nets they may hold more often."""
    rows = np.tile(ROWS[[0, 1, 3, 4]], (500, 1))
    e = explain(way, design, rows, around=around, n=1_024, draws="independent")
    lower, upper = e.interval(0.95)
    for i, row in enumerate(ROWS[[0, 1, 3, 4]]):
        slopes, _ = truth(row, around)
        holds = (lower[i::4] <= slopes) & (slopes <= upper[i::4])
        share = holds[:, ~np.isnan(slopes)].mean()
        assert 0.925 <= share <= (1.0 if design == "aligned" else 0.975), (i, share)


class TestModels:
    def test_a_network_that_takes_gaps(self):
        """Its gradient by what is missing is not a number; sums of gradients are kept where the network is."""

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 1, dtype=torch.float64)

            def forward(self, x):
                return torch.tanh(self.inner(torch.where(torch.isnan(x), 0.0, torch.sin(x))))

        torch.manual_seed(0)
        net = Net().eval()
        e = sl.explain(net, ROWS, sigma=SIGMA)
        assert e.method == "smoothgrad"
        np.testing.assert_array_equal(np.isnan(e.values), GAPS)
        whole = sl.explain(net, ROWS[WHOLE], sigma=SIGMA)
        np.testing.assert_array_equal(e.values[WHOLE], whole.values)
        by_values = sl.explain(net, ROWS, sigma=SIGMA, method="clime", n_samples=4_096)
        apart = np.abs(e.values - by_values.values) / np.hypot(e.standard_error, by_values.standard_error)
        assert np.nanmax(apart) < 6
        assert sl.agreement(net, ROWS, sigma=SIGMA, n_samples=8_000).agrees == (True,) * len(ROWS)

    def test_a_model_that_takes_none_says_which_row_has_them(self):
        hint = r"Row 1 has gaps in 'x1', and 3 other rows have some\. If the model takes no missing values, impute them"
        with pytest.raises(errors.ModelError, match=rf"returned \[nan\] at row 1; .* {hint}"):
            sl.explain(lambda a: a @ C, ROWS)

        def refusing(a):
            if np.isnan(a).any():
                raise ValueError("no gaps, please")
            return a @ C

        with pytest.raises(errors.ModelError, match=rf"ValueError on 6 points: no gaps, please\. {hint}"):
            sl.explain(refusing, ROWS)

    def test_what_is_wrong_with_rows_without_gaps_is_not_blamed_on_gaps(self):
        with pytest.raises(errors.ModelError) as caught:
            sl.explain(lambda a: 1 / np.where(a[:, 0] > 0, 0.0, 1.0), ROWS)
        assert "gaps" not in str(caught.value)

    def test_steps_that_are_too_small_are_found_beside_gaps(self):
        with pytest.raises(errors.InvalidArgument, match="steps get lost"):
            sl.explain(MODEL, [[1e20, np.nan, 0.0, 0.0], [np.nan, 0.0, 0.0, 0.0]], n_samples=64)


def test_rows_of_gaps_alone_are_refused_by_every_front_door():
    rows = [[1.0, 2.0, 3.0, 4.0], [np.nan] * 4]
    for ask in (sl.explain, sl.explain_outputs, sl.agreement, sl.robustness):
        with pytest.raises(errors.InvalidArgument, match="row 1 of X has no value in any of the 4 features"):
            ask(MODEL, rows, sigma=1.0)
    with pytest.raises(errors.InvalidArgument, match="row 0 of X has no value in any of the 4 features"):
        sl.sigma_path(MODEL, [np.nan] * 4, [0.1, 1.0])


def test_features_that_are_fixed_may_be_all_that_a_row_misses():
    around = sl.Neighbourhood(0.5, fixed=[1])
    e = sl.explain(MODEL, ROWS[[1]], sigma=around, n_samples=64)
    assert not e.missing.any()
    assert e.held.tolist() == [[False, True, False, False]]


def test_every_output_and_targets_by_row():
    model = sl.as_model(lambda a: np.column_stack([probit(a), 1 - probit(a)]), outputs=["up", "down"])
    each = sl.explain_outputs(model, ROWS, sigma=SIGMA)
    np.testing.assert_allclose((each["up"] + each["down"]).values, np.where(GAPS, np.nan, 0.0), atol=1e-9)
    e = sl.explain(model, ROWS, sigma=SIGMA, target=["up", "down"] * 3, n_samples=256, design="sobol", method="clime")
    for i, name in enumerate(("up", "down")):
        alone = sl.explain(model, ROWS, sigma=SIGMA, target=name, n_samples=256, design="sobol", method="clime")
        np.testing.assert_allclose(e.values[i::2], alone.values[i::2], rtol=1e-12)


def test_a_path_of_sigmas():
    path = sl.sigma_path(MODEL, ROWS[3], [0.25, 0.5, 1.0], n_samples=4_096)
    for e in path:
        alone = sl.explain(
            MODEL,
            ROWS[3],
            sigma=float(e.neighbourhood.sigma),
            method=e.provenance.method,
            n_samples=4_096,
            design=e.design,
        )
        np.testing.assert_array_equal(e.values, alone.values)
    assert "(missing: x0, x3)" in str(path)
    with pytest.raises(errors.InvalidArgument, match="'x0', which is missing at this row and has no slope"):
        path.plot(["x0"])


def test_neighbours_have_the_same_gaps():
    found = sl.robustness(
        MODEL, ROWS, sigma=SIGMA, method="clime", n_samples=512, norm=2, output_range=(0, 1), gradient_bound=2.0
    )
    assert np.isfinite(found.per_row).all()
    assert (found.per_row <= found.ceiling).all()
    quiet = sl.robustness(lambda a: np.nan_to_num(a) @ C, ROWS, sigma=SIGMA, method="clime", n_samples=256)
    assert quiet.per_row.max() < 1e-9


class TestPromises:
    @pytest.mark.parametrize("around", AROUND)
    @pytest.mark.parametrize(
        ("method", "more"),
        [
            ("clime", {"output_range": (0, 1)}),
            ("stein", {"output_range": (0, 1)}),
            ("smoothgrad", {"gradient_bound": 0.5}),
        ],
    )
    def test_certified_errors_hold(self, method, more, around):
        e = sl.explain(
            MODEL, ROWS, sigma=AROUND[around], method=method, guarantee="certified", n_samples=16_384, **more
        )
        std = np.sqrt(np.diag(covariance("diagonal", np.arange(4))))
        for row in range(len(ROWS)):
            off = np.linalg.norm(np.nan_to_num((e.values[row] - truth(ROWS[row], around)[0]) * std))
            assert off <= e.radius[row] < 0.5

    @pytest.mark.parametrize("around", AROUND)
    def test_certificates_hold_where_rows_move(self, around):
        e = sl.explain(MODEL, ROWS, sigma=AROUND[around], method="clime", n_samples=4_096)
        for X, more in ((ROWS, {"sigma": AROUND[around]}), (e, {})):
            promise = sl.certify(MODEL, X, output_range=(0, 1), n_samples=2_000, **more)
            assert "gaps that stay gaps" in promise.assumes
            assert np.isfinite(promise.lipschitz).all()
            assert np.isfinite(promise.residual).all()
            step = np.array([0.1, -0.2, 0.1, 0.15])
            std = np.sqrt(np.diag(covariance("diagonal", np.arange(4))))
            for row in range(len(ROWS)):
                kept = ~GAPS[row]
                distance = np.sqrt(step[kept] @ np.linalg.solve(covariance(around, kept), step[kept]))
                moved = truth(ROWS[row] + step, around)[0] - truth(ROWS[row], around)[0]
                assert np.linalg.norm(np.nan_to_num(moved * std)) <= promise.bound(distance)[row]

    def test_without_a_model(self):
        assert sl.certify(None, ROWS, sigma=0.5, output_range=(0, 1)).lipschitz.shape == (len(ROWS),)


@pytest.mark.parametrize(
    "more", [{"n_samples": 100}, {}, {"design": "orthogonal", "method": "clime", "n_samples": 100}]
)
def test_progress_goes_on_from_rows_to_rows_with_other_gaps(more):
    told = []
    sl.explain(probit, ROWS, sigma=SIGMA, progress=lambda done, total: told.append((done, total)), **more)
    assert all(done <= total for done, total in told)
    assert told[-1][0] == told[-1][1] or not more  # without a number of draws it is a forecast
    before_last = told[len(told) // 2]
    assert before_last[0] < before_last[1]
