"""Models: the protocol that everything else is written against, and the adapters to it."""

from .adapt import as_asked, as_model
from .base import Differentiable, Model, from_functions, model_dtype, model_epsilon
from .evaluation import Evaluation
from .gradient_sums import SumsGradients
from .targets import Target, resolve_target

__all__ = [
    "Differentiable",
    "Evaluation",
    "Model",
    "SumsGradients",
    "Target",
    "as_asked",
    "as_model",
    "from_functions",
    "model_dtype",
    "model_epsilon",
    "resolve_target",
]
