"""Longer draws: lengths of χ with two degrees of freedom more, directions kept, and weights that make up for it."""

import json

import numpy as np
import pytest
from scipy import stats

import smoothlime as sl
from smoothlime import testing as known
from smoothlime.designs import PARTS
from smoothlime.radii import lengthened

V = np.linspace(-0.5, 0.6, 8)
FULL = sl.Neighbourhood(covariance=np.eye(8) * 0.5 + 0.1)
PAIRS = {"design": "aligned-pairs", "draws": "independent", "n_samples": 1_024}


def linear_share(function, x, around):
    """wᵀΣw / Var f of a function of one direction, by integrating over that direction."""
    covariance = known.covariance(around, len(x))
    s = np.linspace(-9, 9, 200_001)
    density = np.exp(-(s**2) / 2) / np.exp(-(s**2) / 2).sum()
    points = x + np.outer(s, covariance @ V) / np.sqrt(V @ covariance @ V)
    values = function.values(points)[:, 0]
    slopes = function.slopes(x, around).reshape(-1)
    return slopes @ covariance @ slopes / (density @ values**2 - (density @ values) ** 2)


@pytest.mark.parametrize("d", [1, 3, 8, 128])
def test_each_length_goes_to_the_same_quantile(d):
    z = np.random.default_rng(d).standard_normal((5, 40, d))
    longer, weights = lengthened(z)
    before, after = (np.linalg.norm(each, axis=-1) for each in (z, longer))
    np.testing.assert_allclose(stats.chi(d + 2).cdf(after), stats.chi(d).cdf(before), rtol=1e-9)
    np.testing.assert_allclose(longer / after[..., None], z / before[..., None], rtol=1e-12)
    np.testing.assert_allclose(weights, d / after**2, rtol=1e-12)


def test_lengths_that_no_draw_has_stay_finite():
    z = np.outer([1e-12, 1e-3, 6.3, 9.0, 20.0], np.ones(3))
    longer, weights = lengthened(z)
    assert np.isfinite(longer).all()
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(longer[-1], np.sqrt(stats.chi2(5).isf(stats.chi2(3).sf(1_200)) / 3), rtol=1e-9)
    assert (np.diff(longer[:, 0]) > 0).all()


@pytest.mark.parametrize("d", [3, 11])
def test_weighted_means_are_those_over_the_neighbourhood(d):
    rng = np.random.default_rng(0)
    z, weights = lengthened(rng.standard_normal((200_000, d)))
    first = z[:, 0]
    for power, moment in ((0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0), (6, 15.0)):
        terms = weights * first**power
        assert abs(terms.mean() - moment) < 4.5 * terms.std() / np.sqrt(len(terms))
    # of slopes every draw tells as much: products with weights are as large for all lengths
    np.testing.assert_allclose(weights * (z**2).sum(axis=1), d)


@pytest.mark.parametrize("settings", [sl.CLime(), sl.CLime(curves=True)], ids=["line", "curves"])
@pytest.mark.parametrize("around", [sl.Neighbourhood(0.8), FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize(
    "function",
    [known.Sine(2 * V, 0.3), known.Probit(3 * V, 0.4), known.Step(V, 0.1), known.Absolute(V, 0.2), known.Linear(V, 2)],
    ids=["sine", "probit", "step", "absolute", "linear"],
)
def test_slopes_mean_and_fidelity_are_those_of_the_neighbourhood(settings, around, function):
    """Closed forms: w, F(x), and the share of the variance that is linear."""
    rows = np.zeros((64, 8)) + 0.1
    e = sl.explain(function.values, rows, method=settings, sigma=around, **PAIRS)
    assert e.provenance.is_lengthened
    truth = function.slopes(rows[0], around).reshape(-1)
    assert (np.abs(e.values.mean(axis=0) - truth) < 4.5 * e.values.std(axis=0) / 8 + 1e-12).all()
    lower, upper = e.interval()
    assert ((lower <= truth + 1e-12) & (truth - 1e-12 <= upper)).mean() > 0.92
    mean = function.smoothed(rows[0], around)
    assert np.abs(e.smoothed.mean() - mean) < 4.5 * e.smoothed.std() / 8 + 1e-12
    fidelity = linear_share(function, rows[0], around)
    # up to 80 terms are fitted to 1,024 draws, and the residual is made larger by as much; noise is taken off
    noise = ((e.standard_error * e.factor.std) ** 2).sum(axis=1).mean() / function.values(e.perturbations(0)).var()
    doubt = 80 / 1_024 * (1 - fidelity) + noise
    assert np.abs(e.fidelity.mean() - fidelity) < 4.5 * e.fidelity.std() / 8 + doubt + 1e-12


def test_they_are_for_aligned_pairs_of_eight_features():
    for d, settings, expected in (
        (7, {"design": "aligned-pairs"}, False), (8, {"design": "aligned-pairs"}, True),
        (8, {"design": "aligned"}, False), (20, {"n_samples": 2_048}, True),
        (8, {"method": "clime", "design": "iid"}, False),
    ):  # fmt: skip
        f = known.Sine(np.linspace(-0.5, 0.6, d)).values
        asked = {"n_samples": 1_024, "method": sl.CLime(curves=True)} | settings
        assert sl.explain(f, np.zeros(d), **asked).provenance.is_lengthened is expected


def test_what_lies_close_to_x_is_still_seen_where_features_are_few():
    """A box of three features that normal draws find once in 250 times: longer ones would say 0 ± 0, and be sure."""
    box = lambda a: ((a > -0.1) & (a < 0.3)).all(axis=1).astype(float)
    for seed in range(6):
        e = sl.explain(box, np.zeros(3), seed=seed)
        assert e.converged.all()
        assert 0.002 < e.smoothed[0] < 0.007
        assert e.radius[0] > 0


def test_rows_alone_and_together_and_in_any_batches_are_the_same():
    f = lambda a: np.tanh(a @ V) + (a @ V[::-1]) ** 3
    rows = np.random.default_rng(1).standard_normal((5, 8))
    for draws in ("shared", "independent"):
        asked = PAIRS | {"draws": draws, "method": sl.CLime(curves=True)}
        whole, pieces = sl.explain(f, rows, **asked), sl.explain(f, rows, **asked, batch_size=101)
        for name in ("values", "standard_error", "smoothed", "fidelity", "radius"):
            np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=1e-7)


def test_looks_merge_groups_with_their_weights():
    f = known.Sine(2 * V, 0.3)
    with pytest.warns(sl.errors.NotConverged):
        e = sl.explain(
            f.values, np.zeros(8), method="clime", design="aligned-pairs", rtol=0.0, atol=1e-9, max_samples=2_048
        )
    points = e.perturbations()
    root = np.sqrt(1 / (points**2).sum(axis=1))
    terms, values = np.column_stack([np.ones(len(points)), points]), f.values(points)[:, 0]
    fit = lambda kept: np.linalg.lstsq((root[:, None] * terms)[kept], (root * values)[kept], rcond=None)[0][1:]
    run = np.arange(len(points)) // (len(points) // PARTS)
    np.testing.assert_allclose(e.values[0], fit(run >= 0), rtol=1e-8)
    pseudo = [PARTS * fit(run >= 0) - (PARTS - 1) * fit(run != each) for each in range(PARTS)]
    np.testing.assert_allclose(e.groups.pseudo[0], pseudo, rtol=1e-6, atol=1e-9)


def test_outputs_with_draws_of_their_own_rows_are_weighed_alike():
    one, other = known.Sine(V, 0.3), known.Probit(2 * V[::-1], 0.1)
    both = lambda a: np.column_stack([one.values(a), other.values(a)])
    rows = np.random.default_rng(2).standard_normal((3, 8))
    found = sl.explain_outputs(both, rows, method=sl.CLime(), **PAIRS)
    for f, e in zip((one, other), found.values(), strict=True):
        for row in range(3):
            points = e.perturbations(row)
            root = np.sqrt(8 / ((points - rows[row]) ** 2).sum(axis=1))
            terms = root[:, None] * np.column_stack([np.ones(len(points)), points])
            fit = np.linalg.lstsq(terms, root * f.values(points)[:, 0], rcond=None)[0][1:]
            np.testing.assert_allclose(e.values[row], fit, rtol=1e-7, atol=1e-9)


def test_files_of_earlier_versions_are_drawn_again_as_they_were(tmp_path):
    e = sl.explain(known.Sine(V).values, np.zeros(8), n_samples=512, method="clime", design="aligned-pairs")
    e.save(tmp_path / "new.json")
    new = sl.load(tmp_path / "new.json")
    np.testing.assert_array_equal(new.perturbations(), e.perturbations())
    plain = json.loads(e.to_json()) | {"version": 2}
    del plain["provenance"]["is_lengthened"]
    (tmp_path / "old.json").write_text(json.dumps(plain))
    old = sl.load(tmp_path / "old.json")
    again, _ = lengthened(old.perturbations())
    np.testing.assert_allclose(again, e.perturbations(), rtol=1e-9)
    with pytest.warns(sl.errors.ErrorsAdded):
        assert (old - e).groups is None
