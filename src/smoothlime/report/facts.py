"""How an explanation was made, as a list of facts for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..plots.names import count, percent, shown, told_apart
from ..plots.steps import scales_told

if TYPE_CHECKING:
    from ..result.explanation import Explanation

MOST_NAMED = 12
"""Features in a list."""


def facts(e: Explanation, file: str = "", sha256: str = "") -> list[tuple[str, str]]:
    """Names and what is said: method, errors, certificate, seed, versions, hashes."""
    found = [
        ("Output", shown(e.output_name)),
        ("Method", _method(e)),
        ("Neighbourhood", shown(repr(e.neighbourhood))),
        *[("Steps", line) for line in scales_told(e)],
        ("Errors", _errors(e)),
        *([("Certificate", _certificate(e))] if e.provenance.guarantee == "certified" else []),
        ("Model rows evaluated", f"{int(e.n_evaluations.sum()):,}"),
        ("Seed", f"{e.seed}, {e.provenance.draws} draws"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in e.provenance.versions.items())),
    ]
    found += [("Note", e.note)] if e.note else []
    found += [("File", file), ("SHA-256", sha256)] if file else []
    return found


def held(e: Explanation) -> str:
    """Features without a slope, with the category that the first row has where it is known."""
    names = told_apart(e.feature_names, np.flatnonzero(np.isnan(e.std)).tolist())
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{rest}" if names else ""


def _method(e: Explanation) -> str:
    if e.is_exact:
        return "exact: closed form, nothing was drawn"
    drawn = "" if e.design == e.method else f", {e.design} draws"
    least, most = int(e.n_samples.min()), int(e.n_samples.max())
    return f"{e.method}{drawn}, {f'{least:,}' if least == most else f'{least:,} to {most:,}'} for each row"


def _errors(e: Explanation) -> str:
    if e.is_exact:
        return "none from sampling"
    told = e.provenance.tolerance
    reached = f"{int(e.converged.sum()):,} of {count(len(e), 'row')} within the tolerance{f' of {told}' * bool(told)}"
    largest = f"largest error bound {np.nanmax(e.radius):.3g}" if np.isfinite(e.radius).any() else ""
    few = "intervals are indicative, as fewer than 256 draws were made" if e.is_indicative.any() else ""
    parts = [f"{percent(e.provenance.confidence)} confidence for each row", reached, largest, few]
    return "; ".join(filter(None, parts))


def _certificate(e: Explanation) -> str:
    return (
        f"error bounds hold for finite samples at {percent(e.provenance.confidence)} confidence, for"
        f" {shown(e.provenance.assumes)}" + ("; switches are approximate" if e.switches is not None else "")
    )
