"""What is published about the two files, found again in the files."""

import hashlib
import io

import numpy as np
import pytest
from scipy.io import arff
from scipy.stats import spearmanr

from smoothlime.paper.datasets import (
    ATTRIBUTES,
    NUMERICAL,
    SELECTED_15,
    UNSUPERVISED_15,
    bankruptcy,
    bankruptcy_columns,
    shopping,
    shopping_columns,
)
from smoothlime.paper.fetching import BANKRUPTCY, SHOPPING, fetch
from smoothlime.paper.networks import RECIPES, train
from smoothlime.paper.parsing import parse_arff, parse_csv, read_text
from smoothlime.paper.preparation import split
from smoothlime.paper.scores import auc

SPLIT = "76ddeffcdd9c2e5078724631f691843cf8647240a6a5c6632e54c9cb7d6aad8a"  # SHA-256 of its test rows, int64, sorted
VARIANTS = [
    (bankruptcy, "selected15", "rank"),
    (bankruptcy, "unsupervised15", "zscore"),
    (bankruptcy, "all", "rank"),
    (shopping, "numerical", "zscore"),
    (shopping, "with_weekend", "zscore"),
]


@pytest.fixture(scope="module")
def companies():
    return parse_arff(read_text(fetch(BANKRUPTCY)))


@pytest.fixture(scope="module")
def visits():
    return parse_csv(read_text(fetch(SHOPPING)))


@pytest.mark.parametrize("source", [BANKRUPTCY, SHOPPING], ids=["bankruptcy", "shopping"])
def test_the_files_are_the_published_ones(source):
    content = fetch(source)
    assert len(content) == source.n_bytes
    assert hashlib.sha256(content).hexdigest() == source.sha256


def test_bankruptcy_rows_classes_and_gaps(companies):
    x, y = bankruptcy_columns(companies, ATTRIBUTES)
    assert companies.names == (*ATTRIBUTES, "class")
    assert x.shape == (10_503, 64)
    assert np.bincount(y).tolist() == [10_008, 495]
    gaps = np.isnan(x)
    assert gaps.sum() == 9_888
    assert gaps.any(axis=1).sum() == 5_618
    by_name = dict(zip(ATTRIBUTES, gaps.sum(axis=0), strict=True))
    assert [by_name[name] for name in ("Attr1", "Attr9", "Attr21", "Attr27", "Attr37", "Attr60")] == [
        0,
        3,
        807,
        715,
        4_736,
        592,
    ]
    assert sum(by_name[name] for name in SELECTED_15) == 2_772


def test_our_parser_reads_what_scipy_reads(companies):
    records, _ = arff.loadarff(io.StringIO(read_text(fetch(BANKRUPTCY))))
    x, y = bankruptcy_columns(companies, ATTRIBUTES)
    np.testing.assert_array_equal(x, np.column_stack([records[name] for name in ATTRIBUTES]))
    np.testing.assert_array_equal(y, records["class"].astype(int))


def test_shopping_rows_classes_and_no_gaps(visits):
    x, y = shopping_columns(visits, NUMERICAL)
    assert len(visits.names) == 18
    assert x.shape == (12_330, 10)
    assert np.bincount(y).tolist() == [10_422, 1_908]
    assert not np.isnan(x).any()
    assert [len(np.unique(x[:, NUMERICAL.index(name)])) for name in ("Administrative", "SpecialDay")] == [27, 6]


def test_the_unsupervised_list_follows_its_rule(companies):
    """At most 0.05 % missing, then kept in order if |Spearman| <= 0.95 with all kept before."""
    x, _ = bankruptcy_columns(companies, ATTRIBUTES)
    kept = []
    for j in np.flatnonzero(np.isnan(x).mean(axis=0) <= 0.0005):
        if all(abs(spearmanr(x[:, j], x[:, i], nan_policy="omit").statistic) <= 0.95 for i in kept):
            kept.append(int(j))
    assert tuple(ATTRIBUTES[j] for j in kept) == UNSUPERVISED_15


@pytest.mark.parametrize(("load", "features", "normalise"), VARIANTS, ids=[f"{v[0].__name__}-{v[1]}" for v in VARIANTS])
def test_prepared_parts(load, features, normalise):
    data = load(features=features, normalise=normalise)
    n_train, n_test, ones = (8_402, 2_101, 99) if load is bankruptcy else (9_864, 2_466, 382)
    assert data.x_train.shape == (n_train, len(data.feature_names))
    assert data.x_test.shape == (n_test, len(data.feature_names))
    assert data.y_test.sum() == ones
    assert data.majority == 1 - ones / n_test
    assert np.all(np.isfinite(data.x_train))
    assert np.all(np.isfinite(data.x_test))
    assert data.source == "uci"


@pytest.mark.parametrize(("load", "features", "normalise"), VARIANTS, ids=[f"{v[0].__name__}-{v[1]}" for v in VARIANTS])
def test_no_input_is_the_label_or_gives_it_away(load, features, normalise):
    """A leaked label, also recoded or with noise, ranks the classes almost perfectly; no honest column comes near."""
    data = load(features=features, normalise=normalise)
    x, y = np.concatenate([data.x_train, data.x_test]), np.concatenate([data.y_train, data.y_test])
    for j, name in enumerate(data.feature_names):
        ranking = auc(y, x[:, j])
        assert max(ranking, 1 - ranking) < 0.9, name
        values, position = np.unique(x[:, j], return_inverse=True)
        if len(values) < 50:  # few values: does each belong to one class?
            share = np.bincount(position, weights=y) / np.bincount(position)
            assert np.any((share > 0) & (share < 1)), name


def test_the_leak_test_would_see_a_leak(visits):
    _, y = shopping_columns(visits, NUMERICAL)
    noisy = y + np.random.default_rng(0).normal(scale=0.3, size=len(y))
    assert auc(y, noisy) > 0.9


def test_z_scores_leave_outliers_that_ranks_do_not():
    assert np.abs(bankruptcy(normalise="zscore").x_train).max() > 50
    assert np.abs(bankruptcy(normalise="rank").x_train).max() < 4


def test_the_split_is_that_of_scikit_learn_with_random_state_0(companies):
    """The selected columns were chosen on its training part; another split would flatter the networks."""
    _, y = bankruptcy_columns(companies, SELECTED_15)
    train_rows, test_rows = split(y)
    assert hashlib.sha256(np.sort(test_rows).astype("<i8").tobytes()).hexdigest() == SPLIT
    assert np.array_equal(np.sort(np.concatenate([train_rows, test_rows])), np.arange(10_503))


# Measured elsewhere, with another implementation and over other starts: 96.1 to 96.7 and 88.7 to 89.7 % accuracy over
# five splits. The bands are those, widened by one standard error of an accuracy on a test part of this size (0.4 and
# 0.6 points) on each side. Both lie above the share of the larger class, 95.3 and 84.5 %, which a constant reaches.
GOOD = {"bankruptcy": (bankruptcy, 0.957, 0.971), "shopping": (shopping, 0.881, 0.903)}


@pytest.mark.parametrize("name", GOOD)
def test_good_networks_are_as_good_as_can_be_expected_and_weak_ones_are_weak(name):
    load, low, high = GOOD[name]
    data = load()
    good, weak = (train(data, **RECIPES[name][kind]) for kind in ("good", "weak"))
    assert low < good.accuracy < high
    assert good.accuracy > data.majority
    assert good.balanced_accuracy > 0.62
    assert good.auc > 0.83
    assert weak.accuracy < data.majority  # as the paper's weak network on the bankruptcy data, 86 %
    assert weak.auc < good.auc - 0.1
    assert weak.balanced_accuracy < good.balanced_accuracy - 0.1
