"""The shop table in ranks: no draw that could not be a visit, and a smoothed model next to the model itself."""

import time

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import smoothlime as sl
from smoothlime.errors import DrawsOffData
from smoothlime.paper.datasets import NUMERICAL, SHOPPING_ROWS, check_rows, shopping_columns
from smoothlime.paper.fetching import SHOPPING, fetch
from smoothlime.paper.parsing import parse_csv, read_text

ROWS = [5, 76, 100, 2000]


@pytest.fixture(scope="module")
def shop():
    return shopping_columns(check_rows(parse_csv(read_text(fetch(SHOPPING))), SHOPPING_ROWS), NUMERICAL)


@pytest.fixture(scope="module")
def model(shop):
    return HistGradientBoostingClassifier(random_state=0).fit(*shop)


def explain(model, shop, rows, **more):
    settings = {"background": shop[0], "sigma": 0.5, "target": 1, "n_samples": 4_096, **more}
    return sl.explain(model, shop[0][rows], **settings)


def test_no_draw_lies_outside_of_what_each_column_ever_was(model, shop):
    x = shop[0]
    for sigma in (0.5, 2.0):
        e = explain(model, shop, ROWS, scale="ranks", sigma=sigma)
        for row in range(len(ROWS)):
            there = e.perturbations(row)
            assert (there >= x.min(axis=0)).all()
            assert (there <= x.max(axis=0)).all()
        assert (e.off_data == 0).all()


def test_the_smoothed_model_is_next_to_the_model(model, shop):
    with pytest.warns(DrawsOffData):
        raw = explain(model, shop, ROWS)
    ranks = explain(model, shop, ROWS, scale="ranks")
    at = ROWS.index(100)
    assert abs(ranks.smoothed[at] - ranks.prediction[at]) <= 0.05
    assert abs(raw.smoothed[at] - raw.prediction[at]) > 0.1
    assert np.abs(ranks.smoothed - ranks.prediction).max() < np.abs(raw.smoothed - raw.prediction).max()


def test_values_come_back(shop):
    scales = sl.Neighbourhood.from_data(shop[0], scale="ranks").background.scales
    for column, scale in zip(shop[0].T, scales, strict=True):
        back = scale.values(scale.scores(column))
        known = np.isin(column, scale.known)
        assert (back[known] == column[known]).all()
        assert (np.abs(back - column) <= 4 * np.spacing(np.abs(column))).mean() > 0.98


def test_a_neighbourhood_of_the_size_of_the_table_is_built_at_once(shop):
    wide = np.column_stack([shop[0], shop[0][:, :7]])
    began = time.perf_counter()
    sl.Neighbourhood.from_data(wide, scale="ranks")
    assert time.perf_counter() - began < 5
