"""The one way to a page of HTML: templates of Jinja2 that escape every text, beside the code that fills them."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from .._core.optional import require

_NOTHING = "'none'"

LACKING = "–"
"""Stands where there is nothing."""


def render(package: str, name: str, *, to: str, **context: Any) -> str:
    """The template of that name in the folder `templates` of a package, filled; those of the report can be extended."""
    jinja2 = require("jinja2", extra="report", to=to)
    rooms = dict.fromkeys((package, __package__))
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(room, "templates") for room in rooms]),
        autoescape=True,
        finalize=printable,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["printable"] = printable
    made: str = environment.get_template(name).render(**context)
    return made


def printable(value: Any) -> Any:
    """What a template prints: a dash for nothing, and no character that HTML has no place for."""
    if hasattr(value, "__html__"):
        return value  # escaped already
    if value is None or value == "":
        return LACKING
    kept = (c for c in str(value) if c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160))
    return "".join(kept).encode("utf-8", "replace").decode()  # half of a surrogate pair is no letter


def as_markup(text: str) -> Any:
    """A text that is HTML already, made by us of escaped parts."""
    return require("markupsafe", extra="report", to="write pages of HTML").Markup(text)


def asset(name: str, package: str = __package__ or "") -> str:
    """The text of a style sheet or a script beside the templates of a package."""
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


def data_block(value: Any) -> Any:
    """Plain data as JSON for a script element: nothing in it can end the element, or begin another."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for each in "<>&":
        text = text.replace(each, f"\\u{ord(each):04x}")
    return as_markup(text)


def policy(*scripts: str) -> str:
    """A content security policy for a page that needs nothing else: only these scripts run, and nothing is fetched."""
    hashed = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in scripts
    )
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashed or _NOTHING}"
