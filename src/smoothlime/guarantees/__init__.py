"""What can be promised: sample sizes before a run, bounds on gradients. Each result prints as a sentence."""

from .gradient_bound import gradient_bound
from .sample_size import Plan, plan

__all__ = ["Plan", "gradient_bound", "plan"]
