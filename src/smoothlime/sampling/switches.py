"""Switches: a pass of its own after the slopes, in which rows are drawn around with other levels of their categories.

Both sides of a difference stand on the same normal draws, and its error is the jackknife over groups of them. A switch
stops at the first look at which its standard error is small enough; rows and their levels are an axis, never a loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array, Flags, Indices, Points
from .._core.warn import warn
from ..draws.blocks import Chunk, Layout
from ..draws.designs import DESIGNS, Stream
from ..errors import ModelError, NoClosedForm, SwitchesLeftOut
from ..exact.curves import AGREES
from ..exact.known import view_of
from ..models import Evaluation, Target
from ..models.evaluation import automatic_batch_size
from ..models.problem import Problem
from ..models.switchable import Switchable
from ..result.explanation import Explanation, around
from ..result.switches import GROUPS, SwitchedColumn, Switches
from ..uncertainty.jackknife import clear_skewness, standard_error
from ..uncertainty.stopping import AUTOMATIC_ATOL, AUTOMATIC_FLOOR, FIRST_LOOK, plan_looks
from .exact_route import ExactRoute
from .options import Options
from .plan import Plan
from .plan import resolve as plan_draws

DESIGN = DESIGNS["antithetic"]
"""Normal draws, all of the same weight, whatever the method of the slopes takes."""

FEWEST = 16
"""Draws with which errors are made of eight groups of pairs."""

BELIEVED_IGNORED, IN_RANGE = 1_024, 512
"""Draws before a column is taken for ignored; the second where the range of the output is known, which bounds what a
share of 3/n of the draws, the most that none of n shows in one run of twenty, can change."""

CHOSEN = 1.1
"""Standard errors that decided when to stop count so many times: a stop chooses those that came out small. Without it
intervals of rows that were just about to stop missed in up to 6.8% of runs instead of 5%."""

EXACT_BLOCK = 2**14
"""Switched rows whose closed form is read together."""

SUMS_BYTES = 2**26
"""Size of the sums held at once; more rows than fit are switched panel by panel."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows and switches, (p,) each: every row with every level that it does not have, row by row."""

    rows: Indices
    which: Indices
    """Positions among all switches"""

    def __len__(self) -> int:
        """Count."""
        return len(self.rows)

    def some(self, kept: Any) -> Pairs:
        """Some of them."""
        return Pairs(self.rows[kept], self.which[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """All switches of a problem, flat: the columns that each sets, and what it sets them to."""

    columns: tuple[Indices, ...]
    codes: tuple[Array, ...]
    numbers: tuple[Array, ...]
    names: tuple[tuple[str, str], ...]
    """Category and level"""
    is_own: Flags
    """(r, s)"""

    @classmethod
    def of(cls, switchable: Sequence[Switchable]) -> Choices:
        """Category by category, level by level."""
        flat = [(each, k) for each in switchable for k in range(len(each.category.levels))]
        return cls(
            columns=tuple(np.array(each.category.columns) for each, _ in flat),
            codes=tuple(each.codes[k] for each, k in flat),
            numbers=tuple(each.numbers[k] for each, k in flat),
            names=tuple((each.category.name, each.category.levels[k]) for each, k in flat),
            is_own=np.stack([each.own == k for each, k in flat], axis=1),
        )

    def pairs(self, rows: Indices) -> Pairs:
        """All that there is to switch at some rows."""
        at, which = np.nonzero(~self.is_own[rows])
        return Pairs(rows[at], which)

    def switched(self, points: Array, which: Indices, cells: Sequence[Array]) -> Array:
        """Points (p, d) with the columns of a switch each set."""
        found = points.copy()
        for s in np.unique(which):
            found[np.ix_(which == s, self.columns[s])] = cells[s]
        return found


def add_switches(
    route: ExactRoute | Plan,
    target: Target,
    explanations: Sequence[Explanation],
    options: Options,
    progress: Any,
    *,
    is_asked_for: bool,
) -> list[Explanation]:
    """The explanations of a route with the effects of other levels, where the problem has categories.

    A model that does not take one of them is an error only where somebody asked for them: slopes are not lost for it.
    """
    if not route.problem.switchable:
        return list(explanations)
    try:
        return _with_switches(route, target, explanations, options, progress)
    except ModelError as err:
        if is_asked_for:
            raise
        warn(f"there are no switches: {err}", SwitchesLeftOut)
        return list(explanations)


def _with_switches(
    route: ExactRoute | Plan, target: Target, explanations: Sequence[Explanation], options: Options, progress: Any
) -> list[Explanation]:
    problem = route.problem
    choices = Choices.of(problem.switchable)
    found = _exact(route, choices, target, explanations) if isinstance(route, ExactRoute) else None
    if found is None:
        plan = route if isinstance(route, Plan) else plan_draws(problem, options, method="stein", design=DESIGN.name)
        found = _sampled(plan, choices, target, options.output_range, progress)
    columns = tuple(
        SwitchedColumn(each.category.name, each.category.levels, each.others) for each in problem.switchable
    )
    own = np.stack([each.own for each in problem.switchable], axis=1)
    return [
        dataclasses.replace(e, switches=numbers.of(columns, own, problem.backend))
        for e, numbers in zip(explanations, found, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What is found of one target, (r, s) each."""

    effect: Array
    standard_error: Array
    skewness: Array
    converged: Flags
    n_samples: Indices

    @classmethod
    def empty(cls, r: int, s: int) -> Found:
        """Nothing to switch anywhere yet."""
        none = np.full((r, s), np.nan)
        is_done = np.ones((r, s), dtype=np.bool_)
        return cls(none, none.copy(), np.zeros((r, s)), is_done, np.zeros((r, s), dtype=np.intp))

    def of(self, columns: tuple[SwitchedColumn, ...], own: Indices, backend: str) -> Switches:
        """With the names that belong to it."""
        numbers = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return Switches(columns, own, **numbers, backend=backend)


def _exact(
    route: ExactRoute, choices: Choices, target: Target, explanations: Sequence[Explanation]
) -> list[Found] | None:
    """Two means of the closed form, of the switched row and of the row; None where it is not the model there."""
    problem, rows = route.problem, view_of(route.problem).rows
    found = [Found.empty(*choices.is_own.shape) for _ in explanations]
    pairs = choices.pairs(np.arange(len(problem.x)))
    for start in range(0, len(pairs), EXACT_BLOCK):
        some = pairs.some(slice(start, start + EXACT_BLOCK))
        answers = _answers(problem, choices, some)
        x = choices.switched(problem.x[some.rows], some.which, choices.numbers)
        try:
            placed = route.placed(choices.switched(rows[some.rows], some.which, choices.codes), x)
        except NoClosedForm:
            return None
        size = max(route.form.size(placed), float(np.abs(answers).max()))
        if np.abs(route.form.values(placed) - answers).max() > AGREES * size:
            return None
        at = some.rows, some.which
        for i, (e, each) in enumerate(zip(explanations, found, strict=True)):
            weights = np.ascontiguousarray(target.weights[some.rows, i])
            each.effect[at] = route.form.smooth(placed, problem.factor, weights).mean - e.smoothed[some.rows]
            each.standard_error[at] = 0.0
    return found


def _answers(problem: Problem, choices: Choices, pairs: Pairs) -> Array:
    """What the model says at switched rows, (p, k); an error says which level it does not take."""
    points = choices.switched(problem.rows[pairs.rows], pairs.which, choices.codes)
    evaluation = Evaluation(problem.model, automatic_batch_size(points.shape[1], np.dtype(np.float64)))
    try:
        return evaluation.values(points, lambda i: f"row {pairs.rows[i]}")
    except ModelError:
        for i in range(len(pairs)):
            with refusing(choices.names[pairs.which[i]]):
                evaluation.values(points[i : i + 1], lambda _, row=pairs.rows[i]: f"row {row}")  # type: ignore[misc]
        raise


@contextmanager
def refusing(name: tuple[str, str]) -> Iterator[None]:
    """Say which level of which column it is that the model refuses."""
    try:
        yield
    except ModelError as err:
        feature, level = name
        msg = (
            f"the model does not take {level!r} in {feature!r}, as switches would have it: {err}. Name the columns, or"
            " their levels, that it takes: switches=[...] or {column: levels}; or give switches=False"
        )
        raise ModelError(msg) from err


def _sampled(
    plan: Plan, choices: Choices, target: Target, output_range: tuple[float, float] | None, progress: Any
) -> list[Found]:
    """Panel by panel, so that sums fit in memory."""
    r, t = target.weights.shape[:2]
    found = [Found.empty(*choices.is_own.shape) for _ in range(t)]
    size = max(1, SUMS_BYTES // (8 * GROUPS * t * choices.is_own.shape[1]))
    looks = _looks(plan)
    total = int((~choices.is_own).sum() + r) * looks[0]
    with Progress(progress, total, label="switching") as watch:
        for start in range(0, r, size):
            rows = np.arange(start, min(r, start + size))
            _Pass(plan, choices, target, _extent(plan.problem, target, output_range), watch).run(rows, looks, found)
    return found


def _looks(plan: Plan) -> tuple[int, ...]:
    """At which errors are looked at: those of slopes, in pairs."""
    last = max(FEWEST, DESIGN.whole(plan.stopping.looks[-1], plan.d))
    return (last,) if plan.stopping.is_fixed else plan_looks(min(FIRST_LOOK, last), last)


def _extent(problem: Problem, target: Target, output_range: tuple[float, float] | None) -> Array:
    """(r, t) length of the range of what is explained, NaN where it is not known."""
    if output_range is not None:
        return np.full(target.weights.shape[:2], output_range[1] - output_range[0])
    known = getattr(problem.model, "output_range", None)
    if known is None:
        return np.full(target.weights.shape[:2], np.nan)
    return np.asarray(np.abs(target.weights).sum(axis=2) * (known[1] - known[0]))


class _Spread:
    """Standard deviation of the output over the draws of each row, (r, t), by merged moments."""

    def __init__(self, r: int, t: int) -> None:
        self.count, self.mean, self.squares = np.zeros((r, 1)), np.zeros((r, t)), np.zeros((r, t))

    def add(self, rows: Indices, values: Array) -> None:
        """More outputs (., t, n) of some rows."""
        n = values.shape[2]
        mean = values.mean(axis=2)
        before, away = self.count[rows], mean - self.mean[rows]
        self.squares[rows] += ((values - mean[:, :, None]) ** 2).sum(axis=2) + away**2 * before * n / (before + n)
        self.mean[rows] += away * n / (before + n)
        self.count[rows] += n

    @property
    def std(self) -> Array:
        """Of each row and target, (r, t)."""
        return np.sqrt(self.squares / np.maximum(self.count - 1, 1))


class _Pass:
    """Draws around some rows, and sums over groups of what each switch changes at them."""

    def __init__(self, plan: Plan, choices: Choices, target: Target, extent: Array, watch: Progress) -> None:
        self._plan, self._choices, self._watch = plan, choices, watch
        self._weights, self._extent = target.weights, extent
        self._evaluation = Evaluation(plan.problem.model, plan.evaluation.batch_size)

    def run(self, rows: Indices, looks: Sequence[int], found: Sequence[Found]) -> None:
        """Draw from look to look; switches that have reached their tolerance are stored and leave."""
        t = self._weights.shape[1]
        pairs = self._choices.pairs(rows)
        sums = np.zeros((len(pairs), t, GROUPS))
        spread = _Spread(len(self._weights), t)
        streams = {key: DESIGN.stream(self._plan.d, self._plan.seed, key) for key in self._plan.keys(rows)}
        drawn = 0
        for k, n in enumerate(looks):
            if not len(pairs):
                return
            layout = DESIGN.layout(n, self._plan.d)
            self._advance(pairs, sums, spread, streams, layout, drawn, n)
            drawn = n
            is_done = self._look(pairs, sums, spread, layout.sizes(n), len(looks), found, is_last=n == looks[-1])
            pairs, sums = pairs.some(~is_done), sums[~is_done]
            if k + 1 < len(looks):
                self._watch.expect((len(pairs) + len(np.unique(pairs.rows))) * (looks[k + 1] - n))

    def _advance(
        self,
        pairs: Pairs,
        sums: Array,
        spread: _Spread,
        streams: dict[int | None, Stream],
        layout: Layout,
        start: int,
        stop: int,
    ) -> None:
        """Add the draws from one count to another."""
        plan, size = self._plan, self._evaluation.batch_size
        rows = np.unique(pairs.rows)
        first = np.searchsorted(pairs.rows, rows)
        last = np.append(first[1:], len(pairs))
        for chunk in layout.chunks(start, stop, size):
            shared = chunk.by_group(streams[None].take(chunk.n))[None] if plan.is_shared else None
            block = max(1, size // chunk.n)
            for at in range(0, len(rows), block):
                some = rows[at : at + block]
                z = shared
                if z is None:
                    z = np.stack([chunk.by_group(streams[int(row)].take(chunk.n)) for row in some])
                steps = plan.steps(z.reshape(len(z), chunk.n, -1))
                base = self._ask(plan.rows[some], some, steps, [f"row {row}" for row in some])
                spread.add(some, base)
                of_block = slice(first[at], last[min(at + block, len(rows)) - 1])
                self._add(pairs, sums, of_block, some, steps, base, chunk)

    def _add(
        self, pairs: Pairs, sums: Array, part: slice, rows: Indices, steps: Points, base: Array, chunk: Chunk
    ) -> None:
        """What each switch of some rows changes at some draws."""
        block = max(1, self._evaluation.batch_size // chunk.n)
        for start in range(part.start, part.stop, block):
            here = slice(start, min(part.stop, start + block))
            some = pairs.some(here)
            at = np.searchsorted(rows, some.rows)
            changes = self._switched(some, steps if len(steps) == 1 else steps[at]) - base[at]
            by_group = changes.reshape(*changes.shape[:2], chunk.count, -1).sum(axis=3)
            sums[here, :, chunk.groups] += by_group

    def _switched(self, pairs: Pairs, steps: Points) -> Array:
        """What is explained of switched rows, (p, t, n); an error says which level the model does not take."""
        choices, plan = self._choices, self._plan
        points = choices.switched(plan.rows[pairs.rows], pairs.which, choices.codes)
        called = [f"row {row}" for row in pairs.rows]
        try:
            return self._ask(points, pairs.rows, steps, called)
        except ModelError:
            for i in range(len(pairs)):
                one = slice(i, i + 1)
                with refusing(choices.names[pairs.which[i]]):
                    self._ask(points[one], pairs.rows[one], steps if len(steps) == 1 else steps[one], called[one])
            raise

    def _ask(self, points: Array, rows: Indices, steps: Points, called: Sequence[str]) -> Array:
        """What is explained around points (p, d) that stand for these rows, (p, t, n)."""
        plan, n = self._plan, steps.shape[1]
        moved = around(points, plan.factor.free, steps, plan.dtype)
        flat = moved.reshape(-1, moved.shape[2])
        values = self._evaluation.values(flat, lambda position: f"a draw around {called[position // n]}")
        self._watch.advance(len(flat))
        return np.asarray((values.reshape(len(points), n, -1) @ self._weights[rows].swapaxes(1, 2)).swapaxes(1, 2))

    def _look(
        self,
        pairs: Pairs,
        sums: Array,
        spread: _Spread,
        sizes: Array,
        looks: int,
        found: Sequence[Found],
        *,
        is_last: bool,
    ) -> Flags:
        """Store the switches that are done, and say which these are, (p,)."""
        n = int(sizes.sum())
        said = (sums[:, :, : len(sizes)] / sizes).swapaxes(1, 2)
        effect = sums.sum(axis=2) / n
        error = standard_error(said, sizes)
        skew = clear_skewness(said, sizes)
        is_reached = self._is_reached(pairs.rows, n, effect, error, spread, len(sizes), looks)
        is_done = is_reached.all(axis=1) | is_last
        raised = CHOSEN if looks > 1 else 1.0
        at = pairs.rows[is_done], pairs.which[is_done]
        for i, each in enumerate(found):
            each.effect[at], each.standard_error[at] = effect[is_done, i], error[is_done, i] * raised
            each.skewness[at], each.converged[at] = skew[is_done, i], is_reached[is_done, i]
            each.n_samples[at] = n
        return np.asarray(is_done)

    def _is_reached(
        self, rows: Indices, n: int, effect: Array, error: Array, spread: _Spread, groups: int, looks: int
    ) -> Flags:
        """(p, t) whether standard errors are as small as they must be, themselves being estimates."""
        from scipy.special import chdtri

        stopping, extent = self._plan.stopping, self._extent[rows]
        freedom = groups - 1
        # what a standard error of so many groups may be too small by, at a chance of a miss that looks share
        raised = error * np.sqrt(freedom / chdtri(freedom, 1 - (1 - stopping.confidence) / looks))
        automatic = np.where(np.isnan(extent), AUTOMATIC_ATOL * spread.std[rows], AUTOMATIC_FLOOR * extent)
        floor = automatic if stopping.atol is None else stopping.atol
        is_seen = (~np.isnan(extent) & (n >= IN_RANGE)) | (error > 0) | (effect != 0) | (n >= BELIEVED_IGNORED)
        return np.asarray((raised <= np.maximum(floor, stopping.rtol * np.abs(effect))) & is_seen)
