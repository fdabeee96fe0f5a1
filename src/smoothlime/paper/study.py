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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import Array
from .._core.version import __version__
from ..errors import SmoothlimeError, UnwritableFile
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
    """By data set, and `good`, `weak`, or `fewer`: as good, but for the number of epochs"""
    store: Path | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    """Of what is kept, by name: made in `this run`, or in an `earlier` one, which its seconds do not tell of"""

    @property
    def real(self) -> tuple[str, ...]:
        """Data sets of the paper's own, without those that something else stands in for."""
        return tuple(name for name in NAMES if self.data[name].source != "stand-in")

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
        scale = self.scale
        return self._curve(
            ("equivalence", name, quality, variance, protocol),
            lambda: curves.equivalence(
                self.network(name, quality).model,
                self.rows(name, scale.equivalence_rows if protocol == "paper" else 4 * scale.shared_rows),
                sigma=float(np.sqrt(variance)), target=TARGET, most=scale.most_draws, protocol=protocol,
                seeds=self._seeds(protocol),
            ),
        )  # fmt: skip

    def robustness(
        self, name: str, method: str, *, variance: float = 1.0, quality: str = "good", protocol: Protocol
    ) -> Curve:
        """Largest distance to a neighbour's explanation against draws."""
        scale, d = self.scale, self.data[name].x_test.shape[1]
        at_least = curves.fewest_draws(d) * (1 if protocol == "paper" else 2) if method == "clime" else 0
        return self._curve(
            ("robustness", name, quality, variance, protocol, method),
            lambda: curves.robustness(
                self.network(name, quality).model,
                self.rows(name, scale.robustness_rows)[: None if protocol == "paper" else scale.shared_rows],
                method, sigma=float(np.sqrt(variance)), target=TARGET, protocol=protocol,
                draws=curves.grid(scale.most_draws, at_least=at_least), seeds=self._seeds(protocol),
            ),
        )  # fmt: skip

    def limit(self, name: str, method: str = "smoothgrad", *, variance: float = 1.0) -> Curve:
        """What the robustness curves tend to: many shared draws around the first rows of the subset."""
        scale = self.scale
        return self._curve(
            ("limit", name, variance, method),
            lambda: curves.robustness(
                self.network(name).model, self.rows(name, scale.robustness_rows)[: scale.limit_rows], method,
                sigma=float(np.sqrt(variance)), target=TARGET, protocol="ours", draws=(scale.limit_draws,),
                seeds=(self.seed,),
            ),
        )  # fmt: skip

    def _seeds(self, protocol: Protocol) -> tuple[int, ...]:
        count = 1 if protocol == "paper" else self.scale.shared_seeds
        return tuple(100 * self.seed + i for i in range(count))

    def _curve(self, key: tuple[Any, ...], make: Callable[[], curves.Curve]) -> Curve:
        def measure() -> dict[str, Any]:
            found = make()
            return {
                "draws": list(found.draws),
                "mean": found.mean.tolist(),
                "half_width": found.half_width.tolist(),
                "head": found.by_row[:, :, : self.scale.limit_rows].mean(axis=(0, 2)).tolist(),
                "size": found.size,
                "rows": found.by_row.shape[2],
            }

        return Curve(**self.keep("-".join(map(str, key)), measure))

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `make` returns, from the store if an earlier run has it."""
        if self.store is None:
            return make()
        path = self.store / f"{name}-{self.fingerprint}.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["name"] == name and kept["checksum"] == _checksum(kept["made"]):
                self.origin.setdefault(name, "earlier")
                return dict(kept["made"])
        except (OSError, ValueError, TypeError, KeyError):
            pass  # not there, or something else than us wrote it: make it again
        made = make()
        self.origin[name] = "this run"
        found = {"name": name, "checksum": _checksum(made), "made": made}
        fresh = path.with_suffix(f".{os.getpid()}.part")
        try:
            fresh.write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
            fresh.replace(path)
        except OSError as err:
            msg = f"{str(path.parent)!r} cannot be written: {err.strerror or err}"
            raise UnwritableFile(msg) from err
        finally:
            fresh.unlink(missing_ok=True)  # there only if something went wrong
        return made

    @cached_property
    def fingerprint(self) -> str:
        """Changes with all that numbers depend on: sizes, seed, version, data and weights of the networks."""
        digest = hashlib.sha256(json.dumps([asdict(self.scale), self.seed, __version__]).encode())
        for name in sorted(self.data):
            for part in (self.data[name].x_train, self.data[name].x_test):
                digest.update(np.ascontiguousarray(part).tobytes())
        for key in sorted(self.trained):
            for weight in self.trained[key].module.state_dict().values():
                digest.update(weight.numpy().tobytes())
        return digest.hexdigest()[:12]


def _checksum(made: Any) -> str:
    """Tells whether what was read is what was written."""
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure, mean over rows, against the number of draws."""

    draws: list[int]
    mean: list[float]
    half_width: list[float]
    """Of 95% intervals"""
    head: list[float]
    """The mean over the first rows, on which limits are measured"""
    size: float
    """Mean L1 length of the explanations themselves"""
    rows: int

    def at(self, n: int) -> float:
        """The mean at a number of draws."""
        return self.mean[self._position(n)]

    def head_at(self, n: int) -> float:
        """The mean over the first rows at a number of draws."""
        return self.head[self._position(n)]

    def _position(self, n: int) -> int:
        if n not in self.draws:
            msg = f"this curve has no point at {n} draws; it has {self.draws}"
            raise SmoothlimeError(msg)
        return self.draws.index(n)
