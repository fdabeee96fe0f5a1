"""What errors come to over all features, here and where a model is."""

import dataclasses

import numpy as np
import pytest
import torch

from smoothlime.device.torch_groups import TorchGroupSums
from smoothlime.space.neighbourhood import Factor
from smoothlime.uncertainty import norms as lengths
from smoothlime.uncertainty.groups import Groups
from smoothlime.uncertainty.jackknife import clear_skewness, f_quantile, skewness, standard_error, t_quantile, widening

R, G, F = 5, 16, 3
RNG = np.random.default_rng(4)
SIZES = np.full(G, 8.0)
PSEUDO = RNG.exponential(size=(R, G, F)) * [1.0, 0.1, 30.0] + 2.0  # skewed
VALUES = PSEUDO.mean(axis=1)
DIAGONAL = Factor(F, np.arange(F), np.array([0.5, 2.0, 0.1]))
FULL = Factor(F, np.arange(F), np.linalg.cholesky(np.cov(RNG.normal(size=(F, 50)))))


def groups(said=PSEUDO, resolution=0.0, sizes=SIZES):
    return Groups(said, np.broadcast_to(sizes, (R, G)), np.broadcast_to(resolution, (R, F)), None)


@pytest.mark.parametrize("factor", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("resolution", [0.0, 3.0])
def test_a_radius_of_few_draws_is_the_length_of_the_half_widths(factor, resolution):
    found = groups(resolution=resolution, sizes=SIZES - 1)
    widths = found.half_width(VALUES, factor, 0.05)
    measured = found.measure(VALUES, np.ones(R), factor, 0.05)
    np.testing.assert_allclose(measured.radius, np.linalg.norm(widths * factor.std, axis=1), rtol=1e-12)
    np.testing.assert_allclose(measured.size, np.linalg.norm(VALUES * factor.std, axis=1), rtol=1e-12)


def test_quantiles_of_f_are_those_of_scipy():
    from scipy import stats

    directions, freedom = np.array([1.0, 1.0, 3.7, 900.0]), np.array([1.0, 15.0, 7.0, 31.0])
    for probability in (0.95, 0.999):
        expected = stats.f.ppf(probability, directions, directions * freedom)
        np.testing.assert_allclose(f_quantile(directions, freedom, probability), expected, rtol=1e-9)
    np.testing.assert_allclose(f_quantile(np.ones(1), np.full(1, 15.0), 0.9), t_quantile(15.0, 0.95) ** 2)


@pytest.mark.parametrize("factor", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("resolution", [0.0, 3.0])
def test_a_radius_of_errors_along_one_direction_is_that_of_half_widths(factor, resolution):
    """Also where all of an error is what a net resolves: how that is spread over features is not known."""
    said = PSEUDO[:, :, :1] * [1.0, -2.0, 0.5]
    found = groups(said, resolution * (1e6 if resolution else 1))
    widths = found.half_width(said.mean(axis=1), factor, 0.05)
    measured = found.measure(said.mean(axis=1), np.ones(R), factor, 0.05)
    np.testing.assert_allclose(measured.radius, np.linalg.norm(widths * factor.std, axis=1), rtol=1e-5)


@pytest.mark.parametrize(("g", "f"), [(8, 2), (8, 20), (16, 5), (32, 1), (32, 60)])
@pytest.mark.parametrize("uneven", [0.0, 1.0])
def test_a_radius_holds_as_often_as_it_says(g, f, uneven):
    """Normal errors, about 0: 4,000 rows of them, of features that may scatter very differently."""
    scale = np.exp(-uneven * np.arange(f))
    said = np.random.default_rng(g + f).normal(size=(4_000, g, f)) * scale
    rows, factor = len(said), Factor(f, np.arange(f), np.ones(f))
    found = Groups(said, np.broadcast_to(np.full(g, 64.0), (rows, g)), np.broadcast_to(0.0, (rows, f)), None)
    centre = said.mean(axis=1)
    radius = found.measure(centre, np.ones(rows), factor, 0.05).radius
    widths = np.linalg.norm(found.half_width(centre, factor, 0.05), axis=1)
    missed = (np.linalg.norm(centre, axis=1) > radius).mean()
    assert missed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rows)
    assert (radius <= widths * (1 + 1e-12)).all()
    if f >= 20 and not uneven:
        assert np.median(radius / widths) < 0.75  # half-widths that each hold are far too much together


@pytest.mark.parametrize("factor", [DIAGONAL, FULL], ids=["diagonal", "full"])
def test_intervals_are_widened_along_the_slope_and_feature_by_feature(monkeypatch, factor):
    both = groups().half_width(VALUES, factor, 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(lengths, "clear_skewness", lambda numbers, sizes: np.zeros((R, F)))
        along = groups().half_width(VALUES, factor, 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(lengths, "skewness", lambda said, sizes: np.zeros((R, 2)))
        by_feature = groups().half_width(VALUES, factor, 0.05)
    np.testing.assert_array_equal(both, np.maximum(along, by_feature))
    assert (along > by_feature).any()
    assert (along < by_feature).any()


def test_the_interval_of_one_feature_is_as_wide_as_its_groups_are_skewed():
    one, factor = PSEUDO[:, :, :1], Factor(1, np.arange(1), np.array([0.5]))
    sizes = np.broadcast_to(SIZES, (R, G))
    found = Groups(one, sizes, np.broadcast_to(0.0, (R, 1)), None)
    quantile = t_quantile(G - 1.0, 0.975)
    inflation = 1 + widening(quantile) * skewness(one, sizes)[:, 0] ** 2
    assert inflation.min() > 1.001
    expected = quantile * inflation * standard_error(one, sizes)[:, 0]
    np.testing.assert_allclose(found.half_width(one.mean(axis=1), factor, 0.05)[:, 0], expected, rtol=1e-12)


def test_what_pulls_at_one_feature_shows_whatever_the_slope_of_another():
    """A slope without any error has no say in how far the others may be off."""
    calm = np.full((R, G, 1), 1e9)
    skewed = RNG.exponential(size=(R, G, 1)) ** 4
    sizes, none = np.broadcast_to(SIZES, (R, G)), np.broadcast_to(0.0, (R, 2))
    both, alone = np.concatenate([skewed, calm], axis=2), Factor(1, np.arange(1), np.ones(1))
    found = Groups(both, sizes, none, None).half_width(both.mean(axis=1), Factor(2, np.arange(2), np.ones(2)), 0.05)
    expected = Groups(skewed, sizes, none[:, :1], None).half_width(skewed.mean(axis=1), alone, 0.05)
    np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=1e-9)
    assert (expected[:, 0] > 1.3 * t_quantile(G - 1.0, 0.975) * standard_error(skewed, sizes)[:, 0]).all()


def test_slopes_that_pull_together_show_beside_one_that_is_far_steeper(monkeypatch):
    monkeypatch.setattr(lengths, "clear_skewness", lambda numbers, sizes: np.zeros((R, numbers.shape[2])))
    pull = np.random.default_rng(1).exponential(size=(R, G, 1)) ** 2
    moderate, steep = np.repeat(pull, 2, axis=2), 1e6 + np.random.default_rng(2).normal(size=(R, G, 1))
    sizes = np.broadcast_to(SIZES, (R, G))

    def widths(said):
        f = said.shape[2]
        found = Groups(said, sizes, np.broadcast_to(0.0, (R, f)), None)
        return found.half_width(said.mean(axis=1), Factor(f, np.arange(f), np.ones(f)), 0.05)

    beside, alone = widths(np.concatenate([moderate, 1e-3 * steep], axis=2))[:, :2], widths(moderate)
    np.testing.assert_allclose(beside, alone, rtol=1e-4)
    assert (alone > 1.05 * t_quantile(G - 1.0, 0.975) * standard_error(moderate, sizes)).all()


def test_skewness_that_may_be_chance_does_not_count_for_single_features():
    calm = np.random.default_rng(0).normal(size=(400, G, 5))
    sizes = np.broadcast_to(SIZES, (400, G))
    found = clear_skewness(calm, sizes)
    assert 0.01 < (found > 0).mean() < 0.05  # of normal numbers, at two standard errors
    np.testing.assert_allclose(found[found > 0], (skewness(calm, sizes) ** 2)[found > 0])
    half = np.where(np.arange(G) < 8, SIZES, 0.0)
    np.testing.assert_allclose(
        skewness(calm * (half > 0)[:, None], np.broadcast_to(half, (400, G))), skewness(calm[:, :8], SIZES[:8])
    )


def test_skewness_is_the_same_in_blocks_of_rows(monkeypatch):
    sizes = np.where(np.arange(G) < 8 + np.arange(R)[:, None], 8.0, 0.0)  # each row has stopped elsewhere
    expected = skewness(PSEUDO, sizes)
    monkeypatch.setattr("smoothlime.uncertainty.jackknife.BLOCK", 2 * G * F)
    np.testing.assert_array_equal(skewness(PSEUDO, sizes), expected)
    assert len(np.unique(expected.round(9))) == R * F


def test_a_diagonal_is_a_full_matrix_like_any_other():
    full = Factor(F, np.arange(F), np.diag(DIAGONAL.lower))
    for measured in (lambda factor: groups().measure(VALUES, np.ones(R), factor, 0.05).radius,
                     lambda factor: groups().half_width(VALUES, factor, 0.05)):  # fmt: skip
        np.testing.assert_allclose(measured(DIAGONAL), measured(full), rtol=1e-12)


def test_an_error_is_raised_to_what_the_design_can_resolve():
    plain = groups().standard_error
    floor = 2 * plain
    np.testing.assert_allclose(groups(resolution=floor).standard_error, floor, rtol=1e-12)
    np.testing.assert_allclose(groups(resolution=plain / 2).standard_error, plain, rtol=1e-12)


def test_multiples_and_differences_are_resolved_no_better_than_what_they_are_made_of():
    agreeing = groups(np.ones((R, G, F)), resolution=0.3)  # groups that agree exactly
    for scale in (2.0, -2.0):
        np.testing.assert_allclose(agreeing.times(scale).standard_error, 2 * 0.3, rtol=1e-12)
    difference = agreeing.plus(agreeing.times(-1.0))
    np.testing.assert_allclose(difference.standard_error, 0.3 + 0.3, rtol=1e-12)


def test_a_sum_has_as_few_degrees_of_freedom_as_what_it_is_made_of():
    few, many = dataclasses.replace(groups(), freedom=np.full(R, 3.0)), groups()
    for total in (few.plus(many), many.plus(few)):
        np.testing.assert_array_equal(total.degrees_of_freedom, 3.0)
    np.testing.assert_array_equal(many.plus(many).degrees_of_freedom, G - 1)


@pytest.mark.parametrize("factor", [DIAGONAL, FULL], ids=["diagonal", "full"])
def test_fidelity_is_the_share_of_variance_that_slopes_explain_beyond_noise(factor):
    noise = standard_error(factor.whiten(PSEUDO), SIZES)
    explained = (factor.whiten(VALUES) ** 2).sum(axis=1) - (noise**2).sum(axis=1)
    variance = 2 * explained
    np.testing.assert_allclose(groups().measure(VALUES, variance, factor, 0.05).fidelity, 0.5, rtol=1e-12)


@pytest.mark.parametrize("quantile", [None, float(t_quantile(G - 1.0, 0.975)), 3.0], ids=["", "known", "another"])
@pytest.mark.parametrize("factor", [DIAGONAL, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("resolution", [0.0, 3.0])
def test_nothing_depends_on_where_groups_are_nor_on_what_is_made_ahead(quantile, factor, resolution):
    mean, said = TorchGroupSums(torch, torch.from_numpy(PSEUDO * SIZES[:, None])).means(SIZES, factor, quantile)
    there, here = groups(said, resolution), groups(resolution=resolution)
    measured, expected = there.measure(mean, np.ones(R), factor, 0.05), here.measure(VALUES, np.ones(R), factor, 0.05)
    for name in ("radius", "size", "fidelity"):
        np.testing.assert_allclose(getattr(measured, name), getattr(expected, name), rtol=1e-10)
    for values in (mean, VALUES):
        widths = there.half_width(values, factor, 0.1)
        np.testing.assert_allclose(widths, here.half_width(VALUES, factor, 0.1), rtol=1e-10)


def test_lengths_that_were_made_ahead_are_not_made_again(monkeypatch):
    made = [TorchGroupSums(torch, torch.from_numpy(PSEUDO * SIZES[:, None])).means(SIZES, DIAGONAL) for _ in range(3)]
    monkeypatch.setattr(lengths.RowNorms, "of", None)
    other = dataclasses.replace(DIAGONAL, lower=2 * DIAGONAL.lower)
    groups(made[0][1]).measure(made[0][0], np.ones(R), DIAGONAL, 0.05)
    for slopes, said, factor in ((made[0][0], made[1][1], DIAGONAL), (made[2][0], made[2][1], other)):
        with pytest.raises(TypeError):  # those of other slopes, or in other units, have to be made
            groups(said).measure(slopes, np.ones(R), factor, 0.05)


def test_unequal_groups_are_weighed_where_they_are():
    sizes = np.arange(1.0, G + 1)
    here, there = standard_error(PSEUDO, sizes), standard_error(torch.from_numpy(PSEUDO), sizes)
    np.testing.assert_allclose(there.numpy(), here, rtol=1e-12)
    assert not np.allclose(here, standard_error(PSEUDO, SIZES))


def test_equal_groups_take_one_pass_and_say_the_same():
    here, there = standard_error(PSEUDO, SIZES), standard_error(torch.from_numpy(PSEUDO), SIZES)
    np.testing.assert_allclose(there.numpy(), here, rtol=1e-12)
