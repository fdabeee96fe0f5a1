import math
import statistics

import numpy as np
import pytest

import smoothlime
from smoothlime.errors import DataUnavailable, InvalidArgument, MissingExtra, UnreadableFile, WrongType
from smoothlime.paper import datasets, preparation
from smoothlime.paper.datasets import (
    ATTRIBUTES,
    NUMERICAL,
    SELECTED_15,
    UNSUPERVISED_15,
    WITH_WEEKEND,
    bankruptcy,
    bayes_accuracy,
    shopping,
    simulated,
    stand_in,
)

SHOPPING_HEADER = (*NUMERICAL, "Month", "OperatingSystems", "Browser", "Region", "TrafficType", "VisitorType")


def shopping_file(n=200):
    rng = np.random.default_rng(0)
    revenue, weekend = rng.random(n) < 0.3, rng.random(n) < 0.2
    codes = ("Feb", "1", "2", "3", "4", "New_Visitor")
    rows = [
        [
            *(f"{value:.5g}" for value in rng.exponential(size=10)),
            *codes,
            str(weekend[i]).upper(),
            str(revenue[i]).upper(),
        ]
        for i in range(n)
    ]
    lines = [",".join((*SHOPPING_HEADER, "Weekend", "Revenue")), *(",".join(row) for row in rows)]
    return "".join(line + "\r\n" for line in lines).encode(), revenue, weekend


def bankruptcy_file(n=200):
    rng = np.random.default_rng(0)
    x, label = rng.standard_cauchy((n, 64)), np.arange(n) >= n - n // 5  # sorted by class, as the real file is
    gaps = rng.random(x.shape) < 0.03
    cells = [["?" if gaps[i, j] else f"{x[i, j]:.5g}" for j in range(64)] + [str(int(label[i]))] for i in range(n)]
    header = "@relation '1year'\n\n" + "".join(f"@attribute {name} numeric\n" for name in ATTRIBUTES)
    data = "".join(",".join(row) + "\r\n" for row in cells)
    return (header + "@attribute class {0,1}\n\n@data\n" + data + "\r\n").encode(), label, gaps


@pytest.fixture
def small_files(monkeypatch):
    """Files of 200 rows in the real formats, in place of the real ones."""
    files = {datasets.SHOPPING: shopping_file()[0], datasets.BANKRUPTCY: bankruptcy_file()[0]}
    monkeypatch.setattr(datasets, "fetch", lambda source: files[source])
    monkeypatch.setattr(datasets, "SHOPPING_ROWS", 200)
    monkeypatch.setattr(datasets, "BANKRUPTCY_ROWS", 200)
    return files


def test_simulated_clouds_have_the_stated_means_and_covariance():
    data = simulated(n=100_000, separation=1.5, seed=3)
    x, y = np.concatenate([data.x_train, data.x_test]), np.concatenate([data.y_train, data.y_test])
    z = statistics.NormalDist().inv_cdf(
        1 - 1e-6 / 24
    )  # family-wise chance of a false alarm 1e-6 over 12 two-sided checks
    assert abs(y.mean() - 0.5) < z * 0.5 / math.sqrt(len(y))
    for label, centre in ((0, -1.5), (1, 1.5)):
        cloud = x[y == label]
        n = len(cloud)
        assert np.all(np.abs(cloud.mean(axis=0) - centre) < z / math.sqrt(n))
        cov = np.cov(cloud.T)
        assert abs(cov[0, 1]) < z / math.sqrt(n)
        assert np.all(np.abs(np.diag(cov) - 1) < z * math.sqrt(2 / n))


def test_simulated_is_split_80_to_20_and_repeatable():
    data, same, other = simulated(), simulated(), simulated(seed=1)
    assert (data.x_train.shape, data.x_test.shape) == ((800, 2), (200, 2))
    assert (data.source, data.normalisation) == ("simulated", "none")
    np.testing.assert_array_equal(data.x_test, same.x_test)
    assert not np.array_equal(data.x_test, other.x_test)


def test_no_rule_beats_the_bayes_accuracy_and_the_sign_of_the_sum_reaches_it():
    data = simulated(n=100_000)
    right = np.mean((data.x_train.sum(axis=1) > 0) == data.y_train)
    truth = statistics.NormalDist().cdf(math.sqrt(2))
    assert bayes_accuracy(1.0) == pytest.approx(truth, abs=1e-12)
    assert abs(right - truth) < 5 * math.sqrt(truth * (1 - truth) / 80_000)
    assert bayes_accuracy(0.0) == 0.5


def test_arguments_of_simulated_are_checked():
    with pytest.raises(InvalidArgument, match="n must be a whole number >= 10; got 5"):
        simulated(n=5)
    with pytest.raises(InvalidArgument, match="separation must be finite and >= 0"):
        simulated(separation=-1.0)
    with pytest.raises(WrongType, match="seed must be a whole number"):
        simulated(seed=None)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("normalise", ["rank", "zscore"])
@pytest.mark.parametrize(
    ("load", "features", "names"),
    [
        (bankruptcy, "selected15", SELECTED_15),
        (bankruptcy, "unsupervised15", UNSUPERVISED_15),
        (bankruptcy, "all", ATTRIBUTES),
        (shopping, "numerical", NUMERICAL),
        (shopping, "with_weekend", WITH_WEEKEND),
    ],
)
def test_real_formats_become_complete_normalised_parts(load, features, names, normalise):
    data = load(features=features, normalise=normalise)
    assert data.feature_names == names
    assert data.x_train.shape == (160, len(names))
    assert data.x_test.shape == (40, len(names))
    assert data.x_train.dtype == np.float64
    assert np.all(np.isfinite(data.x_train))
    assert np.all(np.isfinite(data.x_test))
    assert (data.source, data.normalisation) == ("uci", normalise)
    assert data.majority == max(np.mean(data.y_test), 1 - np.mean(data.y_test))
    if normalise == "zscore":
        np.testing.assert_allclose(data.x_train.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(data.x_train.std(axis=0), 1, atol=1e-12)


def test_classes_have_equal_shares_in_both_parts(small_files):
    data = bankruptcy()
    assert (np.sum(data.y_train), np.sum(data.y_test)) == (32, 8)


def test_labels_belong_to_their_rows(small_files):
    """Each prepared row, found again in the file by its values, has the label that stands there."""
    rng = np.random.default_rng(0)
    revenue = rng.random(200) < 0.3  # as shopping_file draws it
    raw = np.array(
        [line.split(",")[:10] for line in small_files[datasets.SHOPPING].decode().split("\r\n")[1:-1]], float
    )
    data = shopping()
    train, test = preparation.split(revenue.astype(np.intp))
    mean, std = raw[train].mean(axis=0), raw[train].std(axis=0)
    np.testing.assert_allclose(data.x_test, (raw[test] - mean) / std, atol=1e-12)
    np.testing.assert_array_equal(data.y_test, revenue[test])


def test_the_label_is_in_no_list_of_inputs():
    for names in (SELECTED_15, UNSUPERVISED_15, ATTRIBUTES, NUMERICAL, WITH_WEEKEND):
        assert not {"class", "Revenue"} & set(names)
        assert len(set(names)) == len(names)
    assert [len(names) for names in (SELECTED_15, UNSUPERVISED_15, ATTRIBUTES)] == [15, 15, 64]
    assert [len(names) for names in (NUMERICAL, WITH_WEEKEND)] == [10, 11]


def test_the_label_is_refused_as_an_input(small_files):
    table = datasets.parse_csv(small_files[datasets.SHOPPING].decode())
    with pytest.raises(InvalidArgument, match="Revenue is the label; it cannot be an input"):
        datasets.shopping_columns(table, (*NUMERICAL, "Revenue"))
    table = datasets.parse_arff(small_files[datasets.BANKRUPTCY].decode())
    with pytest.raises(InvalidArgument, match="class is the label"):
        datasets.bankruptcy_columns(table, ("Attr1", "class"))


def test_weekend_is_the_weekend_and_not_the_label(small_files):
    _, revenue, weekend = shopping_file()
    x, y = datasets.shopping_columns(datasets.parse_csv(small_files[datasets.SHOPPING].decode()), WITH_WEEKEND)
    np.testing.assert_array_equal(x[:, -1], weekend)
    np.testing.assert_array_equal(y, revenue)


@pytest.mark.usefixtures("small_files")
def test_inputs_do_not_change_when_labels_do(monkeypatch, small_files):
    """Labels shuffled in the file, the split held: not one input may move."""
    train, test = np.arange(160), np.arange(160, 200)
    monkeypatch.setattr(datasets, "split", lambda y: (train, test))
    before = shopping(features="with_weekend", normalise="rank")
    swapped = small_files[datasets.SHOPPING].replace(b",TRUE\r\n", b",X\r\n")
    small_files[datasets.SHOPPING] = swapped.replace(b",FALSE\r\n", b",TRUE\r\n").replace(b",X\r\n", b",FALSE\r\n")
    after = shopping(features="with_weekend", normalise="rank")
    np.testing.assert_array_equal(after.y_train, 1 - before.y_train)
    np.testing.assert_array_equal(after.x_train, before.x_train)
    np.testing.assert_array_equal(after.x_test, before.x_test)


def test_wrong_numbers_of_rows_and_wrong_choices(small_files, monkeypatch):
    with pytest.raises(InvalidArgument, match="features must be one of 'selected15', 'unsupervised15', 'all'"):
        bankruptcy(features="some")
    with pytest.raises(InvalidArgument, match="normalise must be one of 'rank', 'zscore'; got 'minmax'"):
        shopping(normalise="minmax")
    monkeypatch.setattr(datasets, "SHOPPING_ROWS", 12_330)
    with pytest.raises(UnreadableFile, match="must have 12330 rows; got 200"):
        shopping()


@pytest.mark.parametrize("load", [bankruptcy, shopping])
def test_without_a_file_there_is_no_stand_in_in_silence(load):
    with pytest.raises(DataUnavailable):
        load()


def test_gaps_take_the_median_of_the_training_part():
    train = np.array([[1.0], [2.0], [np.nan], [9.0]])
    test = np.array([[np.nan], [100.0]])
    filled = preparation.fill(train, test)
    np.testing.assert_array_equal(filled[0][:, 0], [1, 2, 2, 9])
    np.testing.assert_array_equal(filled[1][:, 0], [2, 100])


@pytest.mark.parametrize("normalise", preparation.NORMALISATIONS)
def test_the_test_part_has_no_say_in_the_preparation(normalise):
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    one, first = preparation.prepare(train, test, normalise)
    other, second = preparation.prepare(train, np.concatenate([test[:1], 1e6 * test]), normalise)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first[0], second[0])


def test_normal_ranks_by_hand():
    """Shares 1/8, 1/2, 1/2, 7/8 for values 1, 2, 2, 5; 3.5 lies halfway from 2 to 5; beyond the ends nothing grows."""
    train, test = np.array([[5.0], [2.0], [1.0], [2.0]]), np.array([[3.5], [-1e9], [1e9]])
    ndtri = statistics.NormalDist().inv_cdf
    got_train, got_test = preparation.normal_ranks(train, test)
    np.testing.assert_allclose(got_train[:, 0], [ndtri(7 / 8), 0, ndtri(1 / 8), 0], atol=1e-12)
    np.testing.assert_allclose(got_test[:, 0], [ndtri(11 / 16), ndtri(1 / 8), ndtri(7 / 8)], atol=1e-12)


def test_normal_ranks_are_close_to_a_normal_distribution():
    train = np.random.default_rng(0).standard_cauchy((2_001, 1))
    got = np.sort(preparation.normal_ranks(train, train)[0][:, 0])
    expected = [statistics.NormalDist().inv_cdf((i + 0.5) / 2_001) for i in range(2_001)]
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_a_column_that_never_varies_becomes_zero():
    train, test = np.full((7, 1), 0.1), np.array([[0.1], [5.0]])
    for part in (*preparation.z_scores(train, test), *preparation.normal_ranks(train, test)):
        np.testing.assert_array_equal(part, 0)


@pytest.mark.parametrize(("name", "what", "d"), [("bankruptcy", "breast cancer", 30), ("shopping", "wine", 13)])
def test_stand_ins_say_so_loudly(name, what, d):
    data = stand_in(name)
    assert data.source == "stand-in"
    assert data.name == what
    assert f"STAND-IN: this is scikit-learn's {what} data, NOT the paper's {name} data" in data.note
    assert data.x_train.shape[1] == len(data.feature_names) == d
    assert set(np.unique(data.y_train)) == {0, 1}


def test_stand_ins_exist_for_two_names_only():
    with pytest.raises(InvalidArgument, match="name must be one of 'bankruptcy', 'shopping'; got 'simulated'"):
        stand_in("simulated")


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr(smoothlime._core.optional.importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"pip install 'smoothlime\[paper\]'"):
        stand_in("shopping")
