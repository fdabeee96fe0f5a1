"""The folder tree shows the architecture only while imports go one way."""

import ast
from pathlib import Path

import smoothlime

PACKAGE = Path(smoothlime.__file__).parent
LAYERS = [
    {"errors", "_arrays", "_types", "_validate", "_optional", "_parallel", "_progress", "_version", "uncertainty"},
    {
        "tables",
        "covariances",
        "neighbourhood",
        "normals",
        "nets",
        "designs",
        "alignment",
        "curves",
        "radii",
        "models",
        "subject",
        "groups",
        "explanation",
        "combining",
    },
    {"estimators", "exact"},
    {
        "choices",
        "settings",
        "controlled",
        "at_rows",
        "job",
        "sources",
        "gradient_path",
        "looks",
        "disagreement",
        "jumps",
        "sampling",
        "exactly",
        "explain",
        "sigma_path",
        "guarantees",
    },
    {"testing", "io", "plots", "contenders", "timing", "benchmark"},
    {"paper", "cli", "__init__", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported_at_module_level(path):
    """Parts of smoothlime that a module imports when it is loaded itself; imports inside functions do not count."""
    package = path.relative_to(PACKAGE).parent.parts
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            yield from [base[0]] if base else names


def test_every_module_has_a_layer():
    top = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert top == set(LEVEL)


def test_modules_import_only_from_their_layer_or_below():
    upward = [
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        for name in imported_at_module_level(path)
        if LEVEL[name] > LEVEL[path.relative_to(PACKAGE).parts[0].removesuffix(".py")]
    ]
    assert upward == []
