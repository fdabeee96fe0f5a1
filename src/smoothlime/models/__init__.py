"""Models: the protocol that everything else is written against, and the adapters to it."""

from .adapt import as_asked, as_model
from .evaluation import Evaluation
from .protocol import Differentiable, Model, from_functions, model_dtype, model_epsilon
from .targets import Target, resolve_target

__all__ = [
    "Differentiable",
    "Evaluation",
    "Model",
    "Target",
    "as_asked",
    "as_model",
    "from_functions",
    "model_dtype",
    "model_epsilon",
    "resolve_target",
]
