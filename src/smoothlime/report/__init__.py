"""Pages of HTML: the report of explanations, and the one way in which pages are made."""

from .page import report

__all__ = ["report"]
