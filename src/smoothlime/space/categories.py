"""Categories: held columns that have levels, which levels, and what a row must hold to have another.

A category is one column, or a group of 0/1 columns of which each row has one. Levels are read from a background.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._core.types import Array
from .._core.validate import is_iterable
from ..errors import InvalidArgument, WrongType
from .arguments import check_meaning
from .tables import Table

MOST_LEVELS, KEPT_LEVELS = 12, 11
"""All levels of a column are known up to the first number, else the most frequent ones up to the second."""

FEW_NUMBERS = 64
"""Held columns of numbers with more different values are measurements, unless they are named."""

LARGEST = 2**1023
"""Of whole numbers: others may be infinite as floating-point numbers."""

MISSING, NEITHER = "(missing)", "(none)"
"""What rows without a level are said to have: in one column, and in a group of 0/1 columns."""

Kind = Literal["numbers", "text", "truths", "levels", "other"]
"""What a column holds, by its type: levels are categoricals and mixtures; other are dates and lists"""

Cells = Callable[[int], Sequence[Any] | None]
"""The cells of a column, None for those that are missing; None where nothing is known of the column."""


@dataclass(frozen=True, slots=True)
class Category:
    """Held columns that hold one of several levels."""

    name: str
    columns: tuple[int, ...]
    """Positions among the features: one, or those of a group of 0/1 columns"""
    levels: tuple[str, ...]
    """As people read them"""
    cells: tuple[tuple[Any, ...], ...]
    """What the columns hold at each level"""
    names: tuple[str, ...] = ()
    """Of a group: what each of its columns stands for"""

    def own(self, cells: Cells) -> tuple[list[int], tuple[str, ...]]:
        """The level of each row: a position among the levels and, behind them, others that rows have."""
        known = {each: k for k, each in enumerate(self.cells)}
        labels: dict[str, int] = {}
        found = []
        for held in zip(*(cells(j) or () for j in self.columns), strict=True):
            at = known.get(held)
            if at is None:
                at = len(known) + labels.setdefault(self._label(held), len(labels))
            found.append(at)
        return found, tuple(labels)

    def _label(self, held: tuple[Any, ...]) -> str:
        if not self.names:
            return MISSING if held[0] is None else as_label(held[0])
        ones = [name for name, cell in zip(self.names, held, strict=True) if cell == 1]
        return ones[0] if len(ones) == 1 else NEITHER


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is known of columns when categories are looked for among them."""

    names: tuple[str, ...]
    held: frozenset[int]
    """Those that are not perturbed"""
    declared: frozenset[int]
    """Those that were called categories; so are all columns of text, whatever it is"""
    kinds: Sequence[Kind]
    """What the rows hold in each column"""
    seen: Cells
    """In the background"""


def find_categories(columns: Columns, switches: Any, one_hot: Any) -> tuple[Category, ...]:
    """The categories among held columns: all of them, or those that `switches` names."""
    if switches is False:
        return ()
    groups = {each.name: each for each in _groups(columns, one_hot)}
    grouped = {j for each in groups.values() for j in each.columns}
    if switches is True:
        found = [_category(columns, j) for j in sorted(columns.held - grouped)]
        several = [*groups.values(), *(each for each in found if each is not None)]
        return tuple(sorted((each for each in several if len(each.levels) > 1), key=lambda each: each.columns))
    asked = switches if isinstance(switches, Mapping) else dict.fromkeys(switches)
    return tuple(_asked(columns, groups, name, levels) for name, levels in asked.items())


def place(name: Any, names: Sequence[str], argument: str) -> int:
    """Position of a column that the caller named, or gave by its position as `fixed` takes it."""
    check_meaning(name, names, argument)
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(names):
        return int(name)
    if name not in names:
        msg = f"{argument} names {name!r}, which is not a column; the columns are {', '.join(map(repr, names))}"
        raise InvalidArgument(msg, argument=argument)
    return names.index(name)


def check_switches(switches: Any) -> Any:
    """True, False, a list of columns, or a mapping from columns to levels; or an error that says so."""
    if isinstance(switches, bool | np.bool_):
        return bool(switches)
    if isinstance(switches, Mapping):
        strange = next(
            (name for name, each in switches.items() if isinstance(each, str) or not is_iterable(each)), None
        )
        if strange is not None:
            got = switches[strange]
            msg = f"switches must list the levels of {strange!r}; got {got!r}. Write [{got!r}]"
            raise WrongType(msg, argument="switches")
        return {name: _checked_levels(name, list(each)) for name, each in switches.items()}
    if isinstance(switches, str) or not is_iterable(switches):
        msg = f"switches must be True, False, a list of columns or {{column: levels}}; got {switches!r}"
        raise WrongType(msg, argument="switches")
    return list(switches)


def _checked_levels(name: Any, levels: list[Any]) -> list[Any]:
    """Levels that a column can have, as plain Python has them."""
    cells = [each.item() if isinstance(each, np.generic) else each for each in levels]
    wrong = [each for each in cells if not isinstance(each, str | int | float) or each in (np.inf, -np.inf)]
    wrong += [each for each in cells if isinstance(each, int) and abs(each) >= LARGEST]
    wrong += [each for each in cells if isinstance(each, float) and each != each]
    if wrong or not cells:
        got = repr(wrong[0]) if wrong else "none"
        msg = f"switches must list levels of {name!r} as text, true and false, or finite numbers; got {got}"
        raise InvalidArgument(msg, argument="switches")
    return list(dict.fromkeys(cells))


def listed_groups(one_hot: Any, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The groups of 0/1 columns that the caller listed; they are held."""
    if one_hot is None or (isinstance(one_hot, str) and one_hot == "auto"):
        return ()
    if isinstance(one_hot, str) or not is_iterable(one_hot):
        msg = f"one_hot must be 'auto', None or a list of lists of columns; got {one_hot!r}"
        raise WrongType(msg, argument="one_hot")
    groups = []
    for group in one_hot:
        if isinstance(group, str) or not is_iterable(group):
            msg = f"one_hot must be a list of lists of columns; got {group!r} in it. Write one_hot=[[...]]"
            raise WrongType(msg, argument="one_hot")
        groups.append(tuple(names[place(name, names, "one_hot")] for name in group))
    every = [name for group in groups for name in group]
    twice = next((name for name, times in Counter(every).items() if times > 1), None)
    if twice is not None:
        msg = f"one_hot names {twice!r} twice; a column belongs to one group"
        raise InvalidArgument(msg, argument="one_hot")
    alone = next((group for group in groups if len(group) < 2), None)
    if alone is not None:
        msg = f"one_hot has a group {list(alone)}; a group needs two columns or more"
        raise InvalidArgument(msg, argument="one_hot")
    return tuple(groups)


def as_label(level: Any) -> str:
    """A level as people read it: whole numbers without a point."""
    if isinstance(level, float) and level.is_integer() and abs(level) < 2**53:
        return str(int(level))
    return str(level)


def plain(cell: Any) -> Any:
    """A cell as plain Python has it; None for what is missing."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    is_missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")  # which pandas has for it
    return None if is_missing or (isinstance(cell, float) and cell != cell) else cell


def cells_of(numbers: Array) -> Cells:
    """Columns of an array (n, d)."""

    def cells(j: int) -> list[Any]:
        return [None if each != each else each for each in numbers[:, j].tolist()]  # NaN

    return cells


def kinds_of(table: Table) -> list[Kind]:
    """What each column of a table holds."""
    import narwhals as nw

    def kind(dtype: Any) -> Kind:
        if dtype.is_numeric():
            return "numbers"
        if dtype == nw.String:
            return "text"
        if dtype == nw.Boolean:
            return "truths"
        return "levels" if dtype in (nw.Categorical, nw.Enum, nw.Object) else "other"

    return [kind(dtype) for dtype in table.dtypes]


def _category(columns: Columns, j: int) -> Category | None:
    """A column as a category, if it is one by what it holds."""
    counts = _counts(columns.seen(j))
    kind = columns.kinds[j]
    if counts is None or kind == "other" or len(counts) < 2 or not _are_of(kind, counts):
        return None
    if j not in columns.declared or kind != "numbers":
        # where most values are there once, as names, keys and measurements are, none stands for others
        is_key = 2 * len(counts) > sum(counts.values()) and (kind == "numbers" or len(counts) > MOST_LEVELS)
        if is_key or (kind == "numbers" and len(counts) > FEW_NUMBERS):
            return None
    return _of_column(columns, j, _frequent(counts))


def _of_column(columns: Columns, j: int, levels: Sequence[Any]) -> Category:
    ordered = sorted(levels, key=_order)
    labels = [as_label(each) for each in ordered]
    if len(set(labels)) < len(labels):  # 1 and "1" in one column
        labels = [repr(each) for each in ordered]
    return Category(columns.names[j], (j,), tuple(labels), tuple((each,) for each in ordered))


def _asked(columns: Columns, groups: Mapping[str, Category], name: Any, levels: Sequence[Any] | None) -> Category:
    """A category that the caller named, with the levels asked for or else those of the background."""
    if name in groups:
        return groups[name] if levels is None else _some_levels(groups[name], levels)
    j = place(name, columns.names, "switches")
    group = next((each for each in groups.values() if j in each.columns), None)
    if group is not None:
        msg = f"switches names {name!r}, which is one of the columns of {group.name!r}; name that instead"
        raise InvalidArgument(msg, argument="switches")
    if j not in columns.held:
        msg = (
            f"switches names {name!r}, which is perturbed and has a slope. To switch it between levels instead, hold"
            f" it: fixed=[{name!r}]"
        )
        raise InvalidArgument(msg, argument="switches")
    if levels is not None:
        _check_fits(columns.names[j], columns.kinds[j], levels)
        return _of_column(columns, j, levels)
    counts = _counts(columns.seen(j))
    if counts is None or columns.kinds[j] == "other":
        why = "holds no text, categories or numbers" if columns.kinds[j] == "other" else "is in no background"
        msg = (
            f"switches names {name!r}, which {why}, so its levels are not known."
            f" Give background=, or list them: switches={{{name!r}: [...]}}"
        )
        raise InvalidArgument(msg, argument="switches")
    return _of_column(columns, j, _frequent(counts))


def _check_fits(name: str, kind: Kind, levels: Sequence[Any]) -> None:
    """Refuse levels that a column of this type cannot hold: they would be turned into others, as text is into True."""
    if kind == "truths":
        wanted, wrong = "True and False", [each for each in levels if each not in (True, False)]
    elif kind in ("numbers", "text"):
        wanted, wrong = kind, [each for each in levels if isinstance(each, str) != (kind == "text")]
    else:
        return
    if wrong:
        msg = f"switches lists the level {wrong[0]!r} of {name!r}, a column of {wanted}; list {wanted} for it"
        raise InvalidArgument(msg, argument="switches")


def _some_levels(category: Category, levels: Sequence[Any]) -> Category:
    """A group with some of its levels."""
    unknown = [each for each in levels if as_label(each) not in category.names]
    if unknown:
        msg = f"switches: {category.name!r} has no level {unknown[0]!r}; its levels are {', '.join(category.names)}"
        raise InvalidArgument(msg, argument="switches")
    chosen = [category.names.index(as_label(each)) for each in levels]
    return _of_group(category.name, category.columns, category.names, chosen)


def _groups(columns: Columns, one_hot: Any) -> list[Category]:
    """Groups of 0/1 columns that are one category: as listed, or found among held columns by name and content."""
    if one_hot is None:
        return []
    listed = listed_groups(one_hot, columns.names)
    if listed:
        return [_listed_group(columns, [columns.names.index(name) for name in group]) for group in listed]
    found: dict[str, list[int]] = {}
    for j in sorted(columns.held):
        prefix = _prefix(columns.names[j])
        if prefix and _are_zero_or_one(_counts(columns.seen(j)) or [None]):
            found.setdefault(prefix, []).append(j)
    groups = []
    for name, places in found.items():
        shares = _shares(columns, places) if len(places) > 1 and name not in columns.names else None
        if shares is not None:
            groups.append(_group(columns, name, places, shares))
    return groups


def _listed_group(columns: Columns, places: Sequence[int]) -> Category:
    """A group that the caller listed, whose levels need no background; where there is one, it must not contradict."""
    prefixes = {_prefix(columns.names[j]) for j in places}
    shared = prefixes.pop() if len(prefixes) == 1 else ""
    name = shared or " / ".join(columns.names[j] for j in places)
    if any(columns.seen(j) is None for j in places):
        return _group(columns, name, places, [1] * len(places))
    shares = _shares(columns, places)
    if shares is None:
        msg = (
            f"one_hot lists {', '.join(repr(columns.names[j]) for j in places)}, but in the background these columns"
            " are not 0 or 1 with a sum of 1 in every row"
        )
        raise InvalidArgument(msg, argument="one_hot")
    return _group(columns, name, places, shares)


def _shares(columns: Columns, places: Sequence[int]) -> list[int] | None:
    """How often each of some columns is 1, if they are 0 or 1, and 1 in one of them, in every row."""
    total: Any = 0
    shares = []
    for j in places:
        cells = columns.seen(j)
        counts = _counts(cells)
        if cells is None or counts is None or not _are_zero_or_one(counts) or sum(counts.values()) < len(cells):
            return None
        numbers = np.array(cells, dtype=np.int64)
        total = total + numbers
        shares.append(int(numbers.sum()))
    return shares if np.all(total == 1) else None


def _group(columns: Columns, name: str, places: Sequence[int], shares: Sequence[int]) -> Category:
    names = tuple(columns.names[j] for j in places)
    if name == _prefix(names[0]):
        names = tuple(each[len(name) + 1 :] for each in names)
    chosen = sorted((k for k, share in enumerate(shares) if share), key=lambda k: (-shares[k], k))
    chosen = sorted(chosen if len(chosen) <= MOST_LEVELS else chosen[:KEPT_LEVELS])
    return _of_group(name, tuple(places), names, chosen)


def _of_group(name: str, places: tuple[int, ...], names: tuple[str, ...], chosen: Sequence[int]) -> Category:
    cells = tuple(tuple(int(j == k) for j in range(len(places))) for k in chosen)
    return Category(name, places, tuple(names[k] for k in chosen), cells, names)


def _prefix(name: str) -> str:
    """A name up to its last _ or =, if something stands on either side."""
    found = re.fullmatch(r"(.+)[_=][^_=]+", name, flags=re.DOTALL)
    return found[1] if found else ""


def _counts(cells: Sequence[Any] | None) -> Counter[Any] | None:
    """How often each value is there; None where nothing is known, or where values cannot be levels."""
    if cells is None:
        return None
    try:
        counts = Counter(cells)
    except TypeError:  # lists and the like
        return None
    counts.pop(None, None)
    kinds = str | bool | int | float
    return counts if all(isinstance(each, kinds) for each in counts) else None


def _frequent(counts: Mapping[Any, int]) -> list[Any]:
    ordered = sorted(counts, key=lambda each: (-counts[each], _order(each)))
    return ordered if len(ordered) <= MOST_LEVELS else ordered[:KEPT_LEVELS]


def _order(level: Any) -> tuple[bool, float, str]:
    """Numbers by size, then text by letters."""
    is_text = isinstance(level, str)
    return is_text, 0.0 if is_text else float(level), str(level)


def _are_of(kind: Kind, counts: Collection[Any]) -> bool:
    """Whether values of a background can be in a column of rows that holds this."""
    if kind in ("truths", "levels"):
        return True
    return all(isinstance(each, str) == (kind == "text") for each in counts)


def _are_zero_or_one(counts: Collection[Any]) -> bool:
    return all(not isinstance(each, str) and each in (0, 1) for each in counts)
