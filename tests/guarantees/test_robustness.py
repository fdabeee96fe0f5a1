import warnings

import lightgbm
import numpy as np
import pytest
import torch
import xgboost
from sklearn.linear_model import LogisticRegression

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known

X = np.random.default_rng(0).normal(size=(12, 2))
F = known.Probit([1.5, -0.7], 0.2)


@pytest.mark.parametrize("units", ["raw", "standardised"])
@pytest.mark.parametrize("norm", [1, 2])
def test_it_is_the_papers_measure(norm, units):
    """A quadratic has slopes A·x, so that the distance to a neighbour is that of A·step; done by hand here."""
    A = np.array([[1.0, 0.4], [0.4, -2.0]])
    sigma = 0.5
    found = sl.robustness(
        known.Quadratic(A, [0.0, 0.0]), X, sigma=sigma, method="differences", neighbours=4, spread=0.1, norm=norm,
        units=units, n_samples=8, seed=3,
    )  # fmt: skip
    steps = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(2,))).standard_normal((12, 4, 2)) * 0.1
    if units == "standardised":
        steps *= sigma
    moved = steps @ A * (sigma if units == "standardised" else 1.0)
    by_hand = np.linalg.norm(moved, ord=norm, axis=2).max(axis=1)
    np.testing.assert_allclose(found.per_row, by_hand, rtol=1e-9)
    assert found.mean == pytest.approx(by_hand.mean())
    assert found.standard_error == pytest.approx(by_hand.std(ddof=1) / np.sqrt(12))
    assert found.population == pytest.approx(by_hand.mean(), rel=1e-9)


def test_shared_draws_take_the_noise_away():
    """At equal n, the paper's protocol measures mostly noise; ours, mostly the model."""
    more = {"sigma": 0.5, "method": "clime", "design": "iid", "n_samples": 200}
    apart = sl.robustness(F, X, draws="independent", **more)
    shared = sl.robustness(F, X, **more)
    assert apart.population == pytest.approx(shared.population)
    assert abs(shared.mean - shared.population) < 0.2 * abs(apart.mean - apart.population)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("units", ["raw", "standardised"])
def test_the_ceiling_is_above_the_population(norm, units):
    found = sl.robustness(F, X, sigma=0.5, method="clime", norm=norm, units=units, output_range=(0, 1), n_samples=500)
    assert found.ceiling is not None
    assert found.population < found.ceiling.mean()
    assert "certified" in str(found)
    assert sl.robustness(F, X, sigma=0.5, n_samples=64).ceiling is None


def test_one_row_has_no_standard_error_and_repeated_rows_differ_by_their_neighbours():
    one = sl.robustness(F, X[0], sigma=0.5, n_samples=64)
    assert np.isnan(one.standard_error)
    twice = sl.robustness(F, X[[0, 0]], sigma=0.5, n_samples=64)
    assert twice.per_row[0] != twice.per_row[1]
    assert f"on average (standard error {twice.standard_error:.2g}; L" in str(twice)


def test_raw_units_with_different_scales_have_no_ceiling():
    found = sl.robustness(F, X, sigma=[0.5, 1.0], units="raw", output_range=(0, 1), n_samples=64)
    assert found.ceiling is None


def test_fixed_features_do_not_move():
    found = sl.robustness(F, X, sigma=sl.Neighbourhood(0.5, fixed=(1,)), n_samples=64, output_range=(0, 1))
    assert np.isfinite(found.per_row).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": 3}, r"norm must be 1 or 2; got 3"),
        ({"neighbours": 0}, r"neighbours must be a whole number >= 1"),
        ({"spread": -1}, r"spread must be finite and >= 0"),
        ({"units": "feet"}, r"units must be one of"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        sl.robustness(F, X, **arguments)


def test_features_of_a_frame_can_be_held_fixed_by_name():
    import pandas as pd

    table = pd.DataFrame({"age": [0.1, 0.4], "debt": [1.0, 2.0], "time": [0.0, -0.3]})
    model = lambda a: np.tanh(a[:, 0]) * a[:, 1] + a[:, 2]
    question = {"n_samples": 64, "output_range": (-9, 9), "progress": False}
    by_name = sl.robustness(model, table, sigma=sl.Neighbourhood(0.5, fixed=["debt"]), **question)
    by_position = sl.robustness(model, table.to_numpy(), sigma=sl.Neighbourhood(0.5, fixed=[1]), **question)
    np.testing.assert_array_equal(by_name.per_row, by_position.per_row)
    np.testing.assert_array_equal(by_name.ceiling, by_position.ceiling)


def test_what_the_model_contradicts_is_refused():
    def steep(a):
        return 5 * np.tanh(3 * a[:, 0])

    with pytest.raises(errors.ModelError, match=r"slope of at least .* next to row 0, beyond gradient_bound=0.001"):
        sl.robustness(steep, [[0.0, 0.0]], sigma=0.5, gradient_bound=0.001, n_samples=64)
    with pytest.raises(errors.ModelError, match=r"at row 1 or next to it, outside output_range=\(-1, 1\)"):
        sl.robustness(steep, [[0.0, 0.0], [2.0, 0.0]], sigma=0.01, output_range=(-1, 1), n_samples=64)
    found = sl.robustness(steep, [[0.0, 0.0]], sigma=0.5, gradient_bound=15.0, output_range=(-5, 5), n_samples=64)
    assert found.ceiling is not None
    assert found.per_row <= found.ceiling


@pytest.mark.parametrize("seed", [-1, 1.5, "x"])
def test_seeds_are_checked(seed):
    with pytest.raises(errors.SmoothlimeError, match="seed must be a whole number"):
        sl.robustness(F, X, n_samples=64, seed=seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounding_contradicts_no_bound(dtype):
    """A line far from 0 whose outputs cancel: slopes of two outputs are off by the digits of the inputs."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 1)).to(dtype).eval()
    at = 100.0 if dtype == torch.float32 else 1.0
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.fill_(-at)
    rows = at + np.linspace(0, 1, 20)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.LostPrecision)
        found = sl.robustness(net, rows, sigma=1.0, n_samples=64, gradient_bound=1.0)
    assert found.ceiling is not None


def test_neighbours_that_are_the_row_itself_show_no_slope():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sl.robustness(F, X, spread=0.0, gradient_bound=2.0, n_samples=64).mean == 0


@pytest.mark.parametrize("setup", ["logistic", "network"])
@pytest.mark.parametrize("norm", [1, 2])
def test_neighbours_beyond_a_decision_boundary_are_explained_for_the_class_of_their_row(setup, norm):
    """On the boundary itself, about half of the neighbours are predicted to be of the other class."""
    if setup == "logistic":
        points = np.random.default_rng(0).normal(size=(400, 2))
        model = LogisticRegression(C=100).fit(points, (points[:, 0] > 0).astype(int))
        row, more = [[-model.intercept_[0] / model.coef_[0, 0], 0.0]], {"sigma": 0.5}
    else:
        model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False)).eval()
        with torch.no_grad():
            model[0].weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
        row, more = [[0.0, 0.0]], {"sigma": 1.0, "gradient_bound": sl.gradient_bound(model)}
    found = sl.robustness(model, row, target="predicted", norm=norm, **more)
    assert found.ceiling is not None
    assert found.population <= found.ceiling.mean()
    assert (found.per_row <= found.ceiling).all()
    by_name = [sl.robustness(model, row, target=target, norm=norm, **more).population for target in (0, 1)]
    assert found.population in by_name


def test_each_row_keeps_its_own_class():
    net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Tanh()).double().eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [-3.0]]))
        net[0].bias.zero_()
    together = sl.robustness(net, [[-0.3], [0.4]], target="predicted", n_samples=64)
    assert together.per_row[0] == sl.robustness(net, [[-0.3], [0.4]], target=1, n_samples=64).per_row[0]
    assert together.per_row[1] == sl.robustness(net, [[-0.3], [0.4]], target=0, n_samples=64).per_row[1]


def test_probabilities_that_leave_their_range_are_refused():
    """What a classifier calls probabilities may be margins: those of `objective="binary:logitraw"` are."""

    class Margins:
        outputs = ("0", "1")
        output_range = (0.0, 1.0)

        def values(self, points):
            return np.column_stack([-4 * points[:, 0], 1 + 4 * points[:, 0]])

    with pytest.raises(
        errors.ModelError, match=r"at row 0 or next to it, though what it calls probabilities should lie"
    ):
        sl.robustness(Margins(), [[0.3]], target="1", n_samples=64)
    found = sl.robustness(Margins(), [[0.3]], target="1", output_range=(-40, 40), n_samples=64)
    assert found.ceiling is not None


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosted_classifiers_without_a_sigmoid_have_no_range(library):
    points = np.random.default_rng(0).normal(size=(400, 2))
    labels = (points[:, 0] + 0.5 * points[:, 1] > 0).astype(int)
    if library == "xgboost":
        kind = xgboost.XGBClassifier
        model = kind(objective="binary:logitraw", n_estimators=50, n_jobs=1).fit(points, labels)
    else:
        kind = lightgbm.LGBMClassifier
        model = kind(objective="regression", n_estimators=50, verbose=-1, n_jobs=1).fit(points, labels)
    assert sl.robustness(model, points[:5], sigma=0.3, target="1", spread=2.0, n_samples=64).ceiling is None
    with pytest.raises(errors.InvalidArgument, match="output_range"):
        sl.certify(model, points[:5], sigma=0.3)
    assert sl.as_model(kind(n_estimators=5, n_jobs=1).fit(points, labels)).output_range == (0.0, 1.0)
