"""Estimators of w(x): each keeps sums per group of draws and turns them into slopes."""

from .clime import CLime
from .differences import Differences
from .lime import Lime
from .protocol import Batch, ControlBatch, Estimate, Estimator, GroupedDraws
from .smoothgrad import SmoothGrad
from .stein import Stein

__all__ = [
    "Batch",
    "CLime",
    "ControlBatch",
    "Differences",
    "Estimate",
    "Estimator",
    "GroupedDraws",
    "Lime",
    "SmoothGrad",
    "Stein",
]
