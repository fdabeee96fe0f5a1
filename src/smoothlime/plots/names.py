"""Names of features and outputs as people see them: on one line, harmless to a terminal or a file, told apart."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

UNSEEN = "\N{REPLACEMENT CHARACTER}"
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Format characters that Persian, Hindi and emoji are spelled with; they move nothing but their neighbours."""


def shown(name: str) -> str:
    r"""A name on one line, each control or format character replaced by a visible one.

    A terminal would obey such characters, a reader be misled by those that reverse the text, and XML has no place for
    most of them. Only what is shown changes, never what is stored. A name of blanks alone is quoted.

    >>> print(shown("age\n in \x1b[1myears"), shown(" "))
    age in �[1myears ' '
    """
    flat = " ".join(name.split())
    return "".join(each if each.isprintable() or each in JOINERS else UNSEEN for each in flat) or repr(name)


def shortened(text: str, longest: int) -> str:
    """Beginning and end of a text that is too long: names that begin alike often differ at their end.

    >>> shortened("amount_last_12_months_7", 12)
    'amount…ths_7'
    """
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def fitted(text: str, room: int) -> str:
    """Beginning and end of a text that takes more cells than there is room for: wide letters take two.

    >>> fitted("amount_last_12_months_7", 12), fitted("年齢年齢年齢年齢", 9)
    ('amount…ths_7', '年齢…年齢')
    """
    if cells(text) <= room:
        return text
    for longest in range(len(text) - 1, 2, -1):
        cut = shortened(text, longest)
        if cells(cut) <= room:
            return cut
    return "…"


def padded(text: str, wide: int) -> str:
    """A text with blanks behind it, for columns of a terminal in which letters may be two cells wide, or none.

    >>> padded("年齢", 6) + "|", padded("age", 6) + "|"
    ('年齢  |', 'age   |')
    """
    return text + " " * (wide - cells(text))


def cells(text: str) -> int:
    """Cells of a terminal that a text takes: Chinese and Japanese letters two, accents that join a letter none."""
    return sum(_cells(each) for each in text)


def _cells(each: str) -> int:
    if unicodedata.category(each) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(each) in ("W", "F") else 1


def count(n: int, what: str, several: str = "") -> str:
    """A number of things, of which one is no plural; `several` where more of them do not end in s.

    >>> count(1, "row"), count(1_200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {several or what + 's'}" if n != 1 else f"1 {what}"


def percent(share: float) -> str:
    """A share with all the digits it was given with: intervals of 0.999 are not of 100%.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * share:.10g}%"


def told_apart(names: Sequence[str], positions: Iterable[int], longest: int | None = None) -> list[str]:
    r"""The names at these positions as they are shown; those that look alike have their position behind.

    >>> told_apart(["debt", "a\tb", "a b"], [2, 1, 0])
    ['a b (feature 2)', 'a b (feature 1)', 'debt']
    """
    chosen = list(positions)
    whole = [shown(names[j]) for j in chosen]
    found = [_cut(text, "", longest) for text in whole]
    times = Counter(found)
    return [
        _cut(text, f" (feature {j})", longest) if times[short] > 1 else short
        for text, short, j in zip(whole, found, chosen, strict=True)
    ]


def drawn(text: str) -> str:
    """Text for matplotlib, in which dollar signs would start mathematics; last of all, as it makes text longer."""
    return text.replace("$", r"\$")


def _cut(text: str, behind: str, longest: int | None) -> str:
    return text + behind if longest is None else fitted(text, longest - len(behind)) + behind
