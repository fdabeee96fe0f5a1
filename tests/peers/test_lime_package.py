"""The lime package, set to Gaussian draws around the row and plain least squares, is C-LIME.

Settings: no discretisation, draws around the instance, every feature, least squares instead of ridge. lime takes the
spread of its draws from the training data and reports slopes per standard deviation of them, so two training rows
±σ give exactly N(x, diag(σ²)), and its coefficients compare with `standardised`.

lime reports no errors; it is asked REPEATS times, and the scatter of its answers says how well it knows their mean.
Each of its fits contains the row itself as one draw of DRAWS, which moves a slope by O(1/DRAWS) of its own error.
"""

from functools import cache

import numpy as np
import pytest
from lime.lime_base import LimeBase
from lime.lime_tabular import LimeTabularExplainer
from sklearn.linear_model import LinearRegression

import smoothlime as sl

pytestmark = pytest.mark.peers

SIGMA = np.array([0.5, 0.8, 1.3, 0.4])
X = np.array([0.3, -0.6, 0.2, 0.9])
REPEATS = 32
DRAWS = 16_384
"""Of lime, per repeat."""


def probability(points):
    """Two classes, curved and with an interaction: columns (n, 2) that sum to one."""
    margin = 1.5 * np.sin(points[:, 0]) - points[:, 1] + points[:, 1] * points[:, 2] + 0.5 * points[:, 3] ** 2
    second = 1 / (1 + np.exp(-margin))
    return np.column_stack([1 - second, second])


def steps(points):
    """A regression of steps, as a tree would make it: its gradient is zero almost everywhere."""
    return 2.0 * (points[:, 0] > 0.5) - 1.0 * (points[:, 1] + points[:, 2] > 0) + 0.7 * (points[:, 3] > 1.0)


def flat(distance, kernel_width):
    """Every draw counts alike."""
    return np.ones_like(distance)


@cache
def lime_answers(mode, kernel):
    """lime's standardised slopes (REPEATS, d), local predictions (REPEATS,) and R² (REPEATS,)."""
    explainer = LimeTabularExplainer(
        np.stack([SIGMA, -SIGMA]),
        mode=mode,
        kernel=kernel,
        feature_selection="none",
        discretize_continuous=False,
        sample_around_instance=True,
        random_state=7,
    )
    slopes, local, scores = [], [], []
    for _ in range(REPEATS):
        answer = explainer.explain_instance(
            X,
            probability if mode == "classification" else steps,
            labels=(1,),
            num_samples=DRAWS,
            model_regressor=LinearRegression(),
        )
        found = dict(answer.local_exp[1])
        slopes.append([found[j] for j in range(len(X))])
        local.append(answer.local_pred[0])
        scores.append(answer.score)
    return np.array(slopes), np.array(local), np.array(scores)


def error_of_mean(answers):
    return answers.std(axis=0, ddof=1) / np.sqrt(len(answers))


def assert_agree(e, slopes, *, std, sees):
    """Equal within the joint standard error; Student's t on the fewer degrees of freedom of the two."""
    sl.testing.assert_matches(
        e.values * std,
        slopes.mean(axis=0, keepdims=True),
        np.hypot(e.standard_error * std, error_of_mean(slopes)),
        sees=sees,
        degrees_of_freedom=min(float(e.degrees_of_freedom.min()), REPEATS - 1),
    )


@pytest.mark.parametrize(
    ("design", "sees"), [("iid", 0.04), ("antithetic", 0.04), ("orthogonal", 0.04), ("sobol", 0.08)]
)
def test_clime_agrees_with_lime_on_a_classifier(design, sees):
    e = sl.explain(probability, X, method="clime", sigma=SIGMA, target=1, design=design, n_samples=524_288)
    assert_agree(e, lime_answers("classification", flat)[0], std=SIGMA, sees=sees)


@pytest.mark.parametrize("method", ["clime", "differences"])
def test_predictions_alone_agree_with_lime_on_a_regression_of_steps(method):
    e = sl.explain(steps, X, method=method, sigma=SIGMA, n_samples=524_288)
    assert_agree(e, lime_answers("regression", flat)[0], std=SIGMA, sees=0.1)


def test_limes_own_kernel_is_a_narrower_neighbourhood():
    # exp(−‖z‖²/2w²) times the density of N(0, I) is that of N(0, w²/(1+w²)·I); w = 0.75·√d unless told otherwise
    width = 0.75 * np.sqrt(len(X))
    narrower = SIGMA * width / np.sqrt(1 + width**2)
    e = sl.explain(probability, X, method="clime", sigma=narrower, target=1, n_samples=524_288)
    assert_agree(e, lime_answers("classification", None)[0], std=SIGMA, sees=0.1)


def test_limes_local_prediction_and_score_are_the_smoothed_value_and_the_fidelity():
    _, local, scores = lime_answers("classification", flat)
    ours = [
        sl.explain(probability, X, method="clime", sigma=SIGMA, target=1, design="iid", n_samples=DRAWS, seed=seed)
        for seed in range(REPEATS)
    ]
    # R² of a fit with d slopes is too large by about d/n of what it leaves over
    adjusted = 1 - (1 - scores) * (DRAWS - 1) / (DRAWS - len(X) - 1)
    for got, peer in (([e.smoothed[0] for e in ours], local), ([e.fidelity[0] for e in ours], adjusted)):
        mine = np.array(got)
        sl.testing.assert_matches(
            mine.mean(),
            peer.mean(),
            np.hypot(error_of_mean(mine), error_of_mean(peer)),
            sees=0.05,
            degrees_of_freedom=REPEATS - 1,
        )


# ---- the package's own solver, on the very points that we evaluated

WIDTH = 1.5


def peers_fit(e, count, selection, regressor, *, width=WIDTH):
    """LimeBase on our points and distances: slopes (d,) per unit, 0 for features it did not choose."""
    points = e.perturbations(0)
    distances = np.linalg.norm((points - X) / SIGMA, axis=1)
    base = LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / width**2)))  # as lime_tabular writes its kernel
    # it takes the first point for the row itself, to weigh slopes by where 'highest_weights' is asked for
    _, chosen, score, _ = base.explain_instance_with_data(
        points, probability(points), distances, 1, count, selection, model_regressor=regressor
    )
    slopes = np.zeros(len(X))
    for feature, slope in chosen:
        slopes[feature] = slope
    return slopes, score


def explain_lime(n_samples=1_024, sigma=SIGMA, design="iid", **settings):
    method = sl.Lime(**{"kernel": WIDTH, **settings})
    return sl.explain(probability, X, method=method, sigma=sigma, target=1, design=design, n_samples=n_samples)


@pytest.mark.parametrize("design", ["iid", "antithetic", "orthogonal", "sobol"])
def test_the_same_points_give_the_packages_slopes(design):
    e = explain_lime(design=design)
    slopes, score = peers_fit(e, 4, "none", LinearRegression())
    np.testing.assert_allclose(e.values[0], slopes, rtol=1e-10)
    # ours is adjusted for the slopes fitted and for noise, theirs is not
    assert 0 <= score - e.fidelity[0] < 0.02


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_forward_selection_is_the_packages(count):
    e = explain_lime(features=count)
    np.testing.assert_allclose(e.values[0], peers_fit(e, count, "forward_selection", LinearRegression())[0], rtol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_packages_lasso_path_is_ours_where_features_have_one_scale(count):
    """It scales nothing, so that a feature in small units comes late; with one σ for all there is no difference."""
    e = explain_lime(features=count, select="lasso_path", sigma=0.7)
    points = e.perturbations(0)
    distances = np.linalg.norm((points - X) / 0.7, axis=1)
    base = LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / WIDTH**2)))
    _, chosen, _, _ = base.explain_instance_with_data(
        points, probability(points), distances, 1, count, "lasso_path", model_regressor=LinearRegression()
    )
    assert {int(feature) for feature, _ in chosen} == set(np.flatnonzero(e.values[0]).tolist())


def test_highest_weights_is_another_question_in_the_package():
    """It weighs slopes by its first point, the row itself: far from 0 counts more. Ours take steps of σ."""

    def near_and_far(points):
        return np.column_stack([np.zeros(len(points)), 1.0 * points[:, 0] + 2.0 * points[:, 1]])

    x = np.array([5.0, 0.1])
    e = sl.explain(near_and_far, x, method=sl.Lime(features=1, select="highest"), target=1, n_samples=512)
    points = np.concatenate([x[None], e.perturbations(0)])
    base = LimeBase(np.ones_like)
    _, chosen, _, _ = base.explain_instance_with_data(
        points, near_and_far(points), np.zeros(len(points)), 1, 1, "highest_weights", model_regressor=LinearRegression()
    )
    assert [int(feature) for feature, _ in chosen] == [0]
    assert np.flatnonzero(e.values[0]).tolist() == [1]


def test_the_packages_default_regressor_shrinks_where_weights_are_small():
    """Ridge(alpha=1) is λ = 1/Σπ: the fewer or lighter the draws, the more is lost, in whatever units they come."""
    e = explain_lime(n_samples=2_048, kernel=0.4, sigma=0.1)
    points = e.perturbations(0)
    distances = np.linalg.norm((points - X) / 0.1, axis=1)
    base = LimeBase(lambda d: np.sqrt(np.exp(-(d**2) / 0.4**2)))
    default, plain = (
        dict(base.explain_instance_with_data(points, probability(points), distances, 1, 4, "none", regressor)[1])
        for regressor in (None, LinearRegression())
    )
    np.testing.assert_allclose(e.values[0], [plain[j] for j in range(4)], rtol=1e-9)
    kept = np.linalg.norm([default[j] for j in range(4)]) / np.linalg.norm(e.values[0])
    total = np.exp(-(distances**2) / (2 * 0.4**2)).sum()
    variance = 0.1**2 * 0.4**2 / (1 + 0.4**2)
    assert kept < 0.1
    assert kept == pytest.approx(variance / (variance + 1 / total), rel=0.15)
    # with its λ said out loud, ours is the same
    ours = explain_lime(n_samples=2_048, kernel=0.4, sigma=0.1, ridge=1 / total)
    np.testing.assert_allclose(ours.values[0], [default[j] for j in range(4)], rtol=1e-8)
