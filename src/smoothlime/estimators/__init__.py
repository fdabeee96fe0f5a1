"""Estimators of w(x): each keeps sums per group of draws and turns them into slopes."""

from .clime import CLime
from .differences import Differences
from .jumps import Jumps
from .lime import Lime
from .pairs import SecondSlopes
from .protocol import AxisJumps, Batch, ControlBatch, Estimate, Estimator, GroupedDraws
from .smoothgrad import SmoothGrad
from .stein import Stein

__all__ = [
    "AxisJumps",
    "Batch",
    "CLime",
    "ControlBatch",
    "Differences",
    "Estimate",
    "Estimator",
    "GroupedDraws",
    "Jumps",
    "Lime",
    "SecondSlopes",
    "SmoothGrad",
    "Stein",
]
