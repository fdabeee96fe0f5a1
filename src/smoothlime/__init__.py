"""Local feature attributions with error bars and guarantees, for any model.

>>> import numpy as np
>>> import smoothlime as sl
>>> e = sl.explain(lambda a: a @ np.array([2.0, -1.0]), [0.3, 0.7], sigma=0.5)
>>> np.round(e.values, 6)
array([[ 2., -1.]])
"""

from . import errors, plots, testing
from ._core.version import __version__
from .batch import explain_table, load
from .contributions import Contributions, contributions
from .curve import Curve, curve
from .estimators import CLime, Differences, Jumps, Lime, SmoothGrad, Stein
from .explain import explain, explain_outputs
from .explainer import Explainer
from .guarantees import (
    Agreement,
    Certificate,
    Comparison,
    Plan,
    Robustness,
    agreement,
    certify,
    compare,
    gradient_bound,
    plan,
    robustness,
)
from .interactions import interactions
from .models import Model, as_model, from_functions
from .models.remote import remote
from .result.explanation import Explanation
from .result.interactions import Interactions
from .sigma_path import SigmaPath, sigma_path
from .space.neighbourhood import Neighbourhood

__all__ = [
    "Agreement",
    "CLime",
    "Certificate",
    "Comparison",
    "Contributions",
    "Curve",
    "Differences",
    "Explainer",
    "Explanation",
    "Interactions",
    "Jumps",
    "Lime",
    "Model",
    "Neighbourhood",
    "Plan",
    "Robustness",
    "SigmaPath",
    "SmoothGrad",
    "Stein",
    "__version__",
    "agreement",
    "as_model",
    "certify",
    "compare",
    "contributions",
    "curve",
    "errors",
    "explain",
    "explain_outputs",
    "explain_table",
    "from_functions",
    "gradient_bound",
    "interactions",
    "load",
    "plan",
    "plots",
    "remote",
    "robustness",
    "sigma_path",
    "testing",
]


def __dir__() -> list[str]:
    """The public names, and those that Python gives to every module."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
