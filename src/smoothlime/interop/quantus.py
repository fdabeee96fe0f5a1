"""Quantus' way to ask: `explain_func` for its metrics, such as `MaxSensitivity()(..., explain_func=explain_func)`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ..explain import explain

KNOWN = frozenset(inspect.signature(explain).parameters) - {"model", "X", "target"}


def explain_func(model: Any, inputs: Any, targets: Any = None, **kwargs: Any) -> np.ndarray[Any, Any]:
    """Slopes as an array of the inputs' shape, such as (n, 1, d) or (n, channels, height, width).

    Of the keywords those that `smoothlime.explain` knows are used, `explain_func_kwargs={"sigma": 0.1}`; all others,
    which Quantus has for its own methods, are not. `targets` has an output for each row. Features that were held fixed
    have 0.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2)).eval()
    >>> explain_func(net, np.zeros((3, 1, 4)), np.array([0, 1, 0]), n_samples=64, device="cpu").shape
    (3, 1, 4)
    """
    rows = inputs.detach().cpu().numpy() if hasattr(inputs, "detach") else np.asarray(inputs)
    target: Any = None
    if targets is not None:
        each = np.asarray(targets.detach().cpu() if hasattr(targets, "detach") else targets).reshape(-1)
        target = int(each[0]) if each.size == 1 else each
    used = {name: each for name, each in kwargs.items() if name in KNOWN}
    slopes = np.nan_to_num(explain(model, rows, target=target, **used).values).reshape(rows.shape)
    return slopes.astype(rows.dtype if rows.dtype.kind == "f" else np.float64, copy=False)
