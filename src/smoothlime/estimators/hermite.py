"""Curves that least squares fits along the leading coordinates of turned draws, besides the line.

They are Hermite polynomials and products of them: uncorrelated with every line over the neighbourhood, so that they
take up what would be noise and leave the slope what it is. Draws in pairs z, −z need only those of odd degree: whatever
is even in the model is the same at both ends of a pair, and no slope sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .._core.types import Array

CURVED, TWISTED, HIGHEST = 5, 3, 6
"""Leading coordinates that get curves at all, those that get more of them, and the highest degree."""

MANY_DRAWS = 1_024
"""Draws before curves beyond degree 2 are fitted: they follow tails that fewer do not show, and errors would be too
small where a model grows like exp(s)."""

CARRIERS, PAIRS_THAT_CARRY = 8, 24
"""Draws, or pairs, that must carry what a line leaves of a model before curves beyond degree 2 are fitted: they would
follow the tails of one that grows like exp(1.5 s). While those were counted that carry the model itself, 95% intervals
beside a steep line held 80% on 20 features, in pairs, and 92% on 8."""


@dataclass(frozen=True, slots=True)
class HermiteBasis:
    """Which curves are fitted, in two stages, the first of which fewer draws are enough for."""

    of_pairs: bool
    """Whether draws come in pairs, and curves are of odd degree"""

    def extend(self, z: Array) -> Array:
        """Draws (..., d), and curves of their first coordinates: (..., d + c), of mean 0 and variance 1."""
        first, second = self._stages(z)
        return np.concatenate([z, np.stack([*first, *second], axis=-1)], axis=-1)

    def count(self, d: int) -> int:
        """Terms of `extend`."""
        return self.extend(np.zeros((1, d))).shape[1]

    def fitted(self, d: int, n: int) -> int:
        """Terms that n draws are enough for, first ones first: four draws, or pairs, for each; eight pairs for all."""
        first, second = self._stages(np.zeros((1, d)))
        few, all_of_them = d + len(first), d + len(first) + len(second)
        each, fewest = (8, MANY_DRAWS) if self.of_pairs else (4, 0)
        if n >= max(MANY_DRAWS, (2 if self.of_pairs else 1) * each * (all_of_them + 1)):
            return all_of_them
        return few if n >= max(fewest, each * (few + 1)) else d

    @property
    def fewest_effective(self) -> int:
        """Draws, or pairs, that must carry what a line leaves of the model."""
        return PAIRS_THAT_CARRY if self.of_pairs else CARRIERS

    def bent(self, d: int) -> int:
        """Terms up to degree 2: the line, and for single points their first stage."""
        return d if self.of_pairs else d + len(self._stages(np.zeros((1, d)))[0])

    def _stages(self, z: Array) -> tuple[list[Array], list[Array]]:
        curved, twisted = (range(min(most, z.shape[-1])) for most in (CURVED, TWISTED))
        hermite = {i: _hermite(z[..., i]) for i in curved}
        if not self.of_pairs:
            first = [*(hermite[i][2] for i in curved), *(z[..., i] * z[..., j] for i in curved for j in range(i))]
            second = []
            for i in twisted:
                second += hermite[i][3:]
                second += [hermite[i][2] * z[..., j] for j in twisted if j != i]
            return first, second
        cubic: dict[tuple[int, ...], Array] = {(i,): hermite[i][3] for i in curved}
        cubic |= {(i, j): hermite[i][2] * z[..., j] for i in curved for j in curved if j != i}
        cubic |= {(i, j, k): z[..., i] * z[..., j] * z[..., k] for i, j, k in combinations(curved, 3)}
        first = [term for of, term in cubic.items() if max(of) in twisted]
        second = [term for of, term in cubic.items() if max(of) not in twisted]
        return first, [*second, *(hermite[i][5] for i in twisted)]


def _hermite(s: Array) -> list[Array]:
    """Hermite polynomials of degree 0 to HIGHEST, of variance 1 for a normal s."""
    found = [np.ones_like(s), s]
    for k in range(1, HIGHEST):
        found.append((s * found[k] - np.sqrt(k) * found[k - 1]) / np.sqrt(k + 1))
    return found
