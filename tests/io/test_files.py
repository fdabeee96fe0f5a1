"""Files and frames: what goes in comes out equal to the bit, and what is not ours is refused with a reason."""

import dataclasses
import json
import os
import stat
import typing
from functools import cache

import numpy as np
import pandas as pd
import pytest

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known
from smoothlime.io import as_parquet, contents, files, settings
from smoothlime.result.explanation import Provenance
from smoothlime.sampling.defaults import METHODS
from smoothlime.uncertainty.groups import Groups
from smoothlime.uncertainty.jackknife import standard_error

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(4, 3))
F = known.Sine(V, 0.3)
SUFFIXES = (".json", ".parquet")


def explain(function=F, x=X, **more):
    return sl.explain(function, x, **{"sigma": 0.6, "n_samples": 128, "method": "clime", **more})


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / f"saved{request.param}"


def through(e, path):
    e.save(path)
    return sl.load(path)


def mixed():
    with pytest.warns(errors.ErrorsAdded):
        return explain() - explain(seed=1)


def odd_numbers():
    """Numbers that writers like to lose: infinities, −0, the smallest and the largest, thirds."""
    e = explain()
    odd = np.array([np.nan, np.inf, -np.inf, -0.0])
    tiny = np.array([5e-324, np.finfo(float).max, 1 / 3, -np.finfo(float).tiny])
    return dataclasses.replace(e, smoothed=odd, prediction=tiny, radius=np.full(4, np.inf), selected=e.values / 3)


def certified(method):
    function = F if method == "smoothgrad" else known.Probit(V, 0.1)
    knows = {"gradient_bound": 2.0} if method == "smoothgrad" else {"output_range": (0.0, 1.0)}
    return explain(function, method=method, guarantee="certified", **knows)


@cache
def boosted():
    from sklearn.ensemble import GradientBoostingClassifier

    rows = np.random.default_rng(0).normal(size=(200, X.shape[1]))
    return GradientBoostingClassifier(n_estimators=5, random_state=0).fit(rows, rows[:, 0] > 0)


EXPLANATIONS = {
    **{f"{name} {design}": (name, design) for name, kind in METHODS.items() for design in kind.designs},
    "settings": lambda: explain(method=sl.CLime(ridge=0.1)),
    "own draws": lambda: explain(draws="independent")[[3, 1]],
    "fixed by position": lambda: explain(sigma=sl.Neighbourhood([0.5, 1.0, 0.1], fixed=np.array([1]))),
    "fixed by name": lambda: explain(sigma=sl.Neighbourhood(1, scale=[1, 2, 3], fixed="x2")),
    "full covariance": lambda: explain(sigma=sl.Neighbourhood.from_data(X, 0.3, full=True)),
    "no rows": lambda: explain()[0:0],
    "one row of its own draws": lambda: explain(draws="independent")[2],
    "multiple": lambda: -0.5 * explain(),
    "sum": lambda: explain() + explain(known.Probit(V)),
    "difference of draws": mixed,
    "difference of rows": lambda: explain()[0] - explain()[1],
    "float32": lambda: explain(known_float32()),
    "certified smoothgrad": lambda: certified("smoothgrad"),
    "certified clime": lambda: certified("clime"),
    "certified stein": lambda: certified("stein"),
    "odd numbers": odd_numbers,
    "large seed": lambda: explain(seed=2**80),
    "drawn until good enough": lambda: explain(n_samples=None, method="auto"),
}


def known_float32():
    return dataclasses.replace(F, dtype=np.dtype("float32")) if hasattr(F, "dtype") else _Float32()


class _Float32:
    outputs = ("y",)
    dtype = np.dtype("float32")

    def values(self, points):
        assert points.dtype == self.dtype
        return F.values(points).astype(np.float32)


class TestRoundTrip:
    @pytest.mark.parametrize("name", EXPLANATIONS)
    def test_everything_comes_back_equal(self, path, name, assert_same):
        make = EXPLANATIONS[name]
        if not callable(make):
            name, design = make
            of_trees = METHODS[name].needs == "trees"
            make = lambda: explain(boosted() if of_trees else F, method=name, design=design, target=0)
        e = make()
        again = through(e, path)
        assert_same(e, again)
        assert str(again) == str(e)
        assert again.to_json() == e.to_json()

    @pytest.mark.parametrize("draws", ["shared", "independent"])
    def test_perturbations_are_drawn_again(self, path, draws, assert_same):
        e = explain(draws=draws, sigma=sl.Neighbourhood.from_data(X, 0.3, full=True, fixed=[1]))
        again = through(e, path)
        for row in range(4):
            assert_same(e.perturbations(row), again.perturbations(row))
        np.testing.assert_array_equal(again[2].perturbations(0), e.perturbations(2))

    def test_loaded_and_fresh_explanations_combine_exactly(self, path, assert_same):
        one, two = explain(), explain(known.Probit(V))
        again = through(one, path)  # a warning would be an error: the draws are recognised as the same
        for mix in (lambda a, b: a - b, lambda a, b: 2 * b + a):
            assert_same(mix(one, two), mix(again, two))
        assert_same(one[0] - one[2], again[0] - again[2])

    def test_arrays_can_be_written_to_as_before(self, path):
        again = through(explain(), path)
        again.values[0, 0] = 1.0
        again.groups.pseudo[0, 0, 0] = 1.0

    def test_odd_names_survive(self, path):
        names = ("a\nb\r\n", "\"quoted\" 'twice' \\", "🦩 é σ \u2028\u2029\x85\x00")
        model = sl.as_model(F.values, feature_names=names, outputs=["\u2028🦩\n'\""])
        again = through(explain(model), path)
        assert again.feature_names == names
        assert again.output_name == "\u2028🦩\n'\""
        assert again.row_outputs == ("\u2028🦩\n'\"",) * 4
        empty = through(explain(sl.as_model(F.values, feature_names=("", " ", "x"))), path)
        assert empty.feature_names == ("", " ", "x")

    def test_each_row_keeps_its_output(self, path):
        model = lambda a: np.column_stack([a[:, 0], a[:, 1], -a[:, 0]])
        again = through(explain(model, target="predicted"), path)
        assert again.row_outputs == explain(model, target="predicted").row_outputs
        assert len(set(again.row_outputs)) > 1

    def test_every_field_has_its_place(self):
        """A field added to these classes must be added to the files."""
        header, _ = contents.pack(explain())
        apart = {"feature_names", "output_name", "neighbourhood", "provenance", "groups", "selected", "directions"} | {
            "input_shape",
            "switches",
        }
        fields = {each.name for each in dataclasses.fields(sl.Explanation)}
        assert fields == set(contents.ARRAYS) | set(contents.MARKS) | apart
        of_groups = {each.name for each in dataclasses.fields(Groups)} - {"pseudovalues"} | {
            "pseudo"
        }  # wherever they are
        # degrees of freedom are kept once, with the explanation
        assert of_groups == set(contents.GROUP_ARRAYS) | {"row_keys", "freedom"}
        assert {each.name for each in dataclasses.fields(Provenance)} == set(contents.PROVENANCE)
        assert {each.name for each in dataclasses.fields(sl.Neighbourhood)} == set(header["neighbourhood"])


class TestEarlierDraws:
    """Files of version 1 were drawn by NumPy's generator, where draws are independent."""

    def loaded(self, tmp_path, design, older):
        e = sl.explain(lambda a: np.sin(a @ [1.0, 2.0]), [0.1, 0.2], method="clime", design=design, n_samples=64)
        plain = older(e.to_json(), version=1)
        del plain["provenance"]["generator"]
        path = tmp_path / "old.json"
        path.write_text(json.dumps(plain))
        return e, sl.load(path)

    def test_cannot_be_made_again(self, tmp_path, older):
        e, old = self.loaded(tmp_path, "iid", older)
        np.testing.assert_array_equal(old.interval(), e.interval())
        with pytest.raises(sl.errors.InvalidArgument, match=r"earlier version \(PCG64,.*Explain the rows once more"):
            old.perturbations()
        with pytest.warns(sl.errors.ErrorsAdded):
            assert (old - e).groups is None

    def test_of_other_designs_are_what_they_were(self, tmp_path, older):
        e, old = self.loaded(tmp_path, "orthogonal", older)
        np.testing.assert_array_equal(old.perturbations(), e.perturbations())
        assert (old - e).groups is not None


def test_errors_of_nets_that_agreed_load_as_they_were_taken(tmp_path, path, older):
    """Up to version 4, two and a half resolutions where groups agreed to within a quarter of one."""
    relu = sl.testing.Relu([1.0, 0.0])
    e = sl.explain(relu, [[0.3, 0.0], [0.0, 0.0]], method="smoothgrad", design="sobol", n_samples=64)
    agree = standard_error(e.groups.pseudo, e.groups.sizes) < e.groups.resolution / 4
    assert agree[:, 0].all()
    old = tmp_path / "old.json"
    old.write_text(json.dumps(older(e.to_json())))
    for loaded in (sl.load(old), through(sl.load(old), path)):  # once, and no more when it is saved again
        np.testing.assert_array_equal(loaded.groups.resolution, np.where(agree, 2.5, 1.0) * e.groups.resolution)
        np.testing.assert_allclose(loaded.half_width(0.05)[:, 0], 2.5 * e.half_width(0.05)[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(through(e, path).groups.resolution, e.groups.resolution)


def test_files_before_tolerances_were_kept_load_without_them(tmp_path, older):
    e = explain()
    old = tmp_path / "old.json"
    old.write_text(json.dumps(older(e.to_json())))
    assert e.provenance.rtol == 0.05
    assert sl.load(old).provenance == dataclasses.replace(e.provenance, rtol=None)
    assert sl.load(old).provenance.tolerance == ""


def test_a_way_to_select_that_selected_nothing_loads_without_it(tmp_path, older):
    plain = older(explain(method=sl.Lime(kernel=None)).to_json())
    plain["provenance"]["method"]["settings"]["select"] = "highest"
    old = tmp_path / "old.json"
    old.write_text(json.dumps(plain))
    assert sl.load(old).provenance.method == sl.Lime(kernel=None)


def test_names_that_earlier_versions_took_for_none_load_as_they_were_used(tmp_path, path, older):
    data = pd.DataFrame({"a": [0.0, 1.0, 5.0], "b": [0.0, 100.0, 50.0]})
    e = sl.explain(lambda a: a.sum(axis=1), [0.0, 0.0], sigma=sl.Neighbourhood.from_data(data), n_samples=64)
    plain = older(e.to_json()) | {"feature_names": ["x0", "x1"]}  # columns of the rows; scales went by position
    old = tmp_path / "old.json"
    old.write_text(json.dumps(plain))
    again = through(sl.load(old), path)
    assert (again.feature_names, again.neighbourhood.columns) == (("x0", "x1"), None)
    np.testing.assert_array_equal(again.perturbations(), e.perturbations())


class TestFormats:
    def test_json_is_strict_ascii_and_says_its_version(self):
        def refuse(token):
            raise AssertionError(token)

        text = odd_numbers().to_json()
        assert text.isascii()
        plain = json.loads(text, parse_constant=refuse)
        assert (plain["format"], plain["version"]) == ("smoothlime explanation", 6)
        assert plain["arrays"]["smoothed"] == ["NaN", "Infinity", "-Infinity", -0.0]

    def test_parquet_is_a_table_that_others_can_read(self, tmp_path, assert_same):
        import pandas
        import polars
        import pyarrow.parquet

        e = explain(draws="independent")
        e.save(tmp_path / "e.parquet")
        for table in (pandas.read_parquet(tmp_path / "e.parquet"), polars.read_parquet(tmp_path / "e.parquet")):
            assert len(table) == 4
            for name in ("prediction", "smoothed", "fidelity", "radius", "converged", "n_samples", "row_keys"):
                expected = e.groups.row_keys if name == "row_keys" else getattr(e, name)
                assert_same(table[name].to_numpy(), expected)
            for name in ("x", "values", "standard_error"):
                np.testing.assert_array_equal(np.stack(list(table[name])), getattr(e, name))
            assert list(table["row_outputs"]) == ["output"] * 4
        header = json.loads(pyarrow.parquet.read_schema(tmp_path / "e.parquet").metadata[b"smoothlime"])
        assert (header["format"], header["version"]) == ("smoothlime explanation", 6)
        assert header["provenance"]["seed"] == 0

    @pytest.mark.parametrize(("suffix", "other"), [SUFFIXES, SUFFIXES[::-1]])
    def test_the_content_tells_the_format_not_the_name(self, tmp_path, suffix, other, assert_same):
        e = explain()
        e.save(tmp_path / f"e{suffix}")
        os.rename(tmp_path / f"e{suffix}", tmp_path / f"e{other}")
        assert_same(sl.load(tmp_path / f"e{other}"), e)

    def test_json_with_a_byte_order_mark_loads(self, tmp_path, assert_same):
        (tmp_path / "e.json").write_bytes(b"\xef\xbb\xbf \n" + explain().to_json().encode())
        assert_same(sl.load(tmp_path / "e.json"), explain())

    def test_folders_named_like_partitions_add_no_columns(self, tmp_path, assert_same):
        (tmp_path / "n_samples=7").mkdir()
        e = explain()
        assert_same(through(e, tmp_path / "n_samples=7" / "e.parquet"), e)

    def test_parquet_needs_its_extra(self, tmp_path, hide):
        explain().save(tmp_path / "e.parquet")
        hide("pyarrow")
        with pytest.raises(errors.MissingExtra, match=r"to write Parquet files.*pip install 'smoothlime\[parquet\]'"):
            explain().save(tmp_path / "f.parquet")
        with pytest.raises(errors.MissingExtra, match="to read Parquet files"):
            sl.load(tmp_path / "e.parquet")
        assert os.listdir(tmp_path) == ["e.parquet"]

    def test_more_numbers_than_parquet_counts_are_refused(self, tmp_path, monkeypatch):
        e = explain()
        monkeypatch.setattr(as_parquet, "MOST", e.groups.pseudo.size - 1)
        with pytest.raises(errors.InvalidArgument, match=r"up to 3\d\d numbers, and 'group_pseudo' has .* fewer rows"):
            e.save(tmp_path / "e.parquet")
        assert not list(tmp_path.iterdir())
        e[:3].save(tmp_path / "e.parquet")
        e.save(tmp_path / "e.json")

    def test_a_name_that_is_no_text_is_refused_by_parquet_alone(self, tmp_path):
        e = dataclasses.replace(explain(), row_outputs=("\ud800",) * 4)
        assert through(e, tmp_path / "e.json").row_outputs == e.row_outputs
        with pytest.raises(errors.InvalidArgument, match=r"no valid text for Parquet .* save it as \.json"):
            e.save(tmp_path / "e.parquet")


@dataclasses.dataclass(frozen=True)
class Strange:
    """Settings of every type that a method might have."""

    kernel: typing.Any = None
    number: float = np.inf
    names: tuple = ("a", 1, None)
    table: typing.Any = None
    nested: typing.Any = None
    flag: bool = True
    name: typing.ClassVar[str] = "strange"
    designs: typing.ClassVar[tuple] = ()

    def __post_init__(self):
        if self.kernel is not None and not callable(self.kernel):
            raise errors.InvalidArgument("kernel must be a function")


def tricube(distance):
    return (1 - distance**3) ** 3


class TestSettings:
    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch):
        monkeypatch.setitem(METHODS, "strange", Strange)

    def with_settings(self, **given):
        e = explain()
        method = Strange(**given)
        return dataclasses.replace(e, provenance=dataclasses.replace(e.provenance, method=method))

    def test_plain_settings_come_back_with_their_types(self, path):
        given = {
            "names": ("a", (1, 2.5), [True, None, -np.inf]),
            "table": {"a": 1, 2: (3,)},
            "nested": sl.CLime(ridge=0.5),
            "number": np.float64(0.1),
        }
        again = through(self.with_settings(**given), path).provenance.method
        assert again == Strange(**given)
        assert type(again.names[2]) is list
        assert np.isnan(through(self.with_settings(number=np.nan), path).provenance.method.number)

    def test_arrays_in_settings_come_back(self, path, assert_same):
        for array in (np.eye(2), np.array([1, 2], dtype=np.int32), np.array([True]), np.array([np.nan, -np.inf])):
            assert_same(through(self.with_settings(table=array), path).provenance.method.table, array)

    def test_the_order_of_keys_means_nothing(self, tmp_path):
        e, path = self.with_settings(table=np.array([1.5, 2.0]), nested=sl.CLime(ridge=0.5)), tmp_path / "e.json"
        turned = lambda pairs: dict(reversed(pairs))
        path.write_text(json.dumps(json.loads(e.to_json(), object_pairs_hook=turned)))
        again = sl.load(path)
        assert again.to_json().count('{"array": [1.5, 2.0], "dtype": "<f8"}') == 1
        assert json.loads(again.to_json()) == json.loads(e.to_json())

    @pytest.mark.parametrize("kernel", [tricube, lambda z: z, np.exp, type("K", (), {"__call__": abs})()])
    def test_functions_are_named_not_saved(self, path, kernel, assert_same):
        e = self.with_settings(kernel=kernel)
        again = through(e, path)
        placeholder = again.provenance.method.kernel
        assert repr(placeholder).startswith("<not saved: ")
        assert placeholder.__name__ == repr(placeholder)  # methods name their functions by it
        assert again.method == "strange"
        np.testing.assert_array_equal(again.perturbations(1), e.perturbations(1))
        np.testing.assert_array_equal(again.values, e.values)
        with pytest.raises(errors.InvalidArgument, match="was not saved with the explanation: files hold no code"):
            placeholder(np.zeros(3))
        assert_same(through(again, path), again)

    def test_the_name_of_a_function_says_where_it_was(self, path):
        again = through(self.with_settings(kernel=tricube), path)
        assert again.provenance.method.kernel == settings.NotSaved(f"{tricube.__module__}.tricube")

    def test_functions_in_the_settings_of_every_method(self, path):
        """Whichever method takes a kernel must also take the placeholder for one."""
        for kind in settings.kinds().values():
            if "kernel" in {each.name for each in dataclasses.fields(kind)}:
                e = explain()
                method = kind(kernel=tricube)
                e = dataclasses.replace(e, provenance=dataclasses.replace(e.provenance, method=method))
                assert "tricube" in repr(through(e, path).provenance.method.kernel)

    def test_methods_of_others_are_refused_when_saving(self, path):
        class Own(Strange):
            pass

        e = dataclasses.replace(explain(), provenance=dataclasses.replace(explain().provenance, method=Own()))
        with pytest.raises(errors.WrongType, match="only the methods of smoothlime can be saved"):
            e.save(path)
        assert not path.exists()


class TestWriting:
    @pytest.mark.parametrize("name", ["e.csv", "e", "e.json.gz", ".json"])
    def test_other_suffixes_are_refused(self, tmp_path, name):
        with pytest.raises(errors.InvalidArgument, match=r"path must end in \.json or \.parquet"):
            explain().save(tmp_path / name)
        assert os.listdir(tmp_path) == []

    def test_suffixes_in_capitals_count(self, tmp_path, assert_same):
        assert_same(through(explain(), tmp_path / "E.JSON"), explain())

    @pytest.mark.parametrize("path", [None, 3, b"e.json"])
    def test_paths_are_text_or_paths(self, path):
        with pytest.raises(errors.WrongType, match="path must be text or a path"):
            explain().save(path)
        with pytest.raises(errors.WrongType, match="path must be text or a path"):
            sl.load(path)

    @pytest.mark.parametrize("path", ["", "a\0b.json"])
    def test_paths_name_a_file(self, path):
        with pytest.raises(errors.InvalidArgument, match="path must name a file"):
            sl.load(path)

    def test_a_missing_folder_is_named(self, tmp_path, path):
        with pytest.raises(errors.UnwritableFile, match=r"there is no folder '.*nowhere'\. Create it first"):
            explain().save(tmp_path / "nowhere" / path.name)

    def test_a_folder_is_no_file(self, path):
        path.mkdir()
        with pytest.raises(errors.UnwritableFile, match="it is a folder"):
            explain().save(path)

    @pytest.mark.parametrize("step", ["open", "write", "replace"])
    def test_a_failure_leaves_the_old_file_and_nothing_else(self, path, monkeypatch, step):
        explain().save(path)
        before = path.read_bytes()
        real = open

        def no_space(*_):
            raise OSError(28, "No space left on device")

        def failing_open(name, mode="r", *more):
            if step == "open":
                raise PermissionError(13, "Permission denied")
            file = real(name, mode, *more)
            return type(
                "Full", (), {"__enter__": lambda s: s, "__exit__": lambda s, *_: file.close(), "write": no_space}
            )()

        if step == "replace":
            monkeypatch.setattr(os, "replace", no_space)
        else:
            monkeypatch.setattr(files, "open", failing_open, raising=False)
        reason = "Permission denied" if step == "open" else "No space left on device"
        with pytest.raises(errors.UnwritableFile, match=f"saved.* cannot be written: {reason}"):
            explain(seed=1).save(path)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]

    def test_an_interrupt_leaves_nothing_behind(self, path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            explain().save(path)
        assert os.listdir(path.parent) == []

    def test_permissions_are_those_of_any_file_or_of_the_one_replaced(self, path):
        explain().save(path)
        ordinary = path.with_name("ordinary")
        ordinary.touch()
        assert path.stat().st_mode == ordinary.stat().st_mode
        path.chmod(0o604)
        explain(seed=1).save(path)
        assert path.stat().st_mode & 0o777 == 0o604

    def test_links_are_written_through(self, tmp_path, path, assert_same):
        real = tmp_path / "elsewhere"
        real.mkdir()
        path.symlink_to(real / path.name)
        explain().save(path)
        assert path.is_symlink()
        assert_same(sl.load(real / path.name), explain())

    def test_text_and_paths_are_alike(self, path, assert_same):
        explain().save(str(path))
        assert_same(sl.load(str(path)), explain())


def test_pipes_and_devices_are_not_replaced(tmp_path):
    e = sl.explain(lambda a: a.sum(axis=1), [1.0, 2.0])
    pipe, link = tmp_path / "pipe.json", tmp_path / "link.json"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(errors.UnwritableFile, match="it is no file but a pipe or a device"):
            e.save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_that_is_read_only_stays(tmp_path, monkeypatch):
    e = sl.explain(lambda a: a.sum(axis=1), [1.0, 2.0])
    path = tmp_path / "kept.json"
    path.write_text("old")
    monkeypatch.setattr("os.access", lambda asked, mode: str(asked) != str(path))  # as for others than root
    with pytest.raises(errors.UnwritableFile, match=r"kept\.json' cannot be written: it is read-only"):
        e.save(path)
    assert path.read_text() == "old"


def test_where_a_file_cannot_go_is_told_before_the_work(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere" / "file.json")
    with pytest.raises(errors.UnwritableFile, match=r"link\.json' cannot be written: there is no folder '.*nowhere'"):
        files.check_writable(tmp_path / "link.json")
    assert os.path.isdir("/proc")
    with pytest.raises(errors.UnwritableFile, match=r"'/proc/e\.json' cannot be written: .* in the folder '/proc'"):
        files.check_writable("/proc/e.json")  # where root has all permissions
    assert files.check_writable(tmp_path / "e.json") == tmp_path / "e.json"
    assert os.listdir(tmp_path) == ["link.json"]


def test_a_name_too_long_for_a_file_is_named():
    with pytest.raises(errors.UnreadableFile, match="cannot be read: File name too long"):
        sl.load("a" * 5_000 + ".json")
