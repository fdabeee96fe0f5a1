"""Do gradients around one row describe the outputs there? Tests behind `agreement`, warnings of jumps, certificates.

SmoothGrad and C-LIME are computed from the same draws. Their difference is zero in the limit for a model without
jumps, so a difference beyond chance says that the gradients lie: they miss jumps, a detached part, or belong to
something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Flags, Indices
from .._core.warn import warn
from ..device import sums_for
from ..draws.designs import DESIGNS
from ..draws.keys import pilot_draws
from ..errors import JumpsUnseen, ModelError
from ..estimators import GroupedDraws
from ..models import Target, model_epsilon
from ..result.explanation import Explanation
from ..space.neighbourhood import Factor
from ..uncertainty.stopping import BELIEVED_CONSTANT
from .evaluate import evaluate_outputs
from .plan import Plan

HOTELLING_FROM = 200
"""Draws from which Hotelling's test keeps its level, at five or more draws per feature."""

LARGEST_SHARE = 0.1
"""Of the scatter, in one draw: beyond this, differences are so heavy-tailed that p-values are too small."""

BEYOND_DOUBT = 1e-8
"""p-value that even heavy tails do not explain."""

MADE_SURE, MARGIN = 1_024, 0.05
"""Draws that settle a suspicion, and the relative difference from which on it matters."""

DEVIATIONS = 6.0
"""Standard deviations that C-LIME's own error is not believed to exceed: a chance of 1e-9."""

PER_FEATURE = 6
"""Draws for each feature, at least, that a suspicion is settled by: least squares must be well determined."""

ANY_LEVEL = 0.05
"""Of what a comparison says besides its p-value: a suspicion is settled by BEYOND_DOUBT, and does not look at it."""

ROUNDING = 1e-9
"""Relative differences below this are rounding."""

ANY_AMOUNT = 1 / ROUNDING
"""Relative difference that stands for one that nothing rules out."""


LOOKED_AT = 4
"""Gradients that are asked for where a slope of 0 may be that of a model that jumps."""

CHECKED_SHARE, CHECKED_NUMBERS = 4, 2**22
"""Gradients that a certificate rests on are checked by a quarter of its draws or more, if so many numbers hold them."""

COARSE = 100.0
"""Spacings of a model's values within which no jump can be told from rounding."""


def disagreement(plan: Plan, weights: Array, row: int) -> str:
    """What is wrong with the gradients around a row, of outputs by weights (k,), if that is beyond doubt; else nothing.

    Asked where something seems to be wrong with them: by independent draws, not by the aligned ones that showed it.
    """
    plan = plan.around(row)
    z = _settling_draws(plan, MADE_SURE)
    found = compare_row(plan, weights, row, GroupedDraws(z[None, None], is_shared=True), ANY_LEVEL, MARGIN)
    return found.diagnosis if found.p_value <= BEYOND_DOUBT and found.relative > MARGIN else ""


def contradiction(plan: Plan, weights: Array, row: int, slopes: Array, radius: float, n: int) -> str:
    """What is wrong with gradients whose mean, slopes (f,), is certified within a radius, and is not; or nothing.

    C-LIME, from n draws or more, knows the slopes to within its noise; where that is too far from the mean gradient
    for both to be right, the gradients are not the model's. The draws may be those behind the mean gradient: what each
    of the two may be off by is added up, whatever they have to do with each other. The plan is the row's own.
    """
    z = _settling_draws(plan, n)
    outputs, gradients = evaluate_outputs(plan, weights, row, GroupedDraws(z[None, None], is_shared=True))
    values = outputs @ weights
    to_features = _standardise(plan.factor)
    per_draw, pulls, _ = paired_differences(z, values, plan.factor.whiten(gradients))
    by_values, pulls = per_draw @ to_features, pulls @ to_features
    scatter = np.maximum(np.linalg.eigvalsh(pulls.T @ pulls), 0.0)
    noise = (np.sqrt(scatter.sum()) + DEVIATIONS * np.sqrt(scatter[-1])) / len(z)
    if np.linalg.norm(slopes - by_values) <= radius + noise:
        return ""
    return diagnose(values, gradients, by_values, slopes, outputs, z, plan, weights, _error_of(pulls))


def _settling_draws(plan: Plan, n: int) -> Array:
    """Independent draws (n, d), or more where features are many."""
    d = len(plan.factor.free)
    return DESIGNS["iid"].stream(d, plan.seed, None).take(max(n, PER_FEATURE * d))


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What SmoothGrad and C-LIME, from the same draws, say of each other around one row."""

    p_value: float
    is_affirmed: bool
    is_heavy: bool
    distance: float
    relative: float
    within: float
    differs: Flags
    diagnosis: str


def compare_row(plan: Plan, weights: Array, row: int, draws: GroupedDraws, alpha: float, margin: float) -> Comparison:
    """The paired test around one row; slopes are standardised."""
    outputs, gradients = evaluate_outputs(plan, weights, row, draws)
    values = outputs @ weights
    z = draws.z[0, 0]
    n, d = z.shape
    slopes, pulls, differences = paired_differences(z, values, plan.factor.whiten(gradients))
    to_features = _standardise(plan.factor)
    slopes, pulls, differences = slopes @ to_features, pulls @ to_features, differences @ to_features
    mean = differences.mean(axis=0)
    size = max(float(np.linalg.norm(slopes)), np.finfo(float).tiny)
    distance = float(np.linalg.norm(mean))
    centred = differences - mean
    cov = centred.T @ centred / (n - 1)
    eigenvalues = np.linalg.eigvalsh(cov)
    noise = np.sqrt(max(float(eigenvalues[-1]), 0.0) / n)
    if n < BELIEVED_CONSTANT and not np.ptp(values) and not gradients.any():
        # nothing was seen to differ, nor to agree: what the model does may lie where no draw fell
        return Comparison(1.0, False, False, 0.0, 0.0, ANY_AMOUNT, np.zeros(d, dtype=bool), "")
    scale = max(size, float(np.abs(gradients * plan.factor.std).max()))
    if distance <= ROUNDING * scale and noise <= ROUNDING * scale:
        return Comparison(1.0, True, False, distance, distance / size, distance / size, np.zeros(d, dtype=bool), "")
    strength = 1 / _heaviness(centred @ mean, n)
    squares = (centred**2).sum(axis=1)
    largest, by_feature = _largest_t(strength * mean, cov, n)
    has_level = n >= max(HOTELLING_FROM, 5 * d)
    from scipy.special import stdtrit

    # ‖difference‖ < margin·‖w‖ must hold for the errors of both sides; solved for the smallest margin that does
    quantile = float(stdtrit(n - 1, 1 - alpha))
    size_noise = np.sqrt(np.linalg.eigvalsh(np.atleast_2d(np.cov(pulls.T)))[-1] / n)
    within = (distance + quantile * noise) / max(size - quantile * size_noise, ROUNDING * size)
    return Comparison(
        p_value=_hotelling(strength * mean, cov, n) if has_level else largest,
        is_affirmed=bool(within < margin),
        is_heavy=bool(squares.max() > LARGEST_SHARE * squares.sum()),
        distance=distance,
        relative=distance / size,
        within=within,
        differs=by_feature <= alpha,
        diagnosis=diagnose(values, gradients, slopes, mean + slopes, outputs, z, plan, weights, _error_of(pulls)),
    )


def paired_differences(z: Array, values: Array, gradients: Array) -> tuple[Array, Array, Array]:
    """C-LIME's slopes (d,), what each draw adds to their error, (n, d), and the paired differences (n, d).

    D_i = g_i − v − S⁻¹(z_i − z̄) e_i / (1 − h_i): its mean is SmoothGrad less C-LIME but for terms of order 1/n, and
    its scatter is that of the difference, the correlation of the two on shared draws included.
    """
    n = len(z)
    centred = z - z.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred / n)
    away = values - values.mean()
    slopes = inverse @ (centred.T @ away) / n
    pulled = centred @ inverse
    leverage = (1 + (pulled * centred).sum(axis=1)) / n
    residual = (away - centred @ slopes) / (1 - leverage)
    pulls = pulled * residual[:, None]
    terms = gradients - slopes - pulls
    # centre on the difference itself: leverage corrections move the mean by O(1/n)
    return slopes, pulls, terms - terms.mean(axis=0) + (gradients.mean(axis=0) - slopes)


def diagnose(
    values: Array,
    gradients: Array,
    slopes: Array,
    by_gradients: Array,
    outputs: Array,
    z: Array,
    plan: Plan,
    weights: Array,
    noise: Array,
) -> str:
    """Say in words what is the matter with gradients that disagree; the likeliest of a few known causes.

    Slopes (d,) have standard errors, `noise`.
    """
    distinct = len(np.unique(values))
    is_zero = ~gradients.any(axis=0)
    if is_zero.all():
        if distinct <= len(values) / 10:
            return "the output is piecewise constant, so its gradients are zero"
        return "the gradients are zero although the output varies: the graph is detached from the input"
    is_worked_out = sums_for(plan.evaluation.model) is not None  # by torch, which knows its outputs
    other = None if is_worked_out else _other_output(by_gradients, outputs, z, plan, weights)
    if other:
        return f"the gradients are those of output {other!r}: a wrong target"
    is_missed = is_zero & (np.abs(slopes) > np.maximum(0.05 * np.linalg.norm(slopes), 4 * noise))
    if is_missed.any():
        names = [plan.problem.feature_names[plan.factor.free[j]] for j in np.flatnonzero(is_missed)]
        listed = ", ".join(map(repr, names[:3]))
        return f"the gradient of {listed} is zero although the output follows it: it jumps there, or is detached"
    left = float(np.var(values - z @ _per_draw(slopes, plan.factor)))
    if left < 0.01 * float(np.var(values)):
        return "the gradients are not those of this output, which is nearly linear here"
    size = float(np.linalg.norm(slopes))
    along = float(by_gradients @ slopes) / size**2 if size else 0.0
    if np.linalg.norm(by_gradients - along * slopes) < 0.1 * abs(along) * size and not 0.67 < along < 1.5:
        return f"the gradients are {along:.2g} times what the predictions say: a wrong sign or unit"
    if distinct <= len(values) / 2:
        return f"the output takes only {distinct} values in {len(values)} draws: the gradients miss its steps"
    return "the gradients miss the jumps of this model"


def _error_of(pulls: Array) -> Array:
    """Standard errors (d,) of slopes, by what each draw adds to their error (n, d)."""
    return np.asarray(pulls.std(axis=0) / np.sqrt(len(pulls)))


def _other_output(by_gradients: Array, outputs: Array, z: Array, plan: Plan, weights: Array) -> str | None:
    """Name of another output whose slopes the gradients match within a tenth."""
    to_features = _standardise(plan.factor)
    for j, name in enumerate(plan.outputs):
        if weights[j] and np.count_nonzero(weights) == 1:
            continue
        slopes, _, _ = paired_differences(z, outputs[:, j], np.zeros_like(z))
        slopes = slopes @ to_features
        if np.linalg.norm(slopes - by_gradients) < 0.1 * np.linalg.norm(slopes):
            return name
    return None


def _standardise(factor: Factor) -> Array:
    """Matrix that takes slopes per draw to standardised ones: v ↦ v L⁻¹ D^½."""
    if factor.is_diagonal:
        return np.eye(len(factor.free))
    return factor.inverse * factor.std


def _heaviness(along: Array, n: int) -> float:
    """Factor by which a mean of skewed terms may lie further off than its standard error says.

    Hall's second-order term for a mean of n terms of skewness γ, 1 + γ²(q⁴ + 2q² − 3)/(18n), at q = 2.5 and taken
    twice, as for intervals: γ is itself too small where the tail has not shown.
    """
    second = float((along**2).mean())
    if second == 0:
        return 1.0
    skew = float((along**3).mean()) / second**1.5
    return 1 + 5.4 * skew**2 / n


def _per_draw(standardised: Array, factor: Factor) -> Array:
    """Standardised slopes as slopes per standard normal draw."""
    return factor.whiten(standardised / factor.std)


def _hotelling(mean: Array, cov: Array, n: int) -> float:
    """p-value of Hotelling's T² for a mean of zero."""
    from scipy.special import fdtrc

    values, vectors = np.linalg.eigh(cov)
    kept = values > 1e-12 * values[-1]  # directions without any scatter cannot be tested
    d = int(kept.sum())
    if not d or values[-1] <= 0:
        return 0.0  # a difference without any scatter
    projected = mean @ vectors[:, kept]
    statistic = n * float((projected**2 / values[kept]).sum())
    return float(fdtrc(d, n - d, statistic * (n - d) / (d * (n - 1))))


def _largest_t(mean: Array, cov: Array, n: int) -> tuple[float, Array]:
    """p-value of the largest |t|, and Holm-adjusted p-values (d,) of each feature."""
    from scipy.special import stdtr

    error = np.sqrt(np.diag(cov) / n)
    t = np.divide(np.abs(mean), error, out=np.where(np.abs(mean) > 0, np.inf, 0.0), where=error > 0)
    adjusted = holm(2 * np.asarray(stdtr(n - 1, -t)))
    return float(adjusted.min()), adjusted


def holm(p: Array) -> Array:
    """p-values adjusted for testing all of them, by Holm's method."""
    order = np.argsort(p)
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted


def warn_of_jumps(plan: Plan, target: Target, explanations: list[Explanation], inconsistent: Flags) -> None:
    """Say where a model changes but has no slope at all, or is `inconsistent` (r·t,), and gradients are not its slopes.

    Whoever is suspected is asked a little more; the first one stands for all.
    """
    if plan.method.needs != "gradients":
        return
    for i, e in enumerate(explanations):
        flat = _flat(e, plan.factor.free)
        if len(flat) and not _has_slope(plan, int(flat[0]), target.weights[flat[0], i]):
            msg = (
                f"the gradients of {e.output_name!r} are 0 around row {flat[0]}{_more(len(flat))}, though the model"
                " changes there: it jumps (rounding, argmax, trees inside?), which gradients do not see."
                " Use method='clime'"
            )
            warn(msg, JumpsUnseen)
            return
    _warn_of_disagreement(plan, target, explanations, np.flatnonzero(inconsistent))


def _flat(e: Explanation, free: Indices) -> Indices:
    """Rows without any slope, and no scatter in it, though the model varies: else nothing is left to explain."""
    first = e.values[:, free[0]]
    rows = np.flatnonzero(((first == 0) | np.isnan(first)) & (e.fidelity < 1))  # almost always none, and soon seen
    slopes, errors = (np.nan_to_num(each[np.ix_(rows, free)]) for each in (e.values, e.standard_error))  # NaN in gaps
    return rows[~(slopes.any(axis=1) | errors.any(axis=1))]


def refuse_false_gradients(plan: Plan, target: Target, explanations: list[Explanation]) -> None:
    """Refuse certificates that values contradict: of gradients that are not the slopes of the model around a row."""
    for i, e in enumerate(explanations):
        for row in range(len(e)):
            weights, around = target.weights[row, i], plan.around(row)
            free = around.factor.free
            n = min(int(e.n_samples[row]) // CHECKED_SHARE, CHECKED_NUMBERS // len(free))
            reason = contradiction(
                around, weights, row, e.standardised[row, free], float(e.radius[row]), max(MADE_SURE, n)
            )
            if reason:
                msg = (
                    f"the gradients of {e.output_name!r} are not the slopes of the model around row {row}: {reason}."
                    " No certificate from them holds. Use method='clime' with output_range=(lowest, highest), which"
                    " needs only predictions; `agreement` says more"
                )
                raise ModelError(msg)


def _warn_of_disagreement(plan: Plan, target: Target, explanations: list[Explanation], inconsistent: Indices) -> None:
    if not len(inconsistent):
        return
    row, i = divmod(int(inconsistent[0]), len(explanations))
    if _loses_digits(plan, explanations[i], target.weights[row, i], row):
        return
    reason = disagreement(plan, target.weights[row, i], row)
    if reason:
        rows = len(np.unique(inconsistent // len(explanations)))
        msg = (
            f"the gradients of {explanations[i].output_name!r} are not its slopes around row {row}{_more(rows)}:"
            f" {reason}. Use method='clime', which needs only predictions; `agreement` says more"
        )
        warn(msg, JumpsUnseen)


def _loses_digits(plan: Plan, e: Explanation, weights: Array, row: int) -> bool:
    """Whether outputs are so large that slopes are lost between them, and gradients know better."""
    epsilon = np.max(model_epsilon(plan.evaluation.model))
    size = float(np.linalg.norm(np.nan_to_num(e.standardised[row])))
    return bool(0 < size < COARSE * epsilon * (np.abs(weights) @ np.abs(plan.predictions[row])))


def _more(rows: int) -> str:
    return f" and {rows - 1} more" if rows > 1 else ""


def _has_slope(plan: Plan, row: int, weights: Array) -> bool:
    """Whether a model has a gradient at a few draws that are no pairs, whose gradients might cancel."""
    plan = plan.around(row)
    z = pilot_draws(2 * LOOKED_AT, len(plan.factor.free), plan.seed, None)[::2]
    _, gradients = evaluate_outputs(plan, weights, row, GroupedDraws(z[None, None], is_shared=True))
    return bool(gradients.any())
