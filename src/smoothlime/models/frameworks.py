"""JAX, its libraries, and Keras: recognised by the names of classes, so that none is imported to ask."""

from __future__ import annotations

import sys
from typing import Any

from .protocol import Model

LIBRARIES = {("keras", "Layer"): "keras", ("equinox", "Module"): "equinox", ("flax", "Module"): "flax"}
"""By the package and the name of a class along the MRO."""

COMPILED = {("flax", "JitWrapped")}
"""What JAX's libraries make of a function that they compile."""


def framework_of(obj: Any) -> str:
    """The library that an object is of, or "jax" for a function of JAX; "" for all else.

    A method or a partial that has one of these within is a function of JAX. A function that calls `jax.numpy`, and is
    not compiled, is a Python function like any other.
    """
    for cls in type(obj).__mro__:
        place = cls.__module__.partition(".")[0], cls.__name__
        if place in LIBRARIES:
            return LIBRARIES[place]
        if (place[0] in ("jax", "jaxlib") or place in COMPILED) and callable(obj):
            return "jax"
    within = _within(obj)
    library = "" if within is None else framework_of(within)
    if library != "keras":
        return "jax" if library else ""
    if _is_inference(obj):
        return "keras"
    return "jax" if sys.modules["keras"].backend.backend() == "jax" else ""


def _within(obj: Any) -> Any:
    """What a method or a partial calls."""
    is_partial = type(obj).__name__.lower() == "partial"
    return getattr(obj, "func" if is_partial else "__func__", None)


def _is_inference(obj: Any) -> bool:
    """Whether a partial says nothing but that a Keras model is not trained, as it is called anyway."""
    return not getattr(obj, "args", ()) and getattr(obj, "keywords", None) in ({}, {"training": False})


def from_framework(
    obj: Any, *, output: str | None, feature_names: tuple[str, ...] | None, outputs: tuple[str, ...]
) -> Model:
    """Adapter for an object of JAX, its libraries or Keras."""
    library = framework_of(obj)
    if library == "keras":
        from .keras import from_keras

        return from_keras(_within(obj) or obj, output=output, feature_names=feature_names, outputs=outputs)
    if library == "equinox":
        from .jax_modules import from_equinox

        return from_equinox(obj, output=output, feature_names=feature_names, outputs=outputs)
    if library == "flax":
        from .jax_modules import from_flax

        return from_flax(obj, output=output, feature_names=feature_names, outputs=outputs)
    from .jax import from_function

    return from_function(obj, output=output, feature_names=feature_names, outputs=outputs)
