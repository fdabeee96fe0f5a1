"""Files that the version before has saved load, say what is found today, and replay.

`version_before.json` and `version_before.parquet` were saved at commit 1923414, in format version 4, by this script,
run there with the definitions of `f`, `network` and `ROWS` below:

    sl.explain(f, ROWS, **AS_JSON).save("version_before.json")
    sl.explain(network(), ROWS, **AS_PARQUET).save("version_before.parquet")

`version_5.json` and `version_5.parquet` were saved at commit 959cdb3, in format version 5, likewise.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import smoothlime as sl

FOLDER = Path(__file__).parent
ROWS = np.array([[0.5, 1.0, 0.2], [2.0, -1.0, 0.7], [-1.5, 0.25, -0.5], [0.0, 0.0, 3.0]])
AS_JSON = {"sigma": 0.3, "n_samples": 256}
AS_PARQUET = {"sigma": 0.5, "n_samples": 64, "method": "smoothgrad", "design": "antithetic", "draws": "independent",
              "seed": 3}  # fmt: skip
DATA = np.random.default_rng(8).normal(size=(40, 3)).round(6) * [1.0, 2.0, 0.5]
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
"""A library may sum or turn in another order; nothing else may differ."""


def f(a):
    return np.sin(a[:, 0]) + a[:, 1] ** 2 * a[:, 2] + 0.5 * a[:, 2]


def network():
    """Weights that are cosines of 0, 1, 2, ..."""
    made = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double().eval()
    with torch.no_grad():
        for each in made.parameters():
            each.copy_(torch.cos(torch.arange(each.numel(), dtype=torch.float64)).reshape(each.shape))
    return made


SAVED = {
    "version_before.json": lambda: sl.explain(f, ROWS, **AS_JSON),
    "version_before.parquet": lambda: sl.explain(network(), ROWS, **AS_PARQUET),
    "version_5.json": lambda: sl.explain(f, ROWS, n_samples=256, background=DATA, sigma=0.3),
    "version_5.parquet": lambda: sl.explain(
        f, ROWS, n_samples=256, sigma=sl.Neighbourhood.from_data(DATA, 0.3, full=True, fixed=[1])
    ),
}


@pytest.mark.parametrize("name", SAVED)
def test_every_number_is_what_is_found_today(name):
    """But how often it was asked: f(x) is asked otherwise on devices since. Radii are no larger than they were."""
    old, new = sl.load(FOLDER / name), SAVED[name]()
    assert (new.radius <= old.radius * (1 + 1e-12)).all()
    assert (new.converged >= old.converged).all()
    for one, other in ((old, new), (old.groups, new.groups)):
        for field in dataclasses.fields(one):
            was, now = getattr(one, field.name), getattr(other, field.name)
            if isinstance(now, np.ndarray) and field.name not in ("n_evaluations", "radius", "converged"):
                np.testing.assert_allclose(was, now, **CLOSE, err_msg=field.name)
                assert was.dtype == now.dtype
    assert old.directions is None or old.directions.shape == new.directions.shape
    assert (old.method, old.design, old.seed, old.feature_names) == (
        new.method,
        new.design,
        new.seed,
        new.feature_names,
    )
    untold = {"rtol": None, "atol": None} if name.startswith("version_before") else {}  # tolerances were not kept then
    known = dataclasses.replace(new.provenance, versions={}, **untold)
    assert dataclasses.replace(old.provenance, versions={}) == known
    np.testing.assert_allclose(old.interval(0.99), new.interval(0.99), **CLOSE)


def test_its_draws_are_known_for_those_of_today(recwarn):
    for name, fresh in SAVED.items():
        assert (sl.load(FOLDER / name) - fresh()).groups is not None
    assert not [each for each in recwarn.list if each.category is sl.errors.ErrorsAdded]


@pytest.mark.parametrize("row", range(len(ROWS)))
class TestReplay:
    def test_least_squares_on_the_points_gives_the_slopes(self, row):
        """C-LIME with curves, of few draws of three features: all squares and products are fitted beside the line."""
        old, new = sl.load(FOLDER / "version_before.json"), SAVED["version_before.json"]()
        points = old.perturbations(row)
        np.testing.assert_allclose(points, new.perturbations(row), **CLOSE)
        away, share = (points - ROWS[row]) / AS_JSON["sigma"], old.provenance.longer
        root = 1 / np.sqrt(1 - share + share * (away**2).mean(axis=1))
        curves = [away[:, i] * away[:, j] for i in range(3) for j in range(i + 1)]
        terms = np.column_stack([np.ones(len(away)), away, *curves])
        fit = np.linalg.lstsq(root[:, None] * terms, root * f(points), rcond=None)[0]
        np.testing.assert_allclose(old.values[row], fit[1:4] / AS_JSON["sigma"], rtol=1e-9)

    def test_the_mean_gradient_at_the_points_is_the_slopes(self, row):
        old, new = sl.load(FOLDER / "version_before.parquet"), SAVED["version_before.parquet"]()
        points = old.perturbations(row)
        np.testing.assert_allclose(points, new.perturbations(row), **CLOSE)
        at = torch.tensor(points, requires_grad=True)
        (gradients,) = torch.autograd.grad(network()(at).sum(), at)
        np.testing.assert_allclose(old.values[row], gradients.mean(dim=0), rtol=1e-12)
