"""Models: the protocol that everything else is written against, and the adapters to it."""

from .adapt import as_asked, as_model
from .evaluation import Evaluation
from .function import from_functions
from .protocol import Differentiable, Model, model_dtype, model_epsilon
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
