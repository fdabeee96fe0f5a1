"""Contributions and interactions in files: equal to the bit, refused where they make no sense."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import smoothlime as sl
from smoothlime import errors
from smoothlime.testing import Probit, Sine

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(60, 3))
FOREST = RandomForestRegressor(4, max_depth=3, random_state=0).fit(DATA, DATA[:, 0] * DATA[:, 1])
FULL = sl.Neighbourhood(covariance=np.eye(3) * 0.2 + 0.05)
SINE = Sine([0.7, -0.4, 0.3])
TABLE = pd.DataFrame({"age": [1.0, 2.0], "city": ["Rome", "Oslo"], "debt": [0.5, -1.0]})


def of_table(table):
    return np.sin(table["age"]) + table["debt"] * (table["city"] == "Rome")


def gaps():
    given = sl.from_functions(
        values=lambda a: np.nansum(a, axis=1), gradients=lambda a: np.where(np.isnan(a), 0.0, 1.0)
    )
    return sl.interactions(given, [[1.0, 2.0, 0.5], [np.nan, 0.0, 1.0]], sigma=0.5, n_samples=256)


ANSWERS = {
    "drawn interactions": lambda: sl.interactions(SINE, DATA[:3], sigma=0.4, n_samples=256),
    "interactions from predictions": lambda: sl.interactions(SINE, DATA[:2], sigma=0.4, n_samples=256, method="clime"),
    "some pairs": lambda: sl.interactions(SINE, DATA[:2], sigma=FULL, pairs=[(0, 2), (1, 1)], n_samples=256),
    "exact interactions": lambda: sl.interactions(FOREST, DATA[:3], sigma=0.4),
    "interactions with gaps": gaps,
    "interactions on ranks": lambda: sl.interactions(
        FOREST, DATA[:3], sigma=0.4, background=DATA, scale="ranks", fixed=[1]
    ),
    "drawn contributions": lambda: sl.contributions(
        Probit([0.7, -0.4, 0.3]), DATA[:3], baseline=DATA[5], n_samples=256
    ),
    "exact contributions": lambda: sl.contributions(FOREST, DATA[:3], background=DATA),
    "contributions of a table": lambda: sl.contributions(
        of_table, TABLE, baseline={"age": 0.0, "city": "Rome", "debt": 0.0}, n_samples=256, sigma=0.5
    ),
}


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.parametrize("kind", list(ANSWERS))
def test_what_goes_in_comes_out(kind, suffix, tmp_path):
    found = ANSWERS[kind]()
    path = tmp_path / f"saved{suffix}"
    found.save(path)
    again = sl.load(path)
    assert type(again) is type(found)
    for name in [each.name for each in dataclasses.fields(found) if each.name not in ("neighbourhood", "groups")]:
        one, other = getattr(found, name), getattr(again, name)
        if name == "explanation":
            np.testing.assert_array_equal(one.values, other.values)
            assert one.provenance == other.provenance
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert one.dtype.kind == other.dtype.kind
        else:
            assert one == other, name
    for ask in (str, repr, lambda each: each.to_frame().to_csv(), lambda each: each.to_json()):
        assert ask(again) == ask(found)
    for one, other in zip(found.interval(), again.interval(), strict=True):
        np.testing.assert_array_equal(one, other)
    if suffix == ".json":
        assert json.loads(path.read_text())["format"] == f"smoothlime {type(found).__name__.lower()}"


def changed(found, path, change):
    found.save(path)
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))
    return path


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("drawn interactions", lambda p: p["interactions"].update(version=99), "upgrade smoothlime"),
        ("drawn interactions", lambda p: p.update(version=99), "upgrade smoothlime"),
        ("drawn interactions", lambda p: p.pop("interactions"), "'interactions' is missing"),
        ("drawn interactions", lambda p: p["interactions"].update(pairs=[[0, 9]]), "'pairs'"),
        ("drawn interactions", lambda p: p["interactions"].update(pairs=[]), "'pairs'"),
        ("drawn interactions", lambda p: p["interactions"].update(pairs=[[0, 0]] * 6), "no pair twice"),
        ("drawn interactions", lambda p: p["interactions"].update(pairs=[[0, 0, 1]]), "'pairs' has length 3"),
        ("drawn interactions", lambda p: p["arrays"].pop("second_variance"), "'second_variance' is missing"),
        ("drawn interactions", lambda p: p["arrays"]["second_by_pair"][0].pop(), "second_by_pair"),
        (
            "drawn interactions",
            lambda p: p["arrays"]["second_error_by_pair"][0].__setitem__(0, -1.0),
            "no run can have",
        ),
        (
            "drawn interactions",
            lambda p: p["arrays"]["second_by_pair"][0].__setitem__(0, 7.0),
            "second_by_pair.* is not",
        ),
        ("drawn interactions", lambda p: p["arrays"]["values"][0].__setitem__(0, 7.0), "is damaged.*values"),
        ("drawn contributions", lambda p: p.update(version=99), "upgrade smoothlime"),
        ("drawn contributions", lambda p: p.update(version=0), "at least 1"),
        ("drawn contributions", lambda p: p.update(rows=-1), "'rows' must be"),
        ("drawn contributions", lambda p: p.update(baseline=[]), "'baseline' must hold rows"),
        ("drawn contributions", lambda p: p.update(baseline_rows=[-1]), "a negative one"),
        ("drawn contributions", lambda p: p.update(held_alike=["height"]), "names of features"),
        ("drawn contributions", lambda p: p.update(held_apart=[[]]), "names of features"),
        ("drawn contributions", lambda p: p["arrays"]["radius"].__setitem__(0, -1.0), "no run can have"),
        ("drawn contributions", lambda p: p["arrays"]["base"].__setitem__(0, 1.0), "base' is not what was saved"),
        ("drawn contributions", lambda p: p["arrays"].pop("group_pseudo"), "'group_pseudo' is missing"),
        ("drawn contributions", lambda p: p.update(format="smoothlime wishes"), "holds no explanation"),
        ("drawn contributions", lambda p: p.update(format=["smoothlime"]), "holds no explanation"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, change, message, tmp_path):
    with pytest.raises(errors.UnreadableFile, match=message):
        sl.load(changed(ANSWERS[kind](), tmp_path / "saved.json", change))


def test_damage_is_let_through_on_demand(tmp_path):
    for kind in ("drawn interactions", "drawn contributions"):
        path = changed(ANSWERS[kind](), tmp_path / "saved.json", lambda p: p.update(output_name="other"))
        with pytest.warns(errors.DamagedFile, match="output_name"):
            assert sl.load(path, check=False).output_name == "other"


def test_files_are_written_whole_and_where_they_can_be(tmp_path):
    found = ANSWERS["exact interactions"]()
    with pytest.raises(errors.InvalidArgument, match=r"\.json or \.parquet"):
        found.save(tmp_path / "saved.txt")
    with pytest.raises(errors.UnwritableFile, match="no folder"):
        found.save(tmp_path / "nowhere" / "saved.json")
    assert not list(tmp_path.iterdir())
