"""A model of loans and 200 applicants, made of formulas: what `smoothlime demo` explains. Made up, and it says so."""

from __future__ import annotations

import numpy as np

from ..._core.types import Array
from ...models import Model, from_functions
from .subject import Subject

FEATURES = ("income", "debt", "age", "years employed", "open loans", "card use", "purpose", "home")
LABELS = {"purpose": ("car", "house", "study", "business"), "home": ("rents", "owns")}
OUTPUTS = ("chance of default", "interest rate")

APPLICANTS = 200

PURPOSE = np.array([0.0, -0.5, 0.35, 0.6])
"""What the score gains by each purpose."""


def loans() -> Subject:
    """The model, its applicants, and what their codes mean."""
    rows = applicants()
    keys = tuple(f"applicant {n + 1}" for n in range(len(rows)))
    return Subject(
        model=model(),
        rows=rows,
        background=rows,
        names=FEATURES,
        outputs=OUTPUTS,
        fixed=("purpose", "home"),
        labels=LABELS,
        keys=keys,
        target=OUTPUTS[0],
        title="Loans, a made-up model",
    )


def model() -> Model:
    """Chance of default, a smooth curve, and the interest rate that follows from it in steps of half a percent.

    The gradients of the rate are 0, as those of all rounded numbers: what gradients cannot see.
    """
    return from_functions(values=values, gradients=gradients, outputs=OUTPUTS, feature_names=FEATURES)


def applicants() -> Array:
    """(200, 8) rows, the same in every run. Incomes and debts are in thousands."""
    rng = np.random.default_rng(20)
    n = APPLICANTS
    income = rng.lognormal(3.7, 0.45, n)
    age = rng.uniform(21, 70, n)
    return np.column_stack(
        [
            np.round(income, 1),
            np.round(income * rng.gamma(2.0, 0.25, n), 1),
            np.round(age),
            np.round(np.minimum(rng.gamma(1.6, 4.0, n), age - 18)),
            rng.poisson(3.5, n),
            np.round(rng.beta(2, 2.5, n), 2),
            rng.choice(4, n, p=[0.4, 0.3, 0.15, 0.15]),
            rng.choice(2, n, p=[0.55, 0.45]),
        ]
    ).astype(np.float64)


def values(a: Array) -> Array:
    """(n, 2) the chance of default, and the rate."""
    chance = _sigmoid(_score(a)[0])
    return np.column_stack([chance, np.round(2 * (3 + 12 * chance)) / 2])


def gradients(a: Array) -> Array:
    """(n, 2, 8) of both outputs."""
    score, slope = _score(a)
    chance = _sigmoid(score)
    found = np.zeros((len(a), 2, a.shape[1]))
    found[:, 0] = (chance * (1 - chance))[:, None] * slope
    return found


def _score(a: Array) -> tuple[Array, Array]:
    """(n,) the score behind the chance, and its gradient (n, 8): terms of one or two features each."""
    income, debt, age, years, loans, use, purpose, home = a.T
    slope = np.zeros(a.shape)
    size = np.sqrt(income**2 + 25.0)  # as good as the income, but never 0
    burden = debt / size
    bent = np.tanh(1.5 * (burden - 0.6))
    score = -1.9 + 2.0 * bent
    slope[:, 0] = 2.0 * 1.5 * (1 - bent**2) * -debt * income / size**3
    slope[:, 1] = 2.0 * 1.5 * (1 - bent**2) / size
    wealth = np.tanh((income - 40.0) / 30.0)
    score -= 0.8 * wealth
    slope[:, 0] -= 0.8 * (1 - wealth**2) / 30.0
    middle = (age - 45.0) / 15.0
    score += 0.3 * middle**2 / (1 + middle**2 / 4)
    slope[:, 2] = 0.3 * 2 * middle / (1 + middle**2 / 4) ** 2 / 15.0
    settled = _sigmoid((years - 4.0) / 2.0)
    score -= 0.9 * settled
    slope[:, 3] = -0.9 * settled * (1 - settled) / 2.0
    full = _sigmoid(10.0 * (use - 0.6))
    score += (0.5 + 0.15 * loans) * full + 0.12 * loans  # further loans count for more on a full card
    slope[:, 4] = 0.15 * full + 0.12
    slope[:, 5] = (0.5 + 0.15 * loans) * full * (1 - full) * 10.0
    score += PURPOSE[np.clip(np.round(purpose), 0, 3).astype(int)] - 0.3 * (home > 0.5)
    return score, slope


def _sigmoid(t: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(t / 2)))
