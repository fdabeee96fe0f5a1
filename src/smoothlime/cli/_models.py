"""Models that commands are given: attributes of modules, and files. Python code runs only where the user names it."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..batch.reference import ModelReference, Once
from ..errors import InvalidArgument
from ._messages import say

WANTED = "MODEL must be a model file, or module:attribute, such as mypackage.models:classifier"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Where models are looked for, and which files may run code."""

    path: str | None = None
    """Folder in which to look for modules first"""
    trust: tuple[str, ...] = ()
    """Files that are trusted"""
    trust_types: tuple[str, ...] = ()
    """Types that skops files may hold besides those that are known"""

    def load(self, spec: str) -> Any:
        """The model in a file, or the object that `module:attribute` names."""
        if _is_there(spec) and not spec.endswith(".py"):
            return self._read(spec)
        return _attribute(spec, self.path)

    def reference(self, spec: str) -> ModelReference:
        """The same for a job of several processes, each of which reads the model by itself."""
        is_file = _is_there(spec) and not spec.endswith(".py")
        file = spec if is_file else None
        return ModelReference(Once(ModelOptions.load, self, spec, file=file), Path(spec).name, file)

    def _read(self, spec: str) -> Any:
        from ..models.files import read_model

        for each in self.trust:
            if not Path(each).is_file():
                msg = f"--trust names {each!r}, and there is no such file"
                raise InvalidArgument(msg)
        is_file = Path(spec).is_file()
        trusted = next((each for each in self.trust if is_file and Path(each).samefile(spec)), None)
        # read by the name that is trusted: the other may be a link, which somebody else may turn to another file
        model, digest = read_model(trusted or spec, trust=trusted is not None, trust_types=self.trust_types)
        if trusted is not None:
            say(f"{spec} is trusted, and its code has run: SHA-256 {digest}")
        return model


def _is_there(spec: str) -> bool:
    try:
        return Path(spec).exists()
    except (OSError, ValueError):  # a name that is too long, or has a null
        return False


def _attribute(spec: str, path: str | None) -> Any:
    """The object that `module:attribute` names; `path` is a folder to look in first."""
    module_name, separator, attribute = spec.partition(":")
    if not separator and not spec.endswith(".py"):
        msg = f"there is no file {spec!r}; {WANTED}"
        raise InvalidArgument(msg)
    if separator and not (module_name and attribute):
        msg = f"{WANTED}; got {spec!r}"
        raise InvalidArgument(msg)
    if module_name.endswith(".py") or "/" in module_name:
        attribute = attribute or "ATTRIBUTE"
        msg = (
            f"MODEL names a module, not a file: {Path(module_name).stem}:{attribute} with --path"
            f" {str(Path(module_name).parent)!r}; got {spec!r}"
        )
        raise InvalidArgument(msg)
    if path is not None:
        if not Path(path).is_dir():
            msg = f"--path must be a folder; got {path!r}"
            raise InvalidArgument(msg)
        sys.path.insert(0, str(Path(path).resolve()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as err:
        if err.name == module_name.partition(".")[0]:
            msg = f"there is no module {module_name!r}; is it installed? --path names a folder to look in"
        else:
            msg = f"MODEL: importing {module_name!r} failed: {err}"
        raise InvalidArgument(msg) from err
    except (Exception, SystemExit) as err:
        msg = f"MODEL: importing {module_name!r} failed: {type(err).__name__}: {err}"
        raise InvalidArgument(msg) from err
    thing = module
    for name in attribute.split("."):
        try:
            thing = getattr(thing, name)  # only once: a module may train a model each time
        except AttributeError as err:
            msg = f"{module_name!r} has no {attribute!r}"
            raise InvalidArgument(msg) from err
        except (Exception, SystemExit) as err:
            msg = f"MODEL: getting {attribute!r} from {module_name!r} failed: {type(err).__name__}: {err}"
            raise InvalidArgument(msg) from err
    return thing
