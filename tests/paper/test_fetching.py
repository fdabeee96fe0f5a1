import gzip
import hashlib
import io
import os
import urllib.request
import zipfile
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest

from smoothlime.errors import DataUnavailable, NotKept, SmoothlimeError, UnreadableFile
from smoothlime.paper import fetching
from smoothlime.paper.fetching import BANKRUPTCY, SHOPPING, cache_folder, fetch

CONTENT = b"a,b\r\n1,2\r\n"
SOURCE = replace(SHOPPING, n_bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())


def zipped(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


class Answer(io.BytesIO):
    headers = EmailMessage()  # of the kind that urllib answers with: no Content-Length


@pytest.fixture
def archive(monkeypatch):
    """Let the archive answer with given bytes; returns the list of requests made."""
    asked = []

    def serve(content):
        def urlopen(request, timeout):
            asked.append((request.full_url, timeout))
            return Answer(content)

        monkeypatch.setattr(urllib.request, "urlopen", urlopen)
        return asked

    return serve


@pytest.fixture
def folder(monkeypatch, tmp_path):
    path = tmp_path / "mine"
    path.mkdir()
    monkeypatch.setenv("SMOOTHLIME_DATA", str(path))
    return path


def test_packed_and_raw_files_in_the_folder_are_read(folder):
    (folder / SOURCE.raw_name).write_bytes(CONTENT)
    assert fetch(SOURCE) == CONTENT
    (folder / SOURCE.raw_name).unlink()
    (folder / SOURCE.packed_name).write_bytes(gzip.compress(CONTENT, mtime=0))
    assert fetch(SOURCE) == CONTENT


def test_the_folder_comes_before_the_cache(folder):
    cache_folder().mkdir(parents=True)
    (cache_folder() / SOURCE.raw_name).write_bytes(b"would be refused")
    (folder / SOURCE.raw_name).write_bytes(CONTENT)
    assert fetch(SOURCE) == CONTENT


def test_a_download_is_kept_and_asked_for_once(archive, folder):
    asked = archive(zipped(**{"README.txt": "hello", "data/" + SOURCE.raw_name: CONTENT}))
    assert fetch(SOURCE) == CONTENT
    assert fetch(SOURCE) == CONTENT
    assert asked == [(SOURCE.url, fetching.TIMEOUT)]
    assert [path.name for path in cache_folder().iterdir()] == [SOURCE.raw_name]
    assert list(folder.iterdir()) == []


def test_a_download_reports_its_progress(archive):
    archive(zipped(**{SOURCE.raw_name: CONTENT}))
    seen = []
    fetch(SOURCE, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(len(zipped(**{SOURCE.raw_name: CONTENT})), SOURCE.archive_bytes)]


def test_offline_says_what_was_tried_and_what_to_do():
    with pytest.raises(DataUnavailable) as caught:
        fetch(SOURCE)
    text = str(caught.value)
    for part in (
        SOURCE.title,
        SOURCE.packed_name,
        "$SMOOTHLIME_DATA (not set)",
        str(cache_folder()),
        SOURCE.url,
        "no network in tests",
        "set SMOOTHLIME_DATA to that folder",
        SOURCE.sha256,
    ):
        assert part in text
    assert isinstance(caught.value, SmoothlimeError)
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionResetError("reset")])
def test_a_broken_connection_counts_as_offline(monkeypatch, error):
    def urlopen(*args, **kwargs):
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    with pytest.raises(DataUnavailable, match=str(error)):
        fetch(SOURCE)


def test_a_body_that_ends_early_counts_as_offline(monkeypatch):
    class Short(Answer):
        def read(self, n):
            raise fetching.http.client.IncompleteRead(b"", 100)

    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **kwargs: Short())
    with pytest.raises(DataUnavailable, match="IncompleteRead"):
        fetch(SOURCE)


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (b"<html>please log in</html>", "not a whole zip archive"),
        (zipped(**{SOURCE.raw_name: CONTENT})[:-30], "not a whole zip archive"),
        (zipped(**{"other.csv": CONTENT}), f"holds no {SOURCE.raw_name}; it holds other.csv"),
        (zipped(**{SOURCE.raw_name: b"a,b\r\n1,3\r\n"}), "is not the published file"),
        (zipped(**{SOURCE.raw_name: bytes(10_000_000)}), f"got more than {len(CONTENT)} bytes"),
    ],
    ids=["a page", "cut off", "another member", "another content", "a bomb"],
)
def test_what_is_not_the_archive_is_refused_and_not_kept(archive, sent, complaint):
    archive(sent)
    with pytest.raises(DataUnavailable, match=complaint):
        fetch(SOURCE)
    assert not cache_folder().exists()


def test_a_member_that_unpacks_to_gigabytes_is_read_no_further_than_its_known_size(archive, monkeypatch):
    """The limit must be given to read(): a check afterwards would come when memory is gone."""
    sizes = []
    original = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, n=-1: sizes.append(n) or original(self, n))
    archive(zipped(**{SOURCE.raw_name: bytes(1_000_000)}))
    with pytest.raises(DataUnavailable):
        fetch(SOURCE)
    assert sizes == [len(CONTENT) + 1]


def test_an_endless_download_is_cut(archive, monkeypatch):
    monkeypatch.setattr(fetching, "LARGEST_ARCHIVE", 2**20)
    archive(bytes(2**22))
    with pytest.raises(DataUnavailable, match="sends more than 1 MiB"):
        fetch(SOURCE)


def test_a_member_with_a_path_upwards_writes_nothing_there(archive, tmp_path):
    archive(zipped(**{"../../" + SOURCE.raw_name: CONTENT}))
    assert fetch(SOURCE) == CONTENT
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        f"cache/smoothlime/{SOURCE.raw_name}"
    ]


@pytest.mark.parametrize("content", [b"a,b\r\n1,3\r\n", CONTENT[:-1], CONTENT + b"more", b""])
def test_another_file_under_the_right_name_is_refused(folder, archive, content):
    asked = archive(zipped(**{SOURCE.raw_name: CONTENT}))
    (folder / SOURCE.raw_name).write_bytes(content)
    with pytest.raises(UnreadableFile, match=rf"mine.{SOURCE.raw_name} is not the published file") as caught:
        fetch(SOURCE)
    assert SOURCE.sha256 in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert asked == []  # never another file in silence


@pytest.mark.parametrize("packed", [b"not gzip", gzip.compress(CONTENT, mtime=0)[:-6], b"\x1f\x8b\x08\x00" + bytes(20)])
def test_a_broken_gzip_file_is_refused(folder, packed):
    (folder / SOURCE.packed_name).write_bytes(packed)
    with pytest.raises(UnreadableFile, match="is not a whole gzip file"):
        fetch(SOURCE)


def test_a_damaged_file_in_the_cache_is_named(archive):
    archive(zipped(**{SOURCE.raw_name: CONTENT}))
    fetch(SOURCE)
    path = cache_folder() / SOURCE.raw_name
    path.write_bytes(b"damaged")
    with pytest.raises(UnreadableFile, match=f"{path} is not the published file"):
        fetch(SOURCE)
    path.unlink()
    assert fetch(SOURCE) == CONTENT


def test_a_write_that_fails_leaves_nothing_behind(archive, monkeypatch):
    archive(zipped(**{SOURCE.raw_name: CONTENT}))

    def full(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(NotKept, match=r"was downloaded but cannot be kept as .*: disk full"):
        assert fetch(SOURCE) == CONTENT
    assert list(cache_folder().iterdir()) == []


def test_an_interrupted_write_leaves_nothing_behind(archive, monkeypatch):
    archive(zipped(**{SOURCE.raw_name: CONTENT}))

    def interrupted(source, target):
        assert Path(source).read_bytes() == CONTENT  # whole before it gets its name
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(SOURCE)
    assert list(cache_folder().iterdir()) == []


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/smoothlime"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/me/.cache/smoothlime"),
        ("darwin", {}, "/home/me/Library/Caches/smoothlime"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/smoothlime/Cache"),
    ],
)
def test_the_cache_lies_where_the_system_keeps_such_files(monkeypatch, platform, variables, expected):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder().as_posix() == expected


def test_archives_are_asked_over_https():
    assert all(source.url.startswith("https://archive.ics.uci.edu/") for source in (SHOPPING, BANKRUPTCY))


def test_a_file_that_may_not_be_read_is_named(folder, monkeypatch):
    (folder / SOURCE.raw_name).write_bytes(CONTENT)

    def forbidden(self, mode):
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(DataUnavailable, match=rf"{SOURCE.raw_name} is there but cannot be read: not yours"):
        fetch(SOURCE)


def test_a_long_download_shows_what_it_is(archive, monkeypatch, capsys):
    monkeypatch.setattr("smoothlime._core.progress.SHOW_AFTER", -1.0)
    archive(zipped(**{SOURCE.raw_name: CONTENT}))
    fetch(SOURCE, progress=True)
    assert f"downloading {SOURCE.raw_name}" in capsys.readouterr().err


def test_a_folder_that_may_not_be_entered_is_named(folder, monkeypatch):
    def forbidden(self):
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "is_file", forbidden)  # what some versions of Python do there; others say False
    with pytest.raises(DataUnavailable, match=f"{folder} cannot be looked into: not yours"):
        fetch(SOURCE)
