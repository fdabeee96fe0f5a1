"""Which held columns are categories, and with which levels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime.models import as_model
from smoothlime.models.problem import build_problem

ROWS = 60


def table(**columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=ROWS)} | columns)


def found(data, rows=None, **asked):
    """Name → levels of the categories of a table."""
    asked = {"background": data, "switches": True, "one_hot": "auto"} | asked
    model = as_model(lambda frame: frame["a"].to_numpy(), takes="table")
    problem = build_problem(model, data.iloc[:4] if rows is None else rows, **asked)
    return {each.category.name: each.category.levels for each in problem.switchable}


def cycled(*values):
    return [values[i % len(values)] for i in range(ROWS)]


def test_text_categoricals_and_booleans_are_categories_but_dates_and_what_moves_are_not():
    data = table(
        word=cycled("x", "y"),
        kind=pd.Categorical(cycled("v", "u", "w")),
        flag=cycled(True, False, True),
        day=pd.date_range("2020", periods=ROWS),
        number=np.arange(ROWS) % 3,
        pair=pd.Series([[1], [2]] * (ROWS // 2)),
    )
    assert found(data) == {"word": ("x", "y"), "kind": ("u", "v", "w"), "flag": ("False", "True")}


def test_numbers_are_categories_where_the_caller_holds_them_and_values_are_few():
    data = table(code=cycled(3, 1, 2), many=np.arange(ROWS) / 7, half=cycled(0.5, 1.0))
    data = pd.concat([data] * 2, ignore_index=True)
    assert found(data) == {}
    assert found(data, fixed=["code", "many", "half"]) == {
        "code": ("1", "2", "3"),
        "many": tuple(str(each) if each % 1 else str(int(each)) for each in list_of_most_frequent(data["many"])),
        "half": ("0.5", "1"),
    }
    wide = pd.concat([table(many=np.arange(ROWS) + 100 * k) for k in (0, 0, 1, 1)], ignore_index=True)
    assert found(wide, fixed=["many"]) == {}  # 120 values are a measurement
    assert len(found(wide, fixed=["many"], switches=["many"])["many"]) == 11  # unless it is named


def list_of_most_frequent(column):
    """The eleven smallest, where all are as frequent."""
    return sorted(set(column))[:11]


def test_a_column_declared_a_category_by_its_scale_is_one():
    assert found(table(code=cycled(3, 1)), scale={"code": "category"}) == {"code": ("1", "3")}


@pytest.mark.parametrize(("n", "kept"), [(2, 2), (12, 12), (13, 11)])
def test_all_levels_up_to_twelve_else_the_eleven_most_frequent(n, kept):
    names = [f"level {k:02}" for k in range(n)]
    data = pd.concat([table(word=cycled(*names)) for _ in range(3)], ignore_index=True)
    data.loc[0, "word"] = names[-1]  # so that the last ones are not the least frequent
    counts = data["word"].value_counts()
    expected = sorted(sorted(names, key=lambda each: (-counts[each], each))[:kept])
    assert found(data) == {"word": tuple(expected)}


def test_keys_and_names_are_no_categories_unless_asked_for():
    data = table(key=[f"customer {i:02}" for i in range(ROWS)])
    assert found(data) == {}
    assert found(data, switches=["key"])["key"][:2] == ("customer 00", "customer 01")


def test_columns_of_one_level_have_nothing_to_switch_and_missing_values_are_no_level():
    data = table(one=["x"] * ROWS, gaps=cycled("x", None), two=cycled("x", None, "y"))
    assert found(data) == {"two": ("x", "y")}


def test_a_row_of_a_level_unseen_in_the_background_has_it_besides():
    data = table(word=cycled("x", "y", None))
    rows = data.iloc[:3].assign(word=["x", "new", None])
    model = as_model(lambda frame: frame["a"].to_numpy(), takes="table")
    (only,) = build_problem(model, rows, background=data, switches=True).switchable
    assert only.own.tolist() == [0, 2, 3]
    assert only.others == ("new", "(missing)")


def one_hot(prefix, values, n=3, sep="_", kind=np.int64):
    return {f"{prefix}{sep}{value}": np.array(cycled(*(k == j for k in range(n))), dtype=kind) for j, value in
            enumerate(values)}  # fmt: skip


class TestOneHot:
    @pytest.mark.parametrize("sep", ["_", "="])
    @pytest.mark.parametrize("kind", [bool, np.int64, np.float64])
    def test_groups_of_held_columns_are_one_category(self, sep, kind):
        data = table(**one_hot("town of birth", ["York", "Bath", "Hull"], sep=sep, kind=kind))
        held = {} if kind is bool else {"fixed": list(data.columns[1:])}
        assert found(data, **held) == {"town of birth": ("York", "Bath", "Hull")}
        assert set(found(data, one_hot=None, **held)) == set(data.columns[1:])

    def test_other_columns_of_the_same_beginning_are_not_among_them(self):
        data = table(**one_hot("job", ["cook", "smith", "none"]), job_years=np.arange(ROWS) % 30)
        groups = found(data, fixed=list(data.columns[1:]))
        assert groups["job"] == ("cook", "smith", "none")
        assert set(groups) == {"job", "job_years"}

    def test_columns_that_are_perturbed_are_none(self):
        assert found(table(**one_hot("town", ["York", "Bath", "Hull"]))) == {}

    def test_listed_groups_are_held(self):
        data = table(**one_hot("town", ["York", "Bath", "Hull"]))
        assert found(data, one_hot=[list(data.columns[1:])]) == {"town": ("York", "Bath", "Hull")}
        renamed = data.rename(columns={"town_York": "a town"})
        assert found(renamed, one_hot=[list(renamed.columns[1:])]) == {
            "a town / town_Bath / town_Hull": tuple(renamed.columns[1:])
        }

    def test_columns_that_do_not_add_up_to_one_are_columns_of_their_own(self):
        columns = one_hot("town", ["York", "Bath", "Hull"])
        columns["town_York"][0] = 0
        assert set(found(table(**columns), fixed=list(columns))) == set(columns)

    def test_a_column_that_the_background_never_had_is_part_of_the_group_but_no_level(self):
        columns = one_hot("town", ["York", "Bath", "Hull"]) | {"town_Deal": np.zeros(ROWS, dtype=int)}
        data = table(**columns)
        rows = data.iloc[:3].copy()
        rows.loc[0, list(columns)] = 0, 0, 0, 1
        rows.loc[1, list(columns)] = 0, 0, 0, 0
        model = as_model(lambda frame: frame["a"].to_numpy(), takes="table")
        (only,) = build_problem(
            model, rows, background=data, fixed=list(columns), switches=True, one_hot="auto"
        ).switchable
        assert only.category.levels == ("York", "Bath", "Hull")
        assert only.own.tolist() == [3, 4, 2]
        assert only.others == ("Deal", "(none)")


class TestErrors:
    DATA = table(word=cycled("x", "y"), **one_hot("town", ["York", "Bath", "Hull"], kind=bool))

    @pytest.mark.parametrize(
        ("switches", "complaint"),
        [
            (["wrod"], "switches names 'wrod', which is not a column; the columns are 'a', 'word'"),
            (["a"], r"switches names 'a', which is perturbed and has a slope. .*fixed=\['a'\]"),
            (["town_York"], "'town_York', which is one of the columns of 'town'; name that instead"),
            ({"town": ["Deal"]}, "'town' has no level 'Deal'; its levels are York, Bath, Hull"),
            ("word", r"switches must be True, False, a list of columns or \{column: levels\}; got 'word'"),
            ({"word": "x"}, r"switches must list the levels of 'word'; got 'x'. Write \['x'\]"),
            ({"word": []}, "levels of 'word' as text, true and false, or finite numbers; got none"),
            ({"word": ["x", None]}, "levels of 'word' as text, true and false, or finite numbers; got None"),
            ({"word": [np.nan]}, "levels of 'word' as .*; got nan"),
            ({"word": [np.float64(np.inf)]}, "levels of 'word' as .*; got inf"),
            (None, "switches must be True, False"),
            (1, "switches must be True, False"),
        ],
    )
    def test_of_switches(self, switches, complaint):
        with pytest.raises((errors.InvalidArgument, errors.WrongType), match=complaint) as caught:
            found(self.DATA, switches=switches)
        assert caught.value.argument == "switches"

    @pytest.mark.parametrize(
        ("switches", "complaint"),
        [
            ({"word": [1]}, "switches lists the level 1 of 'word', a column of text; list text for it"),
            ({"yes": ["False"]}, "the level 'False' of 'yes', a column of True and False; list True and False for it"),
            ({"yes": [True, 2]}, "the level 2 of 'yes', a column of True and False"),
            ({"code": ["3"]}, "the level '3' of 'code', a column of numbers; list numbers for it"),
        ],
    )
    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_of_levels_that_a_column_cannot_hold(self, switches, complaint, library):
        """What is cast becomes another level: the text "False" is true."""
        data = table(word=cycled("x", "y"), yes=cycled(True, False), code=cycled(1, 2, 3))
        model = as_model(lambda frame: frame["a"].to_numpy(), takes="table")
        rows = data.iloc[:2] if library == "pandas" else pl.from_pandas(data.iloc[:2])
        with pytest.raises(errors.InvalidArgument, match=complaint) as caught:
            build_problem(model, rows, fixed=["code"], switches=switches)
        assert caught.value.argument == "switches"

    @pytest.mark.parametrize(
        ("one_hot", "complaint"),
        [
            ([["word", "wrod"]], "one_hot names 'wrod', which is not a column"),
            ([["town_York"]], r"one_hot has a group \['town_York'\]; a group needs two columns or more"),
            (["town_York"], r"a list of lists of columns; got 'town_York' in it. Write one_hot=\[\[...\]\]"),
            ([["town_York", "town_Bath"], ["town_Bath", "word"]], "one_hot names 'town_Bath' twice"),
            ([["town_York", "town_Bath"]], "not 0 or 1 with a sum of 1 in every row"),
            ("town", "one_hot must be 'auto', None or a list of lists of columns; got 'town'"),
            (7, "one_hot must be 'auto', None or a list of lists"),
        ],
    )
    def test_of_groups(self, one_hot, complaint):
        with pytest.raises((errors.InvalidArgument, errors.WrongType), match=complaint) as caught:
            found(self.DATA, one_hot=one_hot)
        assert caught.value.argument == "one_hot"

    def test_columns_named_without_a_background_have_no_known_levels(self):
        with pytest.raises(
            errors.InvalidArgument, match=r"'word', which is in no background.*switches=\{'word': \["
        ) as e:
            found(self.DATA, background=None, switches=["word"])
        assert e.value.argument == "switches"
        assert found(self.DATA, background=None, switches={"word": ["y", "z"]}) == {"word": ("y", "z")}

    def test_dates_have_no_levels(self):
        with pytest.raises(errors.InvalidArgument, match="which holds no text, categories or numbers"):
            found(table(day=pd.date_range("2020", periods=ROWS)), switches=["day"])

    def test_without_a_background_there_are_none(self):
        model = as_model(lambda frame: frame["a"].to_numpy(), takes="table")
        assert sl.explain(model, self.DATA.iloc[:2]).switches is None
        assert sl.explain(model, self.DATA.iloc[:2], background=self.DATA, switches=False).switches is None
