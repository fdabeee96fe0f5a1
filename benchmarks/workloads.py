"""What the benchmarks explain: networks, trees and hard functions, each with rows and with the true slopes around them.

Nothing is fetched: data are made up, except for breast cancer, which scikit-learn brings along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

import smoothlime as sl
from smoothlime.paper.datasets import Dataset, stand_in
from smoothlime.paper.networks import train

ROWS = 12
SEED = 0
TARGET = 1
VARIANCES = (0.01, 0.1, 1.0)


@dataclass(frozen=True, eq=False)
class Truth:
    """Slopes (r, d) to hold an estimate against, how they were found, and the error that is left in them."""

    slopes: np.ndarray
    how: str
    standard_error: np.ndarray
    """(r, d). 0 for a closed form."""

    @property
    def relative_error(self) -> float:
        """Standard error of the slopes over their length: the median over rows."""
        return float(np.median(np.linalg.norm(self.standard_error, axis=1) / np.linalg.norm(self.slopes, axis=1)))

    @classmethod
    def exact(cls, slopes: np.ndarray) -> Truth:
        """Slopes from a closed form."""
        return cls(slopes, "closed form", np.zeros_like(slopes))


@dataclass(frozen=True, eq=False)
class Workload:
    """A model, the rows around which it is explained, and the truth for a variance σ²."""

    name: str
    rows: np.ndarray
    truth: Callable[[float], Truth]
    with_gradients: Any = None
    """The model for methods that use gradients; None where it has none that mean anything."""
    with_values: Any = None
    """The same for methods that use predictions alone; None where nobody asks."""
    arguments: dict[str, Any] | None = None
    """What `explain` needs beside the model and the rows."""
    module: Any = None
    """The torch module behind it, for other libraries."""
    x_train: np.ndarray | None = None
    """Training rows, for libraries that want some."""
    is_tree: bool = False


class ValuesOnly:
    """A network seen from outside: predictions, no gradients."""

    is_pure = True

    def __init__(self, module: Any) -> None:
        self._model = sl.as_model(module)
        self.outputs, self.dtype = self._model.outputs, self._model.dtype

    def values(self, points: np.ndarray) -> np.ndarray:
        """Outputs at each point, (n, k)."""
        return self._model.values(points)


def untrained(d: int) -> torch.nn.Module:
    """d-32-32-2, where only cost matters."""
    with torch.random.fork_rng():
        torch.manual_seed(d)
        layers = [torch.nn.Linear(d, 32), torch.nn.ELU(), torch.nn.Linear(32, 32), torch.nn.ELU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(32, 2)).eval()


def networks(quick: bool = False) -> list[Workload]:
    """Networks like the paper's, 11-10-10-2 and 15-10-10-2, and a larger one, 64-128-128-2."""
    return [made_up_11(2**14), breast_cancer_15(2**14)] if quick else [made_up_11(), breast_cancer_15(), made_up_64()]


@cache
def made_up_11(draws: int = 2**19) -> Workload:
    """The paper's network on made-up data of 11 features; `draws` make the truth."""
    data = _made_up(11)
    return _network("11-10-10-2", train(data, epochs=15, batch_size=32).module, data, draws)


@cache
def breast_cancer_15(draws: int = 2**19) -> Workload:
    """The paper's network on the first 15 columns of scikit-learn's breast cancer data."""
    whole = stand_in("bankruptcy")
    data = replace(whole, x_train=whole.x_train[:, :15], x_test=whole.x_test[:, :15])
    return _network("15-10-10-2", train(data, epochs=15, batch_size=32).module, data, draws)


@cache
def made_up_64(draws: int = 2**18) -> Workload:
    """Two hidden layers of 128 on made-up data of 64 features."""
    data = _made_up(64)
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        net = torch.nn.Sequential(
            torch.nn.Linear(64, 128), torch.nn.ELU(), torch.nn.Linear(128, 128), torch.nn.ELU(), torch.nn.Linear(128, 2)
        )
    x, y = torch.tensor(data.x_train, dtype=torch.float32), torch.tensor(data.y_train)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(40):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimiser.step()
    return _network("64-128-128-2", net, data, draws)


def _made_up(d: int) -> Dataset:
    """Two classes of standard normal rows, told apart by three directions, with noise: 85% is about what can be had."""
    rng = np.random.default_rng(d)
    x = rng.standard_normal((4_000, d))
    along = x @ (rng.standard_normal((3, d)) / np.sqrt(d) * 1.5).T
    margin = 3 * (along[:, 0] * np.tanh(along[:, 1]) + np.sin(2 * along[:, 2]))
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-margin))).astype(np.intp)
    names = tuple(f"x{j}" for j in range(d))
    return Dataset("made up", x[:3_200], y[:3_200], x[3_200:], y[3_200:], names, ("0", "1"), "simulated", "", "none")


def _network(name: str, net: Any, data: Dataset, draws: int) -> Workload:
    """The probability of the second class, in float32, with a large run from gradients as truth."""
    module = torch.nn.Sequential(net.float(), torch.nn.Softmax(dim=1)).eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    rows = np.asarray(data.x_test[:ROWS], dtype=np.float64)
    arguments = {"target": TARGET}

    @cache
    def truth(variance: float) -> Truth:
        # the plain mean, and a seed that no contestant has: of what is under test it has only the turns
        e = sl.explain(
            module, rows, method="smoothgrad", design="aligned", n_samples=draws, sigma=variance**0.5, seed=20_000,
            progress=False, **arguments,
        )  # fmt: skip
        return Truth(e.values, f"{draws:,} turned Sobol' gradients", e.standard_error)

    return Workload(
        name, rows, truth, module, ValuesOnly(module), arguments, module, np.asarray(data.x_train, dtype=np.float64)
    )


def trees(quick: bool = False) -> list[Workload]:
    """The margin of a boosted classifier, and the probability of a forest: both known exactly."""
    import xgboost  # here, as processes whose memory is measured import this module and grow no trees
    from sklearn.ensemble import RandomForestClassifier

    data = _made_up(11)
    small = 10 if quick else 1
    boosted = xgboost.XGBClassifier(n_estimators=200 // small, max_depth=4, learning_rate=0.1, n_jobs=1)
    forest = RandomForestClassifier(100 // small, max_depth=8, random_state=SEED, n_jobs=1)
    return [
        _tree("XGBoost", boosted.fit(data.x_train, data.y_train), data, {"output": "margin"}),
        _tree("random forest", forest.fit(data.x_train, data.y_train), data, {"target": TARGET}),
    ]


def _tree(name: str, model: Any, data: Dataset, arguments: dict[str, Any]) -> Workload:
    rows = data.x_test[:ROWS]

    @cache
    def truth(variance: float) -> Truth:
        e = sl.explain(model, rows, method="exact", sigma=variance**0.5, progress=False, **arguments)
        return Truth.exact(e.values)

    return Workload(name, rows, truth, None, model, arguments, x_train=data.x_train, is_tree=True)


def hard_functions() -> list[Workload]:
    """A sum of half-spaces, which jumps, and a sum of fast waves: as bad as they come for clever draws."""
    rng = np.random.default_rng(SEED)
    d, terms = 11, 24
    steps = [
        sl.testing.Step(rng.standard_normal(d) / np.sqrt(d), float(rng.standard_normal()) / 2) for _ in range(terms)
    ]
    weights = rng.standard_normal(terms)
    fast = [_unit(rng.standard_normal(d)) * size for size in np.linspace(3, 6, 8)]
    waves = [sl.testing.Sine(v, float(phase)) for v, phase in zip(fast, rng.uniform(0, 6, len(fast)), strict=True)]
    rows = rng.standard_normal((ROWS, d))
    jumps, wavy = Sum(steps, weights), Sum(waves, np.ones(len(waves)))
    return [
        Workload("half-spaces", rows, jumps.truth(rows), None, sl.from_functions(values=jumps.values)),
        Workload("fast waves", rows, wavy.truth(rows), wavy, sl.from_functions(values=wavy.values)),
    ]


class Sum:
    """A weighted sum of ridge functions, whose slopes are the sum of theirs."""

    outputs = ("output",)

    def __init__(self, parts: list[Any], weights: np.ndarray) -> None:
        self.parts, self.weights = parts, weights
        self._v = np.stack([part.v for part in parts], axis=1)
        self._c = np.array([part.c for part in parts])
        self._profile = parts[0].profile

    def values(self, points: np.ndarray) -> np.ndarray:
        """(n, 1)."""
        return (self._profile.value(points @ self._v + self._c) @ self.weights)[:, None]

    def values_and_gradients(self, points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, 1) and (n, d)."""
        along = points @ self._v + self._c
        values = (self._profile.value(along) @ self.weights)[:, None]
        return values, np.asarray(weights) * ((self._profile.derivative(along) * self.weights) @ self._v.T)

    def truth(self, rows: np.ndarray) -> Callable[[float], Truth]:
        """In closed form."""

        def found(variance: float) -> Truth:
            around = sl.Neighbourhood(variance**0.5)
            slopes = sum(w * part.slopes(rows, around) for w, part in zip(self.weights, self.parts, strict=True))
            return Truth.exact(np.asarray(slopes))

        return found


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)
