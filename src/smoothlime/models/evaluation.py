"""Evaluation: asks a model in batches of bounded size, and checks what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, Indices, Points
from .._core.warn import warn
from ..errors import ModelError, NotDeterministic, SmallerBatches, SmoothlimeError
from .hints import hint_about
from .protocol import FEWEST, GradientBatch, Model, changed_width, is_out_of_memory, model_epsilon, wrong_shape

Where = Callable[[int], str]
"""Names the row of the caller's table to which a point belongs."""

BATCH_BYTES = 2**20
"""Points per model call, by size: about what stays in a core's cache, where small networks are fastest."""

MOST_POINTS = 2**16
"""Points per model call however few their features, where BATCH_BYTES are what a call is best given."""

SQUARED = 1e-150, 1e150
"""Sizes of outputs whose squares neither vanish nor overflow: errors are sums of squares."""

SAME_ANSWER, FEW_DIGITS = 0.01, 16.0
"""Answers in other company are the same up to this share of the largest output, or this multiple of the number type's
spacing."""

ORDER_OF_SUMS = 2.0**-40
"""Share of the largest output by which two answers may differ that a library adds up in no fixed order, in float64: so
do forests of scikit-learn on several threads."""


def automatic_batch_size(d: int, dtype: np.dtype[Any], model: Model | None = None) -> int:
    """Points per model call: a power of two, from d, the number format and the model alone, so that answers repeat."""
    batch_bytes = int(getattr(model, "batch_bytes", BATCH_BYTES))
    made = int(getattr(model, "made", 0))
    is_narrow = d <= 32 and not made  # small networks mind calls, not cache
    fitting = batch_bytes // ((d + made) * dtype.itemsize) * (2 if is_narrow else 1)
    most = MOST_POINTS * batch_bytes // BATCH_BYTES
    return int(min(most, max(getattr(model, "fewest", FEWEST), 2 ** int(np.log2(max(fitting, 1))))))


@dataclass(frozen=True, slots=True, eq=False)
class AtRows:
    """f(x), what a model says at the rows themselves."""

    values: Array
    """(r, k)"""
    evaluations: Indices
    """(r,) model rows that were asked for each row"""


class Evaluation:
    """A model that is asked batch by batch; a batch that does not fit in memory is halved, with a warning."""

    def __init__(self, model: Model, batch_size: int) -> None:
        self.model = model
        self.batch_size = batch_size
        self.width: int | None = None

    def values(self, points: Points, where: Where) -> Array:
        """Finite outputs (n, k) as float64."""
        (values,) = self._answered(points, None)
        return _finite(values, where)

    def values_and_gradients(self, points: Points, weights: Array, where: Where) -> tuple[Array, Points]:
        """Finite outputs (n, k) as float64 and gradients (n, d) in the model's own type.

        These are finite, too, but where points are NaN: by what is missing there is no gradient.
        """
        values, gradients = self._answered(points, weights)
        values, bad = _finite(values, where), _not_finite(gradients)
        if bad is not None and np.isnan(points).any():
            bad = _not_finite(np.where(np.isnan(points), 0.0, gradients))
        if bad is not None:
            msg = f"the model's gradient is not finite near {where(bad)}: {gradients[bad]}"
            raise ModelError(msg)
        return values, gradients

    def attempt(self, points: Points, weights: Array | None = None) -> tuple[Any, ...]:
        """Outputs (n, k) and, for weights (n, k), gradients (n, d), as far as there are any: they need not be finite.

        NaN stands for points that the model refuses, which are found by halves: where it answers does not depend on
        what it is asked together with.
        """
        try:
            return self._answered(points, weights)
        except ModelError:
            if len(points) == 1:
                none = np.full((1, self.width or 1), np.nan), np.full(points.shape, np.nan)
                return none[:1] if weights is None else none
        half = len(points) // 2
        parts = slice(0, half), slice(half, None)
        found = [self.attempt(points[part], None if weights is None else weights[part]) for part in parts]
        return tuple(np.concatenate(each) for each in zip(*found, strict=True))

    def _answered(self, points: Points, weights: Array | None) -> tuple[Any, ...]:
        """Outputs (n, k) as float64 and, for weights (n, k), gradients (n, d) in the model's own type."""
        model: Any = self.model
        n = len(points)
        if weights is None:
            (values,) = self._ask(lambda part: (model.values(self._given(points[part])),), n)
            return (self._numbers(values, n),)
        values, gradients = self._ask(  # only models that are Differentiable are asked
            lambda part: _pair(model.values_and_gradients(self._given(points[part]), weights[part])), n
        )
        values = self._numbers(values, n)
        if gradients.shape != points.shape:
            msg = f"the model returned gradients of shape {gradients.shape} for points of shape {points.shape}"
            raise ModelError(msg)
        return values, gradients

    def add_gradients(self, batch: GradientBatch) -> None:
        """Have the model add up gradients by itself; whether they are finite is seen in the sums."""
        batch.add(self.answers(batch.ask, len(batch)))

    def ask_at_rows(self, rows: Points, probes: Points) -> AtRows:
        """f(x) of a model that can be explained: the same each time, whatever else is in the batch, and not too large.

        The rows are asked for twice, the first one once more beside `probes`.
        """
        values = self.values(rows.copy(), row_name)  # a model may write into its points
        _check_size(values)
        self._check_repeatable(rows, values)
        self._check_batch_invariance(rows, values, probes)
        evaluations = np.full(len(rows), 2)
        evaluations[0] += 1 + len(probes)
        return AtRows(values, evaluations)

    def _check_repeatable(self, rows: Points, values: Array) -> None:
        """Ask once more: refuse answers that are random, and a model that writes into its points unseen.

        A torch module that was seen to write gets copies after its first call.
        """
        given = rows.copy()
        again = self.values(given, row_name)
        if self._is_pure and not np.array_equal(given, rows, equal_nan=True):
            msg = (
                "the model writes into its input unseen (through x.data?), so its gradients would not be those of its"
                " outputs. Let it work on a copy: x = x.clone()"
            )
            raise ModelError(msg)
        differ = np.abs(again - values) > ORDER_OF_SUMS * np.abs(values).max(axis=0)
        if not differ.any():
            return
        row = int(np.argmax(differ.any(axis=1)))
        output = int(np.argmax(differ[row]))
        named = f", output {output}" if values.shape[1] > 1 else ""
        first, second = float(values[row, output]), float(again[row, output])  # with all their digits
        msg = (
            f"the model gave two answers for {row_name(row)}{named}: {first!r} and then {second!r}. Switch off what is"
            " random in it (dropout, sampling, test-time augmentation), or fix its seed inside the call"
        )
        raise NotDeterministic(msg)

    def _check_batch_invariance(self, rows: Points, values: Array, probes: Points) -> None:
        """Ask for the first row beside other points (c, d): refuse an answer that depends on them beyond rounding.

        Errors about the other points wait until a draw leads there.
        """
        try:
            again = self.values(np.concatenate([rows[:1], probes]), row_name)
        except ModelError:
            return
        largest = max(np.abs(values).max(), np.abs(again).max())
        epsilon = np.max(model_epsilon(self.model))
        apart = np.abs(again[0] - values[0])
        output = int(np.argmax(apart))
        if apart[output] > max(SAME_ANSWER, FEW_DIGITS * epsilon) * largest:
            msg = (
                f"the model's answer for {row_name(0)} depends on what it is asked together with:"
                f" {values[0, output]:.6g} {'among the rows' if len(rows) > 1 else 'alone'} and {again[0, output]:.6g}"
                " beside other points. Something in it is made of the whole batch (fit_transform, ranks, groups, batch"
                " statistics): let it use what was fitted before"
            )
            raise ModelError(msg)

    @property
    def _is_pure(self) -> bool:
        """Whether the model is known neither to write into its points nor to use one array for all its answers."""
        return bool(getattr(self.model, "is_pure", False))

    def _given(self, points: Points) -> Points:
        return points if self._is_pure else points.copy()

    def _ask(self, ask: Callable[[slice], tuple[Any, ...]], n: int) -> tuple[Any, ...]:
        """Answers for n points, as arrays."""
        as_array = np.asarray if self._is_pure else np.array
        answers = self.answers(lambda part: tuple(as_array(each) for each in ask(part)), n)
        if len(answers) == 1:
            return answers[0]
        try:
            return tuple(np.concatenate(parts) for parts in zip(*answers, strict=True))
        except ValueError as err:
            shapes = sorted({parts[0].shape[1:] for parts in answers})
            msg = f"the model's outputs changed shape between calls: per point {shapes}"
            raise ModelError(msg) from err

    def answers(self, ask: Callable[[slice], Any], n: int) -> list[Any]:
        """Answers for n points in parts of at most `batch_size`, which is halved where memory runs out."""
        answers: list[Any] = []
        start, size_before = 0, self.batch_size
        while start < n:
            part = slice(start, min(n, start + self.batch_size))
            try:
                answers.append(ask(part))
            except SmoothlimeError:
                raise
            except (Exception, SystemExit) as err:  # a model has no say in how a program ends
                if not is_out_of_memory(err):
                    hint = hint_about(err, getattr(self.model, "hint", ""))
                    msg = f"the model raised {type(err).__name__} on {_points(part.stop - start)}: {err}{hint}"
                    raise ModelError(msg) from err
                self._halve(err)
                continue
            start = part.stop
        if self.batch_size < size_before:
            msg = f"the model ran out of memory; going on with batches of {self.batch_size} points"
            warn(msg, SmallerBatches)
        return answers

    def _halve(self, err: BaseException) -> None:
        if self.batch_size == 1:
            msg = f"the model ran out of memory on a single point: {err}"
            raise ModelError(msg) from err
        self.batch_size //= 2

    def _numbers(self, values: Any, n: int) -> Array:
        """Outputs (n, k) as float64, and k the same as before."""
        if values.ndim != 2 or len(values) != n:
            raise ModelError(wrong_shape(n, values.shape))
        if values.shape[1] == 0:
            msg = f"the model returned no output: shape {values.shape}"
            raise ModelError(msg)
        if self.width is not None and values.shape[1] != self.width:
            raise ModelError(changed_width(self.width, values.shape[1]))
        self.width = values.shape[1]
        if np.iscomplexobj(values):
            msg = f"the model must return real numbers; got {values.dtype}. Explain its real part or its modulus"
            raise ModelError(msg)
        try:
            return np.asarray(values.astype(np.float64, copy=False))
        except (TypeError, ValueError) as err:
            msg = f"the model must return numbers; got {values.dtype} such as {values[0]}"
            raise ModelError(msg) from err


def _pair(answer: Any) -> tuple[Any, Any]:
    """Outputs and gradients, which a model of one's own may have forgotten to return together."""
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        msg = (
            "the model's values_and_gradients must return outputs (n, k) and gradients (n, d), two arrays in a tuple;"
            f" got a {type(answer).__name__}{f' of {len(answer)}' if isinstance(answer, tuple | list) else ''}"
        )
        raise ModelError(msg)
    return answer[0], answer[1]


def _check_size(values: Array) -> None:
    """Refuse outputs so small that all errors would be 0, and those too large for errors to be numbers."""
    largest, (least, most) = float(np.abs(values).max()), SQUARED
    if 0 < largest < least or largest > most:
        msg = (
            f"the model's outputs go up to {largest:.2g}. Errors are made of squares, which are no numbers for"
            f" outputs below {least:g} or above {most:g}. Explain a multiple of the output"
        )
        raise ModelError(msg)


def _finite(values: Array, where: Where) -> Array:
    """The same outputs (n, k), or an error that names the first that is no number."""
    bad = _not_finite(values)
    if bad is not None:
        msg = f"the model returned {values[bad]} at {where(bad)}; it must be finite all over the neighbourhood"
        raise ModelError(msg)
    return values


def _not_finite(numbers: Points) -> int | None:
    """The first row that holds NaN or ±inf, if any."""
    flat = numbers.reshape(-1)
    with np.errstate(all="ignore"):
        if np.isfinite(flat @ flat):  # cheaper than looking at each; look only when something is off
            return None
    bad = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    return int(bad[0]) if len(bad) else None


def _points(n: int) -> str:
    return f"{n} point{'s' * (n != 1)}"


def row_name(position: int) -> str:
    """How complaints name a row of the caller's table."""
    return f"row {position}"
