"""The bytes of the two UCI files: from a folder of yours, from the cache, or from the UCI archive.

Whatever the place, the unpacked bytes must have the SHA-256 written here: every answer rests on the very same file.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import sys
import tempfile
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .._core.progress import Progress
from .._core.warn import warn
from ..errors import DataUnavailable, NotKept, UnreadableFile

FOLDER_VARIABLE = "SMOOTHLIME_DATA"
TIMEOUT = 30.0
"""Seconds without any answer from the archive before a download is given up."""
LARGEST_ARCHIVE = 64 * 2**20
"""Bytes; several times the larger of the two archives, and small enough for any memory."""
CHUNK = 2**16


@dataclass(frozen=True, slots=True)
class Source:
    """One published file: what it is called here and there, and how to know it when it comes."""

    title: str
    raw_name: str
    packed_name: str
    url: str
    n_bytes: int
    sha256: str
    archive_bytes: int  # roughly, for the progress bar where the archive does not tell; no check depends on it


SHOPPING = Source(
    title="Online Shoppers Purchasing Intention (UCI 468)",
    raw_name="online_shoppers_intention.csv",
    packed_name="online_shoppers_intention.csv.gz",
    url="https://archive.ics.uci.edu/static/public/468/online+shoppers+purchasing+intention+dataset.zip",
    n_bytes=1_072_063,
    sha256="b3055ee355f59134d851d32641183cb4a8b45def7124d2f50442a042f358e0d9",
    archive_bytes=240_000,
)
BANKRUPTCY = Source(
    title="Polish Companies Bankruptcy, third year (UCI 365)",
    raw_name="3year.arff",
    packed_name="polish_bankruptcy_3year.arff.gz",
    url="https://archive.ics.uci.edu/static/public/365/polish+companies+bankruptcy+data.zip",
    n_bytes=5_169_674,
    sha256="662617d2f90bfd17223595e50a0ac7007f9ee7915cfb519dee0422b31dd13ebc",
    archive_bytes=9_000_000,
)


def fetch(source: Source, *, progress: Any = "auto") -> bytes:
    """The unpacked file, checked: from $SMOOTHLIME_DATA, else from the cache, else downloaded into the cache.

    A file that is found and is not the published one is an error: no other place is tried in silence.
    """
    cache = cache_folder()
    folder = os.environ.get(FOLDER_VARIABLE)
    for place in ([Path(folder)] if folder else []) + [cache]:
        found = _from_folder(place, source)
        if found is not None:
            return found
    try:
        content = _unzip(_download(source, progress), source)
    except (OSError, http.client.HTTPException, UnreadableFile) as err:
        raise DataUnavailable(_how_to_get(source, folder, cache, err)) from err
    _keep(content, cache / source.raw_name)
    return content


def cache_folder() -> Path:
    """Where this system keeps files that can be had again."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "smoothlime" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "smoothlime"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "smoothlime"


def check_content(content: bytes, source: Source, where: str) -> bytes:
    """The content as it came, or an error if it is not the published file."""
    got = hashlib.sha256(content).hexdigest()
    if got == source.sha256:
        return content
    size = f"{len(content)} bytes" if len(content) <= source.n_bytes else f"more than {source.n_bytes} bytes"
    msg = (
        f"{where} is not the published file {source.raw_name} ({source.title}): it must have {source.n_bytes} bytes"
        f" and SHA-256 {source.sha256}; got {size} and {got}. Delete it or put a good copy in its place"
    )
    raise UnreadableFile(msg)


def _from_folder(folder: Path, source: Source) -> bytes | None:
    packed, raw = folder / source.packed_name, folder / source.raw_name
    try:
        path = next((each for each in (packed, raw) if each.is_file()), None)
    except OSError as err:  # a folder that may not be entered, or whose name no system would take
        msg = f"{folder} cannot be looked into: {err.strerror or err}"
        raise DataUnavailable(msg) from err
    if path is None:
        return None
    try:
        with gzip.open(path, "rb") if path == packed else path.open("rb") as file:
            content = file.read(source.n_bytes + 1)  # one byte too many is enough to know that it is another file
    except (gzip.BadGzipFile, EOFError, zlib.error) as err:
        msg = f"{path} is not a whole gzip file: {err}. Delete it or put a good copy in its place"
        raise UnreadableFile(msg) from err
    except OSError as err:
        msg = f"{path} is there but cannot be read: {err}"
        raise DataUnavailable(msg) from err
    return check_content(content, source, str(path))


def _download(source: Source, progress: Any) -> bytes:
    request = urllib.request.Request(source.url, headers={"User-Agent": "smoothlime"})
    content = io.BytesIO()
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        told = answer.headers.get("Content-Length") or ""
        total = int(told) if told.isdecimal() else source.archive_bytes
        with Progress(progress, total, label=f"downloading {source.raw_name}") as bar:
            while chunk := answer.read(CHUNK):
                content.write(chunk)
                bar.advance(len(chunk))
                if content.tell() > LARGEST_ARCHIVE:
                    msg = f"{source.url} sends more than {LARGEST_ARCHIVE // 2**20} MiB, which is not the archive"
                    raise UnreadableFile(msg)
    return content.getvalue()


def _unzip(archive: bytes, source: Source) -> bytes:
    """One member, read into memory and no further than its known size: nothing is ever extracted to a path."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            inside = [name for name in zipped.namelist() if PurePosixPath(name).name == source.raw_name]
            if not inside:
                msg = f"the archive {source.url} holds no {source.raw_name}; it holds {', '.join(zipped.namelist())}"
                raise UnreadableFile(msg)
            with zipped.open(inside[0]) as member:
                content = member.read(source.n_bytes + 1)
    # RuntimeError: encrypted; NotImplementedError: an unknown compression
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as err:
        msg = f"what {source.url} sent is not a whole zip archive: {err}"
        raise UnreadableFile(msg) from err
    return check_content(content, source, f"{inside[0]} in {source.url}")


def _keep(content: bytes, path: Path) -> None:
    """Write under another name first, so that nobody ever finds half a file under the right one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as err:
        msg = (
            f"{path.name} was downloaded but cannot be kept as {path}: {err}."
            f" It will be downloaded again next time, unless {FOLDER_VARIABLE} names a folder that has it"
        )
        warn(msg, NotKept)


def _how_to_get(source: Source, folder: str | None, cache: Path, err: Exception) -> str:
    mine = f"${FOLDER_VARIABLE} ({folder})" if folder else f"${FOLDER_VARIABLE} (not set)"
    return (
        f"{source.title} cannot be had. Looked for {source.packed_name} and {source.raw_name} in {mine} and in {cache};"
        f" then {source.url} failed: {err or type(err).__name__}. By hand: download that archive, take"
        f" {source.raw_name} out of it, put it into a folder and set {FOLDER_VARIABLE} to that folder. Its SHA-256 must"
        f" be {source.sha256}"
    )
