"""What every adapter promises, as checks of one case each: any suite can bring cases of its own.

A test file makes cases, and asks every check about each of them::

    @pytest.mark.parametrize("check", CHECKS, ids=called)
    @pytest.mark.parametrize("case", CASES, ids=called)
    def test_the_contract(case, check):
        check(case)

and has their kinds in a table of docs/models.md, which `assert_rows` compares with them.
Nothing is imported here but NumPy, pytest and smoothlime, so that any environment can use it.
"""

import multiprocessing
import pickle
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smoothlime as sl
from smoothlime.errors import SmoothlimeError, WrongType
from smoothlime.models import Differentiable, model_dtype, model_epsilon

FEW = {"method": "clime", "n_samples": 64}
THREADS = 4


@dataclass(frozen=True, eq=False)
class Case:
    """A model of some library as a user has it, and what is promised of its adapter."""

    kind: str
    """What it is called in the table of docs/models.md"""
    name: str
    make: Callable[[], Any]
    """The model, fitted or trained"""
    ask: Callable[[Any, Any], Any]
    """The library's own prediction: model and points to outputs (n,) or (n, k)"""
    points: Any
    """A dozen rows or so, as an array (n, d), or (n, a, b) in a shape, or a data frame; where there are gradients, not
    next to a kink"""
    options: dict[str, Any] = field(default_factory=dict)
    """What as_model is given besides"""
    outputs: tuple[str, ...] = ()
    """Names that the model brings for its outputs"""
    feature_names: tuple[str, ...] | None = None
    """Names that it brings for its features"""
    gradients: bool = False
    method: str = "clime"
    """What explain takes by default: exact, jumps, smoothgrad or clime"""
    dtype: Any = np.float64
    """Type in which it wants its points"""
    sigma: Any = 0.5
    wrong_width: str | None = r"feature|column|shape|dimension"
    """What the error says where the rows have one column too many; None where any number will do"""
    state: Callable[[Any], Any] = pickle.dumps
    """All that must be left as it was found"""
    spawns: bool = True
    """Whether it reaches a spawned process as it is"""
    shapes: str = "(n, d)"
    """Shapes of inputs, as in the table"""

    @cached_property
    def given(self) -> Any:
        """The model as the user has it."""
        return self.make()

    @cached_property
    def model(self) -> Any:
        """The model, adapted."""
        return sl.as_model(self.given, **self.options)

    @cached_property
    def own(self) -> Any:
        """The library's own predictions (n, k)."""
        return columns(self.ask(self.given, self.points))

    @property
    def tolerance(self) -> float:
        """Some roundings of the numbers that the model computes with: batches of other sizes add up in other orders."""
        return 32 * max(float(np.max(model_epsilon(self.model))), np.finfo(np.float64).eps)

    @property
    def target(self) -> Any:
        """Any output; a single one needs no target."""
        return None if self.own.shape[1] == 1 else self.own.shape[1] - 1

    def explain(self, **options: Any) -> Any:
        """The points explained, with as few draws as will do."""
        rows = options.pop("rows", self.points)
        return sl.explain(self.model, rows, **{"sigma": self.sigma, "target": self.target, **FEW, **options})

    def __str__(self) -> str:
        return f"{self.kind}, {self.name}" if self.name else self.kind


def columns(values: Any) -> Any:
    """Outputs as float64 (n, k)."""
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def rows_of(points: Any, part: Any) -> Any:
    return points.iloc[part] if hasattr(points, "iloc") else points[part]


def asked(case: Case, points: Any) -> Any:
    """Points as explain would give them to the model."""
    return points if hasattr(points, "iloc") else np.ascontiguousarray(points, dtype=model_dtype(case.model))


def assert_close(case: Case, found: Any, wanted: Any, times: float = 1.0) -> None:
    """Equal but for rounding, which goes by the largest number."""
    size = max(float(np.abs(wanted).max(initial=0.0)), 1e-300)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=times * case.tolerance * size)


# ---- the checks


def values_are_the_librarys_own(case: Case) -> None:
    assert_close(case, columns(case.model.values(asked(case, case.points))), case.own)
    assert_close(case, case.explain().prediction, case.own[:, -1])


def gradients_are_finite_differences(case: Case) -> None:
    """Of the library's own predictions: central differences of order four, of a weighted sum of all outputs."""
    assert isinstance(case.model, Differentiable) == case.gradients
    if not case.gradients:
        return
    points = np.asarray(case.points, dtype=np.float64)
    weights = np.random.default_rng(0).normal(size=case.own.shape)
    values, gradients = case.model.values_and_gradients(asked(case, points), weights.astype(case.dtype))
    assert_close(case, columns(values), case.own)
    # h⁴/30 of the fifth derivative are left out, and rounding is some eps·|f|/h: 3e-8 and 1e-5 in float32
    h = 0.03 if np.dtype(case.dtype) == np.float32 else 3e-3
    flat = points.reshape(len(points), -1)
    expected = np.empty_like(flat)
    for j in range(flat.shape[1]):
        at = []
        for step in (h, -h, 2 * h, -2 * h):
            moved = flat.copy()
            moved[:, j] += step
            given = moved.reshape(points.shape).astype(case.dtype)
            at.append((columns(case.ask(case.given, given)) * weights).sum(axis=1))
        expected[:, j] = (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h)
    size = max(1.0, np.abs(case.own * weights).sum(axis=1).max())
    allowed = (1e-5 if np.dtype(case.dtype) == np.float32 else 1e-8) * size
    np.testing.assert_allclose(gradients.reshape(flat.shape), expected, rtol=0, atol=4 * allowed)
    assert np.abs(expected).max() > 100 * allowed, "gradients this small would hide a mistake"


def dtype_is_the_models(case: Case) -> None:
    assert model_dtype(case.model) == np.dtype(case.dtype)
    e = case.explain()
    if not hasattr(case.points, "iloc"):  # a frame has types of its own
        assert e.provenance.dtype == np.dtype(case.dtype).name
    assert e.values.dtype == e.prediction.dtype == np.float64


def names_are_the_models(case: Case) -> None:
    assert tuple(case.model.outputs) == case.outputs
    names = getattr(case.model, "feature_names", None)
    assert (None if names is None else tuple(names)) == case.feature_names
    columns_given = tuple(getattr(case.points, "columns", ()))
    d, *deeper = case.points.shape[1:]
    numbered = tuple(f"x[{i},{j}]" for i in range(d) for j in range(*deeper)) if deeper else map("x{}".format, range(d))
    expected = case.feature_names or columns_given or tuple(numbered)
    assert case.explain().feature_names == expected


def targets_go_by_position_and_name(case: Case) -> None:
    k = case.own.shape[1]
    for j in range(k):
        position = 1 if hasattr(case.model.outputs, "against") else j  # the one score of two classes
        by_position = case.explain(target=position)
        assert_close(case, by_position.prediction, case.own[:, j])
        if case.outputs:
            by_name = case.explain(target=case.outputs[j])
            np.testing.assert_array_equal(by_name.values, by_position.values)
            assert by_name.output_name == by_position.output_name == case.outputs[j]
    each = sl.explain_outputs(case.model, case.points, sigma=case.sigma, **FEW)
    assert list(each) == list(case.outputs or (["output"] if k == 1 else map(str, range(k))))


def the_size_of_a_batch_changes_nothing(case: Case) -> None:
    n = len(case.points)
    one_by_one = [case.model.values(asked(case, rows_of(case.points, slice(i, i + 1)))) for i in range(n)]
    assert_close(case, columns(np.concatenate(one_by_one)), case.own)
    whole, small = case.explain(), case.explain(batch_size=7)
    scale = float(np.nanmax(np.abs(whole.values), initial=0.0)) + float(np.abs(case.own).max())
    # a slope is a mean of differences of values over steps of about sigma
    assert_same(case, whole.values, small.values, scale)


def assert_same(case: Case, one: Any, other: Any, size: float) -> None:
    """Slopes that are equal but for rounding of values of that size."""
    sigma = getattr(case.sigma, "sigma", case.sigma)
    np.testing.assert_allclose(one, other, rtol=0, atol=8 * case.tolerance * size / float(np.min(sigma)))


def a_spawned_process_gives_the_same(case: Case) -> None:
    if not case.spawns:
        return
    points = asked(case, case.points)
    assert_close(case, columns(_spawned().submit(case.model.values, points).result(120)), case.own)
    if case.gradients:
        weights = np.ones(case.own.shape, dtype=case.dtype)
        here = case.model.values_and_gradients(points, weights)
        there = _spawned().submit(case.model.values_and_gradients, points, weights).result(120)
        assert_close(case, there[1], here[1], times=4)


@cache
def _spawned() -> ProcessPoolExecutor:
    """One fresh process for all cases: nothing of this one is in it but what is sent."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def threads_give_the_same(case: Case) -> None:
    """One model object, several threads: each is asked about points of its own."""
    n = len(case.points)
    parts = [rows_of(case.points, np.roll(np.arange(n), i)[: n - i % 3]) for i in range(8 * THREADS)]
    weights = np.ones(case.own.shape, dtype=case.dtype)

    def answers(part: Any) -> Any:
        values = columns(case.model.values(asked(case, part)))
        if not case.gradients:
            return [values]
        return [values, case.model.values_and_gradients(asked(case, part), weights[: len(part)])[1]]

    alone = [answers(part) for part in parts]
    with ThreadPoolExecutor(THREADS) as pool:
        for one, other in zip(alone, pool.map(answers, parts), strict=True):
            for a, b in zip(one, other, strict=True):
                assert_close(case, b, a, times=4)
        explained = list(pool.map(lambda seed: case.explain(seed=seed).values, range(THREADS)))
    size = float(np.abs(case.own).max()) + max(float(np.nanmax(np.abs(each), initial=0.0)) for each in explained)
    for seed, values in enumerate(explained):
        assert_same(case, values, case.explain(seed=seed).values, size)


def rows_of_a_wrong_width_are_refused(case: Case) -> None:
    if case.wrong_width is None:
        return
    if hasattr(case.points, "iloc"):
        wide = case.points.assign(one_more=1.0)
    else:
        wide = np.concatenate([case.points, case.points[:, :1]], axis=1)
    with pytest.raises(SmoothlimeError, match=case.wrong_width):
        case.explain(rows=wide)


def what_is_no_model_is_refused(case: Case) -> None:
    with pytest.raises(WrongType, match=r"got a list"):
        sl.as_model([case.given])
    if not isinstance(case.given, str | type) and not hasattr(case.given, "__fspath__"):
        kind = type(case.given)
        if not kind.__module__.startswith(("builtins", "functools")):
            with pytest.raises(WrongType, match=rf"the class {kind.__name__}; give an instance"):
                sl.as_model(kind)


def the_model_is_left_as_it_was_found(case: Case) -> None:
    before, attributes = case.state(case.given), set(getattr(case.given, "__dict__", ()))
    own = case.own
    points = case.points.copy()
    case.explain()
    if case.gradients:
        case.explain(method="smoothgrad")
    assert case.state(case.given) == before, "the model was changed"
    assert set(getattr(case.given, "__dict__", ())) == attributes, "the model was given attributes"
    np.testing.assert_array_equal(columns(case.ask(case.given, case.points)), own)
    np.testing.assert_array_equal(np.asarray(case.points), np.asarray(points))


def explain_takes_it_as_it_is(case: Case) -> None:
    """The first call of a new user: the object itself, and the method is chosen."""
    plain = set(case.options) <= {"output"}
    e = sl.explain(
        case.given if plain else case.model, case.points, sigma=case.sigma, target=case.target, atol=1e9,
        **(case.options if plain else {}),
    )  # fmt: skip
    assert e.method == case.method
    assert_close(case, e.prediction, case.own[:, -1])
    assert np.isfinite(e.values).any()


CHECKS = (
    values_are_the_librarys_own,
    gradients_are_finite_differences,
    dtype_is_the_models,
    names_are_the_models,
    targets_go_by_position_and_name,
    the_size_of_a_batch_changes_nothing,
    a_spawned_process_gives_the_same,
    threads_give_the_same,
    rows_of_a_wrong_width_are_refused,
    what_is_no_model_is_refused,
    the_model_is_left_as_it_was_found,
    explain_takes_it_as_it_is,
)


def called(each: Any) -> str:
    """What a test is called by."""
    return str(each) if isinstance(each, Case) else each.__name__


# ---- the table in docs/models.md

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def row_of(kind: str, cases: Iterable[Case]) -> str:
    """What the cases of one kind say of it, as a row of the table."""
    own = [case for case in cases if case.kind == kind]
    methods, shapes = {case.method for case in own}, {case.shapes for case in own}
    assert len({case.gradients for case in own}) == len(shapes) == 1, f"kind {kind!r} is several kinds"
    exact = "yes" if methods == {"exact"} else "some" if "exact" in methods else "no"
    if "jumps" in methods:
        exact = "margins and numbers; probabilities by `jumps`" if "exact" in methods else "by `jumps`"
    return f"| {kind} | yes | {'yes' if own[0].gradients else 'no'} | {exact} | {shapes.pop()} |"


def assert_rows(cases: Iterable[Case], table: str, *, complete: bool) -> None:
    """The table that stands in the page after the comment of this name has the rows of these cases, and no others.

    With `complete=False` it may have others, of cases that another run has.
    """
    cases = list(cases)
    expected = [row_of(kind, cases) for kind in dict.fromkeys(case.kind for case in cases)]
    lines = PAGE.read_text(encoding="utf-8").partition(f"<!-- cases: {table} -->")[2].strip().splitlines()
    there = list(takewhile(lambda line: line.startswith("|"), lines))[2:]
    wrong = [row for row in expected if row not in there] + [row for row in there if complete and row not in expected]
    assert not wrong, "\n".join(["rows of docs/models.md should be:", *expected, "these differ:", *wrong])
