"""The one door to optional dependencies."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..errors import MissingExtra


def require(module: str, *, extra: str | None, to: str) -> ModuleType:
    """Import `module`, or say which extra brings it and what it is needed for; without one, it is the user's own."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as err:
        if err.name != module.partition(".")[0]:
            raise  # installed but broken: its own error says more than ours
        package = {"sklearn": "scikit-learn"}.get(err.name, err.name) if extra is None else f"'smoothlime[{extra}]'"
        msg = f"{module} is needed to {to}. Install it with: pip install {package}"
        raise MissingExtra(msg) from err
