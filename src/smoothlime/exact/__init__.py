"""Closed forms: models whose smoothed slopes need no sampling."""

from .closed_form import ClosedForm, Exact, Smoothed
from .find import find_closed_form

__all__ = ["ClosedForm", "Exact", "Smoothed", "find_closed_form"]
