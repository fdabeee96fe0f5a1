"""Longer draws: a third of the lengths of χ with two degrees of freedom more, directions kept, weights in turn."""

import json

import numpy as np
import pytest
from scipy import stats

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.draws.designs import PARTS
from smoothlime.draws.long_draws import FAR_SHARE, SHARE, long_draws
from smoothlime.uncertainty.stopping import Stopping

V = np.linspace(-0.5, 0.6, 8)
FULL = np.eye(8) * 0.5 + 0.1
SETTINGS = {"draws": "independent", "n_samples": 1_024}


def linear_share(function, x, around):
    """wᵀΣw / Var f of a function of one direction, by integrating over that direction."""
    covariance, v = known.covariance(around, len(x)), V[: len(x)]
    s = np.linspace(-9, 9, 200_001)
    density = np.exp(-(s**2) / 2) / np.exp(-(s**2) / 2).sum()
    points = x + np.outer(s, covariance @ v) / np.sqrt(v @ covariance @ v)
    values = function.values(points)[:, 0]
    slopes = function.slopes(x, around).reshape(-1)
    return slopes @ covariance @ slopes / (density @ values**2 - (density @ values) ** 2)


def weights_of(points, x, sigma=1.0):
    """One over the density of the points, as a multiple of that of normal ones."""
    return 1 / (1 - SHARE + SHARE * ((points - x) ** 2).mean(axis=1) / sigma**2)


def fitted(points, values, weights):
    """Slopes of a line by weighted least squares."""
    root = np.sqrt(weights)
    terms = np.column_stack([np.ones(len(points)), points])
    return np.linalg.lstsq(root[:, None] * terms, root * values, rcond=None)[0][1:]


@pytest.mark.parametrize("share", [1 / 3, 0.5])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 128])
def test_each_length_goes_to_the_same_quantile_of_the_mixture(d, share):
    z = np.random.default_rng(d).standard_normal((5, 400, d))
    longer, weights = long_draws(z, share)
    before, after = (np.linalg.norm(each, axis=-1) for each in (z, longer))
    for tail in ("cdf", "sf"):
        plain, more = (getattr(stats.chi2(d + k), tail) for k in (0, 2))
        np.testing.assert_allclose((1 - share) * plain(after**2) + share * more(after**2), plain(before**2), rtol=1e-4)
    np.testing.assert_allclose(longer / after[..., None], z / before[..., None], rtol=1e-12)
    np.testing.assert_allclose(weights, 1 / (1 - share + share * after**2 / d), rtol=1e-12)


@pytest.mark.parametrize("share", [0.3, FAR_SHARE])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 128])
def test_lengths_of_four_degrees_more_are_those_of_their_mixture(d, share):
    z = np.random.default_rng(d).standard_normal((5, 400, d))
    longer, weights = long_draws(z, share, more=4)
    before, after = (np.linalg.norm(each, axis=-1) for each in (z, longer))
    for tail in ("cdf", "sf"):
        plain, more = (getattr(stats.chi2(d + k), tail) for k in (0, 4))
        np.testing.assert_allclose((1 - share) * plain(after**2) + share * more(after**2), plain(before**2), rtol=1e-3)
    np.testing.assert_allclose(longer / after[..., None], z / before[..., None], rtol=1e-12)
    np.testing.assert_allclose(weights, 1 / (1 - share + share * after**4 / (d * (d + 2))), rtol=1e-12)


def test_lengths_that_no_draw_has_stay_finite():
    z = np.outer([1e-12, 1e-3, 6.3, 9.0, 20.0], np.ones(3))
    longer, weights = long_draws(z)
    assert np.isfinite(longer).all()
    assert ((weights > 0) & (weights <= 1.5)).all()
    assert (np.diff(longer[:, 0]) > 0).all()
    assert (longer >= z).all()
    # nobody draws a length of 20·√3 in 10²⁵⁰ times: where it goes is right all the same, to three digits
    tails = [(1 - SHARE) * stats.chi2(3).sf(r) + SHARE * stats.chi2(5).sf(r) for r in 3 * longer[2:, 0] ** 2]
    np.testing.assert_allclose(np.log(tails), stats.chi2(3).logsf(3 * z[2:, 0] ** 2), rtol=1e-3)


@pytest.mark.parametrize("d", [1, 3, 11])
def test_weighted_means_are_those_over_the_neighbourhood(d):
    rng = np.random.default_rng(0)
    z, weights = long_draws(rng.standard_normal((400_000, d)))
    first = z[:, 0]
    for power, moment in ((0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        terms = weights * first**power
        assert abs(terms.mean() - moment) < 4.5 * terms.std() / np.sqrt(len(terms))


@pytest.mark.parametrize("settings", [sl.CLime(), sl.CLime(curves=True)], ids=["line", "curves"])
@pytest.mark.parametrize("full", [False, True], ids=["diagonal", "full"])
@pytest.mark.parametrize(("design", "d"), [("aligned", 1), ("aligned", 4), ("aligned-pairs", 4), ("aligned-pairs", 8)])
@pytest.mark.parametrize(
    ("kind", "scale", "at"),
    [
        (known.Sine, 2, 0.3),
        (known.Probit, 3, 0.4),
        (known.Step, 1, 0.1),
        (known.Absolute, 1, 0.2),
        (known.Linear, 1, 2),
    ],
)
def test_slopes_mean_and_fidelity_are_those_of_the_neighbourhood(settings, full, design, d, kind, scale, at):
    """Closed forms: w, F(x), and the share of the variance that is linear."""
    around = sl.Neighbourhood(covariance=FULL[:d, :d]) if full else sl.Neighbourhood(0.8)
    function, rows = kind(scale * V[:d], at), np.zeros((64, d)) + 0.1
    e = sl.explain(function.values, rows, method=settings, sigma=around, design=design, **SETTINGS)
    assert e.provenance.longer == SHARE
    truth = function.slopes(rows[0], around).reshape(-1)
    # a fit of many terms has a bias of order 1/n: below the error of one fit, which intervals allow for
    off = 1.2 if settings.curves else 4.5 / 8
    assert (np.abs(e.values.mean(axis=0) - truth) < off * e.values.std(axis=0) + 1e-12).all()
    lower, upper = e.interval()
    assert ((lower <= truth + 1e-12) & (truth - 1e-12 <= upper)).mean() > 0.92
    mean = function.smoothed(rows[0], around)
    assert np.abs(e.smoothed.mean() - mean) < 4.5 * e.smoothed.std() / 8 + 1e-12
    fidelity = linear_share(function, rows[0], around)
    # up to 80 terms are fitted to 1,024 draws, and the residual is made larger by as much; noise is taken off
    noise = ((e.standard_error * e.factor.std) ** 2).sum(axis=1).mean() / function.values(e.perturbations(0)).var()
    doubt = 80 / 1_024 * (1 - fidelity) + noise
    assert np.abs(e.fidelity.mean() - fidelity) < 4.5 * e.fidelity.std() / 8 + doubt + 1e-12


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize(
    ("kind", "scale", "at"),
    [(known.Sine, 1, 0.3), (known.Sine, 3, 0.3), (known.Probit, 8, 2.0), (known.Absolute, 1, 0.2)],
)
def test_the_mean_is_known_better_than_from_independent_draws(kind, scale, at, d):
    v = np.linspace(1, 2, d) / np.linalg.norm(np.linspace(1, 2, d))
    f, rows = kind(scale * v, at), np.zeros((64, d))
    e = sl.explain(f.values, rows, method=sl.CLime(curves=True), **SETTINGS)
    plain = sl.explain(f.values, rows, method="clime", design="iid", **SETTINGS)
    truth = f.smoothed(rows[0], sl.Neighbourhood(1.0))
    error, by_draws = (np.sqrt(((each.smoothed - truth) ** 2).mean()) for each in (e, plain))
    assert 1.5 * error < by_draws


@pytest.mark.parametrize("d", [1, 4])
def test_the_scale_is_that_of_the_neighbourhood(d, monkeypatch):
    """The automatic tolerance is a share of it: over longer draws a square varies more."""
    seen = []
    monkeypatch.setattr(Stopping, "tolerance", lambda self, size, radius, spread: seen.append(spread) or 0 * size)
    sl.explain(lambda a: a[:, 0] ** 2, np.zeros((50, d)), method="clime", design="aligned", **SETTINGS)
    assert abs(seen[0].mean() - np.sqrt(2)) < 4.5 * seen[0].std() / np.sqrt(50)
    points = long_draws(np.random.default_rng(0).standard_normal((100_000, d)))[0]
    assert (points[:, 0] ** 2).std() > 1.1 * np.sqrt(2)


def test_they_are_for_aligned_draws_that_are_fitted():
    for d, settings, expected in (
        (1, {}, SHARE), (7, {"design": "aligned-pairs"}, SHARE), (20, {"n_samples": 2_048}, SHARE),
        (8, {"method": "clime", "design": "aligned"}, SHARE), (8, {"method": "clime", "design": "iid"}, 0.0),
        (8, {"method": "clime", "design": "sobol"}, 0.0),
    ):  # fmt: skip
        f = known.Sine(np.linspace(-0.5, 0.6, d))
        asked = {"n_samples": 1_024, "method": sl.CLime(curves=True)} | settings
        assert sl.explain(f.values, np.zeros(d), **asked).provenance.longer == expected
    assert sl.explain(f, np.zeros(d), n_samples=512, design="aligned").provenance.longer == 0  # from gradients


NONE = 1e-12
"""A share that lengthens no draw, to rounding. With 0 draws carry no weights, as aligned ones of a fit always do."""


class TestGain:
    def error(self, function, rows, n, share):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("smoothlime.estimators.clime.SHARE", share)
            e = sl.explain(function.values, rows, n_samples=n, draws="independent")
        assert e.provenance.longer == share
        truth = function.slopes(rows[0], sl.Neighbourhood(1.0)).reshape(-1)
        return np.sqrt(((e.values - truth) ** 2).sum(axis=1).mean())

    @pytest.mark.parametrize(("d", "gain"), [(1, 2.5), (3, 1.4), (7, 1.1), (11, 1.03)])
    @pytest.mark.parametrize(
        ("kind", "scale", "at"), [(known.Sine, 1, 0.3), (known.Probit, 1.5, 0.5), (known.Absolute, 1, 0.2)]
    )
    def test_slopes_of_smooth_functions_have_smaller_errors(self, kind, scale, at, d, gain):
        v = np.linspace(1, 2, d) / np.linalg.norm(np.linspace(1, 2, d))
        f, rows = kind(scale * v, at), np.zeros((60, d))
        assert gain * self.error(f, rows, 1_024, SHARE) < self.error(f, rows, 1_024, NONE)

    @pytest.mark.parametrize(("d", "width"), [(3, 0.5), (8, 0.5), (4, 0.25)])
    def test_what_lies_close_to_x_loses_no_more_than_half_of_the_draws_would(self, d, width):
        f, rows = known.RadialBasis(np.full(d, width / np.sqrt(d)), width), np.zeros((100, d))
        longer, half = (self.error(f, rows, n, share) for n, share in ((2_048, SHARE), (1_024, NONE)))
        assert longer < half


def test_what_lies_close_to_x_is_still_seen_where_features_are_few():
    """A box of three features that normal draws find once in 250 times: were all draws longer, they would say 0 ± 0."""
    box = lambda a: ((a > -0.1) & (a < 0.3)).all(axis=1).astype(float)
    for seed in range(6):
        e = sl.explain(box, np.zeros(3), seed=seed)
        assert e.converged.all()
        assert 0.002 < e.smoothed[0] < 0.007
        assert e.radius[0] > 0


@pytest.mark.parametrize("design", ["aligned", "aligned-pairs"])
def test_rows_alone_and_together_and_in_any_batches_are_the_same(design):
    f = lambda a: np.tanh(a @ V) + (a @ V[::-1]) ** 3
    rows = np.random.default_rng(1).standard_normal((5, 8))
    for draws in ("shared", "independent"):
        asked = {"n_samples": 1_024, "design": design, "draws": draws, "method": sl.CLime(curves=True)}
        whole, pieces = sl.explain(f, rows, **asked), sl.explain(f, rows, **asked, batch_size=101)
        for name in ("values", "standard_error", "smoothed", "fidelity", "radius"):
            np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=1e-7)


@pytest.mark.parametrize("design", ["aligned", "aligned-pairs"])
def test_looks_merge_groups_with_their_weights(design):
    f = known.Sine(2 * V, 0.3)
    with pytest.warns(sl.errors.NotConverged):
        e = sl.explain(f.values, np.zeros(8), method="clime", design=design, rtol=0.0, atol=1e-9, max_samples=2_048)
    points = e.perturbations()
    values, weights = f.values(points)[:, 0], weights_of(points, 0.0)
    fit = lambda kept: fitted(points[kept], values[kept], weights[kept])
    run = np.arange(len(points)) // (len(points) // PARTS)
    np.testing.assert_allclose(e.values[0], fit(run >= 0), rtol=1e-8)
    pseudo = [PARTS * fit(run >= 0) - (PARTS - 1) * fit(run != each) for each in range(PARTS)]
    np.testing.assert_allclose(e.groups.pseudo[0], pseudo, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("design", ["aligned", "aligned-pairs"])
def test_outputs_with_draws_of_their_own_rows_are_weighed_alike(design):
    one, other = known.Sine(V, 0.3), known.Probit(2 * V[::-1], 0.1)
    both = lambda a: np.column_stack([one.values(a), other.values(a)])
    rows = np.random.default_rng(2).standard_normal((3, 8))
    found = sl.explain_outputs(both, rows, method=sl.CLime(), design=design, **SETTINGS)
    for f, e in zip((one, other), found.values(), strict=True):
        for row in range(3):
            points = e.perturbations(row)
            fit = fitted(points, f.values(points)[:, 0], weights_of(points, rows[row]))
            np.testing.assert_allclose(e.values[row], fit, rtol=1e-7, atol=1e-9)


def test_files_of_earlier_versions_are_drawn_again_as_they_were(tmp_path, older):
    e = sl.explain(known.Sine(V).values, np.zeros(8), n_samples=512, method="clime", design="aligned-pairs")
    e.save(tmp_path / "new.json")
    new = sl.load(tmp_path / "new.json")
    np.testing.assert_array_equal(new.perturbations(), e.perturbations())
    for version, said, share in ((2, {}, 0.0), (3, {"is_lengthened": False}, 0.0), (3, {"is_lengthened": True}, 1.0)):
        plain = older(e.to_json(), version)
        del plain["provenance"]["longer"]
        plain["provenance"] |= said
        (tmp_path / "old.json").write_text(json.dumps(plain))
        old = sl.load(tmp_path / "old.json")
        assert old.provenance.longer == share
        with pytest.warns(sl.errors.ErrorsAdded):
            assert (old - e).groups is None
        if share:
            with pytest.raises(sl.errors.InvalidArgument, match=r"a share of 1 longer.*Explain the rows once more"):
                old.perturbations()
        else:
            np.testing.assert_allclose(long_draws(old.perturbations())[0], e.perturbations(), rtol=1e-9)
