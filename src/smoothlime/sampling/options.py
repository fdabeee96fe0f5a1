"""How to draw and when to stop, as the caller said: what can be checked without a model, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from .._core.validate import check_choice, check_count, check_fraction, check_number, check_range
from ..errors import InvalidArgument, WrongType


@dataclass(frozen=True, slots=True)
class Options:
    """Arguments of `explain` that are the same for every model; an exact answer uses none but checks them all."""

    n_samples: int | None = None
    rtol: float = 0.05
    atol: float | str = "auto"
    confidence: float = 0.95
    guarantee: str = "approximate"
    output_range: tuple[float, float] | None = None
    gradient_bound: float | None = None
    max_samples: int = 100_000
    draws: str = "shared"
    seed: int = 0
    batch_size: int | str = "auto"

    def __post_init__(self) -> None:
        """Refuse what cannot be used; numbers are plain ones from here on."""
        check_choice(self.guarantee, "guarantee", ("approximate", "certified"))
        check_choice(self.draws, "draws", ("shared", "independent"))
        self._check_automatic()
        counts = {"max_samples": 1, "seed": 0}
        counts |= {"n_samples": 1} if self.n_samples is not None else {}
        counts |= {} if isinstance(self.batch_size, str) else {"batch_size": 1}
        for name, least in counts.items():
            object.__setattr__(self, name, check_count(getattr(self, name), name, at_least=least))
        for name in ("rtol",) if isinstance(self.atol, str) else ("rtol", "atol"):
            object.__setattr__(self, name, check_number(getattr(self, name), name))
        if self.gradient_bound is not None:
            object.__setattr__(self, "gradient_bound", check_number(self.gradient_bound, "gradient_bound"))
        if self.output_range is not None:
            object.__setattr__(self, "output_range", check_range(self.output_range))
        object.__setattr__(self, "confidence", check_fraction(self.confidence, "confidence"))
        self._check_tolerances()
        if not self.is_certified:
            self._refuse_bounds()

    @property
    def is_certified(self) -> bool:
        """Whether bounds must hold at every number of draws."""
        return self.guarantee == "certified"

    @property
    def absolute(self) -> float | None:
        """`atol` as a number, None where it is automatic."""
        return None if isinstance(self.atol, str) else self.atol

    def _check_automatic(self) -> None:
        for name, kind in (("batch_size", "a whole number"), ("atol", "a number")):
            given = getattr(self, name)
            if given is None or (isinstance(given, str) and given != "auto"):
                msg = f"{name} must be {kind} or 'auto'; got {given!r}"
                raise WrongType(msg)

    def _check_tolerances(self) -> None:
        if self.rtol >= 1:
            msg = f"rtol must be below 1; got {self.rtol!r}"
            raise InvalidArgument(msg, argument="rtol")
        if self.rtol == 0 == self.atol:
            msg = "rtol and atol are both 0: no number of draws is enough. Give one of them, or n_samples"
            raise InvalidArgument(msg, argument="rtol")

    def _refuse_bounds(self) -> None:
        if self.gradient_bound is not None:
            msg = "gradient_bound is for guarantee='certified'; without it nothing would use it"
            raise InvalidArgument(msg)
        if self.output_range is not None and self.absolute is not None:
            msg = "output_range is for guarantee='certified' and for atol='auto'; without either nothing would use it"
            raise InvalidArgument(msg)
