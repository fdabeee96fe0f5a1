"""What tests of several commands share."""

import importlib

import pytest


@pytest.fixture
def hide(monkeypatch):
    """As if a library were not installed."""
    usual = importlib.import_module

    def hidden(library):
        def find(name, *more):
            if name.partition(".")[0] == library:
                raise ModuleNotFoundError(f"No module named {library!r}", name=library)
            return usual(name, *more)

        monkeypatch.setattr(importlib, "import_module", find)

    return hidden
