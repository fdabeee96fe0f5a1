"""What has changed in a file by accident is noticed, and what is harmless is not."""

import dataclasses
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.estimators.certified import CertifiedSmoothGrad
from smoothlime.io import contents, settings
from smoothlime.io.digests import digests

X = np.random.default_rng(0).normal(size=(4, 3))
F = known.Sine([0.7, -0.4, 0.3], 0.3)
SUFFIXES = (".json", ".parquet")


def explain(**more):
    return sl.explain(F, X, **{"sigma": 0.5, "n_samples": 64, "method": "clime", **more})


@pytest.fixture
def rewritten(tmp_path):
    """A file of either kind, its header and arrays changed, written anew by the library of its format."""

    def write(e, suffix, change, **how):
        path = tmp_path / f"saved{suffix}"
        e.save(path)
        if suffix == ".json":
            plain = json.loads(path.read_text())
            change(plain, plain["arrays"])
            path.write_text(json.dumps(plain, **how))
            return path
        table = pyarrow.parquet.read_table(path)
        header, columns = json.loads(table.schema.metadata[b"smoothlime"]), table.to_pydict()
        change(header, columns)
        arrays = [pyarrow.array(columns[name], table.schema.field(name).type) for name in table.column_names]
        metadata = {b"smoothlime": json.dumps(header).encode()}
        table = pyarrow.table(arrays, names=table.column_names, metadata=metadata)
        pyarrow.parquet.write_table(table, path, **how)
        return path

    return write


def damaged(path, *names):
    """Refused with the names of what has changed; without a check, loaded with a warning that has them too."""
    what = rf"saved.* is damaged: {', '.join(map(repr, names))}.* not what was saved"
    with pytest.raises(errors.UnreadableFile, match=what + r".* load it as it is with check=False"):
        sl.load(path)
    with pytest.warns(errors.DamagedFile, match=what + ".* loaded as it is"):
        return sl.load(path, check=False)


class TestDamage:
    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize("name", ["prediction", "radius", "values", "x", "group_pseudo", "group_sizes"])
    def test_the_last_bit_of_a_number_counts(self, rewritten, suffix, name):
        def change(_, arrays):
            row = arrays[name]
            while isinstance(row[1], list):
                row = row[1]
            row[1] = float(np.nextafter(row[1], np.inf))

        e = explain()
        again = damaged(rewritten(e, suffix, change), f"arrays.{name}")
        assert again.to_json() != e.to_json()

    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize(
        ("where", "to", "names"),
        [
            (("provenance", "seed"), 1, ["provenance"]),
            (("provenance", "confidence"), 0.9, ["provenance"]),
            (("provenance", "design"), "iid", ["provenance"]),
            (("provenance", "method", "settings", "ridge"), 1e-3, ["provenance"]),
            (("neighbourhood", "sigma"), 0.5000000000000001, ["neighbourhood"]),
            (("output_name",), "other", ["output_name"]),
            (("feature_names",), ["x1", "x0", "x2"], ["feature_names"]),
            (("has_row_keys",), False, ["has_row_keys", "arrays.row_keys"]),
            (("directions",), None, ["directions", "arrays.directions"]),
            (("groups",), None, ["groups", "arrays.group_pseudo"]),
            (("version",), 4, ["version"]),
            (("digests",), {}, ["format", "version", "rows"]),
            (("digests",), None, ["digests"]),
        ],
    )
    def test_every_field_of_the_header_counts(self, rewritten, suffix, where, to, names):
        def change(header, _):
            for key in where[:-1]:
                header = header[key]
            header[where[-1]] = to

        e = explain(draws="independent", design="aligned")
        damaged(rewritten(e, suffix, change), *names[:3])

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_rows_that_have_changed_places_are_noticed(self, rewritten, suffix):
        def change(_, arrays):
            arrays["values"][0], arrays["values"][1] = arrays["values"][1], arrays["values"][0]

        damaged(rewritten(explain(), suffix, change), "arrays.values")

    def test_no_changed_digit_of_a_json_file_changes_what_is_loaded(self, tmp_path):
        """149 of these 150 were loaded by the version before, as numbers that nobody had computed."""
        text, rng, refused = explain().to_json(), np.random.default_rng(0), 0
        content, path = json.loads(text), tmp_path / "e.json"
        places = [each.start() for each in re.finditer(r"\d", text)]
        for place in rng.choice(places, 150, replace=False):
            digit = str((int(text[place]) + int(rng.integers(1, 10))) % 10)
            path.write_text(text[:place] + digit + text[place + 1 :])
            try:
                assert json.loads(sl.load(path).to_json()) == content  # beyond the last digit that a float64 holds
            except errors.UnreadableFile:
                refused += 1
        assert refused > 140

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_a_file_that_has_lost_its_digests_does_not_pass_for_an_older_one(self, rewritten, suffix):
        damaged(rewritten(explain(), suffix, lambda header, _: header.pop("digests")), "digests")

    def test_check_is_true_or_false(self, tmp_path):
        explain().save(tmp_path / "e.json")
        with pytest.raises(errors.WrongType, match="check must be True or False; got 'no'"):
            sl.load(tmp_path / "e.json", check="no")

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_what_is_no_explanation_any_more_is_refused_without_a_check_too(self, rewritten, suffix):
        path = rewritten(explain(), suffix, lambda header, _: header["provenance"].update(seed=-1))
        with pytest.raises(errors.UnreadableFile, match="seed must be a whole number"):
            sl.load(path, check=False)


def odd_numbers():
    e = explain(seed=2**70, sigma=sl.Neighbourhood(1.0, scale=[1.0, 2.0, 0.1]))
    e.values[0] = np.nan, -0.0, np.inf
    e.values[1] = -np.nan, 5e-324, 1e22
    return e


class TestHarmless:
    @pytest.mark.parametrize(
        "how",
        [
            {"indent": 3},
            {"separators": (",", ":")},
            {"sort_keys": True},
            {"ensure_ascii": False},
            {"compression": "zstd"},
            {"compression": "none", "use_dictionary": False},
            {"row_group_size": 1, "version": "1.0"},
        ],
        ids=str,
    )
    def test_other_layouts_of_the_same_contents_load(self, rewritten, how, assert_same):
        e = odd_numbers()
        is_json = not {"compression", "row_group_size"} & set(how)
        again = sl.load(rewritten(e, SUFFIXES[not is_json], lambda *_: None, **how))
        assert_same(e.values, again.values)
        assert json.loads(again.to_json()) == json.loads(e.to_json())

    def test_whole_numbers_written_without_a_point_load(self, tmp_path):
        """As JavaScript writes them."""
        e = sl.explain(F, [[0.0, 1.0, 2.0]], sigma=1.0, n_samples=64)
        text = re.sub(r"(?<=[\s\[]\d)\.0(?=[,\]}])", "", e.to_json())
        assert '"sigma": 1,' in text
        assert "[[0, 1, 2]]" in text
        (tmp_path / "e.json").write_text(text)
        np.testing.assert_array_equal(sl.load(tmp_path / "e.json").values, e.values)

    def test_both_formats_have_the_same_digests(self, tmp_path):
        e = odd_numbers()
        e.save(tmp_path / "e.parquet")
        header = json.loads(pyarrow.parquet.read_schema(tmp_path / "e.parquet").metadata[b"smoothlime"])
        assert header["digests"] == json.loads(e.to_json())["digests"]

    def test_further_columns_and_their_order_are_the_readers_business(self, tmp_path, assert_same):
        e, path = explain(), tmp_path / "e.parquet"
        e.save(path)
        table = pyarrow.parquet.read_table(path)
        other = table.select(table.column_names[::-1]).append_column("note", pyarrow.array(["a"] * 4))
        pyarrow.parquet.write_table(other, path)
        assert_same(sl.load(path), e)

    @pytest.mark.parametrize("check", [True, False])
    @pytest.mark.parametrize("version", ["version_before.json", "version_before.parquet"])
    def test_files_without_digests_of_older_versions_load_as_before(self, version, check, recwarn):
        assert len(sl.load(Path(__file__).parent / version, check=check)) == 4
        assert not recwarn.list


class TestDigests:
    def test_of_empty_arrays_texts_and_numbers_differ_by_shape_and_kind(self):
        arrays = [np.zeros((0, 3)), np.zeros((0, 2)), np.zeros(2), np.zeros(2, dtype=int), np.zeros(2, dtype=bool)]
        arrays += [np.zeros((2, 1)), np.zeros((1, 2)), ["0", "0"], [], np.zeros(3)]
        found = [digests({}, {"a": each})["arrays.a"] for each in arrays]
        assert len(set(found)) == len(arrays)

    def test_two_numbers_cannot_change_places(self):
        """In the same row, the same column, or neither."""
        numbers = np.random.default_rng(0).normal(size=(5, 2, 3))
        before = digests({}, {"a": numbers})
        flat = numbers.reshape(-1)
        for i in range(flat.size):
            for j in range(i):
                flat[[i, j]] = flat[[j, i]]
                assert digests({}, {"a": numbers}) != before
                flat[[i, j]] = flat[[j, i]]
        assert digests({}, {"a": numbers}) == before

    def test_how_an_array_lies_in_memory_is_no_part_of_it(self):
        numbers = np.random.default_rng(0).normal(size=(5, 4))
        expected = digests({}, {"a": numbers})
        for other in (np.asfortranarray(numbers), numbers.astype(">f8"), np.repeat(numbers, 2, axis=0)[::2]):
            assert digests({}, {"a": other}) == expected

    def test_they_are_what_they_were(self):
        """Files outlive versions: these were written down when format version 5 was made."""
        arrays = {"a": np.array([[1.5, np.nan], [-0.0, 1e300]]), "b": np.array([1, 2]), "c": ("ä", "")}
        assert digests({"seed": 2.0, "names": ["σ"]}, arrays) == {
            "seed": "1ad5be0d",
            "names": "ed8d0b5f",
            "arrays.a": "75e3d8c0",
            "arrays.b": "52eba8fd",
            "arrays.c": "398dc3a0",
        }


class TestSettings:
    def test_one_that_was_deleted_is_named(self, tmp_path, older):
        """The version before took its default in silence, ridge=0 for ridge=0.1."""
        content, path = json.loads(explain(method=sl.CLime(ridge=0.1)).to_json()), tmp_path / "e.json"
        del content["provenance"]["method"]["settings"]["ridge"]
        path.write_text(json.dumps(content))
        for check in (True, False):
            with pytest.raises(errors.UnreadableFile, match=r"e\.json.*: the setting 'ridge' of CLime is missing"):
                sl.load(path, check=check)
        path.write_text(json.dumps(older(path.read_text())))
        assert sl.load(path).provenance.method == sl.CLime()

    def test_settings_of_settings_are_asked_for_too(self, tmp_path):
        e = explain(method="smoothgrad", guarantee="certified", gradient_bound=2.0, n_samples=128)
        content, path = json.loads(e.to_json()), tmp_path / "e.json"
        assert isinstance(e.provenance.method, CertifiedSmoothGrad)
        del content["provenance"]["method"]["settings"]["base"]["method"]["settings"]["control"]
        path.write_text(json.dumps(content))
        with pytest.raises(errors.UnreadableFile, match="the setting 'control' of SmoothGrad is missing"):
            sl.load(path)

    def test_a_further_setting_needs_a_new_version(self):
        """Files of the version of today must have them all. Raise `VERSION` in `io/contents.py`, then this list."""
        known = {name: [each.name for each in dataclasses.fields(kind)] for name, kind in settings.kinds().items()}
        assert contents.VERSION == 6
        assert known == {
            "SmoothGrad": ["control"],
            "CLime": ["ridge", "curves"],
            "Stein": [],
            "Differences": ["control"],
            "Jumps": ["control"],
            "Lime": ["kernel", "ridge", "lasso", "features", "select"],
            "Exact": [],
            "CertifiedSmoothGrad": ["gradient_bound", "base"],
            "CertifiedValues": ["base", "low", "high"],
            "CertifiedJumps": ["low", "high", "control"],
        }


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_whole_file_loads_without_a_warning_whether_checked_or_not(tmp_path, suffix):
    explain().save(tmp_path / f"e{suffix}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.load(tmp_path / f"e{suffix}", check=False)
        sl.load(tmp_path / f"e{suffix}", check=True)
