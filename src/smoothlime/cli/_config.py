"""Settings from a TOML file: an option on the command line comes first, then the file, then the default."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidArgument, MissingFile, UnreadableFile


def with_config(command: click.Command) -> click.Command:
    """The command with `--config`; once only, as a command is made once."""
    if not any(each.name == "config" for each in command.params):
        option = click.Option(
            ["--config"],
            is_eager=True,  # before the options that it gives
            expose_value=False,
            callback=_take,
            metavar="FILE",
            help="TOML file with any of these arguments and options, such as sigma = 0.5. What is typed comes first.",
        )
        command.params.append(option)
    return command


def _take(ctx: click.Context, option: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    params = {name: each for each in ctx.command.params if each is not option for name in _names(each)}
    found: dict[str, Any] = {}
    for key, value in _read(path).items():
        param = params.get(key.replace("-", "_"))
        if param is None:
            near = get_close_matches(key.replace("-", "_"), params, n=1, cutoff=0.0)
            way = near[0].replace("_", "-")
            msg = f"{path!r} sets {key!r}, which {ctx.info_name} does not have; the nearest is {way!r}"
            raise InvalidArgument(msg)
        found[str(param.name)] = _as_typed(param, value, f"{key} in {path!r}")
    ctx.default_map = found


def _names(param: click.Parameter) -> set[str]:
    """What a setting may be called: as it is typed without dashes in front, or as in Python."""
    longest = max(param.opts, key=len).removeprefix("--")
    return {str(param.name), longest.lower().replace("-", "_")}


def _read(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError as err:
        msg = f"--config: there is no file {path!r}"
        raise MissingFile(msg) from err
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as err:
        msg = f"--config: {path!r} is no TOML: {err}"
        raise UnreadableFile(msg) from err
    except (OSError, ValueError) as err:
        msg = f"--config: {path!r} cannot be read: {getattr(err, 'strerror', None) or err}"
        raise UnreadableFile(msg) from err


def _as_typed(param: click.Parameter, value: Any, where: str) -> Any:
    """A value as one would type it, so that the command line's own checks hold for it."""
    is_flag = isinstance(param, click.Option) and param.is_flag
    if is_flag or isinstance(value, bool):
        if not (is_flag and isinstance(value, bool)):
            msg = f"{where} must {'be true or false' if is_flag else 'not be true or false'}; got {value!r}"
            raise InvalidArgument(msg)
        return value
    if isinstance(value, Mapping):
        value = [f"{name}={_text(each, where)}" for name, each in value.items()]
    if not isinstance(value, list):
        return [_text(value, where)] if param.multiple else _text(value, where)
    typed = [_text(each, where) for each in value]
    return typed if param.multiple or param.nargs != 1 else _joined(typed)


def _text(value: Any, where: str) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    msg = f"{where} must be text, a number, or a list of these; got {value!r}"
    raise InvalidArgument(msg)


def _joined(names: list[str]) -> str:
    """Names with commas between them, in quotes where they hold one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()
