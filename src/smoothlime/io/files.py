"""`save` and `load`: which format, whole files or none, and errors that name the file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._core.warn import warn
from ..errors import DamagedFile, InvalidArgument, MissingFile, UnreadableFile, UnwritableFile, WrongType
from .as_json import from_json, to_json
from .as_parquet import from_parquet, to_parquet
from .kinds import Result

WRITERS: dict[str, Callable[[Any], bytes]] = {
    ".json": lambda e: to_json(e).encode("ascii"),
    ".parquet": to_parquet,
}
PARQUET = b"PAR1"
"""First bytes of a Parquet file."""


def save(found: Result, path: str | os.PathLike[str]) -> None:
    """Write a result to a .json or .parquet file, whole or not at all."""
    target = check_destination(path)
    write_whole(target, WRITERS[target.suffix.lower()](found))


def check_destination(path: str | os.PathLike[str]) -> Path:
    """The path, if a file of that name could be written: long work asks before it begins."""
    target = _path(path)
    if target.suffix.lower() not in WRITERS:
        msg = f"path must end in .json or .parquet, which says how to write it; got {str(target)!r}"
        raise InvalidArgument(msg)
    return check_writable(target)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The path, if there is a folder for it, and nothing of that name or a file that may be written to."""
    target = _path(path)
    try:
        hindrance = _hindrance(target)
    except OSError as err:  # a name that is too long, say
        raise _unwritable(target, err.strerror or err) from err
    if hindrance:
        raise _unwritable(target, hindrance)
    return target


def _hindrance(target: Path) -> str:
    """Why a file of that name cannot be written; empty where it can."""
    folder = _folder_of(target)
    if not folder.is_dir():
        return f"there is no folder {str(folder)!r}. Create it first"
    if target.is_dir():
        return "it is a folder"
    if target.exists() and not target.is_file():  # it would be replaced by a file
        return "it is no file but a pipe or a device"
    try:
        _try_to_write(folder)
    except OSError as err:
        return f"{err.strerror or err} in the folder {str(folder)!r}"
    return "it is read-only" if target.exists() and not os.access(target, os.W_OK) else ""


def _folder_of(target: Path) -> Path:
    """Where the file will be: beside what a link points to, there or not."""
    return Path(os.path.realpath(target)).parent if target.is_symlink() else target.parent


def _try_to_write(folder: Path) -> None:
    """Make a file that goes at once: permissions do not tell all, of disks that are read-only say."""
    import tempfile

    tempfile.TemporaryFile(dir=folder).close()


def _unwritable(target: Path, why: object) -> UnwritableFile:
    return UnwritableFile(f"{str(target)!r} cannot be written: {why}")


def load(path: str | os.PathLike[str], *, check: bool = True) -> Any:
    """Load what `save` of an explanation, of contributions or interactions has written, equal to the bit.

    The first bytes tell JSON from Parquet, whatever the file is called. Loading runs no code from the file: every
    field is checked for its type and shape, and anything else is an `UnreadableFile`.

    Parameters
    ----------
    check
        Whether a file whose contents have changed since they were saved is refused; without it, such a file loads as it
        is, with a `DamagedFile` warning that names the fields. Digests in the file tell. They are there against
        accidents: who changes a file on purpose can make them anew. Files of smoothlime before format version 5 have
        none.

    Examples
    --------
    >>> import tempfile, smoothlime as sl
    >>> e = sl.explain(lambda a: a.sum(axis=1), [1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     e.save(f"{folder}/sum.json")
    ...     again = sl.load(f"{folder}/sum.json")
    >>> (again.values == e.values).all(), (again.perturbations(0) == e.perturbations(0)).all()
    (np.True_, np.True_)
    """
    source = _path(path)
    if not isinstance(check, bool):
        msg = f"check must be True or False; got {check!r}"
        raise WrongType(msg, argument="check")
    e, changed = _read_or_complain(source)
    if changed:
        what = f"{str(source)!r} is damaged: {_listed(changed)} not what was saved, as the digests in it tell"
        if check:
            msg = f"{what}. Take another copy of the file, or load it as it is with check=False"
            raise UnreadableFile(msg)
        warn(f"{what}; it was loaded as it is", DamagedFile)
    return e


def _read_or_complain(source: Path) -> tuple[Result, list[str]]:
    """What a file holds, and which fields of it have changed, or an error that names the file."""
    try:
        return _read(source)
    except IsADirectoryError as err:
        msg = f"{str(source)!r} is a folder; give the file in it"
        raise UnreadableFile(msg) from err
    except FileNotFoundError as err:
        msg = f"there is no file {str(source)!r}"
        raise MissingFile(msg) from err
    except UnreadableFile as err:
        msg = f"{str(source)!r} cannot be loaded: {err}"
        raise UnreadableFile(msg) from err
    except RecursionError as err:
        msg = f"{str(source)!r} cannot be loaded: it is nested too deep to be an explanation"
        raise UnreadableFile(msg) from err
    except OSError as err:
        msg = f"{str(source)!r} cannot be read: {err.strerror or err}"
        raise UnreadableFile(msg) from err


def _listed(names: list[str]) -> str:
    """The first few names, and a verb that goes with them."""
    shown = [repr(each) for each in names[:3]]
    more = [f"{len(names) - 3} more"] if len(names) > 3 else []
    return f"{' and '.join([', '.join(shown), *more])} {'is' if len(names) == 1 else 'are'}"


def _read(path: Path) -> tuple[Result, list[str]]:
    with open(path, "rb") as file:
        head = file.read(len(PARQUET))
        file.seek(0)
        if head == PARQUET:
            return from_parquet(file)
        data = file.read()
    if not data.strip():
        msg = "it is empty"
        raise UnreadableFile(msg)
    if not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
        msg = "it is neither JSON nor Parquet; load reads what save has written"
        raise UnreadableFile(msg)
    return from_json(data)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        msg = f"path must be text or a path; got {path!r}"
        raise WrongType(msg)
    if "\0" in str(path) or not str(path):
        msg = f"path must name a file; got {path!r}"
        raise InvalidArgument(msg)
    return Path(path)


def write_whole(path: Path, content: bytes, *, is_durable: bool = False) -> None:
    """Write beside the path under a passing name, then rename: a file that was there stays whole until the end.

    A durable file is on the disk before it gets its name.
    """
    try:
        _replace(Path(os.path.realpath(path)), content, is_durable=is_durable)
    except OSError as err:
        raise _unwritable(path, err.strerror or err) from err


def _replace(target: Path, content: bytes, *, is_durable: bool) -> None:
    passing = target.parent / f".smoothlime-{os.urandom(8).hex()}.tmp"
    try:
        with open(passing, "xb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        if target.exists():
            passing.chmod(target.stat().st_mode & 0o7777)
        os.replace(passing, target)
    except BaseException:
        with contextlib.suppress(OSError):
            passing.unlink(missing_ok=True)
        raise
