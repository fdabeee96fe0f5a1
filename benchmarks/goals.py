"""Which of our goals are reached? Fifteen, each with a realistic and an ambitious number, judged by the results.

Nothing is measured here: every number comes from the committed files in results/. A goal holds if all its numbers hold
in every case that it names, so that the worst case is shown. Verdicts:

- yes, no: all cases that decide were measured;
- at least: it holds, and the worst factor is a lower bound, as the smallest number measured was enough already;
- not shown: a lower bound is all there is, and does not settle it;
- not measured: the results lack a case.

The last two count as not held. Evaluations are charged to the last one, pilots too: where errors were measured at equal
draws, that of independent draws is taken to the same number of evaluations at n^(-1/2), which is exact for them. Noise
is not allowed for: a ratio of 1.06 is more than 1.05, whatever its standard error.

    python benchmarks/goals.py
"""

from __future__ import annotations

from common import markdown, read_lines

# isort: split
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from tables import NEVER_WORSE, OURS, TEXTBOOK, Record, of

Results = Mapping[str, Sequence[Record]]
"""Name of a benchmark to its records."""

FILES = ("error", "intervals", "stopping", "trees", "overhead")
SMALL, LARGE = ("11-10-10-2", "15-10-10-2"), ("64-128-128-2",)
NETWORKS = (*SMALL, *LARGE)
JUMPING = ("XGBoost", "random forest", "half-spaces")
LISTED = (
    *((name, kind) for name in (*NETWORKS, "fast waves") for kind in ("gradients", "values")),
    *((name, "values") for name in JUMPING),
)
"""Every workload, and what it is explained from."""
VARIANCES = (0.01, 0.1, 1.0)
FOREST, BOOSTED = "random forest", "XGBoost"
AT_LEAST, ABOUT = "≥ ", "~ "


class Verdict(IntEnum):
    """What is said of a goal, from good to bad."""

    YES = 0
    AT_LEAST = 1
    NOT_SHOWN = 2
    NOT_MEASURED = 3
    NO = 4

    @property
    def holds(self) -> bool:
        """Whether it counts."""
        return self <= Verdict.AT_LEAST

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Case:
    """A number, and where it was measured; None where it was not."""

    where: str
    value: float | None
    mark: str = ""
    """AT_LEAST for a lower bound of the number, ABOUT for what was extrapolated"""


Parts = list[list[Case]]
"""For each number of a goal, the cases in which it must hold."""
Limits = tuple[float | None, ...]
"""What is asked of each part; None where nothing is."""


def times(value: float) -> str:
    return f"{value:.4g}×"


def percent(value: float) -> str:
    return f"{100 * value:.3g}%"


def power(value: float) -> str:
    return f"{value:.2g}"


@dataclass(frozen=True)
class Goal:
    """What is asked, in two numbers or two rows of them, and where to find what was measured."""

    name: str
    realistic: Limits
    ambitious: Limits
    measured: Callable[[Results], Parts]
    is_less_better: bool = False
    shown: tuple[Callable[[float], str], ...] = (times,)
    """How a number is written: one way for all parts, or one for each"""

    def show(self, values: Sequence[float | None], marks: Sequence[str] = ()) -> str:
        """A number for each part."""
        ways = self.shown * len(values) if len(self.shown) == 1 else self.shown
        signs = marks or [""] * len(values)
        found = zip(values, ways, signs, strict=True)
        return " / ".join("–" if value is None else sign + way(value) for value, way, sign in found)


@dataclass(frozen=True)
class Judged:
    """A goal beside its measurements."""

    goal: Goal
    parts: Parts

    @property
    def realistic(self) -> Verdict:
        """Whether the realistic numbers hold."""
        return self._verdict(self.goal.realistic)

    @property
    def ambitious(self) -> Verdict:
        """Whether the ambitious numbers hold."""
        return self._verdict(self.goal.ambitious)

    def _verdict(self, limits: Limits) -> Verdict:
        less = self.goal.is_less_better
        pairs = zip(self.parts, limits, strict=True)
        return max(verdict(cases, limit, less) for cases, limit in pairs if limit is not None)


def verdict(cases: Sequence[Case], limit: float, is_less_better: bool) -> Verdict:
    """Whether every case is at the limit or on its good side."""
    said = max((_said(each, limit, is_less_better) for each in cases), default=Verdict.NOT_MEASURED)
    least = worst(cases, is_less_better)
    is_measured = least is not None and least.mark != AT_LEAST  # the worst is, bounds of better cases do not matter
    return Verdict.YES if said is Verdict.AT_LEAST and is_measured else said


def _said(case: Case, limit: float, is_less_better: bool) -> Verdict:
    """What one case says: a lower bound settles a goal of at least so much, or the miss of one of at most so much."""
    if case.value is None:
        return Verdict.NOT_MEASURED
    holds = case.value <= limit if is_less_better else case.value >= limit
    if case.mark != AT_LEAST:
        return Verdict.YES if holds else Verdict.NO
    if is_less_better:
        return Verdict.NOT_SHOWN if holds else Verdict.NO
    return Verdict.AT_LEAST if holds else Verdict.NOT_SHOWN


def worst(cases: Sequence[Case], is_less_better: bool) -> Case | None:
    """The measured case that is furthest on the bad side."""
    found = [(each.value, each) for each in cases if each.value is not None]
    pick = max if is_less_better else min
    return pick(found, key=lambda pair: pair[0])[1] if found else None


def evaluations(kind: str, names: Sequence[str], asked: Sequence[tuple[float, float]]) -> Callable[[Results], Parts]:
    """Times fewer evaluations than independent draws take; a part for each variance and relative error."""

    def fewer(results: Results, name: str, variance: float, target: float) -> Case:
        where = {"workload": name, "variance": variance, "kind": kind, "target": target}
        found = of(results["error"], what="evaluations", **where)
        ours, plain = of(found, who=OURS), of(found, who=TEXTBOOK[kind])
        # where independent draws reach the error at once, what they need is not known, and the factor neither
        if not ours or not plain or plain[0]["how"] == "below":
            return Case(at(name, variance), None)
        how = {ours[0]["how"], plain[0]["how"]}
        mark = AT_LEAST if "below" in how else ABOUT if "beyond" in how else ""
        return Case(at(name, variance), plain[0]["needed"] / ours[0]["needed"], mark)

    return lambda results: [[fewer(results, name, *each) for name in names] for each in asked]


def gains(kind: str, names: Sequence[str], variances: Sequence[float], draws: int) -> Callable[[Results], Parts]:
    """Variance of independent draws over ours, at one number of draws."""

    def gain(results: Results, name: str, variance: float) -> Case:
        found = charged(results, name, kind, variance, draws)
        return Case(at(name, variance), found[draws] ** -2 if draws in found else None)

    return lambda results: [[gain(results, name, variance) for name in names for variance in variances]]


def never_worse(*least: int) -> Callable[[Results], Parts]:
    """Our error over that of independent draws, on every workload; a part for each number of draws to begin from."""

    def largest(results: Results, name: str, kind: str, variance: float, first: int) -> Case:
        # what refuses so few draws was tried all the same if the workload was measured with them otherwise
        is_tried = any(each["draws"] <= first for each in of(results["error"], what="error", workload=name))
        found = charged(results, name, kind, variance, first)
        return Case(f"{at(name, variance)}, {kind}", max(found.values(), default=None), "" if is_tried else AT_LEAST)

    return lambda results: [
        [largest(results, name, kind, variance, first) for name, kind in LISTED for variance in VARIANCES]
        for first in least
    ]


def charged(results: Results, name: str, kind: str, variance: float, least: int) -> dict[int, float]:
    """Draws, from the least on, to our error over that of independent draws with as many evaluations as ours."""
    here = of(results["error"], workload=name, kind=kind, variance=variance)
    plain = {each["draws"]: each["evaluations"] for each in of(here, what="error", who=TEXTBOOK[kind])}
    return {
        each["draws"]: each["ratio"] * math.sqrt(each["evaluations"] / plain[each["draws"]])
        for each in of(here, what="ratio", who=OURS)
        if each["draws"] >= least and each["draws"] in plain
    }


def coverage(results: Results) -> Parts:
    """Share of intervals that hold, on the worst row; None where rows could not be judged."""

    def least(name: str, kind: str, variance: float) -> Case:
        here = of(results["intervals"], workload=name, kind=kind, variance=variance)
        found = [each for each in here if each["draws"] >= 1_024]
        is_whole = bool(found) and all(each["rows_judged"] == each["rows"] for each in found)
        return Case(f"{at(name, variance)}, {kind}", min(each["worst"] for each in found) if is_whole else None)

    return [[least(name, kind, variance) for name, kind in LISTED for variance in VARIANCES]]


def stopping(results: Results) -> Parts:
    """Misses among rows that say they have converged; draws over those of the same rule with all of δ at every look.

    Cost is asked where every row of the naive rule converged. Where not all of ours did, the cap cut their cost short,
    and it is a lower bound.
    """
    ours = [each for each in results["stopping"] if "converged" in each and each["design"] != "naive"]
    missed = [Case(_stopped(each), each["missed"] / each["converged"]) for each in ours if each["converged"]]
    cost = [_cost(each) for each in ours if each.get("naive_converged", each["runs"]) == each["runs"]]
    return [missed, cost]


def _cost(record: Record) -> Case:
    naive = record.get("naive_draws")
    mark = "" if record["converged"] == record["runs"] else AT_LEAST
    return Case(_stopped(record), None if naive is None else record["mean_draws"] / naive, mark)


def _stopped(record: Record) -> str:
    return f"{record['case']}, d = {record['d']}, {record['method']}, {record['design']}"


def trees(what: str, number: str, **where: object) -> Callable[[Results], Parts]:
    """A number of the trees' records; a part for each ensemble, with a case for each record."""

    def cases(results: Results, model: str) -> list[Case]:
        found = of(results["trees"], what=what, model=model, **where)
        return [Case(_tree(each), each[number]) for each in found] or [Case(model, None)]

    return lambda results: [cases(results, model) for model in (BOOSTED, FOREST)]


def _tree(record: Record) -> str:
    return record["model"] + (f", σ = {record['sigma']:g}" if "sigma" in record else "")


def overhead(results: Results) -> Parts:
    """Time of the plain mean of gradients at independent draws over that of the bare network, many rows at once."""

    def ratio(network: str) -> Case:
        found = of(results["overhead"], network=network, name="smoothlime smoothgrad, iid")
        many = [each["ratio_median"] for each in found if each["rows"] > 1]
        return Case(network, max(many, default=None))

    return [[ratio(network) for network in (SMALL[1], *LARGE)]]


def at(name: str, variance: float) -> str:
    return f"{name}, σ² = {variance:g}"


AT_3 = tuple((variance, 0.03) for variance in VARIANCES)
GOALS = (
    Goal("gradients, d ≤ 16, σ² = 0.1: fewer evaluations to 3% / 1%",
         (6, 10), (15, 30), evaluations("gradients", SMALL, ((0.1, 0.03), (0.1, 0.01)))),
    Goal("gradients, σ² = 0.01: fewer evaluations to 1%",
         (15,), (30,), evaluations("gradients", NETWORKS, ((0.01, 0.01),))),
    Goal("gradients, d ≥ 11, σ² = 1: fewer evaluations to 3%",
         (2,), (4,), evaluations("gradients", NETWORKS, ((1.0, 0.03),))),
    Goal("gradients, d = 64, σ² = 0.1, n = 256: less variance",
         (6,), (20,), gains("gradients", LARGE, (0.1,), 256)),
    Goal("predictions, d = 11 to 15: fewer evaluations to 3% at σ² = 0.01 / 0.1 / 1",
         (6, 3, 1.7), (25, 8, 3), evaluations("values", SMALL, AT_3)),
    Goal("predictions, d = 64: fewer evaluations to 3% at σ² = 0.01 / 0.1 / 1",
         (6, 2, 1.5), (15, 4, 2), evaluations("values", LARGE, AT_3)),
    Goal("predictions, trees and jumps, n = 2,048: less variance",
         (1.3,), (2.5,), gains("values", JUMPING, VARIANCES, 2_048)),
    Goal("error over that of independent draws, at most, n ≥ 256 / n ≥ 64",
         (NEVER_WORSE, None), (NEVER_WORSE, NEVER_WORSE), never_worse(256, 64), is_less_better=True),
    Goal("95% intervals that hold, worst row, n ≥ 1,024",
         (0.9,), (0.93,), coverage, shown=(percent,)),
    Goal("stopping, δ = 5%: misses / cost over naive looks",
         (0.05, None), (0.05, 1.6), stopping, is_less_better=True, shown=(percent, times)),
    Goal("exact trees, σ = 1: faster than TreeSHAP, XGBoost / forest",
         (4, 4), (10, 10), trees("time", "times_faster", who="exact, σ = 1")),
    Goal("exact trees, σ = 0.1: faster than TreeSHAP, XGBoost / forest",
         (8, 12), (20, 20), trees("time", "times_faster", who="exact, σ = 0.1")),
    Goal("exact trees: two threads over one, XGBoost / forest",
         (1.7, 1.7), (1.9, 1.9), trees("threads", "speedup")),
    Goal("exact trees: relative error, XGBoost / forest",
         (1e-10, 1e-10), (1e-12, 1e-12), trees("accuracy", "relative_error"), is_less_better=True, shown=(power,)),
    Goal("batched gradients with noise over the bare network",
         (1.3,), (1.15,), overhead, is_less_better=True),
)  # fmt: skip
"""The goals, with what is realistic and what is ambitious."""


def judged(results: Results) -> list[Judged]:
    """Every goal beside what the results say of it."""
    return [Judged(goal, goal.measured(results)) for goal in GOALS]


def table(results: Results) -> str:
    """Every goal with its worst case, its two numbers and whether they hold; how many do."""
    found = judged(results)
    lines = [
        (
            each.goal.name, *_measured(each), each.goal.show(each.goal.realistic), str(each.realistic),
            each.goal.show(each.goal.ambitious), str(each.ambitious),
        )
        for each in found
    ]  # fmt: skip
    realistic = sum(each.realistic.holds for each in found)
    ambitious = sum(each.ambitious.holds for each in found)
    heads = ("goal", "measured, worst case", "where", "realistic", "holds", "ambitious", "holds")
    return (
        f"{markdown(heads, lines)}\n\nOf {len(found)} goals, {realistic} hold with their realistic numbers and"
        f" {ambitious} with their ambitious ones."
    )


def _measured(each: Judged) -> tuple[str, str]:
    """The worst of each part, and where that was; what is missing is named."""
    least = [worst(cases, each.goal.is_less_better) or Case("", None) for cases in each.parts]
    places = [case.where for case in least if case.where]
    for cases in each.parts:
        missing = [case.where for case in cases if case.value is None]
        if missing:
            places.append(f"not measured: {missing[0]}" + (f" and {more} more" if (more := len(missing) - 1) else ""))
    shown = each.goal.show([case.value for case in least], [case.mark for case in least])
    return shown, "; ".join(dict.fromkeys(places))


def sources(results: Results) -> str:
    """The files behind the table, with their commits."""
    named = ", ".join(f"`{name}.jsonl` at {results[name][0]['commit']}" for name in FILES)
    return f"<sub>`benchmarks/goals.py`, from {named}.</sub>"


def read() -> Results:
    """The committed results."""
    return {name: read_lines(name) for name in FILES}


def main() -> None:
    results = read()
    print(f"{table(results)}\n\n{sources(results)}")


if __name__ == "__main__":
    main()
