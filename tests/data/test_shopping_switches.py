"""The whole Online Shopping table, 17 columns of all kinds, as pandas reads it: slopes and switches of 200 rows."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import smoothlime as sl
from smoothlime.paper.fetching import SHOPPING, fetch

TEXT = ["Month", "VisitorType", "Weekend"]
CODES = ["OperatingSystems", "Browser", "Region", "TrafficType"]
FEATURES = [
    *["Administrative", "Administrative_Duration", "Informational", "Informational_Duration", "ProductRelated"],
    *["ProductRelated_Duration", "BounceRates", "ExitRates", "PageValues", "SpecialDay"],
    *["Month", "OperatingSystems", "Browser", "Region", "TrafficType", "VisitorType", "Weekend"],
]


@pytest.fixture(scope="module")
def visits():
    """The features, and who bought."""
    table = pd.read_csv(io.BytesIO(fetch(SHOPPING)))
    return table[FEATURES], table["Revenue"].astype(int)


def pipeline(X, y):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [*CODES, *TEXT]), remainder="passthrough"
    )
    return make_pipeline(columns, HistGradientBoostingClassifier(max_iter=20, random_state=0)).fit(X, y), X


def lightgbm(X, y):
    from lightgbm import LGBMClassifier

    X = X.astype(dict.fromkeys([*CODES, *TEXT], "category"))
    return LGBMClassifier(n_estimators=20, n_jobs=2, verbose=-1, random_state=0).fit(X, y), X


def xgboost(X, y):
    from xgboost import XGBClassifier

    X = X.astype(dict.fromkeys([*CODES, *TEXT[:2]], "category"))  # it takes no categories of true and false
    return XGBClassifier(n_estimators=20, n_jobs=2, enable_categorical=True, random_state=0).fit(X, y), X


@pytest.mark.parametrize("make", [pipeline, lightgbm, xgboost])
def test_the_whole_table_has_slopes_and_switches(visits, make):
    model, X = make(*visits)
    rows = X.iloc[:: len(X) // 200][:200]
    e = sl.explain(model, rows, background=X, sigma=0.5, target=1, fixed=[*CODES, *TEXT], scale="ranks", rtol=0.1)
    assert np.isfinite(e.values[:, :10]).all()
    assert np.isnan(e.values[:, 10:]).all()
    s = e.switches
    assert [column.feature for column in s.columns] == FEATURES[10:]
    assert [len(column.levels) for column in s.columns] == [10, 8, 11, 9, 11, 3, 2]
    assert s.converged.all()
    frame = s.to_frame()
    there = ~s.is_own
    assert len(frame) == there.sum() > 200 * 46
    half = np.maximum(0.005, 0.1 * np.abs(s.effect[there]))
    assert (s.standard_error[there] <= half).all()
    # a visit in November buys more than the same visit in March
    november, march = (s.levels.index(month) for month in ("Nov", "Mar"))
    better = np.nan_to_num(s.effect[:, november]) - np.nan_to_num(s.effect[:, march])
    assert better.mean() > 0.01
    # and against the model itself, at independent draws
    again = sl.explain(
        model, rows.iloc[[7]], background=X, sigma=0.5, target=1, fixed=[*CODES, *TEXT], scale="ranks", n_samples=4_096,
        method="stein", design="iid", switches=False,
    )  # fmt: skip
    points = again.perturbations(0)[:, :10]
    draws = rows.iloc[[7] * len(points)].reset_index(drop=True).astype(dict.fromkeys(FEATURES[:10], float))
    draws[FEATURES[:10]] = points
    switched = draws.assign(Month=pd.Series(["Nov"] * len(draws), dtype=X["Month"].dtype))
    change = model.predict_proba(switched)[:, 1] - model.predict_proba(draws)[:, 1]
    error = np.hypot(s.standard_error[7, november], change.std() / np.sqrt(len(draws)))
    assert abs(s.effect[7, november] - change.mean()) < 5 * error
