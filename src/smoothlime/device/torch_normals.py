"""The numbers of `normals`, made by torch where a network is: no draw has to travel.

Long runs are made on graphics cards by a function of a few lines that torch translates for the card: everything else
reads and writes all numbers some thirty times.
"""

from __future__ import annotations

from functools import cache
from math import pi
from typing import Any

from ..draws.blocks import Chunk
from ..draws.normals import HALF, LAST_SHIFT, MIXES, Run
from ..models.protocol import is_out_of_memory

WORD = 2**64

WORTH_TRANSLATING = 2**22
"""Numbers from which on the function is used: to translate it takes a second, once on each machine."""

EXACT = {"torch.float32": 2**24, "torch.float64": 2**53}
"""Positions below this are exact in a type."""

_MIXED = "\n".join(f"  bits ^= bits >> {shift}; bits *= {factor}ULL;" for shift, factor in MIXES)
STEP = f"""
template <typename T>
T step(T row, T column, T scale, long long start, long long width, long long begin, long long stride) {{
  unsigned long long i = start + (unsigned long long) row * width + (unsigned long long) column;
  unsigned long long bits = (i / 2 + 1) * (unsigned long long) stride + (unsigned long long) begin;
{_MIXED}
  bits ^= bits >> {LAST_SHIFT};
  unsigned int low = bits, phase = (bits >> 32) - ((unsigned int) (i % 2) << 30);
  if (sizeof(T) == 8) {{
    double radius = sqrt(-2.0 * log(((double) low + 0.5) * (1.0 / {HALF}.0)));
    return scale * radius * cospi((double) phase * (2.0 / {HALF}.0));
  }}
  bool is_high = low >> 31;
  float share = ((float) (is_high ? ~low : low) + 0.5f) * (1.0f / {HALF}.0f);
  float radius = sqrtf(-2.0f * (is_high ? log1pf(-share) : logf(share)));
  unsigned int quarter = (phase + (1u << 29)) >> 30;
  float sine, cosine;
  sincospif((float) (int) (phase - (quarter << 30)) * (2.0f / {HALF}.0f), &sine, &cosine);
  float along = quarter % 2 ? sine : cosine;
  return scale * radius * (quarter == 1 || quarter == 2 ? -along : along);
}}
"""
"""One number of a run, by its row and column, times the scale of the column.

In float32 all is float32, as float64 takes many cards dozens of times as long: logarithms near 1 and angles are taken
from the side on which no digit is lost, and numbers are off by what float32 itself rounds.
"""

_cannot: set[str] = set()
"""Why the function could not be translated, once that was seen."""


def scaled_normals(torch: Any, run: Run, chunk: Chunk, scale: Any, dtype: Any) -> Any:
    """Draws of a run times a scale (f,) for each feature, as (b, g, f): the b-th draw of each group side by side."""
    n, f = (run.stop - run.start) // len(scale), len(scale)
    is_long = scale.is_cuda and n * f >= WORTH_TRANSLATING and max(n, f) < EXACT[str(dtype)]
    if is_long and not _cannot:
        try:
            return _at_once(torch, run, chunk, scale, n, dtype)
        except RuntimeError as err:  # no compiler for the card, or none that knows it: the long way leads there too
            if is_out_of_memory(err):
                raise
            _cannot.add(str(err))
    z = chunk.by_turn(normals(torch, run, scale.device).view(n, f))
    return (z * scale).to(dtype).reshape(-1, *z.shape[-2:])


def _at_once(torch: Any, run: Run, chunk: Chunk, scale: Any, n: int, dtype: Any) -> Any:
    rows, columns = (torch.arange(count, dtype=dtype, device=scale.device) for count in (n, len(scale)))
    in_turn = chunk.by_turn(rows[:, None])
    begin, stride = _signed(run.sequence.begin), _signed(run.sequence.step)
    made = _translated(torch)(
        in_turn.reshape(-1, 1), columns, scale.to(dtype), start=run.start, width=len(scale), begin=begin, stride=stride
    )
    return made.view(-1, in_turn.shape[-2], len(scale))


@cache
def _translated(torch: Any) -> Any:
    return torch.cuda.jiterator._create_jit_fn(STEP, start=0, width=0, begin=0, stride=0)


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
