"""The one seam to a graphics card: sums of gradients kept where the model is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from .protocol import GradientSums


def sums_for(model: Any) -> Callable[..., GradientSums] | None:
    """What makes empty sums of the model's gradients, kept where the model is; None where they are not kept there.

    A model says which file of this room can: `device_sums`.
    """
    name = getattr(model, "device_sums", None)
    return None if name is None else partial(import_module(f".{name}", __name__).empty_sums, model)
