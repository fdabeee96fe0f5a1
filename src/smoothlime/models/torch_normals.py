"""The numbers of `normals`, made by torch where a network is: no draw has to travel."""

from __future__ import annotations

from math import pi
from typing import Any

from ..normals import HALF, LAST_SHIFT, MIXES, Run

WORD = 2**64


def normals(torch: Any, run: Run, device: Any) -> Any:
    """The numbers of a run as float64: those of the processor, but for the last digit of a logarithm or a cosine."""
    first, last = run.pairs
    bits = torch.arange(first + 1, last + 1, dtype=torch.int64, device=device)
    bits.mul_(_signed(run.sequence.step)).add_(_signed(run.sequence.begin))
    for shift, factor in MIXES:
        _fold(bits, shift).mul_(_signed(factor))
    _fold(bits, LAST_SHIFT)
    radius = (bits & (HALF - 1)).double().add_(0.5).mul_(1 / HALF).log_().mul_(-2.0).sqrt_()
    angle = _shifted(bits, 32).double().mul_(2 * pi / HALF)
    made = torch.empty((last - first, 2), dtype=torch.float64, device=device)
    torch.mul(radius, angle.cos(), out=made[:, 0])
    torch.mul(radius, angle.sin_(), out=made[:, 1])
    return made.view(-1)[run.part]


def _fold(bits: Any, shift: int) -> Any:
    return bits.bitwise_xor_(_shifted(bits, shift))


def _shifted(bits: Any, shift: int) -> Any:
    """Shifted to the right with zeros from the left: torch's integers have signs, and bring those along."""
    return (bits >> shift).bitwise_and_(2 ** (64 - shift) - 1)


def _signed(word: int) -> int:
    """The same 64 bits as a number with a sign."""
    return word - WORD if word >= WORD // 2 else word
