"""The answer: slopes, their errors, and where they came from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._core.types import Array, Flags, Indices, Points
from .._core.validate import check_choice, check_fraction, check_position
from ..draws.designs import DESIGNS
from ..draws.long_draws import DEGREES, long_draws
from ..draws.normals import GENERATOR
from ..draws.rotation import Rotation
from ..errors import InvalidArgument
from ..space.neighbourhood import Factor, Neighbourhood
from ..space.off_data import shares_off_data
from ..space.row_scales import RowScales
from ..uncertainty.groups import Groups
from ..uncertainty.jackknife import t_quantile
from .gaps import patterns
from .switches import Switches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .effects import Effects

INDICATIVE_BELOW = 256
"""With fewer draws than this, intervals are marked as indicative: rare large gradients may not have shown."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an explanation was made: all that is needed to draw its perturbations again."""

    method: Any
    design: str
    seed: int
    draws: str
    confidence: float
    guarantee: str
    """`approximate`: groups of draws and Student's t; `certified`: finite-sample bounds that `assumes` names"""
    assumes: str
    block: int
    """Draws dealt to groups together; 2 for designs in bases says that pairs stand for them, which is conservative"""
    dtype: str
    batch_size: int
    versions: Mapping[str, str]
    """Of Python, smoothlime and the libraries that the draws come from"""
    backend: str = ""
    """Library of the data frame that the rows came in: `pandas`, `polars`, `pyarrow`, or none"""
    generator: str = GENERATOR
    """Of independent draws; files of older versions may name another, whose draws cannot be made again"""
    longer: float = 0.0
    """Share of draws that were made longer than normal ones, for which all are weighed: see `perturbations`"""
    rtol: float | None = None
    """Error that `converged` allows, relative to the slopes; None for what was not drawn, added up, or saved earlier"""
    atol: float | None = None
    """And in any case, as a number: None where that is 1% of the model's standard deviation nearby, or not known"""

    @property
    def tolerance(self) -> str:
        """Both in words, such as `5% or 0.005`; empty where `atol` is not a number."""
        if self.rtol is None or self.atol is None:
            return ""
        words = f"{100 * self.rtol:.10g}%" * (self.rtol > 0), f"{self.atol:.10g}" * (self.atol > 0)
        return " or ".join(filter(None, words))


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Slopes of a model around r rows, per unit of each feature, with standard errors.

    `values` estimates w(x) = ∇E[f(a)], a ~ N(x, Σ): how fast the smoothed output changes per unit of each
    feature. It is a slope, not a contribution: it does not add up to the prediction. Features that were held
    fixed have NaN, and so have features at rows where they are missing.
    """

    x: Array
    """(r, d) the rows"""
    values: Array
    """(r, d) slopes per unit"""
    standard_error: Array
    """(r, d) of the slopes"""
    prediction: Array
    """(r,) f(x)"""
    smoothed: Array
    """(r,) F(x) = E f(a), NaN where the method does not see it"""
    fidelity: Array
    """(r,) share of the model's local variation that is linear, NaN likewise"""
    radius: Array
    """(r,) L2 error bound at the requested confidence, standardised; valid although the data decided when to stop"""
    converged: Flags
    """(r,) whether the radius is within the tolerance that was asked for"""
    n_samples: Indices
    """(r,) draws used"""
    n_evaluations: Indices
    """(r,) model rows evaluated: draws, pilot, far points, f(x), checks; not what proves trees or gradients wrong"""
    degrees_of_freedom: Array
    """(r,) behind the standard errors"""
    feature_names: tuple[str, ...]
    output_name: str
    row_outputs: tuple[str, ...]
    """The output explained at each row: differs from `output_name` where target='predicted'"""
    neighbourhood: Neighbourhood
    provenance: Provenance
    groups: Groups | None = None
    """Kept so that arithmetic on explanations with common draws is exact"""
    selected: Array | None = None
    """(r, d) how often each feature was kept when one group of draws was left out; None where none are selected"""
    directions: Array | None = None
    """(r, k, f) in units of draws: where the model varies most, and aligned draws were turned to; None for others"""
    input_shape: tuple[int, ...] = ()
    """Of each row, such as (3, 224, 224), where rows came with more axes than one; slopes are flat: see `shaped`"""
    missing: Flags = None  # type: ignore[assignment]  # none are, unless given
    """(r, d) features that others perturb, held at a row because they have no value there: no slope, NaN"""
    not_numeric: Flags = None  # type: ignore[assignment]
    """(r, d) cells that hold something else than numbers, such as text: NaN in `x`"""
    combined: Flags = None  # type: ignore[assignment]
    """(r,) rows that sums and differences were made of, of different ones: NaN in `x`"""
    switches: Switches | None = None
    """Effects of other levels of held categories; None where no background knows levels, or nobody asked"""

    def __post_init__(self) -> None:
        """Nothing is marked where nothing was said."""
        for name, shape in (("missing", self.x.shape), ("not_numeric", self.x.shape), ("combined", self.x.shape[:1])):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros(shape, dtype=np.bool_))

    # ---- what it says

    @property
    def method(self) -> str:
        """Name of the estimator."""
        return str(self.provenance.method.name)

    @property
    def design(self) -> str:
        """Name of the design that placed the draws."""
        return self.provenance.design

    @property
    def seed(self) -> int:
        """Seed that fixes the draws."""
        return self.provenance.seed

    @property
    def is_exact(self) -> bool:
        """Whether no sampling was needed."""
        return self.method == "exact"

    @property
    def note(self) -> str:
        """What else there is to know of how it was made; empty for most."""
        return str(getattr(self.provenance.method, "note", ""))

    @property
    def is_indicative(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(r,) whether too few draws were used for intervals to be more than indicative."""
        return (self.n_samples < INDICATIVE_BELOW) & (not self.is_exact)

    @property
    def standardised(self) -> Array:
        """(r, d) slopes times √Σ_jj: change of the smoothed output per neighbourhood standard deviation."""
        return self.values * self.std

    def shaped(self, what: Literal["values", "standardised", "standard_error", "x"] = "values") -> Array:
        """The slopes, or what else is there by feature, in the shape that the rows came in: (r, 3, 224, 224).

        (r, d), as they are, where rows came as rows.
        """
        check_choice(what, "what", ("values", "standardised", "standard_error", "x"))
        flat: Array = getattr(self, what)
        return flat.reshape(len(self), *self.input_shape) if self.input_shape else flat

    @property
    def std(self) -> Array:
        """(d,) √Σ_jj, NaN for features that were held fixed."""
        std = np.full(self.factor.d, np.nan)
        std[self.factor.free] = self.factor.std
        return std

    @property
    def held(self) -> Flags:
        """(r, d) cells that were not perturbed and have no slope: of features held fixed, and missing ones."""
        held = self.missing.copy()
        held[:, np.isnan(self.std)] = True
        return held

    @cached_property
    def factor(self) -> Factor:
        """Σ = L Lᵀ over the features that were perturbed."""
        return self.neighbourhood.factor(self.values.shape[1], self.feature_names)

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Array, Array]:
        """Lower and upper ends (r, d) of intervals for the slopes.

        Each interval holds its slope with the given confidence; with `simultaneous=True` all intervals of a row
        hold together (the largest |t| over the features, bounded over their number).
        """
        reach = self.half_width(1 - check_fraction(confidence, "confidence"), simultaneous=simultaneous)
        return self.values - reach, self.values + reach

    def half_width(self, miss: float, *, simultaneous: bool = False) -> Array:
        """(r, d) half-widths of intervals that each miss with probability `miss`, or all of a row together."""
        if not self.missing.any():
            return self._half_width(miss / len(self.factor.free) if simultaneous else miss)
        found = np.empty(self.values.shape)
        for pattern, rows in patterns(self.missing):
            count = max(1, len(self.factor.free) - int(pattern.sum()))  # combined rows may have none in common
            found[rows] = self._half_width(miss / count if simultaneous else miss, rows, pattern)
        return found

    def _half_width(self, miss: float, rows: Any = slice(None), missing: Flags | None = None) -> Array:
        """The same for rows that miss the same features (d,)."""
        if self.groups is None:
            return t_quantile(self.degrees_of_freedom[rows], 1 - miss / 2)[:, None] * self.standard_error[rows]
        factor, groups = self.factor, self.groups
        if missing is not None:
            factor = self.neighbourhood.factor_without(missing, self.feature_names) if missing.any() else factor
            groups = groups.rows(rows).of_features(np.flatnonzero(~missing[self.factor.free]))
        return columns(groups.half_width(self.values[rows][:, factor.free], factor, miss), factor.free, factor.d)

    @cached_property
    def row_scales(self) -> RowScales | None:
        """T around the rows; None where all steps are taken in the features themselves."""
        return self.neighbourhood.row_scales(self.x, self.feature_names)

    @property
    def scores(self) -> Array:
        """(r, d) the rows on the scales in which steps are taken: what slopes are per unit of."""
        return self.x if self.row_scales is None else self.row_scales.scores(self.x)

    @cached_property
    def step_ends(self) -> tuple[Array, Array]:
        """(r, d) each: where a step of one standard deviation leads, down and up; NaN for features held fixed."""
        ends = (self.scores - self.std, self.scores + self.std)
        if self.row_scales is None:
            return ends
        rows = np.arange(len(self))
        down, up = (self.row_scales.values(each, rows) for each in ends)
        return down, up

    @property
    def off_data(self) -> Array:
        """(r, d) share of draws beyond what a column of the background ever was; NaN where none is known or drawn."""
        return shares_off_data(self.neighbourhood.background, self.row_scales, self.x, self.std)

    def perturbations(self, row: int = 0, *, scores: bool = False) -> Array:
        """The points (n, d) that were evaluated around a row, drawn again from the seed.

        With `scores=True` they are given on the scales in which steps are taken: logarithms, or scores of ranks.

        Normal ones, but those of `differences`, whose lengths are of χ with two degrees of freedom more, and those that
        C-LIME aligns, of which a third are: a share `provenance.longer`, s. Each then counts by 1/(1 − s + s‖z‖²/d), d
        the number of features that are perturbed and z the step in units of Σ; those of `differences` by d/‖z‖². Of
        draws that `interactions` makes from predictions s is 3/5, and each counts by 1/(1 − s + s‖z‖⁴/(d(d + 2))).

        To the bit, but where draws are aligned: those are turned by matrix products, whose last digit depends on the
        shape of the batch.

        As numbers: NaN stands for cells that are none, and for missing ones, which are not perturbed. What a data frame
        holds in float32 is rounded to it on the way to the model.
        """
        row = self._position(row)
        if self.is_exact:
            msg = "this explanation is exact: no points were drawn for it"
            raise InvalidArgument(msg)
        if self.groups is None or self.combined[row]:
            msg = "this explanation combines different draws or rows and has no perturbations of its own; ask its parts"
            raise InvalidArgument(msg)
        if self.provenance.generator != GENERATOR or self.provenance.longer not in (0.0, *DEGREES):
            msg = (
                f"this explanation was drawn by an earlier version ({self.provenance.generator}, a share of"
                f" {self.provenance.longer:g} longer), and its points cannot be made again. Explain the rows once more"
            )
            raise InvalidArgument(msg)
        factor, missing = self.factor, self.missing[row]
        if missing.any():
            factor = self.neighbourhood.factor_without(missing, self.feature_names)
        keys = self.groups.row_keys
        key = None if keys is None else int(keys[row])
        z = DESIGNS[self.design].stream(len(factor.free), self.seed, key).take(int(self.n_samples[row]))
        if self.provenance.longer:
            z, _ = long_draws(z, self.provenance.longer, more=DEGREES[self.provenance.longer])
        steps = factor.steps(z)[None].astype(self.provenance.dtype)
        if self.directions is not None:
            turned = self.directions[row : row + 1, : factor.free.size, ~missing[self.factor.free]]
            turns = Rotation.onto(turned).of_steps(factor, self.provenance.dtype)
            steps = turns.of(steps)
        here = slice(row, row + 1)
        points = around(self.scores[here], factor.free, steps, self.provenance.dtype)[0].astype(float)
        if scores or self.row_scales is None:
            return points
        return self.row_scales.values(points, np.full(len(points), row))

    def effects(self, weights: Any = None, by: Any = None, rows: Literal["these", "sample"] = "these") -> Effects:
        """What features do over all rows: mean slopes, mean |slope| and the share of positive ones, with errors.

        Parameters
        ----------
        weights
            A number >= 0 for each row.
        by
            Groups to average over as well: the name of a feature, or a label for each row. See `Effects.groups`.
        rows
            `"these"`: errors are of drawing alone. `"sample"`: the rows are a sample, and its error counts, too.

        Examples
        --------
        >>> import smoothlime as sl
        >>> e = sl.explain(lambda a: a[:, 0] * a[:, 1], [[1.0, 2.0], [1.0, 4.0]], sigma=0.1)
        >>> e.effects().values.round(6), e.effects(by="x1").groups[4].values.round(6)
        (array([3., 1.]), array([4., 1.]))
        """
        from .effects import Averaged, effects

        return effects(Averaged.of_slopes(self), weights, by, rows)

    # ---- rows

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.values)

    def __iter__(self) -> Iterator[Explanation]:
        """Explanations of one row each."""
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Any) -> Explanation:
        """Some of the rows; a single position gives an explanation of one row."""
        if isinstance(rows, int | np.integer):
            rows = [self._position(rows)]
        kept = np.arange(len(self))[rows]
        parts: dict[str, Any] = {name: getattr(self, name)[kept] for name in _BY_ROW}
        outputs = tuple(self.row_outputs[row] for row in kept)
        for name in ("selected", "directions"):
            whole = getattr(self, name)
            parts[name] = None if whole is None else whole[kept]
        parts["switches"] = None if self.switches is None else self.switches[kept]
        return dataclasses.replace(self, **parts, groups=self.groups and self.groups.rows(kept), row_outputs=outputs)

    def _position(self, row: Any) -> int:
        if -len(self) <= (position := check_position(row, "row")) < len(self):
            return position % len(self)
        msg = f"row {row} is out of range; this explanation has {len(self)} row{'s' * (len(self) != 1)}"
        raise IndexError(msg)

    # ---- arithmetic

    __array_ufunc__ = None  # so that np.float64(2) * e asks e, instead of taking it apart row by row

    def __add__(self, other: Explanation) -> Explanation:
        """Explanation of the sum of two models, outputs or rows, errors included."""
        from .arithmetic import combine

        return combine(self, 1.0, other)

    def __radd__(self, other: Any) -> Explanation:
        """Lets `sum` begin with its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Explanation) -> Explanation:
        """Explanation of the difference of two models, outputs or rows, errors included."""
        from .arithmetic import combine

        return combine(self, -1.0, other)

    def __mul__(self, factor: float) -> Explanation:
        """Explanation of a multiple of the model."""
        from .arithmetic import scale

        return scale(self, factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Explanation:
        """Explanation of the model divided by a number."""
        from .arithmetic import divide

        return divide(self, divisor)

    def __neg__(self) -> Explanation:
        """Explanation of the negated model."""
        return self * -1.0

    # ---- shown: one-line calls upwards, imported when used

    def __str__(self) -> str:
        """Slopes with error bars as text, largest first."""
        from ..plots.text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        """One line: method, shape, draws, and the tolerance that all rows are within."""
        from ..plots.text import reached

        r, d = self.values.shape
        drawn = "" if self.is_exact or self.design == self.method else f", {self.design} draws"
        note = f"; {self.note}" if self.note else ""
        return f"<Explanation of {self.output_name!r}: {r} × {d} slopes, {self.method}{drawn}{reached(self)}{note}>"

    def _repr_html_(self) -> str:
        """Notebook form."""
        from ..plots.notebook import explanation

        return explanation(self)

    def __rich__(self) -> Any:
        """Form that rich prints."""
        from ..plots.text import as_rich

        return as_rich(self)

    def plot(
        self,
        row: int | None = None,
        *,
        kind: Literal["bars", "image", "heat", "beeswarm"] | None = None,
        ax: Axes | None = None,
        confidence: float = 0.95,
        most: int | None = None,
    ) -> Axes:
        """A picture with errors: bars of one row, a map of several rows; of pictures and sequences, one as a map.

        `kind` chooses another: `"bars"` and `"image"` show one row, the first unless `row` says which; `"heat"` and
        `"beeswarm"` show all of them. `most` is the number of features; the rest is counted. See `smoothlime.plots`.
        """
        from ..plots.choice import draw

        return draw(self, row, kind=kind, ax=ax, confidence=confidence, most=most)

    def plot_rows(
        self, *, ax: Axes | None = None, confidence: float = 0.95, most: int = 20, most_rows: int = 60
    ) -> Axes:
        """Rows × features as a map of slopes, cells marked whose sign is uncertain."""
        from ..plots.heat import heat

        return heat(self, ax=ax, confidence=confidence, most=most, most_rows=most_rows)

    # ---- taken elsewhere: likewise

    def to_frame(
        self, kind: Literal["tidy", "wide"] = "tidy", *, library: str | None = None, confidence: float = 0.95
    ) -> Any:
        """Data frame with a line per row and feature (tidy) or per row (wide), in the library the rows came from.

        Tidy: row, output, feature, x, slope, standardised, standard_error, lower, upper, and selected where features
        were. Wide: row, output, prediction, smoothed, fidelity, radius, converged, n_samples, then for each feature
        its slope, in a column of its name, and its standard error, in `<name>_se`. `row` is the position in this
        explanation. Features that were held fixed have no slope and are left out of both. Where a row misses a feature
        its slope is NaN.

        Parameters
        ----------
        library
            `"pandas"`, `"polars"` or `"pyarrow"`; without it the one the rows came in, else pandas.
        confidence
            Of each interval from `lower` to `upper`.
        """
        from ..io.frames import to_frame

        return to_frame(self, kind, library=library, confidence=confidence)

    def to_json(self) -> str:
        """All of it as strict JSON text, the same that `save` writes to a .json file."""
        from ..io.as_json import to_json

        return to_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to a .json or .parquet file, whole or not at all; `smoothlime.load` reads it back.

        With a digest of each field, so that `load` notices what has changed since by accident.
        """
        from ..io.files import save

        save(self, path)

    def to_html(self, path: str | os.PathLike[str], *, keys: Any = None, title: str | None = None) -> None:
        """Write a report: one HTML file that needs nothing else, for a browser, a mail or a printer.

        Bars with intervals for each row, with a search; mean slopes over all rows; the numbers as tables; how they were
        made. Needs the extra `report`.

        Parameters
        ----------
        keys
            A name for each row; without them rows are called by their position.
        title
            Of the page.
        """
        from ..report.page import to_html

        to_html(self, path, keys=keys, title=title)

    def to_shap(self, kind: Literal["slopes", "contributions"] = "slopes", *, reference: Any = None) -> Any:
        """`shap.Explanation` for shap's plots, with `error_std` and 95% bounds, which its waterfall draws.

        `"slopes"`: standardised slopes, for `shap.plots.bar` and `beeswarm`. They do not add up to anything, so a
        waterfall of them means nothing. `"contributions"`: slope·(x − reference), which the local linear model adds
        up from its value at the reference, `base_values`, to F(x) (f(x) where the method does not see F): for
        `shap.plots.waterfall`, whose label E[f(X)] stands at that base here. They describe the model only as far as it
        is linear between x and the reference. Of features on scales, x and the reference count in logarithms or ranks.
        Features that were held fixed have 0, and so have those that a row misses.

        Parameters
        ----------
        reference
            For contributions: one number per feature, a table of one row, or a mapping or series by feature name.
        """
        from ..io.shap_view import to_shap

        return to_shap(self, kind, reference=reference)


_BY_ROW = (
    "x",
    "values",
    "standard_error",
    "prediction",
    "smoothed",
    "fidelity",
    "radius",
    "converged",
    "n_samples",
    "n_evaluations",
    "degrees_of_freedom",
    "missing",
    "not_numeric",
    "combined",
)


def around(x: Array, free: Indices, steps: Points, dtype: str) -> Points:
    """Points x + step (r, n, d) in the model's floating type; steps (ρ, n, f) move the free features only."""
    x, steps = x.astype(dtype), steps.astype(dtype, copy=False)
    n = steps.shape[1]
    points = np.tile(x, (1, n)).reshape(len(x), n, -1)
    if len(free) == x.shape[1]:
        points += steps  # in place on long runs: faster than adding short rows one by one
    else:
        points[:, :, free] += steps
    return points


def columns(free_columns: Array, free: Indices, d: int) -> Array:
    """Columns of the perturbed features among all d; NaN for those held fixed."""
    if len(free) == d:
        return free_columns
    full = np.full((*free_columns.shape[:-1], d), np.nan)
    full[..., free] = free_columns
    return full


def bracketed(name: str) -> str:
    """A name that can be multiplied or subtracted as a whole."""
    return f"({name})" if " " in name else name
