"""Numbers of clusters and labels of outliers are refused, and what the message names instead can be explained."""

import functools

import numpy as np
import pytest
import xgboost
from sklearn.cluster import DBSCAN, Birch, KMeans, MeanShift
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import SGDOneClassSVM
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

import smoothlime as sl
from smoothlime.errors import WrongType

X = np.random.default_rng(0).normal(size=(80, 3))
X[40:] += 3
POINTS = X[:2]
ASK = {"n_samples": 64}


def k_means():
    return KMeans(2, n_init=1, random_state=0)


def forest():
    return IsolationForest(n_estimators=8, random_state=0)


def searched(model, **grid):
    return GridSearchCV(model, grid, cv=2, scoring=lambda model, X, y=None: 0.0)


CLUSTERS = {
    "k-means": k_means(),
    "birch": Birch(n_clusters=2),
    "in a pipeline": make_pipeline(StandardScaler(), k_means()),
    "in a search": searched(k_means(), n_init=[1]),
    "in a pipeline in a search": searched(make_pipeline(k_means()), kmeans__n_init=[1]),
}
DETECTORS = {
    "forest": forest(),
    "svm": OneClassSVM(),
    "sgd": SGDOneClassSVM(random_state=0),
    "neighbours": LocalOutlierFactor(novelty=True),
    "ellipse": EllipticEnvelope(random_state=0),
    "in a pipeline": make_pipeline(StandardScaler(), forest()),
    "in a search": searched(forest(), max_samples=[0.5]),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_numbers_of_clusters_are_refused_and_distances_named(name):
    model = CLUSTERS[name].fit(X)
    for asked in (model, model.predict, functools.partial(model.predict)):
        with pytest.raises(
            WrongType,
            match=r"number of a cluster.*distances to the centres, sl.as_model\(lambda a: model.transform\(a\)",
        ):
            sl.explain(asked, POINTS, **ASK)
    with pytest.raises(WrongType, match="number of a cluster"):  # they have no margin either
        sl.explain(model, POINTS, output="margin", **ASK)
    away = sl.explain(sl.as_model(lambda a: model.transform(a)), POINTS, target=0, **ASK)
    np.testing.assert_array_equal(away.prediction, model.transform(POINTS)[:, 0])
    sl.explain(sl.as_model(lambda a: model.predict(a) == 0), POINTS, **ASK)


def test_clusters_without_distances_name_how_often_one_is_predicted():
    model = MeanShift(bandwidth=3).fit(X)
    with pytest.raises(
        WrongType, match=r"a MeanShift.*explain how often.*sl.as_model\(lambda a: model.predict\(a\) == 0"
    ):
        sl.explain(model, POINTS, **ASK)
    e = sl.explain(sl.as_model(lambda a: model.predict(a) == 0), POINTS, **ASK)
    np.testing.assert_array_equal(e.prediction, model.predict(POINTS) == 0)


def test_clusters_of_the_rows_they_were_found_in_are_refused():
    with pytest.raises(WrongType, match="got a DBSCAN, which labels the rows it was fitted on, but no others"):
        sl.explain(DBSCAN().fit(X), POINTS)


def test_clusters_with_probabilities_are_explained_by_them():
    mixture = GaussianMixture(2, random_state=0).fit(X)
    e = sl.explain(mixture, POINTS, target=0, **ASK)
    np.testing.assert_array_equal(e.prediction, mixture.predict_proba(POINTS)[:, 0])


@pytest.mark.parametrize("name", DETECTORS)
def test_labels_of_outliers_are_refused_and_scores_named(name):
    model = DETECTORS[name].fit(X)
    for asked in (model, model.predict):
        with pytest.raises(
            WrongType, match=r"labels of inliers.*output='margin'.*sl.as_model\(lambda a: model.score_samples\(a\)"
        ):
            sl.explain(asked, POINTS, **ASK)
    margin = sl.explain(model, POINTS, output="margin", **ASK)
    np.testing.assert_array_equal(margin.prediction, model.decision_function(POINTS))
    score = sl.explain(sl.as_model(lambda a: model.score_samples(a)), POINTS, **ASK)
    np.testing.assert_array_equal(score.prediction, model.score_samples(POINTS))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"_estimator_type": "clusterer"}, "number of a cluster.*how often"),
        ({"_estimator_type": "outlier_detector"}, r"labels of inliers.*lambda a: model.predict\(a\) == 1"),
        ({"decision_function": lambda self, a: a[:, 0]}, "labels of inliers.*give it with output='margin'"),
    ],
)
def test_detectors_of_ones_own_say_what_they_are_by_their_attributes(members, message):
    own = type("Own", (), {"predict": lambda self, a: np.sign(a[:, 0]), **members})
    with pytest.raises(WrongType, match=message):
        sl.explain(own(), POINTS)
    number = type("Number", (own,), {"_estimator_type": "regressor"})
    sl.explain(number(), POINTS, **ASK)


def test_numbers_of_classes_are_no_numbers_either():
    y = np.digitize(X[:, 0], [0.0, 2.0])
    model = xgboost.XGBRegressor(objective="multi:softmax", num_class=3, n_estimators=2, n_jobs=1).fit(X, y)
    with pytest.raises(WrongType, match=r"predicts the number of a class.*output='margin'.*'multi:softprob'"):
        sl.explain(model, POINTS)
    e = sl.explain(model, POINTS, output="margin", target=1)
    np.testing.assert_allclose(e.prediction, model.predict(POINTS, output_margin=True)[:, 1], rtol=1e-6)
    model.set_params(objective="multi:softprob").fit(X, y)
    assert sl.explain(model, POINTS, target=1, **ASK).prediction.max() < 1


def test_labels_are_seen_through_wrappers_and_in_objectives():
    from sklearn.frozen import FrozenEstimator

    clusters = KMeans(3, n_init=1, random_state=0).fit(X)
    for model in (FrozenEstimator(clusters), make_pipeline(StandardScaler(), FrozenEstimator(clusters)).fit(X)):
        with pytest.raises(WrongType, match="predicts the number of a cluster"):
            sl.explain(model, POINTS)
    hinge = xgboost.XGBRegressor(objective="binary:hinge", n_estimators=2, n_jobs=1).fit(X, X[:, 0] > 0)
    with pytest.raises(WrongType, match=r"predicts the number of a class.*'binary:logistic'"):
        sl.explain(hinge, POINTS)
