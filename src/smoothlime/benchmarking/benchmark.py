"""Which method and which design suit a model best? Error against evaluations, and time, measured on that model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._core.progress import Progress
from .._core.types import Array
from .._core.validate import check_count
from .._core.version import versions
from ..errors import InvalidArgument, NoClosedForm, TooFewDraws
from ..models import Differentiable
from ..sampling.options import Options
from ..sampling.plan import Plan, resolve
from ..sampling.route import prepare
from .contenders import METHODS, LeftOut, Pair, needs_of, pairs, settings_of, usable, with_enough_draws
from .timing import ROUNDS, Case, Cost, bare_seconds, costs_of, speed

DRAWS = (64, 128, 256, 512, 1_024, 2_048, 4_096)
LARGER = 16
"""The run that errors are measured against has so many times the most draws."""

TIMED = 1_024
"""Draws of the calls that are timed."""

LONG = 30.0
"""Seconds beyond which a forecast is given."""

SURE, NOTICED = 5.0, 0.01
"""Slopes from gradients and from predictions differ where that is so many times what chance makes of it, and so much of
their length: rounding alone may be beyond chance."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One method with one design: errors by evaluations, and what an evaluation costs."""

    method: str
    design: str
    needs: str
    """'values' or 'gradients'"""
    draws: tuple[int, ...]
    """Asked for"""
    evaluations: tuple[int, ...]
    """Made per row, everything charged"""
    errors: tuple[float, ...]
    """Relative L2 error of standardised slopes: root mean square over seeds, median over rows"""
    seconds_per_evaluation: float | None
    """None for a closed form, which hardly asks the model"""
    overhead: float | None
    """Time of a whole call over that of the bare model on as many points"""

    def evaluations_to(self, error: float) -> float | None:
        """Evaluations at which the error falls to `error`; None where it does not."""
        return crossing(self.evaluations, self.errors, error)


@dataclass(frozen=True, slots=True)
class Reference:
    """What the errors of methods that need values, or gradients, are measured against."""

    needs: str
    method: str
    design: str
    evaluations: int
    relative_error: float
    """Its own standard error, relative, median over rows; errors as small as this cannot be told from none"""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What `benchmark` found, smallest error first."""

    contenders: tuple[Contender, ...]
    left_out: tuple[LeftOut, ...]
    references: tuple[Reference, ...]
    bare_seconds: dict[str, float]
    """Of the bare model per point, by what is needed of it"""
    draws: tuple[int, ...]
    output: str
    rows: int
    features: int
    repeats: int
    seed: int
    versions: dict[str, str]
    apart: float | None = None
    """How far gradients lead away from what predictions say, relative, at the worst row; None where they agree, as far
    as can be told. Errors of methods that use gradients leave this out"""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Truth:
    """What errors are measured against."""

    slopes: Array
    """(r, d), standardised"""
    error: Array
    """(r,) their own, L2"""
    about: Reference


def benchmark(
    model: Any,
    X: Any,
    *,
    sigma: Any = 1.0,
    background: Any = None,
    scale: Any = "linear",
    fixed: Any = (),
    target: Any = None,
    output: str = "probability",
    methods: Sequence[str] = (),
    designs: Sequence[str] = (),
    draws: Sequence[int] = DRAWS,
    repeats: int = 8,
    seed: int = 0,
    progress: Any = "auto",
    say: Callable[[str], None] = lambda text: None,
) -> Benchmark:
    """Error against evaluations of every method and design that can explain the model around some rows.

    Each is run `repeats` times from different seeds at each number of draws, and compared with one larger run: from
    gradients for methods that use those, from predictions for the others, or with the closed form where there is one.
    Numbers of draws that a method finds too small are left out; where that is all of them, so is the method.

    Parameters
    ----------
    model, X, sigma, background, scale, fixed, target, output
        As in `explain`. A few rows are enough.
    methods, designs
        Only these; all that the model allows by default.
    say
        Told beforehand how long it may take, where that is half a minute or more.

    Examples
    --------
    >>> import numpy as np
    >>> found = benchmark(lambda a: np.sin(a).sum(axis=1), [0.1, 0.2], draws=[64, 256], repeats=4)
    >>> sorted({each.method for each in found.contenders}), found.contenders[0].errors[-1] < 0.05
    (['clime', 'curves', 'differences'], True)
    """
    counts = tuple(sorted({check_count(n, "draws") for n in draws}))
    if len(counts) < 2:
        msg = f"draws must name at least two different numbers, to see how errors fall; got {list(draws)}"
        raise InvalidArgument(msg, argument="draws")
    first = check_count(seed, "seed", at_least=0) + 1  # the seed itself draws what errors are measured against
    seeds = range(first, first + check_count(repeats, "repeats", at_least=2))
    question = {"sigma": sigma, "background": background, "scale": scale, "fixed": fixed, "target": target}
    question["output"] = output
    case = _take_up(model, X, question, seed)
    d = len(case.plan.factor.free)
    field, left_out = with_enough_draws(pairs(_tried(methods, case), designs), counts, d)
    needs = sorted({needs_of(pair) for pair in field})
    larger, timing = LARGER * counts[-1], (2 * ROUNDS + 1) * TIMED
    drawn = sum(len(seeds) * sum(enough) + timing for enough in field.values())
    total = len(case.plan.rows) * (drawn + len(needs) * larger)
    _forecast(total, max(speed(case, each) for each in needs), say)
    with Progress(progress, total, label="measuring") as watch:
        truths = _truths(case, {each: _referee(each, field) for each in needs}, larger, watch)
        curves = {
            pair: list(_curve(case, pair, truths[needs_of(pair)].slopes, enough, seeds, watch))
            for pair, enough in field.items()
        }
        left_out += _unlucky(curves, counts[-1])
        costs = costs_of(case, {pair: max(TIMED, curve[0][0]) for pair, curve in curves.items() if curve}, watch)
    found = [_contender(pair, curves[pair], cost) for pair, cost in costs.items()]
    references = tuple(truth.about for truth in truths.values())
    return Benchmark(
        contenders=(*_closed_forms(references[:1]), *sorted(found, key=lambda each: each.errors[-1])),
        left_out=left_out, references=references, bare_seconds=bare_seconds(costs), draws=counts,
        output=case.output, rows=len(case.plan.rows), features=d, repeats=len(seeds), seed=seed,
        versions=versions(), apart=_apart(truths),
    )  # fmt: skip


def crossing(evaluations: Sequence[int], errors: Sequence[float], target: float) -> float | None:
    """Evaluations at which errors fall to the target, on straight lines in logarithms; None where they do not.

    The first number of evaluations where its error is small enough already.

    >>> crossing([100, 400], [0.2, 0.1], 0.1), crossing([100, 400], [0.2, 0.1], 0.05)
    (400.0, None)
    """
    if errors[0] <= target:
        return float(evaluations[0])
    for (n, error), (next_n, next_error) in pairwise(zip(evaluations, errors, strict=True)):
        if next_error <= target:
            share = np.log(error / target) / np.log(error / max(next_error, 1e-300))
            return float(n * (next_n / n) ** share)
    return None


def _take_up(model: Any, X: Any, question: dict[str, Any], seed: int) -> Case:
    """Every argument checked, before the first draw."""
    plan = _prepare(model, X, question, "clime", seed)
    target = plan.resolve(question["target"])
    return Case(model, X, question, plan, target.weights[:, 0], target.names[0])


def _prepare(model: Any, X: Any, question: dict[str, Any], method: str, seed: int) -> Plan:
    asked = {name: each for name, each in question.items() if name != "target"}
    problem = prepare(model, X, **asked)
    return resolve(problem, Options(max_samples=10**9, seed=seed), target=question["target"], method=METHODS[method])


def _tried(methods: Sequence[str], case: Case) -> list[str]:
    """Methods that the model allows, of those asked for."""
    names = usable(methods, has_gradients=isinstance(case.plan.evaluation.model, Differentiable))
    if "controlled" in names and not _has_control(case, is_asked_for="controlled" in methods):
        names.remove("controlled")
    return names


def _has_control(case: Case, *, is_asked_for: bool) -> bool:
    """Whether the model is a classifier with an exact margin; where that was asked for, an error says why not."""
    try:
        _prepare(case.model, case.X, case.question, "controlled", case.plan.seed)
    except NoClosedForm as err:
        if is_asked_for:
            msg = f"leave method 'controlled' out: {err}, which is method 'differences'"
            raise NoClosedForm(msg, argument="methods") from err
        return False
    return True


def _forecast(evaluations: int, seconds: float, say: Callable[[str], None]) -> None:
    if (expected := evaluations * seconds) >= LONG:
        about = f"{expected:.0f} seconds" if expected < 120 else f"{expected / 60:.0f} minutes"
        say(f"{evaluations:,} model evaluations, about {about}; fewer rows, repeats, draws or methods take less")


def _referee(needs: str, field: Iterable[Pair]) -> str:
    """The method of the larger run."""
    if needs == "gradients":
        return "smoothgrad"
    return "controlled" if any(method == "controlled" for method, _ in field) else "differences"


def _truths(case: Case, referees: dict[str, str], larger: int, watch: Progress) -> dict[str, _Truth]:
    """What to measure errors against, by what is needed of the model: exact, or one larger run."""
    found = {}
    try:
        known = case.explain(method="exact")
    except NoClosedForm:
        known = None
    for each, name in referees.items():
        e = known or case.explain(method=METHODS[name], n_samples=larger, seed=case.plan.seed, progress=watch.within())
        if known:  # nothing was drawn, so nothing is left of what was foreseen
            watch.advance(len(known) * larger)
        slopes = np.nan_to_num(e.standardised)
        length = np.linalg.norm(slopes, axis=1)
        if not length.any():
            msg = f"by its {each} the model does not change around these rows: there is nothing to be relative to"
            raise InvalidArgument(msg)
        own = np.linalg.norm(np.nan_to_num(e.standard_error * e.std), axis=1)
        relative = float(np.median(own[length > 0] / length[length > 0]))
        about = Reference(each, "exact" if known else name, e.design, int(e.n_evaluations.max()), relative)
        found[each] = _Truth(slopes, own, about)
    return found


def _apart(truths: Mapping[str, _Truth]) -> float | None:
    """How far slopes from gradients are from those from predictions, where that is beyond chance; None if nowhere."""
    if len(truths) < 2:
        return None
    one, two = truths["gradients"], truths["values"]
    distance, length = (np.linalg.norm(each, axis=1) for each in (one.slopes - two.slopes, two.slopes))
    beyond = (distance > SURE * (one.error + two.error)) & (distance > NOTICED * length) & (length > 0)
    return float((distance[beyond] / length[beyond]).max()) if beyond.any() else None


def _curve(
    case: Case, pair: Pair, truth: Array, counts: Sequence[int], seeds: range, watch: Progress
) -> Iterator[tuple[int, int, float]]:
    """Draws, evaluations per row and the error there, for each number of draws."""
    length = np.linalg.norm(truth, axis=1)
    for n in counts:
        squared = []
        try:
            for seed in seeds:
                e = case.explain(
                    **settings_of(pair), n_samples=n, seed=seed, draws="independent", progress=watch.within()
                )
                squared.append(((np.nan_to_num(e.standardised) - truth) ** 2).sum(axis=1))
        except TooFewDraws:  # only the draws themselves tell how many of them a kernel leaves
            continue
        error = np.sqrt(np.mean(squared, axis=0))[length > 0] / length[length > 0]
        yield n, int(np.ceil(e.n_evaluations.mean())), float(np.median(error))


def _unlucky(curves: Mapping[Pair, Sequence[Any]], most: int) -> tuple[LeftOut, ...]:
    """Pairs that should have had enough draws, but a kernel left too few of them."""
    if not any(curves.values()):
        msg = f"draws must go beyond {most}: kernels leave too few of them for {', '.join(name for name, _ in curves)}"
        raise TooFewDraws(msg, argument="draws")
    return tuple(LeftOut(*pair, most + 1) for pair, curve in curves.items() if not curve)


def _contender(pair: Pair, curve: Sequence[tuple[int, int, float]], cost: Cost) -> Contender:
    draws, evaluations, errors = zip(*curve, strict=True)
    return Contender(*pair, needs_of(pair), draws, evaluations, errors, cost.whole, cost.whole / cost.bare)


def _closed_forms(references: Sequence[Reference]) -> list[Contender]:
    """A closed form competes as well: no draws, no error."""
    return [
        Contender(each.method, each.design, "structure", (0,), (each.evaluations,), (0.0,), None, None)
        for each in references
        if each.method == "exact"
    ]
