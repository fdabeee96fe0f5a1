import dataclasses
import pickle
import re
from io import StringIO

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from rich.console import Console
from sklearn.linear_model import LinearRegression

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.draws.designs import DESIGNS
from smoothlime.exact import Exact
from smoothlime.plots.path import spread

X = np.array([0.1, -0.2, 0.3])
SINE = known.Sine([1.2, -0.6, 0.3], 0.4)
SIGMAS = [0.1, 0.3, 0.6, 1.0, 1.5]
FULL = sl.Neighbourhood(covariance=[[1.0, 0.6, 0.0], [0.6, 2.0, -0.3], [0.0, -0.3, 0.5]])
AROUND = {
    "plain": sl.Neighbourhood(),
    "own sigma": sl.Neighbourhood(0.5),
    "a sigma per feature": sl.Neighbourhood([0.5, 1.0, 2.0]),
    "scale": sl.Neighbourhood(scale=[0.5, 1.0, 2.0]),
    "covariance": FULL,
    "fixed": sl.Neighbourhood(scale=[0.5, 1.0, 2.0], fixed=["x1"]),
    "covariance, fixed": sl.Neighbourhood(covariance=FULL.covariance, fixed=[0]),
}


def widened(around, sigma):
    """By hand, from the definition: the standard deviations times sigma, so the covariance times sigma²."""
    if around.covariance is not None:
        return sl.Neighbourhood(covariance=around.covariance * (around.sigma * sigma) ** 2, fixed=around.fixed)
    return sl.Neighbourhood(np.ones(3) * around.sigma * sigma, scale=around.scale, fixed=around.fixed)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


# ---- the numbers


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
@pytest.mark.parametrize("method", ["smoothgrad", "clime", "stein", "differences"])
def test_slopes_of_a_sine_are_within_their_errors_of_the_closed_form_at_every_sigma(method, around):
    """cos(v·x + c)·exp(−vᵀΣv/2)·v, with Σ = σ²C; the smoothed value likewise."""
    path = sl.sigma_path(SINE, X, SIGMAS[:4], method=method, neighbourhood=around, n_samples=16_384, progress=False)
    for sigma, e in zip(SIGMAS[:4], path, strict=True):
        free = e.factor.free
        truth = SINE.slopes(X, testable := _by_position(widened(around, sigma)))[:, free]
        known.assert_matches(
            e.values[:, free] * e.std[free],
            truth * e.std[free],
            e.standard_error[:, free] * e.std[free],
            sees=0.15,
            degrees_of_freedom=float(e.degrees_of_freedom[0]),
        )
        if method != "differences":
            assert e.smoothed[0] == pytest.approx(SINE.smoothed(X, testable)[0], abs=0.03)


def _by_position(around):
    """Closed forms know no names."""
    fixed = tuple(int(each[1:]) if isinstance(each, str) else each for each in around.fixed)
    return sl.Neighbourhood(around.sigma, scale=around.scale, covariance=around.covariance, fixed=fixed)


def test_the_sine_fades_as_its_formula_says():
    """The formula again, written out, so that the test does not lean on the library's own closed form."""
    path = sl.sigma_path(SINE, X, SIGMAS, n_samples=16_384)
    s = SINE.v @ X + SINE.c
    truth = np.cos(s) * np.exp(-(SINE.v @ SINE.v) * path.sigmas**2 / 2)[:, None] * SINE.v
    known.assert_matches(path.values, truth, path.standard_error, sees=0.05, degrees_of_freedom=7)


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
@pytest.mark.parametrize("method", ["smoothgrad", "clime", "differences"])
def test_a_linear_model_has_the_same_slopes_at_every_sigma(method, around):
    path = sl.sigma_path(known.Linear([1.0, -2.0, 0.5], 3.0), X, SIGMAS, method=method, neighbourhood=around)
    free = path[0].factor.free
    np.testing.assert_allclose(path.values[:, free], [np.array([1.0, -2.0, 0.5])[free]] * 5, rtol=1e-9)
    assert np.isnan(np.delete(path.values, free, axis=1)).all()
    if method == "clime":
        np.testing.assert_allclose(path.fidelity, 1, rtol=1e-9)


@pytest.mark.parametrize("around", [AROUND["plain"], AROUND["scale"], FULL])
def test_a_quadratic_has_the_same_slopes_at_every_sigma_and_a_smoothed_value_that_grows_with_its_square(around):
    f = known.Quadratic([[1.0, 0.4, 0.0], [0.4, -2.0, 0.3], [0.0, 0.3, 1.5]], [0.5, 0.0, -1.0])
    path = sl.sigma_path(f, X, SIGMAS, method="differences", neighbourhood=around)
    np.testing.assert_allclose(path.values, np.tile(X @ f.A + f.b, (5, 1)), rtol=1e-8)
    path = sl.sigma_path(f, X, SIGMAS, method="smoothgrad", design="antithetic", neighbourhood=around)
    np.testing.assert_allclose(path.values, np.tile(X @ f.A + f.b, (5, 1)), rtol=1e-9)
    beyond = path.smoothed - path.prediction
    np.testing.assert_allclose(beyond / path.sigmas**2, np.full(5, beyond[0] / path.sigmas[0] ** 2), rtol=1e-6)


def test_jumps_are_followed_as_explain_follows_them():
    f = known.Step([1.0, 0.0, 0.0], -0.2)
    path = sl.sigma_path(f, X, SIGMAS, method="clime", n_samples=16_384)
    truth = np.concatenate([f.slopes(X, sl.Neighbourhood(sigma)) for sigma in SIGMAS])
    known.assert_matches(
        path.values * path.sigmas[:, None], truth * path.sigmas[:, None],
        path.standard_error * path.sigmas[:, None], sees=0.15, degrees_of_freedom=7,
    )  # fmt: skip


# ---- one set of draws


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
@pytest.mark.parametrize("method", ["smoothgrad", "differences"])
def test_every_sigma_stretches_the_same_draws(method, around):
    path = sl.sigma_path(SINE, X, [0.1, 0.7, 2.0], method=method, neighbourhood=around, seed=5)
    first = path[0]
    z = DESIGNS[first.design].stream(len(first.factor.free), 5, None).take(int(first.n_samples[0]))
    for sigma, e in zip(path.sigmas, path, strict=True):
        factor = widened(around, sigma).factor(3, e.feature_names)
        np.testing.assert_allclose(e.perturbations()[:, factor.free], X[factor.free] + factor.steps(z), atol=1e-13)
        np.testing.assert_allclose((e.perturbations() - X) / sigma, (first.perturbations() - X) / 0.1, atol=1e-13)
        assert (e.design, e.seed, e.n_samples[0]) == (first.design, 5, first.n_samples[0])


@pytest.mark.parametrize(("method", "placed"), [("smoothgrad", "iid"), ("clime", "iid"), ("clime", "sobol")])
def test_curves_are_smooth_not_jittery(method, placed):
    """Second differences of neighbouring σ: with draws of their own they would be √6 standard errors, typically."""
    sigmas = np.linspace(0.8, 1.2, 41)
    path = sl.sigma_path(SINE, X, sigmas, method=method, design=placed)
    bends = np.diff(path.values, 2, axis=0)
    jitter = np.sqrt(6) * path.standard_error[1:-1]
    assert np.abs(bends / jitter).max() < 0.05

    apart = np.concatenate(
        [
            sl.explain(SINE, X, sigma=s, method=method, design=placed, n_samples=1_024, seed=i).values
            for i, s in enumerate(sigmas)
        ]
    )
    assert np.abs(np.diff(apart, 2, axis=0) / jitter).max() > 1  # the check sees what it is there for


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
def test_every_sigma_equals_explain_bit_for_bit(around):
    path = sl.sigma_path(SINE, X, [2.0, 0.3], neighbourhood=around, seed=3)
    for sigma, e in zip([0.3, 2.0], path, strict=True):
        wanted = sl.Neighbourhood(
            around.sigma * sigma, scale=around.scale, covariance=around.covariance, fixed=around.fixed
        )
        assert_same(e, sl.explain(SINE, X, sigma=wanted, n_samples=1_024, design=e.design, seed=3))


def assert_same(one, two):
    for name in ("values", "standard_error", "smoothed", "fidelity", "radius", "prediction", "n_samples", "x"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert one.neighbourhood == two.neighbourhood
    one, two = (dataclasses.replace(e.provenance, versions={}) for e in (one, two))
    assert one == two


def test_a_path_of_one_sigma_is_explain_bit_for_bit(elu_network):
    more = {"target": "predicted", "n_samples": 500, "design": "antithetic", "batch_size": 64, "confidence": 0.9}
    path = sl.sigma_path(elu_network, X, [0.4], **more)
    e = sl.explain(elu_network, X, sigma=0.4, **more)
    assert len(path) == 1
    assert_same(path[0], e)
    assert path.output_name == e.row_outputs[0]
    np.testing.assert_array_equal(path.interval(0.9), e.interval(0.9))


def test_the_same_call_gives_the_same_bits_in_any_order_and_another_seed_others():
    one = sl.sigma_path(SINE, X, SIGMAS)
    two = sl.sigma_path(SINE, X[None], SIGMAS[::-1])
    np.testing.assert_array_equal(one.sigmas, sorted(SIGMAS))
    np.testing.assert_array_equal(one.sigmas, two.sigmas)
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.values != sl.sigma_path(SINE, X, SIGMAS, seed=1).values).any()


def test_a_background_gives_the_scales_and_is_what_sigmas_count_in():
    background = np.random.default_rng(0).normal(size=(50, 3)) * [0.5, 1.0, 2.0]
    path = sl.sigma_path(SINE, X, [0.2, 0.4], background=background)
    for sigma, e in zip([0.2, 0.4], path, strict=True):
        assert_same(e, sl.explain(SINE, X, sigma=sigma, background=background, n_samples=1_024, design=e.design))
        np.testing.assert_allclose(e.std, sigma * background.std(axis=0, ddof=1), rtol=1e-12)


def test_one_row_of_a_table_has_its_columns_names():
    import pandas

    table = pandas.DataFrame([X], columns=["a", "b", "c"])
    path = sl.sigma_path(lambda a: a @ [1.0, 2.0, 3.0], table, [0.5, 1.0])
    assert path.feature_names == ("a", "b", "c")
    assert path[0].feature_names == ("a", "b", "c")


def test_predicted_is_the_class_at_the_row_at_every_sigma():
    """Wide neighbourhoods prefer the other class; the target is settled at x."""

    def model(a):
        hump = np.exp(-8 * (a**2).sum(axis=1))
        return np.column_stack([hump, 1 - hump])

    path = sl.sigma_path(model, [0.05, 0.05], [0.1, 3.0], target="predicted", method="clime")
    assert path.output_name == "0"
    assert path.prediction == pytest.approx(np.exp(-8 * 0.005))
    assert path.smoothed[0] > 0.5 > path.smoothed[1]


def test_the_model_is_asked_about_the_row_thrice_and_about_the_draws_once():
    asked = []

    def model(a):
        asked.append(len(a))
        return np.sin(a[:, 0])

    path = sl.sigma_path(model, X, SIGMAS, method="clime", n_samples=512)
    assert sum(asked) == 2 + 3 + len(SIGMAS) * int(path[0].n_samples[0])


def test_progress_counts_the_whole_path():
    seen = []
    path = sl.sigma_path(SINE, X, SIGMAS, n_samples=512, batch_size=200, progress=lambda *each: seen.append(each))
    total = 5 * int(path[0].n_samples[0])
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert {total for _, total in seen} == {total}


# ---- what must not pass


@pytest.mark.parametrize(
    ("sigmas", "error", "message"),
    [
        (0.5, errors.InvalidArgument, r"list of one standard deviation or more.*got shape \(\)"),
        ([], errors.InvalidArgument, r"list of one standard deviation or more.*got shape \(0,\)"),
        ([[0.1, 0.2]], errors.InvalidArgument, r"got shape \(1, 2\)"),
        ([0.1, 0.0], errors.InvalidArgument, "sigmas must be finite and > 0; got 0 at position 1"),
        ([-0.1, 1.0], errors.InvalidArgument, "got -0.1 at position 0"),
        ([0.1, np.nan], errors.InvalidArgument, "got nan at position 1"),
        ([np.inf], errors.InvalidArgument, "got inf at position 0"),
        ([0.2, 0.1, 0.2], errors.InvalidArgument, "sigmas must differ; 0.2 stands there 2 times"),
        (["wide"], errors.WrongType, "sigmas must hold numbers"),
        ([True, 2], errors.WrongType, r"sigmas must hold numbers; got \[True, 2\]. Write 1.0 if that is what is meant"),
    ],
)
def test_bad_sigmas(sigmas, error, message):
    with pytest.raises(error, match=message):
        sl.sigma_path(SINE, X, sigmas)


@pytest.mark.parametrize("rows", [np.tile(X, (1_200, 1)), [[0.1, 0.2, 0.3]] * 1_200])
def test_several_rows_are_refused_with_the_way_out(rows):
    with pytest.raises(errors.InvalidArgument, match=r"x must be one row; got 1,200.*call sigma_path for each"):
        sl.sigma_path(SINE, rows, [0.5])


def test_an_array_of_several_rows_is_refused_before_the_model_is_asked():
    def model(a):
        raise AssertionError

    with pytest.raises(errors.InvalidArgument, match="x must be one row; got 2"):
        sl.sigma_path(model, np.zeros((2, 3)), [0.5])


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"neighbourhood": 0.5}, errors.WrongType, "neighbourhood must be a Neighbourhood.*got a float"),
        (
            {"neighbourhood": sl.Neighbourhood(), "background": np.eye(3)},
            errors.InvalidArgument,
            "give background or neighbourhood, not both",
        ),
        ({"neighbourhood": sl.Neighbourhood(scale=[1.0, 2.0])}, errors.InvalidArgument, "scale has 2 entries"),
        ({"n_samples": None}, errors.WrongType, "n_samples must be a whole number; got None"),
        ({"n_samples": 2, "method": "clime"}, errors.TooFewDraws, "n_samples=2 is too few"),
        ({"confidence": 1.5}, errors.InvalidArgument, "confidence must lie strictly between 0 and 1"),
        ({"method": "magic"}, errors.InvalidArgument, "method must be one of"),
        ({"design": "magic"}, errors.InvalidArgument, "design must be one of"),
        ({"target": "nothing"}, errors.InvalidArgument, "nothing"),
        ({"progress": "loud"}, errors.InvalidArgument, "progress must be"),
    ],
)
def test_bad_arguments(more, error, message):
    with pytest.raises(error, match=message):
        sl.sigma_path(SINE, X, [0.5], **more)


LINE = LinearRegression().fit(np.eye(3), [1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"design": "nonsense"}, errors.InvalidArgument, "design must be one of"),
        ({"n_samples": -5}, errors.InvalidArgument, "n_samples must be a whole number >= 1; got -5"),
        ({"n_samples": "many"}, errors.WrongType, "n_samples must be a whole number; got 'many'"),
        ({"seed": "a"}, errors.WrongType, "seed must be a whole number; got 'a'"),
        ({"batch_size": -1}, errors.InvalidArgument, "batch_size must be a whole number >= 1; got -1"),
        ({"confidence": 2}, errors.InvalidArgument, "confidence must lie strictly between 0 and 1; got 2"),
        ({"output": "odds"}, errors.InvalidArgument, "output must be one of 'probability', 'margin'; got 'odds'"),
        ({"method": "exact", "n_samples": 64}, errors.InvalidArgument, "method='exact' draws nothing; leave n_samples"),
        ({"method": "exact", "design": "iid"}, errors.InvalidArgument, "method='exact' draws nothing; leave n_samples"),
    ],
)
def test_arguments_are_checked_where_nothing_is_drawn(more, error, message):
    for ask in (lambda: sl.sigma_path(LINE, X, [0.5, 1.0], **more), lambda: sl.explain(LINE, X, **more)):
        with pytest.raises(error, match=message):
            ask()


def test_closed_forms_are_taken_as_explain_takes_them():
    for more in ({}, {"method": "exact"}, {"method": Exact()}, {"seed": 3, "batch_size": 8}):
        assert all(e.is_exact for e in sl.sigma_path(LINE, X, [0.5, 1.0], **more))
    for more in ({"n_samples": 64}, {"design": "iid"}, {"method": "clime"}):
        assert not any(e.is_exact for e in sl.sigma_path(LINE, X, [0.5, 1.0], **more))
    with pytest.raises(errors.NoClosedForm, match="method='exact' needs a closed form"):
        sl.sigma_path(SINE, X, [0.5, 1.0], method=Exact())


def test_a_model_that_gives_nan_further_out_is_reported_as_in_explain():
    model = lambda a: np.where(np.abs(a[:, 0]) > 2, np.nan, a[:, 0])
    sl.sigma_path(model, X, [0.01, 0.1])
    with pytest.raises(errors.SmoothlimeError) as one:
        sl.explain(model, X, sigma=2.0, n_samples=1_024)
    with pytest.raises(type(one.value)) as two:
        sl.sigma_path(model, X, [0.01, 2.0])
    assert str(one.value) == str(two.value)


def test_sigmas_below_the_models_digits_are_warned_about_once_and_at_the_callers_line():
    network = torch.nn.Linear(1, 1).eval()  # float32
    with pytest.warns(errors.LostPrecision, match="sigma is 0.0001 .* slopes lose digits") as caught:
        sl.sigma_path(network, [1_000.0], [1e-3, 1e-4, 1_000.0])
    assert [each.filename for each in caught] == [__file__]


# ---- the result


def test_stacked_properties_are_those_of_the_explanations():
    path = sl.sigma_path(SINE, X, SIGMAS, neighbourhood=AROUND["scale"])
    assert path.values.shape == path.standardised.shape == path.standard_error.shape == (5, 3)
    assert path.smoothed.shape == path.fidelity.shape == path.sigmas.shape == (5,)
    np.testing.assert_allclose(path.standardised, path.values * np.outer(SIGMAS, [0.5, 1.0, 2.0]), rtol=1e-12)
    for simultaneous in (False, True):
        lower, upper = path.interval(0.8, simultaneous=simultaneous)
        for i, e in enumerate(path.explanations):
            np.testing.assert_array_equal(
                [lower[i : i + 1], upper[i : i + 1]], e.interval(0.8, simultaneous=simultaneous)
            )
            np.testing.assert_array_equal(path.values[i], e.values[0])
            np.testing.assert_array_equal(path.standard_error[i], e.standard_error[0])
            assert path.smoothed[i] == e.smoothed[0]
            assert path.fidelity[i] == e.fidelity[0]
    assert (np.diff(path.fidelity) < 0).all()
    assert path.prediction == pytest.approx(np.sin(SINE.v @ X + SINE.c))
    assert path.feature_names == ("x0", "x1", "x2")


def test_positions_slices_and_iteration():
    path = sl.sigma_path(SINE, X, SIGMAS)
    assert len(path) == 5
    assert path[-1] is path.explanations[4]
    assert list(path) == list(path.explanations)
    part = path[1:3]
    assert isinstance(part, sl.SigmaPath)
    np.testing.assert_array_equal(part.sigmas, [0.3, 0.6])
    np.testing.assert_array_equal(part.values, path.values[1:3])
    with pytest.raises(IndexError, match="position 5 is out of range; this path has 5 σ"):
        path[5]
    with pytest.raises(IndexError, match="no σ is left"):
        path[5:]
    with pytest.raises(IndexError, match=r"smallest first; got a slice with step -1. Use list\(path\)\[::-1\]"):
        path[::-1]
    assert path[::2].sigmas.tolist() == [0.1, 0.6, 1.5]
    with pytest.raises(dataclasses.FrozenInstanceError):
        path.sigmas = [1.0]


def test_it_can_be_pickled():
    path = sl.sigma_path(SINE, X, SIGMAS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(path)).values, path.values)


def test_text_has_a_line_per_sigma_with_the_largest_slopes():
    f = known.Sine([0.1, 0.5, 0.2, 0.3, 0.4], 0.1)
    path = sl.sigma_path(f, np.zeros(5), [0.5, 0.05])
    head, titles, *lines = str(path).splitlines()
    assert head == "slopes of 'output' per unit, against σ; f(x) = 0.09983"
    assert titles.split() == ["σ", "F(x)", "fidelity", "x1", "x4", "x3", "x2"]
    assert [line.split()[0] for line in lines[:2]] == ["0.05", "0.5"]
    assert lines[0].split()[3].startswith("+0.49")
    assert lines[2].strip() == "... and 1 smaller one"
    assert "the same 1,024 sobol draws at every σ, seed 0; ± is a 95% interval at each σ (approximate)" in lines[-1]
    assert repr(path) == "<SigmaPath of 'output': 2 σ (0.05 to 0.5) × 5 slopes, smoothgrad>"


def test_text_of_differences_leaves_out_what_they_do_not_see_and_names_what_was_fixed():
    path = sl.sigma_path(SINE, X, [0.5], method="differences", neighbourhood=AROUND["fixed"], n_samples=64)
    titles = str(path).splitlines()[1].split()
    assert set(titles) == {"σ", "x0", "x2"}
    assert "(1 feature held fixed)" in str(path)
    assert "indicative" in str(path)
    assert repr(path) == "<SigmaPath of 'output': 1 σ (0.5) × 3 slopes, differences>"


def test_html_escapes_every_name():
    model = sl.from_functions(values=lambda a: a @ [1.0, 2.0], feature_names=["<b>", "x&y"], outputs=["<script>"])
    html = sl.sigma_path(model, [0.0, 0.0], [0.5, 1.0])._repr_html_()
    assert "&lt;b&gt;" in html
    assert "x&amp;y" in html
    assert "&lt;script&gt;" in html
    assert "<b>" not in html
    assert "<script>" not in html
    assert html.count("<tr>") == 3


def test_rich_prints_it_as_a_table():
    console = Console(width=200, record=True, file=StringIO())
    console.print(sl.sigma_path(SINE, X, SIGMAS))
    text = console.export_text()
    assert "fidelity" in text
    assert "1.5" in text


# ---- the picture


def curves(panel):
    """Lines over the whole path, by label; the others are rules and leaders."""
    return {line.get_label(): line for line in panel.get_lines() if not line.get_label().startswith("_")}


def test_plot_draws_a_curve_and_a_band_per_feature_and_fidelity_below():
    path = sl.sigma_path(SINE, X, SIGMAS)
    axes = path.plot()
    assert isinstance(axes, np.ndarray)
    assert axes.shape == (2,)
    slopes, fidelity = axes
    drawn = curves(slopes)
    assert list(drawn) == ["x0", "x1", "x2"]  # largest first
    for j, name in enumerate(drawn):
        np.testing.assert_allclose(drawn[name].get_xydata(), np.column_stack([SIGMAS, path.values[:, j]]))
    lower, upper = path.interval()
    assert len(slopes.collections) == 3
    for j, band in enumerate(slopes.collections):
        heights = band.get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [lower[:, j].min(), upper[:, j].max()])
    assert {text.get_text() for text in slopes.texts} >= {"x0", "x1", "x2"}
    assert slopes.get_xscale() == fidelity.get_xscale() == "log"
    assert slopes.get_ylabel() == "slope per unit of each feature"
    assert slopes.get_title(loc="left") == "output: f(x) = 0.667"
    np.testing.assert_allclose(fidelity.get_lines()[-1].get_ydata(), path.fidelity)
    assert fidelity.get_ylim()[0] <= 0 < 1 <= fidelity.get_ylim()[1]
    assert "the same 1,024 sobol draws at every σ; 95% bands" in fidelity.get_xlabel()


def test_plot_is_linear_in_sigma_up_to_a_factor_of_ten():
    assert sl.sigma_path(SINE, X, [0.1, 1.0]).plot()[0].get_xscale() == "linear"
    assert sl.sigma_path(SINE, X, [0.1, 1.01]).plot()[0].get_xscale() == "log"


def test_plot_shows_the_most_important_features_anywhere_on_the_path_or_those_asked_for():
    f = known.Linear(np.arange(1.0, 11.0))
    path = sl.sigma_path(f, np.zeros(10), [0.1, 0.2])
    assert list(curves(path.plot()[0])) == ["x9", "x8", "x7", "x6", "x5", "x4"]
    axes = path.plot(most=2)
    assert list(curves(axes[0])) == ["x9", "x8"]
    assert "8 other slopes not shown" in axes[1].get_xlabel()
    assert list(curves(path.plot(["x3", 0])[0])) == ["x3", "x0"]
    assert list(curves(path.plot("x3")[0])) == ["x3"]
    everything = curves(path.plot(most=10)[0]).values()
    assert len({(line.get_color(), line.get_linestyle()) for line in everything}) == 10


def test_a_feature_that_matters_at_small_sigma_only_is_shown_first_where_its_share_is_the_largest():
    """Slopes 2, 1, 1 at σ = 0.01 and 0, 1, 1 at σ = 3, where standardised slopes are 300 times longer."""
    f = lambda a: np.sin(20 * a[:, 0]) / 10 + a[:, 1] + a[:, 2]
    path = sl.sigma_path(f, np.zeros(3), [0.01, 3.0], method="clime", n_samples=8_192)
    assert list(curves(path.plot(most=1)[0])) == ["x0"]


def test_a_constant_model_is_drawn_and_printed():
    path = sl.sigma_path(lambda a: np.ones(len(a)), X, [0.1, 3.0], method="clime")
    assert list(curves(path.plot()[0])) == ["x0", "x1", "x2"]
    assert str(path).count("+0.0000 ± 0.0000") == 6


def test_errors_are_printed_as_zero_only_where_they_are():
    path = sl.sigma_path(lambda a: 1e12 * a[:, 0], [1.0, 1.0], [0.5, 1.0], method="clime")
    assert (path.standard_error > 0).all()
    for text in (str(path), path._repr_html_()):
        assert text.count("± ") == 4 + ("± is" in text)
        assert all(float(each) > 0 for each in re.findall(r"± (\d[\d.e+-]*)", text))


def test_plot_gives_slopes_per_scale_so_that_units_do_not_matter():
    f = known.Linear([1.0, 2.0, 3.0])
    for around, per in (
        (sl.Neighbourhood(scale=[0.5, 1.0, 2.0]), "scale of each feature"),
        (sl.Neighbourhood([0.5, 1.0, 2.0]), "standard deviation\nof the neighbourhood given"),
        (sl.Neighbourhood(covariance=np.diag([0.25, 1.0, 4.0])), "standard deviation of each feature"),
    ):
        slopes, _ = sl.sigma_path(f, X, [0.1, 0.3], neighbourhood=around).plot()
        drawn = curves(slopes)
        assert slopes.get_ylabel() == f"slope per {per}"
        np.testing.assert_allclose(drawn["x0"].get_ydata(), 0.5, rtol=1e-9)
        np.testing.assert_allclose(drawn["x1"].get_ydata(), 2, rtol=1e-9)
        np.testing.assert_allclose(drawn["x2"].get_ydata(), 6, rtol=1e-9)


def test_plot_says_where_fidelity_is_not_seen():
    axes = sl.sigma_path(SINE, X, SIGMAS, method="differences").plot()
    assert axes.shape == (2,)
    assert [text.get_text() for text in axes[1].texts] == [
        "Fidelity is not available with differences. Use method='clime'"
    ]
    assert not axes[1].get_lines()


def test_plot_of_one_sigma_has_bars_and_plot_takes_axes():
    _, given = plt.subplots(2)
    axes = sl.sigma_path(SINE, X, [0.5]).plot(ax=given)
    assert axes[0] is given[0]
    assert axes[1] is given[1]
    assert len(given[0].containers) == 3
    with pytest.raises(errors.InvalidArgument, match="ax must be two Axes"):
        sl.sigma_path(SINE, X, [0.5]).plot(ax=given[0])


def test_plot_takes_names_as_they_are():
    model = sl.from_functions(values=lambda a: a @ [1.0, 2.0], feature_names=["a$b$", "very " * 20])
    axes = sl.sigma_path(model, [0.0, 0.0], [0.5, 1.0]).plot()
    axes[0].figure.canvas.draw()
    assert r"a\$b\$" in curves(axes[0])
    assert all(len(text.get_text()) < 30 for text in axes[0].texts)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["x7"], "features names 'x7', which is no feature; the 3 features are 'x0', 'x1', 'x2'"),
        ([3], "features names 3, which is no feature"),
        ([True], "features names True, which is no feature"),
        (["x1"], "features names 'x1', which was held fixed and has no slope"),
        ([], "features is empty"),
    ],
)
def test_plot_refuses_features_it_cannot_draw(features, message):
    path = sl.sigma_path(SINE, X, [0.5], neighbourhood=AROUND["fixed"])
    with pytest.raises(errors.InvalidArgument, match=message):
        path.plot(features)


def test_names_lie_apart_and_move_no_further_than_needed():
    heights = np.array([0.5, 0.0, 0.51, 0.9, 0.52, 0.99])
    apart = spread(heights, 0.1)
    assert (np.diff(np.sort(apart)) >= 0.1 - 1e-12).all()
    np.testing.assert_array_equal(np.argsort(apart), np.argsort(heights))
    np.testing.assert_allclose(apart, [0.41, 0.0, 0.51, 0.895, 0.61, 0.995])
    np.testing.assert_allclose(spread(np.full(3, 0.99), 0.1), [0.8, 0.9, 1.0])


def test_a_row_of_a_mixed_table_keeps_its_text():
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0], "city": ["York"]})
    path = sl.sigma_path(lambda t: t["a"] * (1 + (t["city"] == "York")), frame, [0.1, 1.0], n_samples=64)
    np.testing.assert_allclose(path.values, [[2.0, np.nan]] * 2)
    assert path[0].neighbourhood.fixed == ("city",)
