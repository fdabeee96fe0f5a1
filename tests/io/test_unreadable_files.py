"""Files that are not ours, damaged or hostile: each is refused with a reason of its own."""

import contextlib
import dataclasses
import importlib
import json

import numpy as np
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.io import contents, files

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(4, 3))
F = known.Sine(V, 0.3)


def explain(function=F, x=X, **more):
    return sl.explain(function, x, **{"sigma": 0.6, "n_samples": 128, "method": "clime", **more})


@pytest.fixture(params=(".json", ".parquet"))
def path(request, tmp_path):
    return tmp_path / f"saved{request.param}"


METHOD = ("provenance", "method")
SETTINGS = (*METHOD, "settings")


def spoiled(tmp_path, change):
    """A JSON file whose content has been changed."""
    content = json.loads(explain(draws="independent").to_json())
    change(content)
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps(content))
    return path


def put(*where, to):
    """Set an entry deep inside."""

    def change(content):
        for key in where[:-1]:
            content = content[key]
        content[where[-1]] = to

    return change


def drop(*where):
    def change(content):
        for key in where[:-1]:
            content = content[key]
        del content[where[-1]]

    return change


class TestUnreadable:
    def fails(self, path, message):
        with pytest.raises(errors.UnreadableFile, match=message) as caught:
            sl.load(path)
        assert path.name in str(caught.value)
        assert len(str(caught.value)) < 600
        return caught.value

    def test_a_missing_file(self, path):
        error = self.fails(path, "there is no file")
        assert isinstance(error, FileNotFoundError)

    def test_a_folder(self, tmp_path):
        self.fails(tmp_path, "is a folder, without results of explain_table; give the file in it")

    @pytest.mark.parametrize("content", [b"", b" \n"])
    def test_an_empty_file(self, path, content):
        path.write_bytes(content)
        self.fails(path, "it is empty")

    def test_a_file_that_may_not_be_read(self, path, monkeypatch):
        def denied(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(files, "open", denied, raising=False)
        self.fails(path, "cannot be read: Permission denied")

    @pytest.mark.parametrize("share", [0.001, 0.01, 0.3, 0.9, 0.999])
    def test_truncated_json(self, tmp_path, share):
        text = explain().to_json().rstrip()
        (tmp_path / "e.json").write_text(text[: max(1, int(share * len(text)))])
        self.fails(tmp_path / "e.json", "it is not whole JSON, and may have been cut short")

    @pytest.mark.parametrize("share", [0.001, 0.01, 0.3, 0.9, 0.999])
    def test_truncated_parquet(self, tmp_path, share):
        explain().save(tmp_path / "e.parquet")
        data = (tmp_path / "e.parquet").read_bytes()
        (tmp_path / "e.parquet").write_bytes(data[: max(4, int(share * len(data)))])
        self.fails(tmp_path / "e.parquet", "it is not whole Parquet, and may have been cut short")

    def test_damaged_parquet(self, tmp_path, assert_same):
        """Whatever byte is wrong, the file is refused, or no number has changed: pages have checksums."""
        e = explain()
        e.save(tmp_path / "e.parquet")
        data = (tmp_path / "e.parquet").read_bytes()
        for position in range(4, len(data), len(data) // 150):
            damaged = bytearray(data)
            damaged[position] ^= 0xFF
            (tmp_path / "e.parquet").write_bytes(bytes(damaged))
            with contextlib.suppress(errors.UnreadableFile):
                again = sl.load(tmp_path / "e.parquet")
                for name in set(contents.ARRAYS) - {"row_outputs"}:
                    assert_same(getattr(again, name), getattr(e, name))
                assert_same(again.groups.pseudo, e.groups.pseudo)

    @pytest.mark.parametrize(
        "content", [b"row,feature\n0,a\n", b"\x80\x04\x95", b"PK\x03\x04", b"PAR", "{é".encode("utf-16")]
    )
    def test_other_formats(self, path, content):
        path.write_bytes(content)
        self.fails(path, "it is neither JSON nor Parquet; load reads what save has written")

    @pytest.mark.parametrize("content", ["{}", "[]", "[1, 2]", '{"format": "other"}', '{"format": 3, "version": 1}'])
    def test_json_of_others(self, path, content):
        path.write_text(content)
        self.fails(path, "it holds no explanation; load reads what save has written")

    def test_parquet_of_others(self, tmp_path):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), tmp_path / "e.parquet")
        self.fails(tmp_path / "e.parquet", "it holds no explanation")
        for header, message in ((b"{", "its metadata are not whole"), (b"[]", "holds no explanation")):
            table = pyarrow.table({"x": [1]}, metadata={b"smoothlime": header})
            pyarrow.parquet.write_table(table, tmp_path / "e.parquet")
            self.fails(tmp_path / "e.parquet", message)

    def test_not_utf8(self, path):
        path.write_bytes(b'{"format": "\xff"}')
        self.fails(path, "it is not whole JSON")

    @pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
    def test_tokens_that_are_not_json(self, path, token):
        path.write_text(f'{{"format": {token}}}')
        self.fails(path, f"it holds {token}, which is not JSON")

    def test_a_newer_version(self, tmp_path):
        path = spoiled(tmp_path, put("version", to=7))
        self.fails(path, rf"format version 7, and this smoothlime \({sl.__version__}\) reads up to version 6: upgrade")

    def test_a_newer_version_is_recognised_even_where_fields_have_gone(self, tmp_path):
        (tmp_path / "e.json").write_text('{"format": "smoothlime explanation", "version": 8}')
        self.fails(tmp_path / "e.json", "format version 8")

    @pytest.mark.parametrize(
        ("version", "message"), [(0, "at least 1; got 0"), ("1", "a whole number; got '1'"), (True, "got True")]
    )
    def test_a_version_that_is_none(self, tmp_path, version, message):
        self.fails(spoiled(tmp_path, put("version", to=version)), message)

    FIELDS = (
        *(
            (name,)
            for name in (
                "version",
                "rows",
                "groups",
                "has_row_keys",
                "has_selected",
                "output_name",
                "feature_names",
                "input_shape",
            )
        ),
        *((name,) for name in ("neighbourhood", "provenance", "arrays")),
        *(("neighbourhood", name) for name in ("sigma", "scale", "covariance", "fixed")),
        *(("provenance", name) for name in contents.PROVENANCE),
        *(("provenance", "method", name) for name in ("kind", "settings")),
        *(("arrays", name) for name in contents.ARRAYS),
        *(("arrays", f"group_{name}") for name in contents.GROUP_ARRAYS),
    )

    @pytest.mark.parametrize("where", FIELDS, ids="-".join)
    def test_a_field_missing(self, tmp_path, where):
        self.fails(spoiled(tmp_path, drop(*where)), f"the field '{where[-1]}' is missing")

    @pytest.mark.parametrize("where", FIELDS, ids="-".join)
    @pytest.mark.parametrize("to", [{"no": 1}, [[{}]], -1.5, True])
    def test_a_field_of_another_type(self, tmp_path, where, to):
        path = spoiled(tmp_path, put(*where, to=to))
        if where[-1] in ("neighbourhood", "provenance", "arrays", "method", "versions", "settings") and to == {"no": 1}:
            self.fails(path, "is missing|'no' must be text|the setting 'no' of CLime is unknown")  # of the right type
        elif where[-1].startswith("has_") and to is True:
            path = path if where[-1] == "has_selected" else spoiled(tmp_path, put(*where, to=1))
            self.fails(path, "'selected' is missing|'has_row_keys' must be true or false; got 1")
        else:
            self.fails(path, where[-1])

    @pytest.mark.parametrize(
        "name", [*contents.ARRAYS, *(f"group_{name}" for name in contents.GROUP_ARRAYS), "row_keys"]
    )
    def test_shapes_that_disagree(self, tmp_path, name):
        for change in (lambda a: a.pop(), lambda a: a.append(a[0])):
            path = spoiled(tmp_path, lambda content, change=change: change(content["arrays"][name]))
            self.fails(path, f"its parts do not fit together: '{name}' has length . along axis 0, where the rest calls")
        if name not in ("row_keys", *(each for each, (_, axes) in contents.ARRAYS.items() if axes == "r")):
            path = spoiled(tmp_path, lambda content: content["arrays"][name][2].pop())
            self.fails(path, f"'{name}' has length .* along axis 1")

    @pytest.mark.parametrize(
        ("where", "to", "message"),
        [
            ((*METHOD, "kind"), "Quantum", "the method 'Quantum' is unknown to this version of smoothlime"),
            ((*METHOD, "kind"), "os.system", "the method 'os.system' is unknown"),
            ((*SETTINGS, "warp"), 9, "the setting 'warp' of CLime is unknown .* upgrade"),
            ((*SETTINGS, "ridge"), -1.0, "CLime does not take the settings in it: ridge must be"),
            ((*SETTINGS, "ridge"), "a", "CLime does not take the settings"),
            ((*SETTINGS, "ridge"), {"laser": 1}, "the setting 'ridge', written as {'laser': 1}, is unknown"),
            ((*SETTINGS, "ridge"), {"number": []}, "CLime does not take"),
            ((*SETTINGS, "ridge"), {"array": [1], "dtype": "O"}, "is unknown to this version"),
            ((*SETTINGS, "ridge"), {"array": [1], "dtype": "(1,"}, "the setting 'ridge', written as"),
            ((*SETTINGS, "ridge"), {"method": 3}, "the field 'method' must be an object"),
            (METHOD, {"kind": "CertifiedValues", "settings": {}}, "the setting 'base' of CertifiedValues is missing"),
            (METHOD, {"kind": "CertifiedValues", "settings": {"base": 1, "low": 0, "high": 1}}, "does not"),
            (METHOD, {"kind": "CertifiedSmoothGrad", "settings": {"gradient_bound": "x", "base": 1}}, "does not"),
            (("provenance", "design"), "spiral", "the design 'spiral' is unknown to this version of smoothlime"),
            (("provenance", "design"), "none", "the design 'none' does not go with the method 'clime'"),
            (METHOD, {"kind": "Exact", "settings": {}}, "the design '.*' does not go with the method 'exact'"),
            (("provenance", "draws"), "borrowed", "draws must be one of 'shared', 'independent'; got 'borrowed'"),
            (("provenance", "seed"), -1, "seed must be a whole number >= 0"),
            (("provenance", "confidence"), 1.5, "'confidence' must lie between 0 and 1"),
            (("provenance", "dtype"), "object", "'dtype' must name a floating type; got 'object'"),
            (("provenance", "dtype"), "f8, f8", "'dtype' must name a floating type"),
            (("provenance", "dtype"), "(((", "'dtype' must name a floating type"),
            (("provenance", "dtype"), "(1,", "'dtype' must name a floating type"),
            (("provenance", "versions"), {"numpy": 2}, "'numpy' must be text"),
            (("provenance", "longer"), 1.5, "'longer' must lie between 0 and 1"),
            (("provenance", "longer"), 10**400, "'longer' must lie between 0 and 1; got 1000"),
            (("provenance", "confidence"), 10**400, "'confidence' must lie between 0 and 1; got 1000"),
            (("provenance", "block"), 10**400, "'block' must be at most 9,223,372,036,854,775,807; got 1000"),
            (("rows",), 10**400, "'rows' must be at most"),
            (("version",), 10**400, "it has format version 1000"),
            (("input_shape",), [3], "must hold two sizes or more of 3 numbers in all, or none; got \\[3\\]"),
            (("input_shape",), [2, 2], "'input_shape' must hold two sizes or more of 3 numbers"),
            (("input_shape",), [2, 0], "input_shape must be a whole number >= 1; got 0"),
            (("neighbourhood", "sigma"), 0, "sigma must be finite and > 0"),
            (("neighbourhood", "sigma"), None, "'sigma' must be a number, or one per feature; got null"),
            (("neighbourhood", "sigma"), "0.5", "'sigma' must hold numbers; got '0.5'"),
            (("neighbourhood", "sigma"), [1.0, 2.0], "'sigma' has length 2 along axis 0"),
            (("neighbourhood", "scale"), [1.0, "NaN", 1.0], "scale must be finite and > 0; got nan"),
            (("neighbourhood", "covariance"), [[1, 2, 0], [2, 1, 0], [0, 0, 1]], "must be positive definite"),
            (("neighbourhood", "fixed"), [3], "fixed names feature 3, but positions go from 0 to 2"),
            (("neighbourhood", "fixed"), ["age"], "fixed names 'age', which is not a feature"),
            (("neighbourhood", "fixed"), [True], "'fixed' must hold positions or names"),
            (("neighbourhood", "fixed"), [0, 1, 2], "all 3 features are fixed"),
            (("feature_names",), ["a", "a", "b"], "'a' stands there 2 times"),
            (("feature_names",), ["a", 2, "b"], "'feature_names' must hold text; got 2"),
            (("feature_names",), [], "all 0 features are fixed"),
            (("feature_names",), ["a", "b"], "its parts do not fit together"),
            (("rows",), -1, "rows must be a whole number >= 0"),
            (("rows",), 10**18, "its parts do not fit together"),
            (("groups",), 10**18, "its parts do not fit together"),
            (("groups",), -1, "groups must be a whole number >= 1"),
            (("directions",), 0, "directions must be a whole number >= 1"),
            (("arrays", "prediction"), [1, 2, 3, "four"], "'prediction' must hold numbers; got 'four'"),
            (("arrays", "prediction"), [1, 2, 3, None], "'prediction' must hold numbers; got None"),
            (("arrays", "prediction"), [1, 2, 3, 10**400], "'prediction' holds a number that is too large"),
            (("arrays", "n_samples"), [1, 2, 3, 4.0], "'n_samples' must hold whole numbers; got 4.0"),
            (("arrays", "n_samples"), [1, 2, 3, 2**64], "'n_samples' holds a number that is too large"),
            (("arrays", "converged"), [1, 0, 1, 1], "'converged' must hold true or false; got 1"),
            (("arrays", "row_outputs"), ["a", "b", "c", 4], "'row_outputs' must hold text; got 4"),
            (("arrays", "n_samples"), [1, 2, 3, 0], "'n_samples' holds numbers that no run can have given"),
            (("arrays", "degrees_of_freedom"), [1, 2, 3, -4], "'degrees_of_freedom' holds numbers that no run"),
            (("arrays", "radius"), [1, 2, 3, -4], "'radius' holds numbers that no run"),
            (("arrays", "row_keys"), [0, 1, 2, -3], "'row_keys' must hold positions; a negative one"),
        ],
    )  # fmt: skip
    def test_values_that_cannot_be(self, tmp_path, where, to, message):
        self.fails(spoiled(tmp_path, put(*where, to=to)), message)

    def test_numbers_that_no_float_can_hold(self, tmp_path):
        text = explain().to_json().replace('"prediction": [', '"prediction": [1e999, ', 1)
        (tmp_path / "e.json").write_text(text)
        self.fails(tmp_path / "e.json", "its parts do not fit together")
        content = explain()[0].to_json()
        start = content.index('"radius": [') + len('"radius": [')
        end = content.index("]", start)
        (tmp_path / "e.json").write_text(content[:start] + "1e999" + content[end:])
        self.fails(tmp_path / "e.json", "'radius' holds a number that is too large")
        (tmp_path / "e.json").write_text(content[:start] + "9" * 100_000 + content[end:])
        self.fails(tmp_path / "e.json", "it is not whole JSON")

    @pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
    @pytest.mark.parametrize("depth", [400, 1_000_000])
    def test_a_million_brackets(self, tmp_path, opening, closing, depth):
        text = explain().to_json()
        deep = opening * depth + "1" + closing * depth
        path = tmp_path / "e.json"
        for place in ('"prediction": ', '"ridge": ', '"fixed": ', '"output_name": '):
            start = text.index(place) + len(place)
            ends = min(text.index(end, start) for end in (",\n", "}"))
            path.write_text(text[:start] + deep + text[ends:])
            self.fails(
                path,
                "nested too deep" if depth > 10_000 else "nested|must|unknown|do not fit|does not take|missing",
            )

    def test_parquet_columns_are_checked_like_lists(self, tmp_path, assert_same):
        import pyarrow
        import pyarrow.parquet

        path = tmp_path / "e.parquet"
        explain(draws="independent").save(path)
        table = pyarrow.parquet.read_table(path)
        at = {name: position for position, name in enumerate(table.column_names)}

        def write(name, values, kind=None):
            changed = table.set_column(at[name], name, pyarrow.array(values, kind))
            pyarrow.parquet.write_table(changed, path)

        ragged = [[1.0] * 3] * 3 + [[1.0] * 2]
        for name, values, kind, message in (
            (
                "prediction",
                [1.0, 2.0, 3.0, None],
                None,
                "'prediction' must hold numbers; got a column of type double, 1",
            ),
            ("prediction", [1, 2, 3, 4], None, "'prediction' must hold numbers; got a column of type int64"),
            ("prediction", [[1.0]] * 4, None, "'prediction' must hold numbers; got a column of type list"),
            ("values", [1.0, 2.0, 3.0, 4.0], None, "'values' must hold numbers; got a column of type double"),
            ("values", ragged, None, r"'values' has length 2 along axis 1, where the rest calls for shape \(4, 3\)"),
            ("values", [*ragged[:3], None], None, "'values' must hold numbers; .* 1 of them null"),
            ("values", [*ragged[:3], [1.0, None, 2.0]], None, "'values' must hold numbers; .* 1 of them null"),
            ("x", ragged[:3] + ragged[:1], pyarrow.list_(pyarrow.float32()), "'x' must hold numbers; .* type float"),
            ("row_outputs", [1, 2, 3, 4], None, "'row_outputs' must hold text"),
            ("converged", [1, 0, 1, 0], None, "'converged' must hold true or false"),
            ("row_keys", [0, 1, 2, -3], None, "'row_keys' must hold positions"),
        ):
            write(name, values, kind)
            self.fails(path, message)
        for name in contents.ARRAYS:
            pyarrow.parquet.write_table(table.drop_columns([name]), path)
            self.fails(path, f"the column '{name}' is missing")
        pyarrow.parquet.write_table(table.slice(0, 3), path)
        self.fails(path, "its parts do not fit together: .* has length 3 along axis 0")
        pyarrow.parquet.write_table(table, path, row_group_size=1)
        assert_same(sl.load(path), explain(draws="independent"))

    def test_loading_runs_no_code(self, path, monkeypatch):
        """Nothing is imported by a name that stands in the file, and nothing is unpickled."""
        import pickle

        e = dataclasses.replace(explain(), output_name="os.system('true')")
        e.save(path)
        sl.load(path)

        def forbidden(*_, **__):
            raise AssertionError("loading must not do this")

        for name in ("load", "loads", "Unpickler"):
            monkeypatch.setattr(pickle, name, forbidden)
        if path.suffix == ".json":
            monkeypatch.setattr(importlib, "import_module", forbidden)
        sl.load(path)
