import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import ledoit_wolf

import smoothlime as sl
from smoothlime import Neighbourhood
from smoothlime.errors import InvalidArgument, WrongType
from smoothlime.testing import covariance

RNG = np.random.default_rng(5)
DATA = RNG.normal(size=(60, 4)) @ RNG.normal(size=(4, 4)) + 3


def test_sigma_is_a_standard_deviation():
    np.testing.assert_allclose(covariance(Neighbourhood(0.5), 2), 0.25 * np.eye(2))
    np.testing.assert_allclose(covariance(Neighbourhood([0.5, 2.0]), 2), np.diag([0.25, 4.0]))


def test_sigma_counts_in_units_of_scale_and_covariance():
    np.testing.assert_allclose(covariance(Neighbourhood(0.5, scale=[1.0, 10.0]), 2), np.diag([0.25, 25.0]))
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(covariance(Neighbourhood(0.5, covariance=cov), 2), 0.25 * cov)


def test_factor_reproduces_sigma_and_whitening_is_its_transpose():
    cov = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.7]])
    factor = Neighbourhood(1.5, covariance=cov).factor(3)
    np.testing.assert_allclose(factor.lower @ factor.lower.T, 2.25 * cov)
    np.testing.assert_allclose(factor.std, 1.5 * np.sqrt(np.diag(cov)))
    w = np.array([[1.0, -2.0, 0.5]])
    whitened = factor.whiten(w)
    np.testing.assert_allclose((whitened**2).sum(), (w @ (2.25 * cov) @ w.T).item())
    np.testing.assert_allclose(factor.unwhiten(whitened), w)
    np.testing.assert_allclose(factor.unwhitened_scale, np.sqrt(np.diag(np.linalg.inv(2.25 * cov))))


def test_a_diagonal_covariance_takes_the_cheap_form():
    assert Neighbourhood(covariance=np.diag([1.0, 4.0])).factor(2).is_diagonal


def test_steps_of_a_full_covariance_have_that_covariance():
    cov = np.array([[2.0, 0.9], [0.9, 1.0]])
    z = np.random.default_rng(0).standard_normal((200_000, 2))
    found = np.cov(Neighbourhood(covariance=cov).factor(2).steps(z).T)
    np.testing.assert_allclose(found, cov, atol=5 * 3 / np.sqrt(200_000))


def test_fixed_features_are_left_out_by_position_or_name():
    factor = Neighbourhood(2.0, fixed=(1,)).factor(3)
    assert factor.free.tolist() == [0, 2]
    assert Neighbourhood(fixed=("age",)).factor(2, ("income", "age")).free.tolist() == [0]
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(Neighbourhood(covariance=cov, fixed=[0]).factor(2).std, [1.0])


def test_from_data_counts_in_standard_deviations():
    np.testing.assert_allclose(
        covariance(Neighbourhood.from_data(DATA, 0.5), 4), 0.25 * np.diag(DATA.var(axis=0, ddof=1))
    )


def test_from_data_holds_constant_columns_fixed():
    data = np.column_stack([DATA[:, 0], np.full(60, 1e6), DATA[:, 1]])
    assert Neighbourhood.from_data(data).fixed == (1,)
    assert Neighbourhood.from_data(data, full=True).fixed == (1,)
    assert Neighbourhood.from_data(data, fixed=[0]).fixed == (0, 1)


def test_full_from_data_shrinks_as_ledoit_and_wolf():
    std = DATA.std(axis=0)
    correlations, _ = ledoit_wolf(DATA / std)
    expected = correlations * np.outer(std, std) * 60 / 59
    np.testing.assert_allclose(Neighbourhood.from_data(DATA, full=True).covariance, expected, rtol=1e-10)


def test_full_from_data_keeps_the_scale_of_each_feature():
    """Shrinking raw covariances towards a common variance would drown small features in large ones."""
    unit = np.array([1.0, 1e3, 1e-3, 1e6])
    factor = Neighbourhood.from_data(DATA * unit, full=True).factor(4)
    np.testing.assert_allclose(factor.std, DATA.std(axis=0, ddof=1) * unit, rtol=1e-9)


def test_covariances_are_judged_in_the_units_of_their_features():
    assert Neighbourhood(covariance=np.diag([1e-10, 1e8])).factor(2).std.tolist() == pytest.approx([1e-5, 1e4])
    nearly = np.array([[1.0, 1e-16], [-1e-16, 1.0]])
    np.testing.assert_allclose(covariance(Neighbourhood(covariance=nearly), 2), np.eye(2))


def test_variances_whose_products_are_no_numbers_are_variances():
    for given in (np.diag([1e300, 1.0]), np.array([[1e200, 0.5], [0.5, 1e-200]])):
        np.testing.assert_allclose(Neighbourhood(covariance=given).factor(2).std ** 2, np.diag(given))


def test_a_mask_is_not_a_list_of_positions():
    with pytest.raises(InvalidArgument, match="fixed takes positions or names, not a mask"):
        Neighbourhood(fixed=[False, True, False])
    assert Neighbourhood(fixed=np.int64(1)).factor(2).free.tolist() == [0]


def test_full_from_data_survives_fewer_rows_than_features():
    wide = np.random.default_rng(0).normal(size=(5, 12))
    assert Neighbourhood.from_data(wide, full=True).factor(12).lower.shape == (12, 12)


def test_variances_up_to_the_largest_number_are_kept_as_they_are():
    variances = np.diag([np.finfo(float).max, 1.0, np.finfo(float).tiny])
    np.testing.assert_array_equal(Neighbourhood(1.0, covariance=variances).covariance, variances)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sigma": -0.1}, r"sigma must be finite and > 0; got -0.1"),
        ({"sigma": 0.0}, r"sigma must be finite and > 0; got 0"),
        ({"sigma": np.nan}, r"sigma must be finite and > 0; got nan"),
        ({"sigma": [1.0, -2.0]}, r"sigma must be finite and > 0; got -2 at feature 1; list a feature in `fixed`"),
        ({"sigma": np.ones((2, 2))}, r"sigma must be one number, or one per feature; got shape \(2, 2\)"),
        ({"scale": 2.0}, r"scale must be one number per feature; got shape \(\)"),
        ({"scale": [1.0, 0.0]}, r"scale must be finite and > 0; got 0 at feature 1"),
        ({"covariance": [[1.0, 0.2]]}, r"covariance must be a square matrix \(d, d\); got shape \(1, 2\)"),
        ({"covariance": [[1.0, 0.5], [0.2, 1.0]]}, r"covariance must be symmetric; entry \(0, 1\) is 0.5"),
        ({"covariance": [[1.0, 1e308], [-1e308, 1.0]]}, r"covariance must be symmetric; entry \(0, 1\) is 1e\+308"),
        (
            {"covariance": [[1.0, 1.0], [1.0, 1.0]]},
            r"covariance must be positive definite; as correlations its smallest",
        ),
        ({"covariance": [[1.0, np.nan], [np.nan, 1.0]]}, r"covariance must be finite"),
        ({"covariance": np.eye(2), "scale": [1.0, 2.0]}, r"give scale or covariance, not both"),
        ({"covariance": np.eye(2), "sigma": [1.0, 2.0]}, r"sigma must be one number when a covariance is given"),
        ({"sigma": [1.0, 1.0, 1.0], "scale": [1.0, 2.0]}, r"sigma has 3 entries but scale has 2"),
        ({"sigma": 1e-200, "scale": [1.0, 1e-200]}, r"sigma times scale must be finite and > 0; got 0 at feature 1"),
        (
            {"sigma": 1e-200, "scale": [1e-120, 1.0]},
            r"sigma times scale must be 2.2e-308 or more; got 9.99989e-321 at feature 0",
        ),
        ({"sigma": 1e-170, "covariance": 1e-280 * np.eye(2)}, r"sigma times √covariance must be 2.2e-308 or more"),
        ({"sigma": 1e200, "scale": [1e200, 1.0]}, r"sigma times scale must be finite and > 0; got inf at feature 0"),
    ],
)
def test_bad_neighbourhoods_say_what_is_wrong(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        Neighbourhood(**arguments)


def test_no_sigma_is_not_taken_for_a_missing_number():
    with pytest.raises(WrongType, match=r"sigma must be one number, or one per feature; got None. Leave it out for 1"):
        Neighbourhood(None)


@pytest.mark.parametrize(
    ("neighbourhood", "message"),
    [
        (Neighbourhood([1.0, 2.0]), r"sigma has 2 entries but the rows have 3 features"),
        (Neighbourhood(scale=[1.0, 2.0]), r"scale has 2 entries but the rows have 3 features"),
        (Neighbourhood(covariance=np.eye(2)), r"covariance has 2 entries but the rows have 3 features"),
        (Neighbourhood(fixed=[3]), r"fixed names feature 3, but positions go from 0 to 2"),
        (Neighbourhood(fixed=["age"]), r"fixed names 'age', which is not a feature"),
        (Neighbourhood(fixed=[0, 1, 2]), r"all 3 features are fixed; leave at least one"),
    ],
)
def test_a_neighbourhood_that_does_not_fit_the_rows_says_so(neighbourhood, message):
    with pytest.raises(InvalidArgument, match=message):
        neighbourhood.factor(3, ("a", "b", "c"))


def test_sigma_that_is_no_number_is_a_type_error():
    with pytest.raises(WrongType, match="sigma must hold numbers"):
        Neighbourhood("wide")


def test_equal_neighbourhoods_are_equal():
    assert Neighbourhood(0.5, scale=[1.0, 2.0], fixed=1) == Neighbourhood(0.5, scale=[1.0, 2.0], fixed=(1,))
    assert Neighbourhood(0.5) != Neighbourhood(0.6)
    assert Neighbourhood() != Neighbourhood(covariance=[[1.0]])
    assert Neighbourhood() != 1.0


def test_one_row_of_data_shows_no_scale():
    with pytest.raises(InvalidArgument, match="at least 2 rows"):
        Neighbourhood.from_data([[1.0, 2.0]])


def test_fixed_features_are_positions_or_names():
    for wrong, message in (
        ([1.9], "fixed takes positions or names; got 1.9"),
        (1.0, "fixed takes positions or names; got 1.0"),
        (None, "fixed takes .* got None"),
        (np.array(1.5), "fixed takes positions or names; got .*1.5"),
        (b"ab", "fixed takes positions or names; got b'ab'"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            Neighbourhood(fixed=wrong)
    assert Neighbourhood(fixed=np.array(1)).fixed == (1,)


def test_columns_are_a_list_of_names():
    with pytest.raises(WrongType, match=r"columns must be a list of names; got the text 'ab'. Write \['ab'\]"):
        Neighbourhood([1.0, 2.0], columns="ab")
    with pytest.raises(WrongType, match="columns must be a list of names; got 2"):
        Neighbourhood([1.0, 2.0], columns=2)
    with pytest.raises(WrongType, match="columns must be a list of names; got"):
        Neighbourhood([1.0, 2.0], columns=np.array("ab"))


def test_correlations_of_too_few_rows_ask_for_more():
    rows = np.random.default_rng(0).normal(size=(2, 3))
    with pytest.raises(
        InvalidArgument, match=r"X has 2 rows, too few .* 3 features .* more rows, .* or use full=False"
    ):
        Neighbourhood.from_data(rows, full=True)
    assert Neighbourhood.from_data(np.random.default_rng(0).normal(size=(5, 3)), full=True).covariance.shape == (3, 3)


def test_data_in_which_nothing_varies_holds_everything_fixed():
    for full in (False, True):
        around = Neighbourhood.from_data(np.ones((5, 2)), full=full)
        assert around.fixed == (0, 1)
        with pytest.raises(InvalidArgument, match="all 2 features are fixed"):
            around.factor(2)


def test_names_must_be_as_many_as_scales():
    with pytest.raises(InvalidArgument, match="columns has 1 names for 2 features"):
        Neighbourhood(scale=[1.0, 2.0], columns=["a"])


def test_rows_without_names_have_those_of_the_neighbourhood():
    import pandas as pd

    import smoothlime as sl

    around = Neighbourhood.from_data(pd.DataFrame({"age": [1.0, 2.0], "debt": [5.0, 9.0]}), fixed=["debt"])
    e = sl.explain(lambda a: a @ [2.0, 1.0], [[1.0, 6.0]], sigma=around)
    assert e.feature_names == ("age", "debt")
    np.testing.assert_allclose(e.values, [[2.0, np.nan]], atol=1e-9)


def test_words_are_no_units():
    for scale in ("ranks", {"a": "log"}):
        with pytest.raises(
            WrongType, match=r"scale of a Neighbourhood is one number per feature.*from_data\(X, scale="
        ):
            sl.Neighbourhood(0.5, scale=scale)


@pytest.mark.parametrize(
    ("columns", "given", "told"),
    [
        ([1, 2, 3], 1, "a column '1': write '1' for it, and '2' for the one at position 1"),
        ([1, 0, 2], 0, "a column '0': write '0' for it, and '1' for the one at position 0"),
        ([10, 20, 30], 20, "a column '20': write '20' for it$"),
    ],
)
def test_numbers_that_are_names_of_other_columns_are_refused(columns, given, told):
    """In pandas they are names, here positions."""
    table = pd.DataFrame([[0.0, 1.0, 5.0], [2.0, 4.0, 3.0]], columns=columns)
    asked = {"sigma": 0.5, "background": table, "n_samples": 64}
    f = lambda rows: np.asarray(rows).sum(axis=1)
    for argument, settings in {
        "fixed": {"fixed": [given]},
        "scale": {"scale": {given: "ranks"}},
        "switches": {"fixed": [str(given)], "switches": [given]},
        "one_hot": {"one_hot": [[given, "2"]]},
    }.items():
        with pytest.raises(InvalidArgument, match=f"{argument} names {given}, a number, and there is {told}") as found:
            sl.explain(f, table, **(asked | settings))
        assert found.value.argument == argument
    with pytest.raises(InvalidArgument, match="fixed names"):
        sl.explain(f, table, fixed=given, n_samples=64)
    with pytest.raises(InvalidArgument, match="fixed names"):
        sl.Neighbourhood.from_data(table, fixed=[given])
    e = sl.explain(f, table, fixed=[str(given)], **asked)
    assert e.feature_names[np.isnan(e.values[0]).argmax()] == str(given)
    last = sl.explain(f, table, fixed=[2], **asked) if columns == [1, 0, 2] else None
    assert last is None or np.isnan(last.values[0, 2])
