"""What a step means, in words: where one standard deviation leads, or how many draws move at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..space.off_data import shares_aside

if TYPE_CHECKING:
    from ..result.explanation import Explanation

TOLD = 3
"""Values that are named."""

UNITS = {"log": "e-fold (log)", "ranks": "normal score (ranks)"}
"""What slopes are per, besides units of the features."""


def step_word(e: Explanation, row: int, j: int) -> str:
    """`0.02 → 0.05`: T(u − σ) and T(u + σ); where both are x, `2% of draws above 0`."""
    low, high = (ends[row, j] for ends in e.step_ends)
    x = e.x[row, j]
    if np.isnan(low):
        return ""
    if low != high or low != x:
        return f"{low:.3g} → {high:.3g}"
    below, above = shares_aside(e.row_scales, e.x[row], row, j, float(e.std[j]), (x, x))
    sides = [f"{share:.1%} of draws {word}" for share, word in ((below, "below"), (above, "above")) if share]
    return f"{', '.join(sides)} {x:.3g}" if sides else f"stays at {x:.3g}"


def units_of(scales: Iterable[str]) -> str:
    """What slopes on these scales are per, besides units of the features; empty where all steps are linear."""
    used = set(scales)
    return " and ".join(unit for word, unit in UNITS.items() if word in used)


def scales_told(e: Explanation) -> list[str]:
    """What steps are taken in, and which values the background never had; nothing where all steps are linear."""
    if e.row_scales is None or e.neighbourhood.background is None:
        return []
    kinds = ", ".join(e.neighbourhood.background.told(e.feature_names))
    held = [str(each) for each in e.neighbourhood.categories]
    categories = f"; held as categories: {', '.join(held[:6])}{', ...' * (len(held) > 6)}" if held else ""
    units = units_of(e.neighbourhood.scales)
    lines = [f"steps: {kinds}{categories}" + (f". Slopes are per {units}" if units else "")]
    unseen = np.argwhere(e.row_scales.unseen(e.x))
    if len(unseen):
        named = [f"{e.feature_names[j]} = {e.x[row, j]:g} at row {row}" for row, j in unseen[:TOLD]]
        more = f", and {len(unseen) - TOLD} more" if len(unseen) > TOLD else ""
        lines.append(f"never seen in the background: {', '.join(named)}{more}; draws take the values on either side")
    return lines
