"""The page of the report: plain data to HTML, with everything that comes from data escaped."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def as_html(results: dict[str, Any], drawn: dict[str, str]) -> str:
    """The whole page; `drawn` holds the SVG of each figure."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    parts = [
        f"<h1>{text(TITLE)}</h1>",
        f'<p class="lead">{text(_summary(results))}</p>',
        _banner(results),
        _contents(),
        _claims(results["claims"]),
        _accuracy(results["accuracy"]),
        _figures(results["figures"], drawn),
        _errata(),
        _run(results["run"]),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(TITLE)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def text(value: Any) -> str:
    """`value` as text that cannot become markup, in an attribute or outside; None is a dash."""
    if value is None or value == "":
        return "–"
    kept = "".join(c for c in str(value) if c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160))
    return html.escape(kept, quote=True)


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
        f'id="{own}" role="img" aria-label="{text(label)}" '
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


def _banner(results: dict[str, Any]) -> str:
    reasons = []
    if stand_ins := _stand_ins(results):
        reasons.append(
            f"Stand-in data were used for {', '.join(stand_ins)}, not the data of the paper. Numbers and verdicts that "
            "depend on them say nothing about the real data."
        )
    if results["run"].get("scale") == "quick":
        reasons.append("Quick scale: fewer rows and draws than in the paper. Bands are wide, and verdicts may change.")
    if not reasons:
        return ""
    items = "".join(f"<li>{text(reason)}</li>" for reason in reasons)
    return f'<div class="banner" role="note"><strong>⚠ Not the full experiment</strong><ul>{items}</ul></div>'


def _contents() -> str:
    links = {"claims": "Claims", "accuracy": "Accuracy", "figures": "Figures", "errata": "Errata", "run": "This run"}
    items = "".join(f'<li><a href="#{where}">{name}</a></li>' for where, name in links.items())
    return f'<nav aria-label="Contents"><ul>{items}<li><a href="results.json">All numbers (JSON)</a></li></ul></nav>'


def _table(caption: str, heads: Iterable[str], rows: Iterable[str], kind: str = "") -> str:
    """A table that scrolls by itself on a narrow screen; a head that ends in # is of numbers."""
    cells = "".join(
        f'<th scope="col" class="{"number" if head.endswith("#") else "words"}">{text(head.rstrip("#"))}</th>'
        for head in heads
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}"><table class="{kind}">'
        f"<caption>{text(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>\n"
        + "\n".join(f"<tr>{row}</tr>" for row in rows)
        + "\n</tbody></table></div>"
    )


def _claims(claims: list[dict[str, Any]]) -> str:
    head, rows = '<h2 id="claims">Claims</h2>\n', []
    if not claims:
        return f"{head}<p>Not judged: that takes a run of every figure, and this one left some out.</p>"
    for claim in claims:
        kind, sign, _ = VERDICTS.get(claim["verdict"], ("none", "?", ""))
        rows.append(
            f'<td><span class="pill {kind}"><span aria-hidden="true">{sign}</span> {text(claim["verdict"])}</span></td>'
            f'<td>{text(claim["claim"])}<span class="soft">{text(claim["where"])}</span></td>'
            f"<td>{text(claim['test'])}</td><td>{text(claim['number'])}</td><td>{text(claim['reason'])}</td>"
        )
    heads = ("Verdict", "Claim", "Test", "Number", "Reason")
    return head + _table("What the paper says, and what we found", heads, rows, "claims")


def _accuracy(rows: list[dict[str, Any]]) -> str:
    made = []
    for row in rows:
        notes = [row["note"]] if row.get("note") else []
        if _both(row, "accuracy", "majority") and row["accuracy"] <= row["majority"]:
            notes.append("no better than always naming the larger class")
        if _both(row, "paper", "bayes") and row["paper"] > row["bayes"]:
            notes.append("the paper's number is above the best that any classifier can reach")
        numbers = [_percent(row.get(key)) for key in ("accuracy", "majority", "bayes", "paper", "balanced_accuracy")]
        auc = "–" if row.get("auc") is None else f"{row['auc']:.3f}"
        cells = "".join(f'<td class="number">{text(one)}</td>' for one in (row.get("epochs"), *numbers, auc))
        made.append(
            f'<th scope="row">{text(row["dataset"])}<span class="soft"> ({text(row.get("source"))})</span></th>'
            f"<td>{text(row.get('model'))}</td>{cells}<td>{text('; '.join(notes))}</td>"
        )
    heads = (
        "Data",
        "Model",
        "Epochs#",
        "Accuracy#",
        "Majority#",
        "Bayes limit#",
        "Paper#",
        "Balanced#",
        "AUC#",
        "Note",
    )
    caption = "Test accuracy beside the share of the larger class, the best possible where it is known, and the paper"
    return '<h2 id="accuracy">Accuracy of the networks</h2>\n' + _table(caption, heads, made)


def _both(row: dict[str, Any], one: str, other: str) -> bool:
    return row.get(one) is not None and row.get(other) is not None


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _figures(figures: dict[str, Any], drawn: dict[str, str]) -> str:
    parts = ['<h2 id="figures">Figures</h2>']
    for name, figure in figures.items():
        look = figure.get("look_for") or LOOK_FOR.get(re.split(r"[-.]", name)[0])
        parts.append(
            f'<h3 id="figure-{name}">{text(figure["title"])} <span class="soft">({text(figure["paper"])})</span></h3>\n'
            f'<figure><div class="card">{drawn[name]}</div>\n<figcaption><p>{text(figure["caption"])}</p>'
            + (f"<p><strong>What to look for:</strong> {text(look)}</p>" if look else "")
            + f'<p class="soft">Download: <a href="figures/{name}.pdf">PDF</a>, '
            f'<a href="figures/{name}.svg">SVG</a></p></figcaption></figure>'
        )
    return "\n".join(parts)


def _errata() -> str:
    parts = [
        '<h2 id="errata">Errata</h2>',
        "<p>What we found wrong in the text of the paper, and what holds instead. G bounds the gradient, "
        "B is the width of the range of f, N(x, σ²I) the neighbourhood; φ and Φ are density and distribution "
        "function of the standard normal.</p>",
    ]
    for one in ERRATA:
        told = (("Paper", one.says), ("Wrong", one.wrong), ("Right", one.right), ("Proof", one.proof))
        rows = "".join(f"<dt>{name}</dt><dd>{text(said)}</dd>" for name, said in told)
        parts.append(
            f'<section class="erratum"><h3>{text(one.title)}</h3><p class="soft">{text(one.where)}</p>'
            f"<dl>{rows}</dl></section>"
        )
    return "\n".join(parts)


def _run(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in (run.get("versions") or {}).items())
    facts = {
        "Seed": run.get("seed"),
        "Scale": run.get("scale"),
        "Stand-ins": ", ".join(map(str, run.get("stand_ins") or [])) or "none",
        "Started": run.get("started"),
        "Seconds": None if run.get("seconds") is None else f"{run['seconds']:,.1f}",
        "Processor": run.get("cpu"),
        "Versions": versions,
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text(value)}</dd>" for name, value in facts.items())
    steps = [
        f'<th scope="row">{text(step)}</th><td class="number">{text(None if spent is None else f"{spent:,.1f}")}</td>'
        for step, spent in (run.get("steps") or {}).items()
    ]
    rows = [
        f'<th scope="row">{text(what)}</th><td>{text(data)}</td><td class="number">{text(count)}</td>'
        for what, by_data in (run.get("rows") or {}).items()
        for data, count in by_data.items()
    ]
    return (
        f'<h2 id="run">This run</h2>\n<dl>{listed}</dl>\n'
        + _table("Seconds spent on each step", ("Step", "Seconds#"), steps)
        + "\n"
        + _table("Rows explained", ("Experiment", "Data", "Rows#"), rows)
    )
