"""Judges of claims: each looks at the numbers of a study and returns a verdict with its reason."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from ..guarantees import plan
from . import beyond
from .beyond import DELTA
from .figures import METHODS
from .findings import Finding, on_each, simple
from .study import NAMES, VARIANCES, Study

CLOSE = 0.05
"""Two explanations are called equivalent, or a distance zero, within this share of the explanation's length.

One method is ahead of the other where it is by more than this share: less may be the noise of a run.
"""

SATURATED = 0.1
"""A curve has saturated when it lies within this share of its limit."""

FAR = 5
"""Bounds ask for far more when they ask for so many times as many; as they are true they never ask for fewer."""


def theorem_1(study: Study) -> Finding:
    """Tested around the rows of networks, and on a step."""
    found = beyond.theorems(study)
    tested = [found["agreement"][name] for name in NAMES]
    rows, affirmed, rejected = (sum(each[key] for each in tested) for key in ("rows", "affirmed", "rejected"))
    step = found["step"]
    number = (
        f"{affirmed} of {rows} rows affirmed within 10%, {rejected} rejected; step function: SmoothGrad"
        f" {step['smoothgrad']:.2f}, C-LIME {step['clime']:.3f}"
    )
    if rejected:  # the tests make up for their number: by chance there is any with probability 5% at most
        return Finding("does not hold", number, "The two differ around rows of the networks, and not by chance.")
    if affirmed < 0.9 * rows:
        return Finding("cannot be tested", number, "Too few draws to affirm equality around most rows of the networks.")
    if abs(step["clime"] - step["smoothgrad"]) <= 10 * step["standard_error"]:
        return Finding("holds", number, "Affirmed around the rows of the networks, and no counterexample was seen.")
    reason = (
        "True for functions that are weakly differentiable, networks among them. As stated, for any function with"
        " derivatives almost everywhere, it is false: a step is one, and gradients do not see it."
    )
    return Finding("holds in part", number, reason)


def theorem_2(study: Study) -> Finding:
    """By the change of the explanation of |x|, which exceeds the constant."""
    ratio = beyond.theorems(study)["absolute_ratio"]
    return simple(
        ratio <= 0.5 * (1 + CLOSE),
        f"|x|: ratio {ratio:.3f} where the theorem allows 0.5·G/σ",
        "The counterexample we know did not show.",
        f"The constant is too small by up to 2√(2/π) = {2 * sqrt(2 / np.pi):.3f}. With √(2/π)·G/σ the statement is true"
        " and tight.",
    )


def _within_chance(found: dict[str, Any]) -> bool:
    return bool(found["missed"] <= DELTA + 3 * sqrt(DELTA * (1 - DELTA) / found["repeats"]))


def proposition_1(study: Study) -> Finding:
    """By the share of runs that miss at the corrected number of draws."""
    found = beyond.theorems(study)["proposition_1"]
    return simple(
        _within_chance(found),
        f"{found['missed']:.1%} of {found['repeats']:,} runs miss ε = {found['eps']:g} at n = {found['n']}",
        "The rate is right, and no d is needed: n ≥ 2·(G/ε)²·ln(2/δ). The proof given goes through coordinates and"
        " would cost a factor d.",
        "More runs miss than the corrected number of draws allows.",
    )


def theorem_3(study: Study) -> Finding:
    """By the share of runs that miss at the stated number of draws, in units that make it small."""
    found = beyond.theorems(study)["theorem_3"]
    return simple(
        _within_chance(found),
        f"C = 1, ε = {found['eps']:g}: {found['missed']:.0%} of {found['repeats']:,} runs miss at n = {found['n']:,},"
        f" promised {DELTA:.0%}",
        "The counterexample we know did not show.",
        "False for every constant C: a change of units turns the bound into n ~ ε^-4/3, which no average can reach. The"
        " corrected form is n ≥ κ·(B/(2σε))²·(√d + √(2 ln(1/δ)))², κ = 1.61.",
    )


def linearity(study: Study) -> Finding:
    """Explanations of 2f − g beside those of f and g."""
    off = beyond.theorems(study)["linearity"]
    return simple(
        off < 1e-5,
        f"largest relative difference {off:.1e}",
        "Exact up to rounding when both functions see the same draws; in expectation otherwise.",
        "Explanations of a sum differ from sums of explanations.",
    )


def proportionality(study: Study) -> Finding:
    """Explanations of a linear and a logistic function beside their weights."""
    found = beyond.theorems(study)["proportionality"]
    return simple(
        found["linear"] < 1e-9 and found["logistic"] < 1e-9,
        f"linear: off by {found['linear']:.0e}; logistic: shares differ by {found['logistic']:.0e},"
        f" k = {found['k']:.3f}",
        "k = 1 for linear functions. For generalised linear ones k is the mean of g', which may vanish or change sign.",
        "Explanations are not proportional to the weights.",
    )


def regularised(study: Study) -> Finding:
    """Measured shrinkage beside σ²/(σ² + λ)."""
    wanted = 1 / (1 + np.array(beyond.PENALTIES))
    worst = max(float(np.abs(np.array(beyond.shrinkage(study, name)["mean"]) / wanted - 1).max()) for name in NAMES)
    return simple(
        worst < CLOSE,
        f"within {worst:.1%} of σ²/(σ² + λ) at 1,024 draws",
        "λ is per sample: a solver that penalises the sum of squares needs alpha = n·λ.",
        "Measured shrinkage differs from the closed form.",
    )


def accuracy(name: str, paper: float, if_so: str, if_not: str) -> Callable[[Study], Finding]:
    """A judge of the accuracy that the paper gives for a data set."""

    def test(study: Study) -> Finding:
        if name not in study.real:
            return Finding(
                "cannot be tested", "no data", "The data set could not be had; a stand-in says nothing here."
            )
        network = study.network(name)
        spread = sqrt(network.accuracy * (1 - network.accuracy) / network.n_test)
        # where rare classes bring the majority rate as near as that, a constant answer has still not reached it
        below = min(3 * spread, max(0.0, paper - network.majority) / 2)
        rates = f" Majority rate {network.majority:.1%}, balanced accuracy {network.balanced_accuracy:.1%}."
        number = f"{network.accuracy:.1%} (paper {paper:.1%})"
        return simple(network.accuracy >= paper - below, number, if_so + rates, if_not + rates)

    return test


def weak_model(study: Study) -> Finding:
    """Whether so few epochs give the accuracy that the paper gives."""
    if "bankruptcy" not in study.real:
        return Finding("cannot be tested", "no data", "The data set could not be had; a stand-in says nothing here.")
    weak = study.network("bankruptcy", "weak")
    number = f"{weak.accuracy:.1%} after {weak.epochs} epochs; always saying 'sound' gives {weak.majority:.1%}"
    if abs(weak.accuracy - 0.86) <= 3 * sqrt(0.86 * 0.14 / weak.n_test):
        return Finding("holds", number, "Such networks exist; 86% lies below the majority rate.")
    reason = (
        "What 16 epochs give depends on batch size, rate and seed, which the paper does not name."
        " 86% lies below the majority rate: a network hardly trained, not a worse classifier."
    )
    return Finding("cannot be tested", number, reason)


def distance_falls(study: Study) -> Finding:
    """Whether the distance between the methods falls at every step."""

    def test(name: str) -> tuple[bool, str]:
        found = study.equivalence(name, protocol="paper")
        return bool(
            np.all(np.diff(found.mean) < 0)
        ), f"n^{np.polyfit(np.log(found.draws), np.log(found.mean), 1)[0]:.2f}"

    return on_each(
        study, test,
        holds="Falls all the way, like the noise of any average; there is no number of draws at which it is achieved.",
        part="Falls all the way on some of the data sets only.",
        fails="Does not fall all the way.",
    )  # fmt: skip


def as_low_as_100(study: Study) -> Finding:
    """Whether the methods are equivalent at 100 draws."""

    def test(name: str) -> tuple[bool, str]:
        found = study.equivalence(name, protocol="paper")
        share = found.at(100) / found.size
        return bool(share <= CLOSE), f"{share:.0%}"

    return on_each(
        study, test,
        always=f"L1 distance at 100 draws relative to the L1 length of the explanation; {CLOSE:.0%} would do.",
        holds="It is that small.",
        part="It is that small on some of the data sets.",
        fails="The curves look flat on a linear axis, which is not the same.",
    )  # fmt: skip


def below_the_bounds(study: Study) -> Finding:
    """Whether the bounds ask for more than the draws that were enough."""

    def test(name: str) -> tuple[bool, str]:
        found, d = beyond.errors(study, name), study.data[name].x_test.shape[1]
        error = {method: found["high"][method][found["draws"][method].index(100)] for method in ("smoothgrad", "clime")}
        length = found["gradient_bound"]
        asked = (
            plan("smoothgrad", eps=error["smoothgrad"], sigma=1.0, gradient_bound=length, confidence=0.95).n_samples,
            plan("stein", eps=error["clime"], d=d, output_range=(0, 1), confidence=0.95).n_samples,
        )
        return bool(min(asked) >= FAR * 100), f"{asked[0]:,} and {asked[1]:,}"

    return on_each(
        study, test,
        always="Draws that the corrected bounds ask for (Proposition 1, Theorem 3) for the error seen in 95% of runs"
        f" with 100 draws; {FAR} times as many would do.",
        holds="Worst-case bounds ask for far more than smooth networks need.",
        part="Far more on some of the data sets.",
        fails="Not far more than was measured.",
    )  # fmt: skip


def approaches_zero(study: Study) -> Finding:
    """Whether the distance to neighbours tends to nothing, beside the explanation."""

    def test(name: str) -> tuple[bool, str]:
        limit = study.limit(name)
        share = limit.mean[0] / limit.size
        reached = study.robustness(name, "smoothgrad", protocol="paper").head[-1]
        return bool(share <= CLOSE), f"{reached:.3g}, tends to {limit.mean[0]:.3g} or {share:.0%} of the explanation"

    return on_each(
        study, test,
        holds="The limit is small beside the explanation itself.",
        part="The limit is small beside the explanation on some of the data sets.",
        fails="The curves fall to the distance between the expected explanations of different rows, which is not zero"
        " and which no number of draws changes.",
    )  # fmt: skip


def more_robust_at_finite_draws(study: Study) -> Finding:
    """SmoothGrad beside C-LIME at the paper's numbers of draws."""

    def test(name: str) -> tuple[bool, str]:
        one, other = (study.robustness(name, method, protocol="paper") for method in ("smoothgrad", "clime"))
        ratios = [one.at(n) / other.at(n) for n in (100, 200, 500)]
        return bool(max(ratios) < 1 - CLOSE), " / ".join(f"{ratio:.2f}" for ratio in ratios)

    return on_each(
        study, test,
        always=f"SmoothGrad over C-LIME at 100 / 200 / 500 draws; below {1 - CLOSE:g} would do.",
        holds="Less noise, and nothing else.",
        part="Less noise where it is below that, and nothing else; where it is not, C-LIME is about as good.",
        fails="C-LIME is about as good.",
    )  # fmt: skip


def nearer_to_zero_in_the_limit(study: Study) -> Finding:
    """The limits of both methods."""

    def test(name: str) -> tuple[bool, str]:
        ratio = study.limit(name).mean[0] / study.limit(name, "clime").mean[0]
        return bool(ratio < 1 - CLOSE), f"{ratio:.3f}"

    return on_each(
        study, test,
        always=f"Limit of SmoothGrad over that of C-LIME, {study.scale.limit_draws:,} shared draws.",
        holds="SmoothGrad's is the smaller.",
        part="SmoothGrad's is the smaller on some of the data sets.",
        fails="Both saturate at the same distance: their expected explanations are equal, and so is their robustness.",
    )  # fmt: skip


def saturates_at_200(study: Study) -> Finding:
    """How far SmoothGrad is from its limit at 200 draws."""

    def test(name: str) -> tuple[bool, str]:
        above = _above_limit(study, name, "smoothgrad", 200)
        return bool(above <= SATURATED), f"{above:+.0%}"

    return on_each(
        study, test,
        always="Mean largest distance at 200 draws above its limit; within 10% would do.",
        holds="It has saturated.",
        part="It has saturated on some of the data sets.",
        fails="It has not: most of the distance is still noise.",
    )  # fmt: skip


def saturates_faster(study: Study) -> Finding:
    """How far both methods are from their limit at 200 draws."""

    def test(name: str) -> tuple[bool, str]:
        one, other = (_above_limit(study, name, method, 200) for method in ("smoothgrad", "clime"))
        return bool(1 + one < (1 - CLOSE) * (1 + other)), f"{one:+.0%} and {other:+.0%}"

    return on_each(
        study, test,
        always=f"Above the limit at 200 draws, SmoothGrad and C-LIME; a distance smaller by {CLOSE:.0%} would do.",
        holds="SmoothGrad is nearer to it.",
        part="SmoothGrad is nearer to it on some of the data sets.",
        fails="SmoothGrad is no nearer to it.",
    )  # fmt: skip


def _above_limit(study: Study, name: str, method: str, n: int, variance: float = 1.0) -> float:
    found = study.robustness(name, method, variance=variance, protocol="paper")
    return found.head_at(n) / study.limit(name, variance=variance).mean[0] - 1


def converges_faster(study: Study) -> Finding:
    """Errors of both methods at equal numbers of draws."""

    def test(name: str) -> tuple[bool, str]:
        found = beyond.errors(study, name)
        ratios = []
        for n in (100, 1_000) if study.scale.most_draws >= 1_000 else (100, study.scale.most_draws):
            one, other = (found["median"][m][found["draws"][m].index(n)] for m in ("smoothgrad", "clime"))
            ratios.append(one / other)
        return bool(max(ratios) < 1 - CLOSE), " and ".join(f"{ratio:.2f}" for ratio in ratios)

    return on_each(
        study, test,
        always="Median error of SmoothGrad over that of C-LIME at 100 and 1,000 draws;"
        f" below {1 - CLOSE:g} would do.",
        holds="Smaller by a factor, at the same rate n^-1/2; gradients cost about twice as much.",
        part="Smaller on some of the data sets, at the same rate n^-1/2.",
        fails="No smaller.",
    )  # fmt: skip


def smaller_variance_faster(study: Study) -> Finding:
    """Distances between the methods at 100 draws, by σ²."""

    def test(name: str) -> tuple[bool, str]:
        found = [study.equivalence(name, variance=variance, protocol="paper") for variance in VARIANCES]
        raw, relative = [each.at(100) for each in found], [each.at(100) / each.size for each in found]
        both = raw == sorted(raw) and relative == sorted(relative)
        return both, " / ".join(map("{:.3f}".format, raw)) + " or " + " / ".join(map("{:.0%}".format, relative))

    return on_each(
        study, test,
        always="Distance at 100 draws for σ² = 0.01 / 0.1 / 1, raw or relative to the explanation, which is longer for"
        " small σ²; both must rise.",
        holds="Where the neighbourhood is small the model is nearly linear in it, and needs few draws.",
        part="Both do on some of the data sets.",
        fails="Not both of them do.",
    )  # fmt: skip


def robust_faster(study: Study) -> Finding:
    """How far both methods are from their limit at 100 draws, by σ²."""

    def test(name: str) -> tuple[bool, str]:
        found = [[_above_limit(study, name, method, 100, variance) for variance in VARIANCES] for method in METHODS]
        limits = [study.limit(name, variance=variance).mean[0] for variance in VARIANCES]
        shown = " and ".join(" / ".join(f"{each:+.0%}" for each in above) for above in found)
        return all(above == sorted(above) for above in found), (
            shown + " above " + " / ".join(f"{each:.3f}" for each in limits)
        )

    return on_each(
        study, test,
        always="SmoothGrad and C-LIME at 100 draws above their limit, and the limit, for σ² = 0.01 / 0.1 / 1; both must"
        " rise.",
        holds="The noise goes sooner; but the smaller σ², the less robust is the explanation itself.",
        part="The noise goes sooner on some; but the smaller σ², the less robust is the explanation itself.",
        fails="Not for both methods.",
    )  # fmt: skip


def weaker_models_slower(study: Study) -> Finding:
    """Distances between the methods at 100 draws, by network."""

    def test(name: str) -> tuple[bool, str]:
        shares = []
        for quality in ("good", "fewer", "weak"):
            found = study.equivalence(name, quality=quality, protocol="paper")
            shares.append(found.at(100) / found.size)
        return bool(min(shares[1:]) > shares[0]), " / ".join(f"{share:.0%}" for share in shares)

    return on_each(
        study, test,
        always="Distance at 100 draws relative to the explanation: good network / the same, fewer epochs / weak one.",
        holds="Networks trained less need more draws here.",
        part="On some of the data sets.",
        fails="Trained less is not slower: what counts is how nearly linear a network is, and few epochs make it so.",
    )  # fmt: skip
