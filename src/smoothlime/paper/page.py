"""The page of the report: plain data to what the template `paper.html.j2` shows, which escapes all of it."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import Any

from ..report.templates import as_markup, asset, policy, printable, render
from .errata import ERRATA
from .ticks import plain as short

TITLE = "SmoothGrad and C-LIME: the paper, measured again"
SOURCE = (
    "Agarwal, Jabbari, Agarwal, Upadhyay, Wu and Lakkaraju, “Towards the Unification and Robustness of Perturbation "
    "and Gradient Based Explanations” (ICML 2021)"
)
VERDICTS = {
    "holds": ("holds", "✓", "hold"),
    "holds in part": ("part", "◐", "hold in part"),
    "does not hold": ("fails", "✗", "do not hold"),
    "cannot be tested": ("none", "?", "cannot be tested"),
}
LOOK_FOR = {
    "figure1": "How the two clouds overlap: no boundary can keep them apart.",
    "figure2": "The solid lines: straight, ten times lower for a hundred times the draws, as the noise of any average.",
    "figure3": "Where each curve levels off, and whether both methods do so at the same height.",
    "figure4": "The order of the curves, and how fast each falls: a smaller σ² may only mean less noise to average.",
    "figure5": "Whether the better and the worse model differ by more than their bands.",
    "convergence": "The distance between what was measured and what the bounds allow.",
    "lipschitz": "In the first panel the curve above the paper's constant, and none above the corrected one anywhere.",
    "regularised": "Which penalty tends to the closed form, and which forgets it as the draws grow.",
    "peers": "Which explainers agree, how much their answers change with seed and row, and what they cost.",
}
CONTENTS = {"claims": "Claims", "accuracy": "Accuracy", "figures": "Figures", "errata": "Errata", "run": "This run"}
ACCURACY = ("Epochs", "Accuracy", "Majority", "Bayes limit", "Paper", "Balanced", "AUC")


def as_html(results: dict[str, Any], drawn: dict[str, str]) -> str:
    """The whole page; `drawn` holds the SVG of each figure."""
    figures = [
        (name, figure, figure.get("look_for") or LOOK_FOR.get(re.split(r"[-.]", name)[0]), as_markup(drawn[name]))
        for name, figure in results["figures"].items()
    ]
    return render(
        __package__ or "",
        "paper.html.j2",
        to="write the report of the paper",
        title=TITLE,
        style=as_markup(asset("base.css") + asset("paper.css", __package__ or "")),
        policy=policy(),
        summary=_summary(results),
        warnings=_warnings(results),
        contents=CONTENTS,
        claims=[(claim, *VERDICTS.get(claim["verdict"], ("none", "?", ""))[:2]) for claim in results["claims"]],
        accuracy_columns=ACCURACY,
        accuracy=[(row, *_accuracy(row)) for row in results["accuracy"]],
        figures=figures,
        errata=ERRATA,
        facts=_facts(results["run"]),
        steps=[(step, None if spent is None else f"{spent:,.1f}") for step, spent in _items(results["run"], "steps")],
        explained=[
            (what, data, count) for what, by_data in _items(results["run"], "rows") for data, count in by_data.items()
        ],
    )


def _items(run: dict[str, Any], name: str) -> Any:
    return (run.get(name) or {}).items()


def warning_line(results: dict[str, Any]) -> str:
    """What nobody should see a figure of this run without; empty for a full run on the data of the paper."""
    stand_ins, quick = _stand_ins(results), results["run"].get("scale") == "quick"
    parts = [f"stand-in data for {', '.join(stand_ins)}"] * bool(stand_ins) + ["quick scale"] * quick
    return f"This run: {'; '.join(parts)}" if parts else ""


def inline_svg(svg: str, name: str, label: str) -> str:
    """The drawing as an element of a page: its own names for its parts, its own style, and a text in its place."""
    own = f"drawing-{name}"
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{own}-", svg)
    svg = svg.replace('<style type="text/css">*{', f'<style type="text/css">#{re.escape(own)} *{{')
    wide, high = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0]
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'id="{own}" role="img" aria-label="{escape(printable(label))}" '
        f'viewBox="0 0 {wide} {high}" style="max-width: {float(wide) / 0.72:.0f}px">'
    )
    return head + re.sub(r"\n\s*", "\n", svg[svg.index(">") + 1 :]).strip()


def describe(figure: dict[str, Any]) -> str:
    """The figure in words, for those who cannot see it: what each panel shows, and where its curves begin and end."""
    return " ".join([f"{figure['title']}.", *(_describe_panel(panel) for panel in figure["panels"])])


def _describe_panel(panel: dict[str, Any]) -> str:
    title = panel.get("title") or "Panel"
    if panel["kind"] == "curves":
        told = []
        for curve in panel["curves"]:
            known = [(x, y) for x, y in zip(curve["x"], curve["y"], strict=False) if x is not None and y is not None]
            ends = f" {short(known[0][1])} at {short(known[0][0])}" if known else " no values"
            ends += f", {short(known[-1][1])} at {short(known[-1][0])}" if len(known) > 1 else ""
            told.append(f"{curve['label']}{ends}")
        return f"{title}: {panel.get('y_label', '')} against {panel.get('x_label', '')}. {'; '.join(told)}."
    if panel["kind"] == "bars":
        told = [
            f"{one['label']} "
            + ", ".join(
                f"{group} {'n/a' if value is None else short(value)}"
                for group, value in zip(panel["groups"], one["values"], strict=False)
            )
            for one in panel["series"]
        ]
        return f"{title}: {panel.get('y_label', '')}. {'; '.join(told)}."
    if panel["kind"] == "field":
        return (
            f"{title}: probability as shading, decision boundary at {panel.get('level', 0.5):g}, points of each class."
        )
    return f"{title}: table of {panel.get('label', '')}, {len(panel['rows'])} rows by {len(panel['columns'])} columns."


def _summary(results: dict[str, Any]) -> str:
    claims, run = results["claims"], results["run"]
    counts = Counter(claim["verdict"] for claim in claims)
    told = [
        f"{counts[verdict]} {verdict if counts[verdict] == 1 else many}"
        for verdict, (_, _, many) in VERDICTS.items()
        if counts[verdict]
    ]
    told += [f"{count} {verdict}" for verdict, count in counts.items() if verdict not in VERDICTS]
    said = " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told) or "none was tested"
    seconds = run.get("seconds") or 0
    spent = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    if run.get("kept"):
        spent += f", not counting those of an earlier run that {_count(run['kept'], 'measurement')} came from"
    return (
        f"We ran the experiments of {SOURCE} again, and put {_count(len(claims), 'claim')} to the test: {said}. "
        f"Below are {_count(len(results['figures']), 'figure')} and {_count(len(ERRATA), 'correction')} to its text, "
        f"with short proofs. Seed {run.get('seed')}, {run.get('scale')} scale, {spent}."
    )


def _count(count: int, one: str) -> str:
    return f"{count} {one}{'s' * (count != 1)}"


def _stand_ins(results: dict[str, Any]) -> list[str]:
    named = [*(results["run"].get("stand_ins") or [])]
    named += [row["dataset"] for row in results["accuracy"] if row.get("source") == "stand-in"]
    return list(dict.fromkeys(map(str, named)))


def _warnings(results: dict[str, Any]) -> list[str]:
    """Why this is not the full experiment; nothing where it is."""
    reasons = []
    if stand_ins := _stand_ins(results):
        reasons.append(
            f"Stand-in data were used for {', '.join(stand_ins)}, not the data of the paper. Numbers and verdicts that "
            "depend on them say nothing about the real data."
        )
    if results["run"].get("scale") == "quick":
        reasons.append("Quick scale: fewer rows and draws than in the paper. Bands are wide, and verdicts may change.")
    return reasons


def _accuracy(row: dict[str, Any]) -> tuple[list[Any], str]:
    """The numbers of a network, and what there is to say of them."""
    notes = [row["note"]] if row.get("note") else []
    if _both(row, "accuracy", "majority") and row["accuracy"] <= row["majority"]:
        notes.append("no better than always naming the larger class")
    if _both(row, "paper", "bayes") and row["paper"] > row["bayes"]:
        notes.append("the paper's number is above the best that any classifier can reach")
    numbers = [_percent(row.get(key)) for key in ("accuracy", "majority", "bayes", "paper", "balanced_accuracy")]
    auc = None if row.get("auc") is None else f"{row['auc']:.3f}"
    return [row.get("epochs"), *numbers, auc], "; ".join(notes)


def _both(row: dict[str, Any], one: str, other: str) -> bool:
    return row.get(one) is not None and row.get(other) is not None


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.1f}%"


def _facts(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "Seed": run.get("seed"),
        "Scale": run.get("scale"),
        "Stand-ins": ", ".join(map(str, run.get("stand_ins") or [])) or "none",
        "Started": run.get("started"),
        "Seconds": None if run.get("seconds") is None else f"{run['seconds']:,.1f}",
        "Processor": run.get("cpu"),
        "Versions": ", ".join(f"{name} {version}" for name, version in (run.get("versions") or {}).items()),
    }
