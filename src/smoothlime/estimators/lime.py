"""LIME: weighted least squares on perturbations, with a kernel, a penalty or a selection of features."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, inf, log1p, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from .._core.types import Array, Flags
from .._core.validate import as_float_array, check_choice, check_count, check_number
from ..errors import InvalidArgument, TooFewDraws, WrongType
from ..space.neighbourhood import Factor
from . import sparse
from .least_squares import Fit, Fitted, Sums, WeightSums, check_spans, estimate, fit_all, ridge_fit
from .protocol import Batch, Drawn, Estimate, Estimator, GroupedDraws, Rows, Setup, leave_one_out

Kernel = Callable[[Array], Any]
"""Distances (n,) to weights (n,); of each distance alone, since draws come in batches."""

SELECTIONS = ("forward", "highest", "lasso_path")

BLOCK_BYTES = 2**25
"""Size of the tableaux worked on at once; about five times as much is in use."""


@dataclass(frozen=True, slots=True, repr=False)
class Lime(Estimator):
    r"""Weighted least-squares slopes with intercept, for all features or a few.

    $$ \arg\min_{b, w}\ \frac{1}{\sum_i \pi_i} \sum_i \pi_i \bigl(f(a_i) - b - w^\top a_i\bigr)^2
       + \lambda \lVert w \rVert_2^2 \quad\text{or}\quad + \lambda \lVert w \rVert_1 $$

    Weights π fall with the distance of a draw from x. The exponential kernel makes the neighbourhood narrower and
    does nothing else: with width ω the slopes are those of `CLime` for σω/√(1+ω²), from fewer effective draws.
    With `kernel=None` and nothing else said this *is* `CLime`. Standard errors repeat the whole fit, selection
    included, without each group of draws. Intervals hold less often than they say for slopes near the threshold of a
    lasso, and with `features` where those that compete for the last place are nearly tied.

    Parameters
    ----------
    kernel
        A width ω > 0: π = exp(−‖z‖²/2ω²), where ‖z‖ is the Mahalanobis distance of the draw from x, in standard
        deviations. `"auto"` is the lime package's 0.75·√d for d perturbed features. None: all draws alike. Or a
        function of distances (n,) that gives weights (n,) >= 0, each of its own distance alone.
    ridge, lasso
        λ on raw slopes, per unit of weight, whatever the number of draws; one of the two. scikit-learn's Ridge takes
        alpha = λ·Σπ, its Lasso alpha = λ/2, both with `sample_weight`.
    features
        Keep at most this many features and refit on them alone; the others have slope 0. Not with `lasso`.
    select
        `"forward"`: one by one, what lowers the weighted residual most. `"highest"`: the largest standardised slopes
        of the fit on all. `"lasso_path"`: those that stand when the lasso path, in standardised units, first holds
        so many.

    Examples
    --------
    >>> Lime(kernel=2.0, features=3)
    Lime(kernel=2, features=3)
    """

    name: ClassVar[str] = "lime"
    needs: ClassVar[Literal["values", "gradients"]] = "values"
    designs: ClassVar[tuple[str, ...]] = ("iid", "antithetic", "orthogonal", "sobol")
    is_regression: ClassVar[bool] = True

    kernel: float | Literal["auto"] | Kernel | None = "auto"
    ridge: float = 0.0
    lasso: float = 0.0
    features: int | None = None
    select: Literal["forward", "highest", "lasso_path"] = "forward"

    def __post_init__(self) -> None:
        """Refuse settings that cannot be used, alone or together."""
        _check_kernel(self.kernel)
        ridge, lasso = check_number(self.ridge, "ridge"), check_number(self.lasso, "lasso")
        if ridge and lasso:
            msg = f"give ridge or lasso, not both; got ridge={ridge:g} and lasso={lasso:g}"
            raise InvalidArgument(msg)
        check_choice(self.select, "select", SELECTIONS)
        if self.features is None and self.select != "forward":
            msg = f"select={self.select!r} says how to choose, but not how many; give features too, such as features=5"
            raise InvalidArgument(msg)
        if self.features is not None:
            object.__setattr__(self, "features", check_count(self.features, "features"))
            if lasso:
                msg = (
                    f"give features or lasso, not both; got features={self.features} and lasso={lasso:g}. A lasso"
                    " selects by itself; select='lasso_path' keeps a number of features and shrinks none"
                )
                raise InvalidArgument(msg)

    def __repr__(self) -> str:
        """Settings that differ from the defaults."""
        parts = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if callable(value):
                parts.append(f"{field.name}={_name(value)}")
            elif value != field.default:
                parts.append(f"{field.name}={value:g}" if isinstance(value, float) else f"{field.name}={value!r}")
        return f"Lime({', '.join(parts)})"

    @property
    def advice(self) -> str:
        """A narrow kernel leaves few of the draws."""
        return "" if self.kernel is None else "; a wider kernel needs fewer"

    def fewest(self, d: int, *, is_paired: bool) -> int:
        """As many as least squares needs, over the share of draws that the kernel leaves.

        Of an exponential kernel that share is known, E[π]²/E[π²] = (1 − (1 + ω²)⁻²)^{d/2}; as it scatters, twice as
        many are asked for. Other functions are held to account by the draws themselves.
        """
        width, flat = self._width(d), (4 if is_paired else 2) * (d + 1)
        if width is None:
            return flat
        squared = width * width
        log_share = d / 2 * (log1p(1 / (1 + squared)) - log1p(1 / squared)) if squared else -inf
        return ceil(2 * flat * exp(min(-log_share, 40.0)))  # e⁴⁰ draws are more than any cap

    def start(self, setup: Setup) -> Sums:
        """Empty sums."""
        d = setup.d
        if self.features is not None and self.features > d:
            msg = f"features={self.features} are to be kept, but only {d} are perturbed; give at most {d}"
            raise InvalidArgument(msg)
        return Sums(setup.rows, setup.groups, d, is_shared=setup.is_shared)

    def update(self, state: Sums, rows: Rows, groups: slice, batch: Batch) -> None:
        """Add the weighted products of draws and values."""
        weights = self._weights(batch.draws)
        state.add_values(rows, groups, batch, weights)
        if not batch.draws.is_shared:
            state.add_draws(rows, groups, batch.draws, weights)

    def update_shared(self, state: Sums, groups: slice, draws: GroupedDraws) -> None:
        """Add the weighted products of draws among themselves."""
        state.add_draws(slice(None), groups, draws, self._weights(draws))

    def finish(self, state: Sums, drawn: Drawn) -> Estimate:
        """Slopes of all draws, and of all but each group."""
        sizes, factor = drawn.sizes, drawn.factor
        if state.weights is not None and not state.is_flat:
            self._check_effective(state.weights, sizes, len(factor.free))
        fitted = fit_all(state, sizes, factor, self._fit(factor, sizes.sum()))
        found = estimate(state, sizes, factor, fitted)
        if state.is_flat and not (self.ridge or self.lasso or self.features):
            return found
        kept = fitted.kept_without
        return dataclasses.replace(
            _weighted(found, state, sizes, factor, fitted), selected=None if kept is None else kept.mean(axis=1)
        )

    def _width(self, d: int) -> float | None:
        """ω of the exponential kernel; None for all others."""
        if self.kernel is None or callable(self.kernel):
            return None
        return 0.75 * sqrt(d) if self.kernel == "auto" else float(self.kernel)

    def _weights(self, draws: GroupedDraws) -> Array | None:
        """π of each draw, (ρ, g, b); None where all count alike."""
        if self.kernel is None:
            return None
        distances = draws.distances
        if callable(self.kernel):
            return _called(self.kernel, distances.reshape(-1)).reshape(distances.shape)
        width = self._width(draws.z.shape[-1])
        assert width is not None
        return np.exp(-((distances / width) ** 2) / 2)

    def _check_effective(self, weights: WeightSums, sizes: Array, d: int) -> None:
        """Refuse weights that rest on so few draws that slopes and their errors mean nothing."""
        total, squares = weights.total[:, : len(sizes)], weights.squares[:, : len(sizes)]
        together = _effective(total.sum(axis=1), squares.sum(axis=1)).min()
        without = _effective(leave_one_out(total), leave_one_out(squares)).min()
        if together < 2 * (d + 1) or without < d + 1:
            given = f"the kernel {_name(self.kernel)}" if callable(self.kernel) else f"kernel={self.kernel!r}"
            msg = (
                f"{given} leaves {together:.1f} effective draws of {int(sizes.sum())}, and {d} features need"
                f" {2 * (d + 1)} in all and {d + 1} without any one group of draws. Widen the kernel, raise n_samples,"
                " or take a smaller sigma with kernel=None"
            )
            raise TooFewDraws(msg)

    def _fit(self, factor: Factor, n: float) -> Fit:
        if not (self.lasso or self.features):
            return ridge_fit(factor, self.ridge, n)
        # Problems are put in units of √Σ_jj, where slopes are standardised: u = D^½w, and v = Lᵀw = Rᵀu
        root = np.eye(len(factor.free)) if factor.is_diagonal else factor.lower / factor.std[:, None]

        def fit(spread: Array, with_values: Array) -> tuple[Array, Flags | None]:
            check_spans(spread, n)
            slopes = self._sparse(root @ spread @ root.T, with_values @ root.T, factor.std)
            return slopes @ root, slopes != 0

        return fit

    def _sparse(self, gram: Array, cross: Array, std: Array) -> Array:
        """Standardised slopes (r, g, d) of a lasso or a selection, block by block."""
        r, g, d = cross.shape
        slopes = np.empty((r * g, d))
        flat = cross.reshape(r * g, d)
        size = max(1, BLOCK_BYTES // (8 * d * (d + 2)))
        for begin in range(0, r * g, size):
            row, group = np.divmod(np.arange(begin, min(r * g, begin + size)), g)
            problems = gram[row if len(gram) > 1 else 0, group]
            slopes[begin : begin + size] = self._solved(problems, flat[begin : begin + size], std)
        return slopes.reshape(r, g, d)

    def _solved(self, gram: Array, cross: Array, std: Array) -> Array:
        if self.lasso:
            return sparse.lasso(gram, cross, self.lasso / (2 * std))
        assert self.features is not None
        penalised = gram + np.diag(self.ridge / std**2)
        if self.select == "forward":
            kept = sparse.forward(gram, cross, self.features)
        elif self.select == "lasso_path":
            kept = sparse.first_in_path(gram, cross, self.features)
        else:
            everything = sparse.solve_kept(penalised, cross, np.ones(cross.shape, dtype=np.bool_))
            kept = sparse.highest(everything, self.features)
        return sparse.solve_kept(penalised, cross, kept)


def _weighted(found: Estimate, sums: Sums, sizes: Array, factor: Factor, fitted: Fitted) -> Estimate:
    """Resolution and fidelity of a fit that is weighted, penalised or on a few features."""
    d = len(factor.free)
    effective, largest, narrowing = sizes.sum(), 1.0 / sizes.sum(), 1.0
    variance = found.spread**2 * (1 - largest)
    if sums.weights is not None and not sums.is_flat:
        weights = sums.weights
        total = weights.total.sum(axis=1)
        effective = _effective(total, weights.squares.sum(axis=1))
        largest = (weights.largest / total)[:, None]
        narrowing = np.diagonal(fitted.spread, axis1=1, axis2=2).mean(axis=1)
        variance = np.maximum(weights.second - weights.first.sum(axis=1) ** 2 / total, 0.0) / total
    residual = np.maximum(variance - fitted.explained, 0.0)
    size = (fitted.scaled**2).sum(axis=1)
    # Fidelity is ‖v‖² over this variance. Under weights, or shrunk, ‖v‖² is not what the fit explains: the same factor
    # on what it leaves makes their ratio the weighted R², adjusted for the slopes fitted
    stretch = np.divide(size, fitted.explained, out=np.ones_like(size), where=fitted.explained > 0)
    return dataclasses.replace(
        found,
        # one draw moves a covariance by its share of the weight, and a slope by that over the spread of draws
        resolution=np.sqrt(residual / narrowing)[:, None] * factor.unwhitened_scale * largest,
        variance=size + stretch * residual * effective / (effective - 1 - d),
    )


def _effective(total: Array, squares: Array) -> Array:
    """(Σπ)²/Σπ²: the number of draws of equal weight that would average as well; 0 where nothing has weight."""
    return np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)


def _called(kernel: Kernel, distances: Array) -> Array:
    """Weights (n,) of a function of distances, checked."""
    weights = as_float_array(kernel(distances.copy()), f"what the kernel {_name(kernel)} returns")
    if weights.shape != distances.shape:
        msg = (
            f"the kernel {_name(kernel)} must return one weight per distance, shape {distances.shape};"
            f" got shape {weights.shape}"
        )
        raise InvalidArgument(msg)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        msg = (
            f"the kernel {_name(kernel)} must return finite weights >= 0;"
            f" got {weights[bad[0]]:g} at distance {distances[bad[0]]:.4g}"
        )
        raise InvalidArgument(msg)
    return weights


def _check_kernel(kernel: Any) -> None:
    if kernel is None or callable(kernel) or (isinstance(kernel, str) and kernel == "auto"):
        return
    if isinstance(kernel, bool | np.complexfloating) or not isinstance(kernel, str | int | float | np.number):
        msg = f"kernel must be 'auto', None, a width or a function of distances; got {kernel!r}"
        raise WrongType(msg)
    if isinstance(kernel, str) or not (np.isfinite(kernel) and kernel > 0):
        msg = f"kernel must be 'auto', None, a finite width > 0 or a function of distances; got {kernel!r}"
        raise InvalidArgument(msg)


def _name(kernel: Any) -> str:
    return str(getattr(kernel, "__name__", type(kernel).__name__))
