"""Whatever stands in a field, a file loads as it was, or says what is wrong: no other error, and no other result."""

import functools
import json
import random
import warnings

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.linear_model import LinearRegression

import smoothlime as sl
from smoothlime import errors
from smoothlime import testing as known

V = np.array([0.7, -0.4, 0.3])
X = np.random.default_rng(0).normal(size=(3, 3))
F = known.Sine(V, 0.3)


def explain(function=F, **more):
    return sl.explain(function, X, **{"sigma": 0.6, "n_samples": 128, **more})


EXPLANATIONS = {
    "clime with curves": lambda: explain(method=sl.CLime(curves=True)),
    "stein, own draws": lambda: explain(method="stein", draws="independent", design="sobol"),
    "lime": lambda: explain(method=sl.Lime(kernel=1.5, features=2)),
    "a function among the settings": lambda: explain(method=sl.Lime(kernel=np.ones_like)),
    "differences": lambda: explain(method="differences"),
    "smoothgrad": lambda: explain(method=sl.SmoothGrad(control="values")),
    "certified": lambda: explain(method="smoothgrad", guarantee="certified", gradient_bound=2.0),
    "certified values": lambda: explain(
        known.Probit(V, 0.1), method="stein", guarantee="certified", output_range=(0.0, 1.0)
    ),
    "exact": lambda: sl.explain(LinearRegression().fit(X, X @ V), X, sigma=0.6),
    "covariance": lambda: explain(sigma=sl.Neighbourhood.from_data(X, 0.3, full=True, fixed=[1])),
    "ranks and logarithms": lambda: explain(
        background=np.exp(np.random.default_rng(1).normal(size=(12, 3)).round()),
        scale={0: "ranks", 1: "log"},
        fixed=[1],
    ),
    "switches": lambda: explain(lambda a: np.tanh(a[:, 0] * a[:, 2]), fixed=[2], switches={"x2": [0, 1]}),
    "no rows": lambda: explain()[:0],
}
HOSTILE = (
    *(10**400, 10**18, -1, 0, 1, 2, 1.5, -0.0, 1e308, True, False, None),
    *("", "x", "NaN", "-Infinity", "\ud800", "none", "float16", "(1,", "iid", "Lime"),
    *([], [[]], [1], [1] * 3, [True] * 3, [[0.0] * 3] * 3, [["NaN"] * 3] * 3, [10**400] * 3, ["a"] * 3),
    *({}, {"a": 1}, {"number": "NaN"}, {"number": []}, {"tuple": [1]}, {"not saved": "x"}),
    *({"mapping": [[[1], 2]]}, {"mapping": [[1]]}, {"mapping": [["a", 10**400]]}),
    *({"array": [10**400], "dtype": "<i8"}, {"array": [300], "dtype": "|u1"}, {"array": [1], "dtype": "(1,"}),
    *({"method": {"kind": "Exact", "settings": {}}}, {"method": {"kind": "CLime", "settings": {}}}),
    *({"kind": "Stein", "settings": {}}, {"kind": "Exact", "settings": {}}),
)
GONE = object()


def places(content, above=()):
    """Every key, and the first entry of every list."""
    inside = content if isinstance(content, dict) else range(min(1, len(content))) if isinstance(content, list) else ()
    for key in inside:
        yield (*above, key)
        yield from places(content[key], (*above, key))


def changed(text, place, to):
    """The content of a file, with one entry replaced or gone."""
    content = json.loads(text)
    inside = content
    for key in place[:-1]:
        inside = inside[key]
    if to is GONE:
        del inside[place[-1]]
    else:
        inside[place[-1]] = to
    return content


def attempt(path):
    """What loads without a check, and whether a warning calls it damaged; None where it is refused in due form."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            e = sl.load(path, check=False)
        except errors.UnreadableFile as error:
            e, message = None, str(error)
        else:
            message = path.name
    assert path.name in message
    assert len(message) < 600
    assert {each.category for each in found} <= {errors.DamagedFile}
    return e, bool(found)


def look(path, text):
    """Load a file whose content may differ: refused, called damaged, or what it was."""
    e, is_damaged = attempt(path)
    if is_damaged:
        with pytest.raises(errors.UnreadableFile, match="is damaged: '"):
            sl.load(path)
    elif e is not None:
        assert json.loads(e.to_json()) == json.loads(text)
    return e


@pytest.fixture(scope="module", params=EXPLANATIONS)
def text(request):
    return EXPLANATIONS[request.param]().to_json()


def cases(text, count):
    """Every place with a number that is too large and without its entry, and with a few other values."""
    rng = random.Random(0)
    for place in places(json.loads(text)):
        for to in (10**400, GONE, *rng.sample(HOSTILE, count)):
            yield place, to


def test_a_json_file_with_one_entry_changed(text, tmp_path):
    path, outcomes = tmp_path / "e.json", []
    for place, to in cases(text, 3):
        path.write_text(json.dumps(changed(text, place, to)))
        outcomes.append(look(path, text))
    assert {each is None for each in outcomes} == {True, False}


def test_an_older_file_with_one_entry_changed(text, tmp_path, older):
    """Nothing says whether it was: it loads, or is refused in due form."""
    path, before = tmp_path / "e.json", json.dumps(older(text))
    for place, to in cases(before, 1):
        path.write_text(json.dumps(changed(before, place, to)))
        _, is_damaged = attempt(path)
        assert not is_damaged


def test_a_parquet_file_with_one_entry_of_its_header_changed(text, tmp_path):
    json_path, path = tmp_path / "e.json", tmp_path / "e.parquet"
    json_path.write_text(text)
    sl.load(json_path).save(path)
    table = pyarrow.parquet.read_table(path)
    header = table.schema.metadata[b"smoothlime"]
    for place, to in cases(header, 1):
        metadata = {b"smoothlime": json.dumps(changed(header, place, to)).encode()}
        pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
        look(path, text)


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"1e999", b"1" * 5_000, b"[" * 100_000])
@pytest.mark.parametrize("name", [b"confidence", b"seed", b"rows", b"dtype", b"sigma"])
def test_a_parquet_file_with_a_token_that_is_no_json_in_its_header(tmp_path, name, token):
    path = tmp_path / "e.parquet"
    explain(method="stein").save(path)
    table = pyarrow.parquet.read_table(path)
    head, _, tail = table.schema.metadata[b"smoothlime"].partition(b'"' + name + b'": ')
    end = min(tail.index(each) for each in (b",", b"}"))
    header = head + b'"' + name + b'": ' + token + tail[end:]
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"smoothlime": header}), path)
    assert attempt(path) == (None, False)


@functools.cache
def plain_file():
    return explain(method=sl.CLime(ridge=0.1)).to_json()


@pytest.mark.parametrize("seed", range(3))
def test_files_with_many_entries_changed(seed, tmp_path):
    rng, path = random.Random(seed), tmp_path / "e.json"
    for _ in range(50):
        content = plain_file()
        for _ in range(rng.randint(2, 4)):
            place = rng.choice(list(places(json.loads(content))))
            content = json.dumps(changed(content, place, rng.choice((GONE, *HOSTILE))))
        path.write_text(content)
        look(path, plain_file())
