"""The one seam to a graphics card: sums of gradients kept where the model is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from .protocol import GradientSums


def sums_for(model: Any) -> Callable[..., GradientSums] | None:
    """What makes empty sums of the model's gradients, kept where the model is; None where they are not kept there.

    It is called with rows, free features, the number of groups and weights of outputs (r, t, k). A model says which
    class of this room does it: `device_sums`.
    """
    name = getattr(model, "device_sums", None)
    if name is None:
        return None
    file, kind = name.split(".")
    return partial(getattr(import_module(f".{file}", __name__), kind), model)
