"""The loops of jumps, compiled by numba: along every axis through every draw, how far the outputs jump.

Along axis j, the other coordinates of a draw held, a sum of trees is a staircase. A leaf is met there just where it
fails the tests of no feature but j, so the leaves of one tree that fail tests of exactly one feature say it for all
axes together: each adds its difference to the draw's own leaf on an interval of thresholds. Differences are noted
where intervals begin and end, and one scan for each feature adds them up, bends the margins into outputs, and weighs
each jump by the density of the feature at its threshold.

Leaves are bits of a word: a test that fails clears the leaves on one side of it, for LANES draws at once. Trees with
more leaves than a word has bits are walked through draw by draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.optional import require
from .jump_layout import HALF_WORD, LOW_HALF, ONE, ROOT_2PI
from .kernel import SETTINGS

numba: Any = require("numba", extra="trees", to="find the jumps of trees")
extending: Any = numba.extending

LANES = 32
"""Draws that are taken together; as a constant, so that loops over them become vectors."""

IDENTITY, LOGISTIC, EXPONENTIAL, SOFTMAX = range(4)
"""Curves from margins to outputs."""

TO_LOGISTIC, TO_EXPONENTIAL, TO_SQUARE, TO_TABLE = range(4)
"""What may come after a curve: `BEND_NUMBERS` in `exact/curves.py`."""

LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
MAGIC = 6755399441055744.0
"""1.5·2⁵²: what is added to it and taken off again is rounded to an integer, which stands in its lowest bits."""

LARGEST = 708.0
"""Up to which exp is a number."""

EXPONENT, BIAS = np.int64(52), np.int64(1023)
LANE = np.uint64(LANES)


@extending.intrinsic
def lowest_bit(typing, word):
    """Position of the lowest bit that is set; of a word that is not 0."""

    def generate(context, builder, signature, args):
        from llvmlite import ir

        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return numba.types.uint64(numba.types.uint64), generate


@extending.intrinsic
def bits_of(typing, number):
    """The bits of a float64, as an integer."""

    def generate(context, builder, signature, args):
        from llvmlite import ir

        return builder.bitcast(args[0], ir.IntType(64))

    return numba.types.int64(numba.types.float64), generate


@extending.intrinsic
def number_of(typing, bits):
    """The float64 that has these bits."""

    def generate(context, builder, signature, args):
        from llvmlite import ir

        return builder.bitcast(args[0], ir.DoubleType())

    return numba.types.float64(numba.types.int64), generate


@numba.njit(**SETTINGS)
def exp(x):
    """e^x to 1e-14, without a branch, so that loops over it become vectors."""
    x = min(max(x, -LARGEST), LARGEST)
    shifted = x * LOG2E + MAGIC
    n = shifted - MAGIC
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * number_of((bits_of(shifted) + BIAS) << EXPONENT)


@numba.njit(**SETTINGS)
def look_up(x, knots, heights, start, stop):
    """What x becomes by straight lines between the knots from start to stop, flat beyond them."""
    if not x > knots[start]:
        return heights[start]
    if x >= knots[stop - 1]:
        return heights[stop - 1]
    at = start + np.searchsorted(knots[start:stop], x, side="right")
    share = (x - knots[at - 1]) / (knots[at] - knots[at - 1])
    return heights[at - 1] + share * (heights[at] - heights[at - 1])


@numba.njit(**SETTINGS)
def bend_again(then, k, f):
    """Outputs of a curve, f (k·LANES,), become those of the curve after it, and then perhaps shares of their sum."""
    kind, scale, shift, first, knots, heights, shares = then
    for c in range(k):
        for lane in range(LANES):
            e = c * LANES + lane
            v = scale[c] * f[e] + shift[c]
            if kind == TO_LOGISTIC:
                f[e] = 1 / (1 + exp(-v))
            elif kind == TO_EXPONENTIAL:
                f[e] = exp(v)
            elif kind == TO_SQUARE:
                f[e] = v * v
            else:
                f[e] = look_up(v, knots, heights, first[c], first[c + 1])
    if shares:
        for lane in range(LANES):
            total = 0.0
            for c in range(k):
                total += f[c * LANES + lane]
            for c in range(k):
                f[c * LANES + lane] = f[c * LANES + lane] / total if total > 0 else 1.0 / k


@numba.njit(**SETTINGS)
def bend(curve, sharpness, then, k, m, f):
    """Outputs f (k·LANES,) of margins m: each by itself, or all together."""
    if curve == IDENTITY:
        for e in range(k * LANES):
            f[e] = sharpness * m[e]
    elif curve == LOGISTIC:
        for e in range(k * LANES):
            f[e] = 1 / (1 + exp(-sharpness * m[e]))
    elif curve == EXPONENTIAL:
        for e in range(k * LANES):
            f[e] = exp(sharpness * m[e])
    else:
        highest, total = np.empty(LANES), np.zeros(LANES)
        for lane in range(LANES):
            highest[lane] = m[lane]
        for c in range(1, k):
            for lane in range(LANES):
                highest[lane] = max(highest[lane], m[c * LANES + lane])
        for c in range(k):
            for lane in range(LANES):
                f[c * LANES + lane] = exp(sharpness * (m[c * LANES + lane] - highest[lane]))
                total[lane] += f[c * LANES + lane]
        for c in range(k):
            for lane in range(LANES):
                f[c * LANES + lane] /= total[lane]
    if then is not None:  # which its type says: without one, this is compiled as if it were not there
        bend_again(then, k, f)


@numba.njit(**SETTINGS)
def add_words(words, tree, total, width, target, ranks, ones, twos, fails, margin, changes, room):
    """A tree of as many leaves as a word has bits or fewer, for all lanes: see `make_words`.

    The leaf that a draw is in goes into margin, those that it would be in along some axis into changes.
    """
    places, nodes, group_first, masks, slots, common, leaf = words
    groups, group_at, slot_at = places[tree, 0], places[tree, 1], places[tree, 2]
    common_at, leaf_at = places[tree, 3], places[tree, 4]
    for lane in range(LANES):
        ones[lane] = twos[lane] = 0
    for g in range(groups):
        for lane in range(LANES):
            fails[lane] = 0
        for q in range(group_first[group_at + g], group_first[group_at + g + 1]):
            j, threshold, if_left, if_right = nodes[q, 0] * LANES, nodes[q, 1], masks[q, 0], masks[q, 1]
            for lane in range(LANES):
                fails[lane] |= if_left if ranks[j + lane] <= threshold else if_right
        for lane in range(LANES):
            twos[lane] |= ones[lane] & fails[lane]
            ones[lane] |= fails[lane]
    size, wide, first = np.uint64(total), np.uint64(width), np.uint64(leaf_at)
    own_room, of_target = np.uint64(room), np.uint64(target)
    to_slots, to_common = np.uint64(slot_at), np.uint64(common_at)
    for each in range(LANES):
        draw = np.uint64(each)
        own = lowest_bit(~ones[draw])
        rest = ones[draw] & ~twos[draw]
        in_common = to_common + own * size
        if width == 1:
            here = leaf[first + own]
            margin[of_target * LANE + draw] += here
            base = of_target * own_room
            while rest:
                other = lowest_bit(rest)
                rest &= rest - ONE
                slot = slots[to_slots + np.uint64(common[in_common + other]) * size + other]
                apart = leaf[first + other] - here
                changes[(base + (slot & LOW_HALF)) * LANE + draw] += apart
                changes[(base + (slot >> HALF_WORD)) * LANE + draw] -= apart
            continue
        for o in range(wide):
            margin[o * LANE + draw] += leaf[(first + own) * wide + o]
        while rest:
            other = lowest_bit(rest)
            rest &= rest - ONE
            slot = slots[to_slots + np.uint64(common[in_common + other]) * size + other]
            for o in range(wide):
                apart = leaf[(first + other) * wide + o] - leaf[(first + own) * wide + o]
                changes[(o * own_room + (slot & LOW_HALF)) * LANE + draw] += apart
                changes[(o * own_room + (slot >> HALF_WORD)) * LANE + draw] -= apart


@numba.njit(**SETTINGS)
def add_walk(start, asks, index, other, low, high, slot_first, value, width, target, ranks, lane, stack,
             margin, changes, room):  # fmt: skip
    """A tree of any size, for one lane: along its own path, and from each test on it along the other branch."""
    q = start
    while asks[q] >= 0:
        q = q + 1 if ranks[asks[q] * LANES + lane] <= index[q] else other[q]
    own = other[q]
    for o in range(width):
        margin[(target + o) * LANES + lane] += value[own, o]
    q = start
    while asks[q] >= 0:
        j = asks[q]
        slot = slot_first[j] + 1 + index[q]
        goes_left = ranks[j * LANES + lane] <= index[q]
        stack[0, 0], stack[0, 1], stack[0, 2] = (other[q], slot, high[q]) if goes_left else (q + 1, low[q], slot)
        top = 1
        while top:
            top -= 1
            p, begin, end = stack[top, 0], stack[top, 1], stack[top, 2]
            while asks[p] >= 0:
                if asks[p] == j:  # both of its branches are met along this axis
                    slot = slot_first[j] + 1 + index[p]
                    stack[top, 0], stack[top, 1], stack[top, 2] = other[p], slot, high[p]
                    top += 1
                    p, begin, end = p + 1, low[p], slot
                else:
                    p = p + 1 if ranks[asks[p] * LANES + lane] <= index[p] else other[p]
            for o in range(width):
                apart = value[other[p], o] - value[own, o]
                changes[((target + o) * room + begin) * LANES + lane] += apart
                changes[((target + o) * room + end) * LANES + lane] -= apart
        q = q + 1 if goes_left else other[q]


@numba.njit(**SETTINGS)
def scan(curve, sharpness, then, k, threshold, first, room, slot_weight, is_full, centre, narrow, margin, changes, m,
         before, after, weight, jumps, of_margin):  # fmt: skip
    """Along one feature, for all lanes: jumps (k·LANES,) of outputs and of margins, each by its density.

    Takes `changes` back to 0.
    """
    for c in range(k):
        at = (c * room + first) * LANES
        for lane in range(LANES):
            m[c * LANES + lane] = margin[c * LANES + lane] + changes[at + lane]
            changes[at + lane] = 0.0
    count = threshold.shape[0]
    bend(curve, sharpness, then, k, m, before)
    for e in range(k * LANES):
        jumps[e] = of_margin[e] = 0.0
    for s in range(1, count + 1):
        if is_full:
            for lane in range(LANES):
                z = (threshold[s - 1] - centre[lane]) * narrow
                weight[lane] = exp(-0.5 * z * z) * (narrow / ROOT_2PI)
        else:
            for lane in range(LANES):
                weight[lane] = slot_weight[first + s]
        for c in range(k):
            at = (c * room + first + s) * LANES
            for lane in range(LANES):
                change = changes[at + lane]
                changes[at + lane] = 0.0
                m[c * LANES + lane] += change
                of_margin[c * LANES + lane] += weight[lane] * change
        bend(curve, sharpness, then, k, m, after)
        for c in range(k):
            for lane in range(LANES):
                e = c * LANES + lane
                jumps[e] += weight[lane] * (after[e] - before[e])
                before[e] = after[e]
    for c in range(k):
        at = (c * room + first + count + 1) * LANES
        for lane in range(LANES):
            changes[at + lane] = 0.0


@numba.njit(**SETTINGS)
def rank_draws(x, steps, draws, place, threshold, feature_first, begin, end, ranks):
    """How many thresholds near x each draw is above, ranks (d·LANES,), for each feature that is perturbed."""
    for i in range(place.shape[0]):
        j = place[i]
        own = threshold[feature_first[j] + begin[j] : feature_first[j] + end[j]]
        for lane in range(LANES):
            ranks[j * LANES + lane] = np.searchsorted(own, x[j] + steps[draws[lane], i])


@numba.njit(**SETTINGS)
def centre_draws(x, steps, draws, i, precision, centre):
    """Means (LANES,) of feature i of the perturbed ones, at x without a step, given the draws' other features."""
    for lane in range(LANES):
        pull = 0.0
        for e in range(steps.shape[1]):
            pull += precision[i, e] * steps[draws[lane], e]
        centre[lane] = x + steps[draws[lane], i] - pull / precision[i, i]


@numba.njit(**SETTINGS)
def mix(weights, found, out):
    """Adds outputs (k·LANES,) weighed by (k,) to out, one number for each draw."""
    for lane in range(out.shape[0]):
        for c in range(weights.shape[0]):
            out[lane] += weights[c] * found[c * LANES + lane]


@numba.njit(**SETTINGS)
def find_jumps(x, steps, first_draw, last_draw, place, precision, is_full, word, deepest, curve, sharpness, then,
               weights, controls, threshold, feature_first, target, value, slots, constant, pruned, words, outputs,
               jumps, of_margin):  # fmt: skip
    """Around one row x (d,), for some of the steps (n, f): adds to outputs (t, n), and their jumps (t, n, f).

    And to those of the margins that are weighed by controls (t, k). place (f,) says which features are perturbed;
    precision (f, f) is Σ⁻¹ where Σ is full; trees of more leaves than `word` are walked through. What the row's draws
    can reach of the trees is as `jump_layout.lay_row` has it.
    """
    d, k, trees, width = x.shape[0], constant.shape[0], target.shape[0], value.shape[1]
    begin, end, slot_first, slot_weight = slots
    first, totals, asks, index, other, low, high = pruned
    room = slot_weight.shape[0]
    stack, ranks = np.empty((deepest, 3), dtype=np.int64), np.zeros(d * LANES, dtype=np.int64)
    output_of = target if width == 1 else np.zeros_like(target)
    margin, changes, draws = np.zeros(k * LANES), np.zeros(k * room * LANES), np.zeros(LANES, dtype=np.int64)
    ones, twos, fails = np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64)
    m, before, after = np.zeros(k * LANES), np.zeros(k * LANES), np.zeros(k * LANES)
    found, found_of_margin = np.zeros(k * LANES), np.zeros(k * LANES)
    weight, centre = np.zeros(LANES), np.zeros(LANES)
    for start in range(first_draw, last_draw, LANES):
        some = min(LANES, last_draw - start)
        for lane in range(LANES):
            draws[lane] = start + min(lane, some - 1)
        rank_draws(x, steps, draws, place, threshold, feature_first, begin, end, ranks)
        for e in range(k * LANES):
            margin[e] = constant[e // LANES]
        for tree in range(trees):
            if totals[tree] > max(word, 1):
                for lane in range(LANES):
                    add_walk(first[tree], asks, index, other, low, high, slot_first, value, width, output_of[tree],
                             ranks, lane, stack, margin, changes, room)  # fmt: skip
            elif totals[tree] > 1:
                add_words(words, tree, totals[tree], width, output_of[tree], ranks, ones, twos, fails, margin, changes,
                          room)  # fmt: skip
        bend(curve, sharpness, then, k, margin, after)
        for o in range(weights.shape[0]):
            mix(weights[o], after, outputs[o, start : start + some])
        for i in range(place.shape[0]):
            j = place[i]
            if end[j] == begin[j]:
                continue
            narrow = np.sqrt(precision[i, i]) if is_full else 0.0
            if is_full:
                centre_draws(x[j], steps, draws, i, precision, centre)
            own = threshold[feature_first[j] + begin[j] : feature_first[j] + end[j]]
            scan(curve, sharpness, then, k, own, slot_first[j], room, slot_weight, is_full, centre, narrow, margin,
                 changes, m, before, after, weight, found, found_of_margin)  # fmt: skip
            for o in range(weights.shape[0]):
                mix(weights[o], found, jumps[o, start : start + some, i])
                mix(controls[o], found_of_margin, of_margin[o, start : start + some, i])
