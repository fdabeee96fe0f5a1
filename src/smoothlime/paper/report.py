"""The report on the paper: one page that needs nothing else, its figures, and its numbers as JSON.

`write` is given plain data and draws conclusions from none of it; verdicts come with the claims. All of it is made
before anything is written, and each file is replaced in one step, the page last.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from . import page
from .drawing import checked, draw, render, write_whole


def write(results: dict[str, Any], folder: str | Path) -> Path:
    """Path of `index.html`; beside it `results.json`, `figures/<name>.svg` and `figures/<name>.pdf`."""
    folder, plain = Path(folder), as_plain(results)
    names, note = [checked(name) for name in plain["figures"]], page.warning_line(plain)
    files: dict[str, bytes] = {"results.json": _json(plain)}
    drawn = {}
    for name in names:
        figure = plain["figures"][name]
        made = render(draw(figure, note), title=figure["title"])
        drawn[name] = page.inline_svg(made["svg"].decode(), name, page.describe(figure))
        files |= {f"figures/{name}.{kind}": data for kind, data in made.items()}
    files["index.html"] = page.as_html(plain, drawn).encode()  # last: what it links to is there by then
    for path, data in files.items():
        write_whole(folder / path, data)
    return folder / "index.html"


def as_plain(value: Any) -> Any:
    """`value` with nothing but dicts, lists, text and finite numbers; what is not finite becomes None."""
    if isinstance(value, dict):
        return {_text(key): as_plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else _text(value)


def _text(value: Any) -> str:
    """Text that can be written: half of a surrogate pair is no letter."""
    return str(value).encode("utf-8", "replace").decode()


def _json(plain: Any) -> bytes:
    return (json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=1) + "\n").encode()
