"""How often does one call of `explain` go from one file to another? A network, a function and a forest.

A hop is a call from a function of one source file of smoothlime into a function of another one; each pair of functions
counts once, however often it happens. Code of others in between, such as torch, a property that is kept or a user's
model, is looked through: the hop is that of the nearest functions of smoothlime on either side. So are `_core`, which
everything uses, and `errors`: they count neither as files nor as hops. A function inside another counts as that one.

One row, default settings, one thread. The first call, with another model, is not counted: it imports. Nor is what is
remembered of a model, as the one that counts is new to the library.

    python benchmarks/count_hops.py [--list]
"""

from __future__ import annotations

from common import markdown  # before NumPy: it sets one thread

# isort: split
import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier

import smoothlime as sl

HOME = Path(sl.__file__).parent
LEFT_OUT = {"_core", "_arrays", "_types", "_validate", "_optional", "_parallel", "_progress", "_version", "errors"}
"""Files or folders at the top. What is `_core` now stood there once."""

SEED = 0
WIDTHS = (15, 10, 2)
FEATURES = 5

Place = tuple[str, str]
"""File and function."""


class Hops:
    """Listens to Python while a call runs."""

    def __init__(self) -> None:
        self.pairs: set[tuple[Place, Place]] = set()
        self.files: set[str] = set()
        self._by_path: dict[str, str] = {}

    def during(self, job: Callable[[], Any]) -> None:
        """Run a job and note its hops."""
        sys.setprofile(self._note)
        try:
            job()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        callee = self._place(frame) if event == "call" else None
        if callee is None:
            return
        self.files.add(callee[0])
        before = frame.f_back
        while before is not None and not self._file(before):
            before = before.f_back
        caller = None if before is None else self._place(before)
        if caller is not None and caller[0] != callee[0]:
            self.pairs.add((caller, callee))

    def _place(self, frame: FrameType) -> Place | None:
        """Where a frame is, if that counts: what a file does when it is imported has no function."""
        file, function = self._file(frame), frame.f_code.co_qualname.partition(".<locals>")[0]
        return (file, function) if file and function != "<module>" else None

    def _file(self, frame: FrameType) -> str:
        """The source file relative to the library, or "" for what is left out and what is not of it."""
        path = frame.f_code.co_filename
        if path not in self._by_path:
            self._by_path[path] = _counted(path)
        return self._by_path[path]


def _counted(path: str) -> str:
    if not Path(path).is_relative_to(HOME):
        return ""
    file = Path(path).relative_to(HOME)
    return "" if file.parts[0].removesuffix(".py") in LEFT_OUT else file.as_posix()


def network() -> tuple[Any, Any]:
    inputs, hidden, outputs = WIDTHS
    layers = (torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs))
    return torch.nn.Sequential(*layers).eval(), np.random.default_rng(SEED).normal(size=inputs)


def function() -> tuple[Any, Any]:
    def model(a: Any) -> Any:
        return np.sin(a[:, 0]) + a[:, 1] * a[:, 2] + 0.5 * a[:, 3] ** 2 - a[:, 4]

    return model, np.random.default_rng(SEED).normal(size=FEATURES)


def forest() -> tuple[Any, Any]:
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(300, FEATURES))
    return RandomForestClassifier(20, random_state=SEED).fit(X, X[:, 0] + X[:, 1] * X[:, 2] > 0), X[0]


CASES: dict[str, tuple[Callable[[], tuple[Any, Any]], int | None]] = {
    f"torch network {'-'.join(map(str, WIDTHS))}": (network, 1),
    f"function of {FEATURES} features": (function, None),
    "random forest, exact": (forest, 1),
}
"""Each a model with a row, made anew at every call, and the target."""


def count(make: Callable[[], tuple[Any, Any]], target: int | None) -> Hops:
    """The hops of a second call, with a model that the first one has not seen."""
    torch.manual_seed(SEED)
    (first, row), (second, _) = make(), make()
    sl.explain(first, row, target=target, progress=False)
    hops = Hops()
    hops.during(lambda: sl.explain(second, row, target=target, progress=False))
    return hops


def listed(hops: Hops) -> str:
    """Every pair, by the file it leaves."""
    width = max((len(_written(caller)) for caller, _ in hops.pairs), default=0)
    return "\n".join(f"  {_written(caller):{width}}  {_written(callee)}" for caller, callee in sorted(hops.pairs))


def _written(place: Place) -> str:
    return ":".join(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="every pair of functions as well")
    shows_pairs = parser.parse_args().list
    torch.set_num_threads(1)
    found = {name: count(*case) for name, case in CASES.items()}
    rows = [
        [name, len(each.pairs), len({(a[0], b[0]) for a, b in each.pairs}), len(each.files)]
        for name, each in found.items()
    ]
    print(markdown(["case", "hops", "pairs of files", "files"], rows))
    if shows_pairs:
        for name, each in found.items():
            print(f"\n{name}\n{listed(each)}")


if __name__ == "__main__":
    main()
