"""A model and settings kept together, for those who look for an object to call. All it does is call `explain`."""

from __future__ import annotations

import inspect
from typing import Any

from .errors import WrongType
from .explain import explain
from .result.explanation import Explanation


class Explainer:
    """`explain` with a model and settings that are kept.

    `Explainer(model, **settings)(X)` is `explain(model, X, **settings)`, and nothing more. Settings are those
    of `explain`; those given with X count for that call alone.

    Examples
    --------
    >>> import numpy as np
    >>> import smoothlime as sl
    >>> explainer = sl.Explainer(lambda a: a @ np.array([2.0, -1.0]), sigma=0.5)
    >>> explainer([0.3, 0.7]).values.round(6)
    array([[ 2., -1.]])
    >>> explainer
    Explainer(function, sigma=0.5)
    """

    def __init__(self, model: Any, *background: Any, **settings: Any) -> None:
        if background:
            msg = "Explainer takes settings by name; for data that gives the scales: Explainer(model, background=X)"
            raise WrongType(msg, argument="background")
        inspect.signature(explain).bind(model, None, **settings)  # a name that explain does not know is a TypeError now
        self.model = model
        self.settings = settings

    def __call__(self, X: Any, **settings: Any) -> Explanation:
        """Explanation of the rows, with the settings kept and those given here."""
        return explain(self.model, X, **{**self.settings, **settings})

    def __repr__(self) -> str:
        """Kind of the model, and settings; of tables and arrays the kind alone."""
        kept = {name: _shown(each) for name, each in self.settings.items()}
        return (
            f"Explainer({', '.join([type(self.model).__name__, *(f'{name}={each}' for name, each in kept.items())])})"
        )


def _shown(value: Any) -> str:
    """A setting in one line."""
    if hasattr(value, "shape") and not isinstance(value, int | float):
        return f"<{type(value).__name__} of shape {tuple(value.shape)}>"
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"<{type(value).__name__}>"
