"""A plan: every choice settled and f(x) asked for, complete when it exists; nothing drawn yet."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from ..device import sums_for
from ..draws.blocks import Layout
from ..draws.designs import DESIGNS, Design, Stream
from ..draws.keys import spare_draws
from ..draws.rotation import pilot_size
from ..errors import InvalidArgument, NoGradients, TooFewDraws
from ..estimators import Estimator
from ..estimators.protocol import Setup
from ..models import Evaluation, Target, model_dtype, model_epsilon, resolve_target
from ..models.evaluation import AtRows, automatic_batch_size
from ..models.on_scales import ModelOnScales, refuse_gradient_bound
from ..models.problem import Problem, telling_of_gaps
from ..models.targets import check_target, implied_range, is_narrow, output_names, stretch_of
from ..result.gaps import patterns
from ..space.neighbourhood import Factor
from ..uncertainty.stopping import AUTOMATIC_FLOOR, FIRST_LOOK, Stopping, plan_looks
from .defaults import certify_method, choose_design, choose_for_trees, choose_method
from .known_trees import KnownTrees, settle_trees
from .margin_control import MarginControl, find_control
from .options import Options

COARSEST_CERTIFIED = 2.0**-23
"""Relative spacing of float32: models of fewer digits jump too far for gradients to vouch for."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How rows will be drawn for: method, design and looks, the model as it is asked, and its answers at the rows."""

    problem: Problem
    evaluation: Evaluation
    method: Estimator
    design: Design
    stopping: Stopping
    is_shared: bool
    seed: int
    dtype: str
    at_rows: AtRows
    asked_draws: tuple[int | None, int]
    """Draws of each row that were asked for, or None, and the most of them"""
    control: MarginControl | None = None
    """Set where `evaluation` asks for margins, and what is explained are probabilities"""
    trees: KnownTrees | None = None
    """Set where the method needs trees, and asks the model for nothing"""
    rows: Array = field(init=False)
    """(r, d) what is perturbed"""
    factor: Factor = field(init=False)
    """Σ = L Lᵀ over the features that are perturbed"""
    d: int = field(init=False)
    """How many those are"""
    groups: int = field(init=False)
    """Groups of draws"""
    longer: float = field(init=False)
    """Share of draws that are made longer, for which they are weighed: see `long_draws`"""

    def __post_init__(self) -> None:
        """Write down what follows from the choices."""
        for name, value in (
            ("rows", self.problem.rows),
            ("factor", self.problem.factor),
            ("d", len(self.problem.factor.free)),
            ("longer", self.method.longer(self.design)),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "groups", self.layout(self.stopping.looks[0]).groups)

    def within(self, problem: Problem) -> Plan:
        """The same choices, the same draws and the same f(x), in the neighbourhood of another problem."""
        control = None if self.control is None else self.control.around(problem)
        trees = None if self.trees is None else self.trees.around(problem)
        return dataclasses.replace(self, problem=problem, control=control, trees=trees)

    def by_gaps(self) -> list[PlanOfRows]:
        """The plan for each run of rows that miss the same features: those without gaps come first."""
        missing = self.problem.missing
        if not missing.any():
            return [PlanOfRows(self, np.arange(len(self.rows)), None)]
        parts = []
        for pattern, rows in patterns(missing):
            kept = np.flatnonzero(~pattern[self.factor.free]) if pattern.any() else None
            parts.append(PlanOfRows(self._without(pattern), rows, kept))
        return parts

    def around(self, row: int) -> Plan:
        """The plan as this row sees it: the same, but where the row misses features that are perturbed."""
        missing = self.problem.missing[row]
        return self._without(missing) if missing.any() else self

    def _without(self, missing: Flags) -> Plan:
        """The same choices for rows that miss these features (d,): as if they had been held fixed."""
        if not missing.any():
            return self
        plan = self.within(self.problem.without(missing))
        _, looks = _budget(self.method, self.design.name, plan.d, *self.asked_draws, may_rotate=True)
        return dataclasses.replace(plan, stopping=dataclasses.replace(self.stopping, looks=looks))

    @property
    def asked(self) -> Indices:
        """(r,) model rows asked for each row besides draws: f(x), a pilot, and what a control or trees needed."""
        known = self.control or self.trees
        return self.at_rows.evaluations + self.pilot + (0 if known is None else known.evaluations)

    @property
    def predictions(self) -> Array:
        """(r, k) f(x), of what is explained."""
        return self.at_rows.values if self.control is None else self.control.predictions

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return output_names(self.problem.model.outputs, self.predictions.shape[1])

    def resolve(self, target: Any) -> Target:
        """What is asked for of each row."""
        return resolve_target(target, self.outputs, len(self.rows), lambda: self.predictions)

    def layout(self, n: int) -> Layout:
        """How the first n draws are dealt to groups: alike at all looks, but where groups are parts of a sequence."""
        return self.design.layout(n if self.design.is_aligned else self.stopping.looks[0], self.d)

    def setup(self, rows: int, *, controls: int, pilot_slopes: Array | None = None) -> Setup:
        """What the estimator is told before the first draw, for so many rows × targets."""
        return Setup(
            rows, self.groups, self.factor, self.design, self.stopping.looks, self.is_shared, controls, pilot_slopes
        )

    def keys(self, rows: Indices) -> list[int | None]:
        """What keys the draws of rows, besides the seed: nothing for all of them, or for each its position."""
        return [None] if self.is_shared else [int(row) for row in rows]

    def streams(self, rows: Indices) -> list[Stream]:
        """One sequence of draws for all rows, or one for each."""
        return [self.design.stream(self.d, self.seed, key) for key in self.keys(rows)]

    @property
    def looks_far(self) -> bool:
        """Whether rows may be looked at further out than their draws; never where fewer draws were asked for."""
        return self.method.looks_far and self.stopping.looks[-1] >= FIRST_LOOK

    @property
    def budget(self) -> int | None:
        """Draws, where their number is fixed beforehand."""
        return self.stopping.looks[0] if len(self.stopping.looks) == 1 else None

    @property
    def pilot(self) -> int:
        """Points of each row that are evaluated before the draws, to rotate them."""
        return pilot_size(self.method.needs, self.d, self.budget) if self.design.is_aligned else 0

    @property
    def is_summed_on_device(self) -> bool:
        """Whether the model keeps all that the method needs, sums of gradients, where it is."""
        return self.method.only_sums and sums_for(self.evaluation.model) is not None

    def steps(self, z: Any) -> Points:
        """The steps (..., f) that draws lead to, in the model's floating type."""
        return self.factor.steps(z).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class PlanOfRows:
    """A plan of all rows that is followed for some of them."""

    plan: Plan
    rows: Indices
    kept: Indices | None
    """Which of the perturbed features have a value at these rows, and move; None for all"""


def resolve(
    problem: Problem,
    options: Options,
    *,
    method: str | Estimator = "auto",
    target: Any = None,
    design: str = "auto",
    may_rotate: bool = True,
) -> Plan:
    """Settle every choice, and ask the model for f(x)."""
    with telling_of_gaps(problem):
        return _resolve(problem, options, method, target, design, may_rotate=may_rotate)


def _resolve(
    problem: Problem, options: Options, method: str | Estimator, target: Any, design: str, *, may_rotate: bool
) -> Plan:
    adapted, d = problem.model, len(problem.factor.free)
    if options.gradient_bound is not None:
        refuse_gradient_bound(adapted)
    known = implied_range(adapted, target) if options.output_range is None else options.output_range
    estimator = _choose(problem, options, method, target, design, known, may_rotate=may_rotate)
    dtype = model_dtype(adapted)
    if isinstance(options.batch_size, int):
        size = options.batch_size
    else:
        # points that are made on the host stay there, in its cache, whatever the device would like
        size = automatic_batch_size(problem.rows.shape[1], dtype, adapted if estimator.only_sums else None)
    instead = choose_for_trees(estimator, design) if method == "auto" else None
    estimator, trees = settle_trees(estimator, problem, size, instead=instead)
    problem.check_rows(takes_infinite=trees is not None)
    control = find_control(estimator, problem, size)
    chosen, looks = _budget(estimator, design, d, options.n_samples, options.max_samples, may_rotate=may_rotate)
    evaluation = Evaluation(adapted if control is None else control.margins.model, size)
    return Plan(
        problem=problem,
        evaluation=evaluation,
        method=estimator,
        design=chosen,
        stopping=Stopping(
            looks,
            options.rtol,
            options.absolute,
            options.confidence,
            AUTOMATIC_FLOOR * (options.absolute is None and is_narrow(target, known)),
            is_fixed=options.n_samples is not None,
        ),
        is_shared=options.draws == "shared",
        seed=options.seed,
        dtype=dtype.name,
        at_rows=evaluation.ask_at_rows(problem.rows.astype(dtype), _probe_points(problem, dtype, options.seed)),
        asked_draws=(options.n_samples, options.max_samples),
        control=control,
        trees=trees,
    )


def _probe_points(problem: Problem, dtype: Any, seed: int) -> Points:
    """Two points around the first row: on either side of it, so that ranks change, but no mirror images."""
    one, other = spare_draws(2, len(problem.factor.free), seed, None)
    points = problem.rows[:1].astype(dtype).repeat(2, axis=0)
    points[:, problem.factor.free] += problem.factor.steps(np.stack([one, -np.copysign(other, one)])).astype(dtype)
    return points


def _choose(
    problem: Problem,
    options: Options,
    method: str | Estimator,
    target: Any,
    design: str,
    known: tuple[float, float] | None,
    *,
    may_rotate: bool,
) -> Estimator:
    """The estimator asked for, or the one that `auto` means here; refused where the model cannot give what it needs."""
    model = problem.model
    has_gradients = hasattr(model, "values_and_gradients")  # it is Differentiable: asking a protocol takes longer
    estimator: Estimator
    if options.is_certified:
        check_target(target, model)
        estimator = certify_method(
            method,
            has_gradients=has_gradients,
            output_range=known,
            gradient_bound=None if options.gradient_bound is None else options.gradient_bound * stretch_of(target),
        )
    else:
        estimator = choose_method(
            method,
            has_gradients=has_gradients,
            d=len(problem.factor.free),
            n=options.n_samples,
            most=options.max_samples,
            design=design,
            may_rotate=may_rotate,
        )
    if options.is_certified and estimator.needs == "gradients" and np.max(model_epsilon(model)) > COARSEST_CERTIFIED:
        msg = (
            f"guarantee='certified' from gradients needs a model that computes in float32 or float64; this one has"
            f" {float(np.max(model_epsilon(model))):.1g} between 1 and the next number, and gradients do not show"
            " how it jumps from one to the next. Use module.float(), or method='clime' with output_range="
            "(lowest, highest)"
        )
        raise InvalidArgument(msg, argument="guarantee")
    if estimator.needs == "gradients" and not has_gradients:
        if isinstance(model, ModelOnScales) and hasattr(model.model, "values_and_gradients"):
            jumps = [problem.feature_names[j] for j in model.curves.scales.jumping]
            others = f" and {len(jumps) - 3} more" if len(jumps) > 3 else ""
            more = f"{others} move in steps" if len(jumps) > 1 else " moves in steps"
            msg = (
                f"{estimator.name} needs gradients, and {', '.join(map(repr, jumps[:3]))}{more} from one value"
                " of the background to the next, which gradients do not see. Use method='clime' or 'differences', or"
                " scale='linear' or 'log' for it"
            )
            raise NoGradients(msg, argument="method")
        way = "; around a function of JAX put jax.jit" * (problem.kind == "function")
        msg = (
            f"{estimator.name} needs gradients; a {problem.kind} gives only values."
            f" Use method='clime' or 'differences', or from_functions(values=..., gradients=...){way}"
        )
        raise NoGradients(msg, argument="method")
    return estimator


def _budget(
    method: Estimator, design: str, d: int, asked: int | None, cap: int, *, may_rotate: bool
) -> tuple[Design, tuple[int, ...]]:
    """The design and the numbers of draws at which to look, in whole blocks.

    Too few draws are an error that names the fewest.
    """
    name = choose_design(design, method, d=d, n=asked or cap, may_rotate=may_rotate)
    chosen = DESIGNS[name]
    fewest = method.fewest(d, is_paired=chosen.is_paired)
    if asked is not None:
        n = chosen.whole(asked, d)
        if n < fewest:
            msg = (
                f"n_samples={asked} is too few for {method.name}{_drawn(name, method)} on {d} features:"
                f" at least {chosen.whole(fewest, d)} are needed for slopes with error bars{method.advice}"
            )
            raise TooFewDraws(msg, argument="n_samples")
        return chosen, (n,)
    first = chosen.whole(max(FIRST_LOOK, method.first_look, fewest), d)
    last = chosen.below(cap, d)
    if last < first:
        msg = (
            f"max_samples={cap} is below the first look, at {first} draws for {method.name}{_drawn(name, method)}"
            f" on {d} features. Raise it, or give n_samples{method.advice}"
        )
        raise TooFewDraws(msg, argument="max_samples")
    return chosen, plan_looks(first, last)


def _drawn(design: str, method: Estimator) -> str:
    return "" if design == method.name else f" with {design} draws"
