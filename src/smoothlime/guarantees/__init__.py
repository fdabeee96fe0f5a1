"""What can be promised of explanations, before and after a run. Each result prints as a sentence."""

from .agreement import Agreement, agreement
from .compare import Comparison, compare
from .gradient_bound import gradient_bound
from .lipschitz import Certificate, certify
from .robustness import Robustness, robustness
from .sample_size import Plan, plan

__all__ = [
    "Agreement",
    "Certificate",
    "Comparison",
    "Plan",
    "Robustness",
    "agreement",
    "certify",
    "compare",
    "gradient_bound",
    "plan",
    "robustness",
]
