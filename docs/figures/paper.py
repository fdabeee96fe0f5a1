"""Puts figures and verdicts of a reproduction into the documentation: the pages show what a run has found.

smoothlime reproduce --out report
python docs/figures/paper.py report
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
SHOWN = ("figure2", "figure3")
BEGIN, END = "<!-- verdicts: made by docs/figures/paper.py -->", "<!-- end of verdicts -->"
MARK = {"holds": "✓", "holds in part": "(✓)", "does not hold": "✗", "cannot be tested": "?"}


def table(claims: list[dict[str, str]]) -> str:
    """The claims as Markdown."""
    header = ["where", "claim", "verdict", "our number", "why"]
    lines = [header, ["---"] * len(header)]
    for each in claims:
        verdict = f"{MARK[each['verdict']]} {each['verdict']}"
        cells = [each["where"], each["claim"], verdict, each["number"], each["reason"]]
        lines.append([cell.replace("|", "\\|") for cell in cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def put(path: Path, text: str) -> None:
    """Replace what stands between the markers."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    report = Path(sys.argv[1] if len(sys.argv) > 1 else "report")
    results = json.loads((report / "results.json").read_text(encoding="utf-8"))
    if results["run"]["scale"] != "full" or results["run"]["stand_ins"] or not results["claims"]:
        sys.exit("the documentation shows full runs on the real data only")
    for name in SHOWN:
        shutil.copyfile(report / "figures" / f"{name}.svg", HERE / f"paper_{name}.svg")
    put(HERE.parent / "paper.md", table(results["claims"]))


if __name__ == "__main__":
    main()
