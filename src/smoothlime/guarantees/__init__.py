"""What can be promised of explanations, before and after a run. Each result prints as a sentence."""

from .agreement import Agreement, agreement
from .gradient_bound import gradient_bound
from .lipschitz import Certificate, certify
from .robustness import Robustness, robustness
from .sample_size import Plan, plan

__all__ = [
    "Agreement",
    "Certificate",
    "Plan",
    "Robustness",
    "agreement",
    "certify",
    "gradient_bound",
    "plan",
    "robustness",
]
