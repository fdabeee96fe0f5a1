"""Array aliases with their shapes.

One letter per axis, everywhere: `r` rows, `g` groups, `b` draws of a group in a batch, `n` draws of a
row, `d` features, `k` outputs. Draws carry a leading axis of 1 (shared by all rows) or r.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Points: TypeAlias = npt.NDArray[np.floating[Any]]
"""(n, d): what a model is asked about, in the model's own floating type."""

Indices: TypeAlias = npt.NDArray[np.intp]
Flags: TypeAlias = npt.NDArray[np.bool_]
