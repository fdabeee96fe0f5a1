"""Estimators of w(x): each keeps sums per group of draws and turns them into slopes."""

from .base import Batch, Estimate, Estimator, GroupedDraws
from .clime import CLime
from .differences import Differences
from .lime import Lime
from .smoothgrad import SmoothGrad
from .stein import Stein

__all__ = ["Batch", "CLime", "Differences", "Estimate", "Estimator", "GroupedDraws", "Lime", "SmoothGrad", "Stein"]
