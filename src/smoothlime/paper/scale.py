"""How large a run is: rows, draws and repeats, for the report and for a quick look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of a run; `None` rows are all of the test part."""

    name: str
    equivalence_rows: int | None
    robustness_rows: int
    """Eleven explanations each, by two methods and two protocols: a random subset where the test part is larger"""
    shared_rows: int
    """Rows for curves with shared draws, which are repeated over `shared_seeds` seeds"""
    shared_seeds: int
    limit_rows: int
    limit_draws: int
    """For what curves tend to: the first rows of the robustness subset, so many shared draws"""
    most_draws: int
    convergence_rows: int
    convergence_repeats: int
    reference_draws: int
    """Behind what is taken for the expected explanation"""
    theorem_repeats: int
    peer_rows: int
    peer_seeds: int
    peer_samples: int


FULL = Scale(
    name="full",
    equivalence_rows=None,
    robustness_rows=500,
    shared_rows=125,
    shared_seeds=4,
    limit_rows=100,
    limit_draws=65_536,
    most_draws=10_000,
    convergence_rows=20,
    convergence_repeats=20,
    reference_draws=131_072,
    theorem_repeats=2_000,
    peer_rows=30,
    peer_seeds=5,
    peer_samples=1_000,
)
QUICK = Scale(
    name="quick",
    equivalence_rows=60,
    robustness_rows=20,
    shared_rows=10,
    shared_seeds=3,
    limit_rows=8,
    limit_draws=32_768,
    most_draws=1_000,
    convergence_rows=4,
    convergence_repeats=6,
    reference_draws=32_768,
    theorem_repeats=300,
    peer_rows=4,
    peer_seeds=2,
    peer_samples=200,
)
