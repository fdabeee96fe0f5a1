"""T of logarithms and of ranks: what it gives back, where it stays, and its means against quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from smoothlime.errors import InvalidArgument
from smoothlime.space.scales import KNOTS, LogScale, log_scale, rank_scale

RNG = np.random.default_rng(3)
COLUMNS = {
    "normal": RNG.normal(size=5_000),
    "heavy tails": RNG.lognormal(0, 2, size=20_000),
    "few rows": RNG.normal(size=100),
    "counts": RNG.poisson(3, size=4_000).astype(float),
    "mostly 0": np.where(RNG.random(6_000) < 0.78, 0.0, RNG.exponential(5.0, size=6_000)),
    "heavy neighbours": np.concatenate([np.zeros(700), np.ones(200), 1.5 + RNG.exponential(size=300)]),
    "all but constant": np.append(np.full(9_999, 7.0), 8.0),
    "two values": np.repeat([-1.0, 2.5], [30, 70]),
    "all different": np.arange(10.0**6) / 7,
}


@pytest.fixture(params=COLUMNS)
def column(request):
    return COLUMNS[request.param]


class TestRanks:
    def test_known_values_come_back_to_the_bit(self, column):
        scale = rank_scale(column)
        assert (scale.values(scale.scores(scale.known)) == scale.known).all()

    def test_values_come_back_as_far_as_scores_can_tell_them_apart(self, column):
        """To 4 ulp, or to what the next score is away where T is so steep that no score is closer."""
        scale = rank_scale(column)
        seen = RNG.choice(column, 2_000)
        between = RNG.uniform(column.min(), column.max(), 2_000)
        for values in (seen, between[scale.reached(between)]):
            scores = scale.scores(values)
            off = np.abs(scale.values(scores) - values)
            next_one = np.abs(scale.values(np.nextafter(scores, np.inf)) - scale.values(scores))
            assert (off <= np.maximum(4 * np.spacing(np.abs(values)), next_one)).all()

    def test_most_seen_values_come_back_to_4_ulp(self):
        scale = rank_scale(COLUMNS["normal"])
        values = RNG.choice(COLUMNS["normal"], 2_000)
        assert (np.abs(scale.values(scale.scores(values)) - values) <= 4 * np.spacing(np.abs(values))).mean() > 0.99

    def test_scores_are_the_middle_of_the_probability(self, column):
        scale = rank_scale(column)
        for value, score in list(zip(scale.known, scale.middle, strict=True))[:: max(1, len(scale.known) // 50)]:
            p = (column < value).mean() + (column == value).mean() / 2
            assert ndtr(score) == pytest.approx(p, rel=1e-12)

    @pytest.mark.parametrize("n", [100, 442, 1_000, 1_100])
    def test_a_value_of_one_row_is_a_point_however_few_rows_there_are(self, n):
        """One row in 442 is more than 1 in 1,024, but shares its value with none: T goes on in lines."""
        column = np.random.default_rng(n).normal(size=n)
        scale = rank_scale(column)
        assert scale.is_continuous
        assert not rank_scale(np.append(column, np.repeat(np.sort(column)[40:42], 20))).is_continuous
        if n < KNOTS:
            assert len(scale.known) == n

    def test_draws_never_leave_what_was_seen(self, column):
        scale = rank_scale(column)
        found = scale.values(np.linspace(-40, 40, 10_001))
        assert found.min() == column.min()
        assert found.max() == column.max()
        assert (np.diff(found) >= 0).all()

    def test_draws_have_the_law_of_the_data(self, column):
        """Quantiles at evenly spread probabilities: nowhere is the share of draws off by more than two knots' share."""
        draws = np.sort(rank_scale(column).values(ndtri((np.arange(100_000) + 0.5) / 100_000)))
        ordered = np.sort(column)
        for side in ("left", "right"):
            at = np.unique(ordered)[:: max(1, len(ordered) // 3_000)]
            shares = [np.searchsorted(each, at, side=side) / len(each) for each in (draws, ordered)]
            assert np.abs(shares[0] - shares[1]).max() <= max(2 / KNOTS, 1 / len(column))

    def test_many_scores_at_once_have_the_values_of_each(self, column):
        scale = rank_scale(column)
        ends = np.concatenate([scale.lower, scale.upper])
        ends = ends[np.isfinite(ends)]
        near = np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
        scores = np.concatenate([RNG.normal(0, 2, 20_000), near, [np.nan, -50.0, 50.0]])
        one_by_one = np.concatenate([scale.values(scores[i : i + 500]) for i in range(0, len(scores), 500)])
        np.testing.assert_array_equal(scale.values(scores), one_by_one)
        slopes = np.concatenate([scale.slopes(scores[i : i + 500]) for i in range(0, len(scores), 500)])
        np.testing.assert_array_equal(scale.slopes(scores), slopes)

    def test_steps_take_only_values_that_occur(self):
        for name in ("counts", "all but constant", "two values"):
            scale = rank_scale(COLUMNS[name])
            assert scale.is_step
            assert not scale.is_continuous
            assert np.isin(scale.values(RNG.normal(0, 3, 10_000)), COLUMNS[name]).all()

    def test_two_heavy_neighbours_leave_a_jump_between_them(self):
        """Nothing was ever seen between 0 and 1: no draw lies there, and gradients would not see the jump."""
        scale = rank_scale(COLUMNS["heavy neighbours"])
        found = scale.values(RNG.normal(0, 3, 100_000))
        assert not ((found > 0) & (found < 1)).any()
        assert (found == 0).mean() == pytest.approx(ndtr(ndtri(700 / 1200) / 3), abs=0.01)
        assert not scale.is_continuous
        assert rank_scale(COLUMNS["mostly 0"]).is_continuous
        assert scale.reached(np.array([0.0, 0.5, 1.0, 1.2])).tolist() == [True, False, True, True]

    def test_a_column_with_many_zeros_is_what_the_page_says(self):
        column = np.concatenate([np.zeros(7_800), RNG.exponential(5.0, size=2_200)])
        scale = rank_scale(column)
        assert scale.scores(np.zeros(1))[0] == pytest.approx(-0.28, abs=0.005)
        assert scale.upper[0] == pytest.approx(0.77, abs=0.005)
        for sigma, share in ((0.5, 0.018), (1.0, 0.15)):
            off = (scale.values(ndtri(0.39) + sigma * RNG.standard_normal(10**6)) > 0).mean()
            assert off == pytest.approx(ndtr((ndtri(0.39) - ndtri(0.78)) / sigma), abs=0.002)
            assert off == pytest.approx(share, rel=0.03)

    def test_a_split_lies_where_values_pass_it(self, column):
        """u <= above(c) exactly where T(u) <= c, but for the last digits of u."""
        scale = rank_scale(column)
        scores = RNG.normal(0, 2, 5_000)
        cuts = np.concatenate([RNG.choice(column, 50), RNG.uniform(column.min() - 1, column.max() + 1, 50)])
        for cut, above in zip(cuts, scale.above(cuts), strict=True):
            tells_apart = np.abs(scores - above) > 1e-12
            assert ((scores <= above) == (scale.values(scores) <= cut))[tells_apart].all()

    def test_its_means_are_those_of_quadrature(self, column):
        scale, sigma = rank_scale(column), 0.6
        breaks = np.unique(np.concatenate([scale.lower, scale.upper]))
        for u in (-1.0, 0.3, 2.0):
            evenly = np.linspace(u - 9 * sigma, u + 9 * sigma, 100)
            ends = np.union1d(breaks[(breaks > evenly[0]) & (breaks < evenly[-1])], evenly)
            nodes, weights = np.polynomial.legendre.leggauss(12)
            half = np.diff(ends)[:, None] / 2
            points = (ends[:-1, None] + ends[1:, None]) / 2 + half * nodes
            mass = half * weights * np.exp(-(((points - u) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
            t = scale.values(points)
            mean = (mass * t).sum()
            slope = (mass * t * (points - u)).sum() / sigma**2
            variance = (mass * (t - mean) ** 2).sum()
            found = scale.moments(np.array([u]), sigma)
            size = np.ptp(column)
            for one, other in ((found.mean, mean), (found.slope, slope), (found.variance, variance)):
                assert one[0] == pytest.approx(other, rel=1e-8, abs=1e-9 * size)

    def test_slopes_are_those_of_the_curve(self):
        scale = rank_scale(COLUMNS["normal"])
        u = RNG.normal(size=500)
        differences = (scale.values(u + 1e-9) - scale.values(u - 1e-9)) / 2e-9
        away = np.abs(u[:, None] - scale.middle).min(axis=1) > 2e-9
        np.testing.assert_allclose(scale.slopes(u)[away], differences[away], rtol=1e-4, atol=1e-5)

    def test_a_row_beyond_the_data_adds_its_own_value(self, column):
        n, scale = len(column), rank_scale(column)
        for value, p in ((column.max() + 3, (n + 0.5) / (n + 1)), (column.min() - 3, 0.5 / (n + 1))):
            held = scale.holding(value)
            score = held.scores(np.array([value]))
            assert ndtr(score[0]) == pytest.approx(p, rel=1e-12)
            assert held.values(score)[0] == value
            ends = held.values(np.array([-40.0, 40.0]))
            assert ends.tolist() == [min(value, column.min()), max(value, column.max())]
            of_all = rank_scale(np.append(column, value))
            at = RNG.normal(size=200)
            near = np.abs(held.values(at) - of_all.values(at)) / np.ptp(column)
            assert np.median(near) <= 2 / KNOTS
        assert scale.holding(float(column[0])) is scale

    def test_an_unseen_value_of_steps_lies_between_its_neighbours(self):
        scale = rank_scale(COLUMNS["counts"])
        score = scale.scores(np.array([3.5]))[0]
        assert scale.values(np.array([score - 1e-9, score + 1e-9])).tolist() == [3.0, 4.0]
        assert not scale.reached(np.array([3.5]))[0]

    def test_missing_values_stay_missing(self, column):
        scale = rank_scale(np.append(column, np.nan))
        gap = np.array([np.nan])
        assert np.isnan(scale.scores(gap))[0]
        assert np.isnan(scale.values(gap))[0]
        assert scale.reached(gap)[0]
        assert scale.count == len(column)

    def test_codes_beyond_what_floats_hold_are_refused(self):
        with pytest.raises(
            InvalidArgument, match=r"'id' goes up to 9007199254741190.*beyond 2\*\*53.*list it in fixed"
        ):
            rank_scale(2.0**53 + 2 * np.arange(100), "id")

    def test_at_most_so_many_knots(self):
        for name, column in COLUMNS.items():
            assert len(rank_scale(column).known) <= KNOTS, name


class TestLogarithms:
    def test_with_zeros_it_is_shifted_by_half_the_smallest_positive_value(self):
        assert log_scale(np.array([0.0, 3.0, 0.5])).shift == 0.25
        assert log_scale(np.array([2.0, 3.0, 0.5])).shift == 0.0

    def test_values_come_back(self):
        values = RNG.lognormal(0, 3, 1_000)
        for scale in (LogScale(), LogScale(0.25)):
            np.testing.assert_allclose(scale.values(scale.scores(values)), values, rtol=1e-14, atol=2e-16)

    def test_its_means_are_those_of_quadrature(self):
        scale, sigma, u = LogScale(0.5), 0.7, 0.4
        density = lambda t: np.exp(-(((t - u) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
        mean = quad(lambda t: scale.values(t) * density(t), u - 12 * sigma, u + 12 * sigma, epsabs=1e-12)[0]
        slope = quad(lambda t: np.exp(t) * density(t), u - 12 * sigma, u + 12 * sigma, epsabs=1e-12)[0]
        square = quad(lambda t: (scale.values(t) - mean) ** 2 * density(t), u - 12 * sigma, u + 12 * sigma)[0]
        found = scale.moments(np.array([u]), sigma)
        assert (found.mean[0], found.slope[0]) == pytest.approx((mean, slope), rel=1e-9)
        assert found.variance[0] == pytest.approx(square, rel=1e-8)

    def test_a_split_lies_where_values_pass_it(self):
        scale = LogScale(0.5)
        assert scale.above(np.array([-1.0, -0.5, 0.5])).tolist() == [-np.inf, -np.inf, 0.0]

    def test_negative_numbers_are_refused(self):
        with pytest.raises(InvalidArgument, match="scale='log' is for numbers >= 0, and column 'debt' goes down to -2"):
            log_scale(np.array([1.0, -2.0]), "debt")
        with pytest.raises(InvalidArgument, match="needs a positive value, and column 'debt' has none"):
            log_scale(np.zeros(3), "debt")
