"""Covariances: those given, checked, and those estimated from rows, shrunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.types import Array
from .._core.validate import as_float_array
from ..errors import InvalidArgument
from .tables import check_square


def symmetric(covariance: Any) -> Array:
    """The matrix in float64; an error unless it is finite, symmetric and positive definite."""
    check_square(covariance, "covariance")
    matrix = as_float_array(covariance, "covariance", allow_bools=False)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        msg = f"covariance must be a square matrix (d, d); got shape {matrix.shape}"
        raise InvalidArgument(msg)
    if not np.isfinite(matrix).all():
        msg = "covariance must be finite; it holds NaN or infinite entries"
        raise InvalidArgument(msg)
    variances = np.diag(matrix)
    if not (variances > 0).all():
        least = int(np.argmin(variances))
        msg = f"covariance must be positive definite; its diagonal has {variances[least]:g} at feature {least}"
        raise InvalidArgument(msg)
    std = np.sqrt(variances)
    unit = np.outer(std, std)  # not the root of a product of variances, which would overflow sooner
    with np.errstate(over="ignore"):
        apart = np.abs(matrix - matrix.T) / unit
    if apart.max() > 1e-10:
        i, j = np.unravel_index(apart.argmax(), matrix.shape)
        msg = f"covariance must be symmetric; entry ({i}, {j}) is {matrix[i, j]:g} but ({j}, {i}) is {matrix[j, i]:g}"
        raise InvalidArgument(msg)
    matrix = matrix / 2 + matrix.T / 2  # a sum of the two could overflow
    values = np.linalg.eigvalsh(matrix / unit)
    if not _is_definite(values):
        msg = (
            f"covariance must be positive definite; as correlations its smallest eigenvalue is"
            f" {values[0]:.3g} (largest {values[-1]:.3g}). Drop redundant features, or use from_data(..., full=True)"
        )
        raise InvalidArgument(msg)
    return matrix


def correlations(rows: Array, called: str) -> Array:
    """Shrunk correlations of columns that all vary; an error where the rows are too few even for those."""
    found = _ledoit_wolf(rows / rows.std(axis=0))
    if not _is_definite(np.linalg.eigvalsh(found)):
        msg = (
            f"{called} has {len(rows)} rows, too few to show how {rows.shape[1]} features vary together;"
            " give more rows, drop redundant features, or use full=False"
        )
        raise InvalidArgument(msg)
    return found


def _ledoit_wolf(rows: Array) -> Array:
    """Shrunk covariance (1 − s)·S + s·m·I, with m = tr S / d and the s of Ledoit and Wolf (2004)."""
    n, d = rows.shape
    centred = rows - rows.mean(axis=0)
    sample = centred.T @ centred / n
    mean_variance = np.trace(sample) / d
    apart = ((sample - mean_variance * np.eye(d)) ** 2).sum()
    # spread of the one-row estimates x xᵀ around S, without forming them: ‖x xᵀ‖² = ‖x‖⁴
    noise = (((centred**2).sum(axis=1) ** 2).sum() / n - (sample**2).sum()) / n
    shrink = 0.0 if apart == 0 else min(noise, apart) / apart
    return (1 - shrink) * sample + shrink * mean_variance * np.eye(d)


def _is_definite(eigenvalues: Any) -> bool:
    """Whether the eigenvalues of correlations, in ascending order, are all larger than rounding errors."""
    return bool(eigenvalues[0] > eigenvalues[-1] * len(eigenvalues) * np.finfo(float).eps)
