"""A study: the data sets, networks and curves that figures and claims are made of, each computed once and kept.

What takes long is kept in files, one per curve, under a name that holds all it depends on: a run that was interrupted
finds them and goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Array
from .._version import __version__
from ..errors import SmoothlimeError
from . import curves, datasets, networks
from .curves import Protocol
from .scale import Scale

NAMES = ("simulated", "bankruptcy", "shopping")
VARIANCES = (0.01, 0.1, 1.0)
TARGET = 1
"""The second class: the probability that is explained."""


@dataclass(frozen=True, eq=False)
class Study:
    """One run of all experiments."""

    scale: Scale
    seed: int
    data: dict[str, datasets.Dataset]
    trained: dict[tuple[str, str], networks.Network]
    """By data set, and `good` or `weak`"""
    store: Path | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def network(self, name: str, quality: str = "good") -> networks.Network:
        """A trained network."""
        return self.trained[name, quality]

    def rows(self, name: str, most: int | None) -> Array:
        """Test rows: all of them, or a random subset that depends on the seed alone."""
        everything = self.data[name].x_test
        if most is None or most >= len(everything):
            return everything
        chosen = np.random.default_rng(self.seed).choice(len(everything), most, replace=False)
        return everything[np.sort(chosen)]

    def equivalence(self, name: str, *, variance: float = 1.0, quality: str = "good", protocol: Protocol) -> Curve:
        """Distance between SmoothGrad and C-LIME against draws."""
        return self._curve(
            ("equivalence", name, quality, variance, protocol),
            lambda: curves.equivalence(
                self.network(name, quality).model, self.rows(name, self.scale.equivalence_rows),
                sigma=float(np.sqrt(variance)), target=TARGET, most=self.scale.most_draws, protocol=protocol,
                seed=self.seed,
            ),
        )  # fmt: skip

    def robustness(
        self, name: str, method: str, *, variance: float = 1.0, quality: str = "good", protocol: Protocol
    ) -> Curve:
        """Largest distance to a neighbour's explanation against draws."""
        return self._curve(
            ("robustness", name, quality, variance, protocol, method),
            lambda: curves.robustness(
                self.network(name, quality).model, self.rows(name, self.scale.robustness_rows), method,
                sigma=float(np.sqrt(variance)), target=TARGET, most=self.scale.most_draws, protocol=protocol,
                seed=self.seed,
            ),
        )  # fmt: skip

    def _curve(self, key: tuple[Any, ...], make: Callable[[], curves.Curve]) -> Curve:
        def measure() -> dict[str, Any]:
            found = make()
            return {
                "draws": list(found.draws),
                "mean": found.mean.tolist(),
                "standard_error": found.standard_error.tolist(),
                "size": found.size,
                "rows": found.by_row.shape[1],
            }

        return Curve(**self.keep("-".join(map(str, key)), measure))

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `make` returns, from the store if an earlier run has it."""
        if self.store is None:
            return make()
        path = self.store / f"{name}-{self.fingerprint}.json"
        if path.is_file():
            try:
                kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                path.unlink()  # cut off while it was written by something else than us: make it again
            else:
                return kept
        made = make()
        fresh = path.with_suffix(f".{os.getpid()}.part")
        fresh.write_text(json.dumps(made, allow_nan=False), encoding="utf-8")
        fresh.replace(path)
        return made

    @property
    def fingerprint(self) -> str:
        """Changes with all that numbers depend on: sizes, seed, version, data and weights of the networks."""
        digest = hashlib.sha256(json.dumps([asdict(self.scale), self.seed, __version__]).encode())
        for name in sorted(self.data):
            digest.update(np.ascontiguousarray(self.data[name].x_test).tobytes())
        for key in sorted(self.trained):
            for weight in self.trained[key].module.state_dict().values():
                digest.update(weight.numpy().tobytes())
        return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure, mean over rows, against the number of draws."""

    draws: list[int]
    mean: list[float]
    standard_error: list[float]
    size: float
    """Mean L1 length of the explanations themselves"""
    rows: int

    def at(self, n: int) -> float:
        """The mean at a number of draws."""
        if n not in self.draws:
            msg = f"this curve has no point at {n} draws; it has {self.draws}"
            raise SmoothlimeError(msg)
        return self.mean[self.draws.index(n)]

    def error_at(self, n: int) -> float:
        """Standard error of that mean."""
        return self.standard_error[self.draws.index(n)]
