"""Numbers with their errors, as people read them."""

from __future__ import annotations

import numpy as np


def number(value: float, error: float) -> str:
    """Value and half-width with as many digits as the half-width warrants."""
    if not np.isfinite(error) or not np.isfinite(value):
        return f"{value:+.4g} ± {error:.2g}"
    scale = max(error, 1e-4 * abs(value)) if error < 1e-12 * abs(value) else error
    digits = int(1 - np.floor(np.log10(scale))) if scale > 0 else 4
    if not -3 <= digits <= 9:
        return f"{value:+.{_decimals(value, error)}e} ± {error:.1e}"
    digits = max(digits, 0)
    rounded = f"{error:.{digits}f}"
    if error > 0 and float(rounded) == 0:
        rounded = f"{error:.1e}"  # only an error of zero is shown as zero
    return f"{value:+.{digits}f} ± {rounded}"


def _decimals(value: float, error: float) -> int:
    """Of a value written with a power of ten: down to the second digit of its error, unless that is only rounding."""
    if value == 0 or error < 1e-12 * abs(value):
        return 3
    return max(3, int(np.floor(np.log10(abs(value))) - np.floor(np.log10(error)) + 1))
