"""The paper's networks: two hidden layers of ten, ELU, Adam on the cross-entropy."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from .._core.optional import require
from .._core.validate import check_count, check_number
from ..errors import InvalidArgument
from ..models import Model, as_model
from .datasets import Dataset
from .scores import accuracy, auc, balanced_accuracy

HIDDEN = (10, 10)


class Recipe(TypedDict):
    """Everything that decides how a network comes out: `train(data, **recipe)`."""

    epochs: int
    batch_size: int | None
    learning_rate: float
    seed: int


# The paper gives the epochs of the good networks (15, 60, 100) and of one weak network (16, bankruptcy, 86 %), and no
# batch size or learning rate. Small batches reach what can be reached in that many epochs. They are past 95 % on the
# bankruptcy data after 16, though: to be as weak as the paper's, a network must take all rows in one step. Those few
# steps hardly lead it away from its random start, so how weak it is depends on the seed: over seeds 0 to 7 the weak
# recipes gave 73 to 91 % (simulated), 56 to 95 % (bankruptcy) and 16 to 87 % (shopping). The seed for bankruptcy is the
# first whose network is below the majority rate, as the paper's is; the others are as they came.
RECIPES: dict[str, dict[str, Recipe]] = {
    "simulated": {
        "good": {"epochs": 15, "batch_size": 32, "learning_rate": 1e-2, "seed": 0},
        "weak": {"epochs": 3, "batch_size": None, "learning_rate": 1e-2, "seed": 0},
    },
    "bankruptcy": {
        "good": {"epochs": 60, "batch_size": 128, "learning_rate": 1e-2, "seed": 0},
        "weak": {"epochs": 16, "batch_size": None, "learning_rate": 3e-3, "seed": 1},
    },
    "shopping": {
        "good": {"epochs": 100, "batch_size": 128, "learning_rate": 1e-2, "seed": 0},
        "weak": {"epochs": 16, "batch_size": None, "learning_rate": 3e-3, "seed": 0},
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A trained network, and how well it does on the test part."""

    module: Any
    """torch module in evaluation mode: points (n, d) float64 to logits (n, 2)."""
    model: Model
    """The same as smoothlime sees it: probabilities of the two classes."""
    dataset: str
    seed: int
    epochs: int
    batch_size: int | None
    learning_rate: float
    accuracy: float
    balanced_accuracy: float
    auc: float
    majority: float
    n_train: int
    n_test: int
    seconds: float


def train(
    dataset: Dataset, *, epochs: int, seed: int = 0, batch_size: int | None = 32, learning_rate: float = 1e-2
) -> Network:
    """The paper's network, trained on the training part and scored on the test part.

    Two calls with the same arguments give the same network, whatever the number of threads; the global random state is
    neither used nor changed.

    Parameters
    ----------
    batch_size
        Rows per step of Adam, drawn anew in each epoch; `None` takes all rows in one step.
    """
    torch = require("torch", extra="paper", to="train the networks of the paper")
    epochs = check_count(epochs, "epochs")
    n = len(dataset.y_train)
    size = n if batch_size is None else min(check_count(batch_size, "batch_size"), n)
    if check_number(learning_rate, "learning_rate") == 0:
        msg = "learning_rate must be > 0; got 0"
        raise InvalidArgument(msg)
    generator = torch.Generator().manual_seed(check_count(seed, "seed", at_least=0))
    started = time.perf_counter()
    module = _untrained(torch, dataset.x_train.shape[1], generator)
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    x, y = torch.tensor(dataset.x_train), torch.tensor(dataset.y_train)
    with torch.enable_grad(), _one_thread(torch):
        for _ in range(epochs):
            for rows in torch.randperm(n, generator=generator).split(size):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(module(x[rows]), y[rows]).backward()
                optimiser.step()
    seconds = time.perf_counter() - started
    for parameter in module.parameters():
        parameter.grad = None
    model = as_model(module.eval(), output="probability", feature_names=dataset.feature_names, outputs=dataset.classes)
    probabilities = model.values(dataset.x_test)
    predicted = np.argmax(probabilities, axis=1)
    return Network(
        module=module,
        model=model,
        dataset=dataset.name,
        seed=seed,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        accuracy=accuracy(dataset.y_test, predicted),
        balanced_accuracy=balanced_accuracy(dataset.y_test, predicted),
        auc=auc(dataset.y_test, probabilities[:, 1]),
        majority=dataset.majority,
        n_train=n,
        n_test=len(dataset.y_test),
        seconds=seconds,
    )


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Sums over the rows of a batch are added up in one order; several threads would each add a share of their own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _untrained(torch: Any, d: int, generator: Any) -> Any:
    """Weights and biases uniform in ±1/√inputs, as torch draws them by default, but from our own generator."""
    sizes = (d, *HIDDEN, 2)
    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise(sizes):
        linear = torch.nn.utils.skip_init(torch.nn.Linear, inputs, outputs, dtype=torch.float64)
        with torch.no_grad():
            for parameter in linear.parameters():
                parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
        layers += [linear, torch.nn.ELU()]
    return torch.nn.Sequential(*layers[:-1])
