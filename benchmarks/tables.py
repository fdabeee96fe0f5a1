"""Results as Markdown: each function takes the records of one benchmark and returns a table, perhaps with a note.

Scripts print the long ones; `into_docs.py` puts them, and short ones, into the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from common import markdown, short

Record = dict[str, Any]

OURS, TEXTBOOK = "smoothlime", {"gradients": "SmoothGrad, iid", "values": "C-LIME, iid"}
TARGETS = (0.1, 0.03, 0.01)
NEVER_WORSE = 1.05
"""What is allowed to a default, as a ratio of errors to those of independent draws."""
FIRST_HONEST = 256
"""Draws from which on that is asked."""
HOLDS = {"coverage": 0.93, "worst": 0.9}
"""What is asked of 95% intervals: on average over rows, and on the worst row."""
KINDS = {"gradients": "gradients", "values": "predictions", "trees": "its trees"}


def of(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """Records whose fields are as wanted; `kind` stands for the field 'from'."""
    if "kind" in wanted:
        wanted["from"] = wanted.pop("kind")
    return [each for each in records if all(each.get(name) == value for name, value in wanted.items())]


def groups(records: Iterable[Record], *names: str) -> list[tuple[Any, ...]]:
    """The different values of some fields, in order of appearance."""
    return list(dict.fromkeys(tuple(each[name] for name in names) for each in records))


def error_long(records: Sequence[Record]) -> str:
    """Evaluations to each error, ours and the textbook's, for every workload, variance and kind of access."""
    lines = []
    found = of(records, what="evaluations")
    for workload, variance, kind in groups(found, "workload", "variance", "from"):
        cells = []
        for target in TARGETS:
            mine, plain = _pair(found, workload, variance, kind, target)
            cells += [needed(mine), needed(plain), fewer(mine, plain)]
        lines.append((workload, variance, KINDS[kind], *cells))
    for workload, asked in groups(of(records, what="exact"), "workload", "evaluations"):
        lines.append((workload, "any", KINDS["trees"], *[f"{asked}, exact", "", ""] * len(TARGETS)))
    heads = [f"{who} {target:.0%}" for target in TARGETS for who in ("ours to", "iid to", "fewer at")]
    return markdown(("model", "σ²", "from", *heads), lines)


def beside_others(errors: Sequence[Record], steadiness: Sequence[Record]) -> str:
    """One network, ours beside captum and lime: evaluations to an error, and how much two runs differ by default."""
    network, variance, target = "15-10-10-2", 0.1, TARGETS[1]
    found = of(errors, what="evaluations")
    pairs = {kind: _pair(found, network, variance, kind, target) for kind in ("gradients", "values")}
    cost = {kind: [needed(each) for each in pair] for kind, pair in pairs.items()}
    default = {each["who"]: _steadiness(each) for each in of(steadiness, workload=network, setting="default")}
    spread, _, top3 = (
        [default[who][i] for who in (OURS, f"{OURS}, predictions only", "captum", "lime")] for i in range(3)
    )
    lines = [
        (
            f"Model calls to an error of {target:.0%}",
            *(" / ".join(column) for column in zip(*cost.values(), strict=True)),
        ),
        ("Two runs differ by, default settings", f"{spread[0]} / {spread[1]}", f"{spread[2]} / {spread[3]}"),
        ("Two runs name another top three", f"{top3[0]} / {top3[1]}", f"{top3[2]} / {top3[3]}"),
    ]
    return markdown(("gradients / predictions", "smoothlime", "captum / lime"), lines)


def needed(record: Record) -> str:
    """Evaluations with their mark: ≤ where the first number measured was enough, ~ where they were extrapolated."""
    return {"below": "≤ ", "measured": "", "beyond": "~ "}[record["how"]] + f"{record['needed']:,.0f}"


def fewer(one: Record, other: Record) -> str:
    """How many times fewer evaluations `one` takes than `other`; nothing where both are below what was measured."""
    if other["how"] == "below":
        return ""
    mark = "≥ " if one["how"] == "below" else "~ " if "beyond" in (one["how"], other["how"]) else ""
    return f"{mark}{short(other['needed'] / one['needed'])}×"


def peers(records: Sequence[Record]) -> str:
    """captum's and lime's errors over those of our textbook estimates: 1 means that they are the same."""
    lines = [
        (each["workload"], each["variance"], each["who"], each["to"], f"{each['draws']:,}", _plus_minus(each))
        for each in of(records, what="ratio")
        if each["who"] in ("captum", "lime")
    ]
    return markdown(("model", "σ²", "who", "against ours as", "draws", "ratio of errors"), lines)


def worst(records: Sequence[Record], most: int = 8) -> str:
    """The largest ratios of our default errors to the textbook's at 256 draws or more."""
    found = [each for each in of(records, what="ratio", who=OURS) if each["draws"] >= FIRST_HONEST]
    lines = [
        (
            each["workload"],
            each["variance"],
            KINDS[each["from"]],
            f"{each['draws']:,}",
            each["seeds"],
            _plus_minus(each),
        )
        for each in sorted(found, key=lambda each: -each["ratio"])[:most]
    ]
    above = [each for each in found if each["ratio"] - 2 * each["standard_error"] > NEVER_WORSE]
    table = markdown(("model", "σ²", "from", "draws", "seeds", "our error / iid"), lines)
    return (
        f"{table}\n\nOf {len(found)} comparisons at {FIRST_HONEST} draws or more, {len(above)} are more than"
        f" {NEVER_WORSE - 1:.0%} worse than independent draws by more than two standard errors; the largest are shown."
    )


def intervals(records: Sequence[Record]) -> str:
    """Coverage of 95% intervals, on average and on the worst row, their honesty and width, at each number of draws."""
    counts = [draws for (draws,) in groups(records, "draws")]
    lines = [
        (
            workload, variance, KINDS[kind],
            *(cell for each in of(records, workload=workload, variance=variance, kind=kind) for cell in _held(each)),
        )
        for workload, variance, kind in groups(records, "workload", "variance", "from")
    ]  # fmt: skip
    heads = [f"{what}, {draws:,}" for draws in counts for what in ("% held", "worst row", "bars / errors", "width")]
    short_of = {name: sum(_is_short(each, name) for each in records) for name in HOLDS}
    judged, rows = (sum(each[name] for each in records) for name in ("rows_judged", "rows"))
    seeds = " and ".join(
        f"{' or '.join(str(each) for (each,) in groups(of(records, draws=draws), 'seeds'))} at {draws:,}"
        for draws in counts
    )
    return (
        f"{markdown(('model', 'σ²', 'from', *heads), lines)}\n\nSeeds: {seeds} draws. Of {len(records)} lines,"
        f" {short_of['coverage']} hold less than {HOLDS['coverage']:.0%} on average and {short_of['worst']} less than"
        f" {HOLDS['worst']:.0%} on the worst row (bold). The truth is known well enough to judge {judged:,} of {rows:,}"
        f" rows; [k] marks lines where only k rows are judged."
    )


def _held(record: Record) -> tuple[str, ...]:
    """Coverages in per cent with the rows behind them, bold where they are too low; bars over errors; width."""
    some = "" if record["rows_judged"] == record["rows"] else f" [{record['rows_judged']}]"
    if not record["rows_judged"]:
        return (some.strip(), "", "", "")
    percent = {name: f"{100 * record[name]:.1f}" for name in HOLDS}
    held = [f"**{percent[name]}**" if _is_short(record, name) else percent[name] for name in HOLDS]
    return held[0] + some, held[1], f"{record['bars']:.2f}", f"{short(100 * record['width'])}%"


def _is_short(record: Record, name: str) -> bool:
    """Whether a coverage is less than what is asked."""
    return record["rows_judged"] > 0 and record[name] < HOLDS[name]


def time_table(records: Sequence[Record]) -> str:
    """Milliseconds per row to each target, and how many times ours."""
    targets = sorted({each["target"] for each in records if each["target"]}, reverse=True)
    lines = []
    for workload, kind, who in groups(records, "workload", "from", "who"):
        own = of(records, workload=workload, kind=kind, who=who)
        if own[0]["how"] == "exact":
            cells = ["exact", short(1e3 * own[0]["seconds_per_row"]), "1"] * len(targets)
        else:
            cells = [cell for each in own for cell in _time_cells(each, records)]
        lines.append((workload, KINDS[kind], who, *cells))
    heads = (f"{what} {target:.0%}" for target in targets for what in ("evaluations to", "ms per row to", "× ours at"))
    return markdown(("model", "from", "who", *heads), lines)


def _time_cells(record: Record, records: Sequence[Record]) -> tuple[str, str, str]:
    """Evaluations, milliseconds and the factor over ours; ~ marks what was not measured directly."""
    own = of(records, workload=record["workload"], who=OURS)
    mine = (of(own, how="exact") or of(own, kind=record["from"], target=record["target"]))[0]
    mark = "~ " if record["is_scaled"] or record["how"] == "beyond" else ""
    ratio = record["seconds_per_row"] / mine["seconds_per_row"]
    return needed(record), mark + short(1e3 * record["seconds_per_row"]), mark + short(ratio)


def stability(records: Sequence[Record]) -> str:
    """Spread and changes of the top features, everyone at every setting."""
    lines = [
        (each["workload"], each["setting"], each["who"], f"{each['evaluations']:,.0f}", *_steadiness(each))
        for each in records
    ]
    return markdown(("model", "setting", "who", "evaluations", "spread", "top 1 changes", "top 3 changes"), lines)


def _steadiness(record: Record) -> tuple[str, ...]:
    return tuple(f"{record[name]:.1%}" for name in ("spread", "top1_changes", "top3_changes"))


def scaling_long(records: Sequence[Record]) -> str:
    """Milliseconds at every size, then slopes."""
    times = [
        (each["sweep"], f"{each[each['sweep']]:,}", each["method"], *(f"{1e3 * each[part]:.2f}" for part in PARTS))
        for each in of(records, what="time")
    ]
    return f"{markdown(('growing', 'size', 'method', 'ms', 'bare', 'beyond'), times)}\n\n{scaling(records)}"


PARTS = ("seconds", "bare", "beyond")


def scaling(records: Sequence[Record]) -> str:
    """Slopes in double logarithms."""
    lines = [
        (
            each["sweep"], f"{each['sizes'][0]:,} to {each['sizes'][-1]:,}", each["method"],
            *(f"{each[part]:.2f}" for part in ("total", "bare", "beyond")), f"{each['last']:.2f}",
        )
        for each in of(records, what="slope")
    ]  # fmt: skip
    heads = ("growing", "from", "method", "slope of the whole", "of the bare model", "of the rest", "× bare at the end")
    return markdown(heads, lines)


def memory(records: Sequence[Record]) -> str:
    """Peaks, and what was added to the process."""
    lines = [
        (
            f"{each['rows']:,}", f"{each['draws']:,}", each["features"], each["who"], f"{each['peak']:,.0f}",
            f"{each['added']:,.0f}", f"{each['points']:,.0f}", f"{each['seconds']:.1f}",
        )
        for each in records
    ]  # fmt: skip
    heads = ("rows", "draws", "features", "who", "peak, MiB", "added, MiB", "all points would be, MiB", "CPU s")
    return markdown(heads, lines)


def startup(records: Sequence[Record]) -> str:
    """Milliseconds before anything happens: wall time, the fastest, and CPU time; calls are in CPU time throughout."""
    lines = [
        (
            f"`{each['what']}`" if each["kind"] == "process" else _call(each),
            *(f"{1e3 * each[name]:.1f}" for name in ("seconds", "fastest", "cpu_seconds")),
            "" if each["goal"] is None else f"{1e3 * each['goal']:.0f}",
        )
        for each in records
    ]  # fmt: skip
    return markdown(("what", "ms, median", "fastest", "CPU", "goal"), lines)


def _call(record: Record) -> str:
    return f"`explain`, one row, {record['draws']} draws, {record['what']}: beyond the bare model"


def latency(records: Sequence[Record]) -> str:
    """Milliseconds of one call, beside those of the model's own calls in it."""
    lines = [
        (
            each["model"], *(f"{1e3 * each[name]:.1f}" for name in ("first", "seconds", "bare")),
            each["calls"], each["goal"],
        )
        for each in records
    ]  # fmt: skip
    return markdown(("model", "first call, ms", "later calls, median", "the model's own", "calls of it", "goal"), lines)


def overhead_long(records: Sequence[Record]) -> str:
    """Everyone's time over the bare network's."""
    lines = [
        (
            each["network"], each["rows"], each["kind"], each["name"],
            f"{1e6 * each['seconds_median'] / each['rows'] / each['draws']:.3f}",
            *(f"{each[name]:.2f}" for name in ("ratio_median", "ratio_of_minima", "ratio_spread")),
        )
        for each in records
    ]  # fmt: skip
    return markdown(("network", "rows", "from", "who", "µs per draw", "× bare", "fastest", "IQR"), lines)


def overhead_short(records: Sequence[Record]) -> str:
    """Time of `explain` over that of the bare network, beside others: many rows, and what a single row costs."""
    many, one = ([each for each in records if (each["rows"] > 1) == is_many] for is_many in (True, False))
    lines = []
    for (network,) in groups(many, "network"):
        ratios = {(each["kind"], each["name"]): each["ratio_median"] for each in of(many, network=network)}
        values = [_ratio(ratios["values", f"smoothlime {name}"]) for name in ("clime", "differences")]
        peer = (ratios["gradients", name] for name in ("loop by hand", "captum, batched", "captum, outputs summed"))
        gradients = [_ratio(ratios["gradients", f"smoothlime {name}"]) for name in ("by default", "smoothgrad, iid")]
        what = "gradients (by default / plain mean, `iid`)"
        lines.append((network, what, " / ".join(gradients), *map(_ratio, peer), ""))
        by_hand, lime = (_ratio(ratios["values", name]) for name in ("least squares by hand", "lime, row by row"))
        lines.append((network, "predictions (`clime` / `differences`)", " / ".join(values), by_hand, "", "", lime))
    alone = [each for each in one if each["name"].startswith("smoothlime")]
    beyond = [each["seconds_median"] * (1 - 1 / each["ratio_median"]) * 1e3 for each in alone]
    low, high = (pick(each["ratio_median"] for each in alone) for pick in (min, max))
    heads = ("network", "from", "smoothlime", "by hand", "captum, batched", "captum, summed", "`lime`")
    return (
        f"{markdown(heads, lines)}\n\n{many[0]['rows']} rows × {many[0]['draws']:,} draws. One row alone costs"
        f" {low:.1f} to {high:.1f} times the bare model: {min(beyond):.1f} to {max(beyond):.1f} ms on top of it."
    )


def gpu(records: Sequence[Record]) -> str:
    """Time of `explain` on a graphics card over that of the bare network in the same form, and captum's."""
    lines = []
    for case, draws in groups(records, "case", "draws"):
        found = {each["name"]: each for each in of(records, case=case, draws=draws)}
        bare, ours, captum = found["bare network"], found["explain"], found.get("captum")
        plain = found.get("bare network, not compiled", bare)
        lines.append(
            (
                case, f"{bare['rows']:,} × {draws:,}", _milliseconds(bare), _milliseconds(ours),
                _finely(ours["ratio_median"]),
                _finely(ours["seconds_median"] / plain["seconds_median"]) if plain is not bare else "",
                _finely(captum["ratio_median"]) if captum else "",
            )
        )  # fmt: skip
    heads = ("network", "rows × draws", "bare, ms", "`explain`, ms", "÷ bare", "÷ bare, not compiled", "captum ÷ bare")
    return f"{markdown(heads, lines)}\n\nOn one {records[0]['card']}, float32 unless it says otherwise."


def _finely(value: float) -> str:
    return f"{value:.3f}" if value < 3 else short(value)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 3 else short(value)


def _milliseconds(record: Record) -> str:
    value = 1e3 * record["seconds_median"]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def trees_long(records: Sequence[Record]) -> str:
    """Milliseconds per row, and times TreeExplainer's."""
    lines = [
        (each["model"], each["who"], f"{1e3 * each['seconds_per_row']:.3f}", f"{each['times_faster']:.1f}")
        for each in of(records, what="time")
    ]
    return markdown(("model", "who", "ms per row", "× TreeExplainer"), lines)


def probabilities_long(records: Sequence[Record]) -> str:
    """Milliseconds per row of probabilities, draws and how many rows reached the tolerance; and TreeExplainer's."""
    lines = [
        (
            each["model"], str(each["features"]), f"{each['sigma']:g}", f"{1e3 * each['seconds_per_row']:.1f}",
            "–" if each["shap_seconds_per_row"] is None else f"{1e3 * each['shap_seconds_per_row']:.1f}",
            f"{each['draws']:,.0f}", f"{each['converged']:.0%}",
        )
        for each in of(records, what="probability")
    ]  # fmt: skip
    return markdown(("classifier", "features", "σ", "ms per row", "shap", "draws", "converged"), lines)


def trees_short(records: Sequence[Record]) -> str:
    """A column per σ and one for shap; what a first call takes, two threads and accuracy below."""
    timed = of(records, what="time")
    columns = [who for (who,) in groups(timed, "who")]
    models = groups(timed, "model", "trees")
    lines = [
        (f"{model}, {count} trees", *(short(1e3 * each["seconds_per_row"]) for each in of(timed, model=model)))
        for model, count in models
    ]
    ready = [of(timed, model=model)[0] for model, _ in models]
    seconds = " and ".join(f"{each['read_seconds'] + each['plan_seconds']:.2f}" for each in ready)
    first = ready[0]
    speedups = " and ".join(f"{each['speedup']:.2f}" for each in of(records, what="threads"))
    apart = max(each["relative_error"] for each in of(records, what="accuracy"))
    return (
        f"{markdown(('classifier, ms per row', *(f'`{each}`' if 'shap' in each else each for each in columns)), lines)}"
        f"\n\nReading the model, proving what was read and laying out the trees take {seconds} s, once per"
        f" model; the very first call compiles for {first['first_ever']:.1f} s, and the first in each later process"
        f" takes {first['first_in_process']:.2f} s. Two threads are {speedups} times as fast as one."
        f" Gradients differ from a sum over every leaf by at most {apart:.0e} of their length."
    )


def _pair(found: Sequence[Record], workload: str, variance: float, kind: str, target: float) -> tuple[Record, Record]:
    """Ours and the textbook's."""
    where = {"workload": workload, "variance": variance, "kind": kind, "target": target}
    return of(found, who=OURS, **where)[0], of(found, who=TEXTBOOK[kind], **where)[0]


def _plus_minus(record: Record) -> str:
    return f"{record['ratio']:.2f} ± {record['standard_error']:.2f}"


def whole_table(records: Sequence[Record]) -> str:
    """What a table costs at the defaults, before and after, by σ."""
    lines = [
        (
            f"{each['sigma']:g}",
            f"{each['label']} ({each['commit']})",
            f"{each['rows_per_second']:,.0f}",
            f"{each['evaluations']:,.0f}",
            f"{each['most']:,}",
            f"{each['converged']:.1%}",
            f"{each['missed']:.1%}",
            f"{each['relative_error']:.2%}",
        )
        for each in sorted(records, key=lambda each: (-each["sigma"], each["label"] != "before"))
    ]
    header = (
        "σ",
        "version",
        "rows per second",
        "evaluations per row",
        "at most",
        "converged",
        "missed",
        "median error",
    )
    return markdown(header, lines)


def radius(records: Sequence[Record]) -> str:
    """By function and d: misses of either radius, over all methods, and draws of √F over those of t for each."""
    names = list(dict.fromkeys(_asked(each) for each in records))
    lines = []
    for case, d in dict.fromkeys((each["case"], each["d"]) for each in records):
        found = [each for each in records if (each["case"], each["d"]) == (case, d)]
        runs, ratios = sum(each["runs"] for each in found), {_asked(each): _draws_saved(each) for each in found}
        converged, missed = (
            [sum(each[kind][what] for each in found) for kind in "tF"] for what in ("converged", "missed")
        )
        shares = [f"{bad / max(all_, 1):.1%}" for bad, all_ in zip(missed, converged, strict=True)]
        lines.append(
            (case, d, *(f"{each / runs:.0%}" for each in converged), *shares, *(ratios[name] for name in names))
        )
    return markdown(("function", "d", "converged, t", "√F", "missed, t", "√F", *names), lines)


def _asked(record: Record) -> str:
    return f"{record['method']}{', iid' if record['design'] == 'iid' else ''}"


def _draws_saved(record: Record) -> str:
    return f"{record['F']['draws'] / record['t']['draws']:.2f}"


def weak(records: Sequence[Record]) -> str:
    """Cases that fail: misses of rows that have converged, or how often intervals hold."""
    lines = [
        (
            each["case"], each["needs"], f"{each['method']}, {each['design']}",
            f"{each['n_samples']:,}" if each["n_samples"] else f"to the tolerance, {each['draws']:,.0f}",
            _weakness(each),
        )
        for each in records
    ]  # fmt: skip
    return markdown(("function", "from", "method, design", "draws", "what fails"), lines)


def _weakness(record: Record) -> str:
    if record["n_samples"]:
        return f"95% intervals hold {record['held']:.0%}"
    return f"{record['missed']} of {record['converged']} converged rows miss, of {record['runs']}"


def tables(records: Iterable[Record]) -> str:
    """Rows per second and peak memory of each way through a long table."""
    lines = []
    for each in records:
        minutes = 1e6 / each["rate"] / 60
        lines.append(
            (
                each["case"],
                each["who"],
                f"{each['rows']:,}",
                f"{each['seconds']:,.0f}",
                short(each["rate"]),
                short(each["rows"] / each["cpu_seconds"]),
                f"{each['peak']:,.0f}",
                f"{minutes:,.1f}",
                f"{each['load_before']:.0f}",
            )
        )
    heads = (
        "model",
        "way",
        "rows",
        "seconds",
        "rows/s",
        "rows per CPU second",
        "peak MiB",
        "a million rows, minutes",
        "load",
    )
    return markdown(heads, lines)
