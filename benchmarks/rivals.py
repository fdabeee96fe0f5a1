"""Other libraries, asked for the same slopes as ours, at settings that suit them best; their own defaults as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from captum.attr import NoiseTunnel, Saliency
from lime.lime_tabular import LimeTabularExplainer
from sklearn.linear_model import LinearRegression

Attribute = Callable[[np.ndarray, int, int], np.ndarray]
"""Rows (r, d), draws and a seed to attributions (r, d)."""

POINTS_PER_CALL = 8_192
SETTINGS = {
    "captum": "NoiseTunnel(Saliency), smoothgrad, abs=False, all rows in one call, batched",
    "captum, outputs summed": "the same with a forward function that sums the outputs, which spares captum a loop",
    "lime": "LimeTabularExplainer, no discretisation, Gaussian around the row, flat kernel, all features, plain"
    " LinearRegression",
}


def captum(module: Any, target: int, sigma: float, *, summed: bool = False) -> Attribute:
    """SmoothGrad by captum. `summed`: points do not see each other, so the gradient of the sum holds that of each."""
    forward = (lambda points: module(points)[:, target].sum().reshape(1)) if summed else module
    tunnel = NoiseTunnel(Saliency(forward))

    def attribute(rows: np.ndarray, draws: int, seed: int) -> np.ndarray:
        points = torch.tensor(rows, dtype=torch.float32, requires_grad=True)  # captum warns where it must set that
        with seeded(seed):
            found = tunnel.attribute(
                points, nt_type="smoothgrad", nt_samples=draws, stdevs=sigma, abs=False,
                nt_samples_batch_size=max(1, POINTS_PER_CALL // len(rows)), target=None if summed else target,
            )  # fmt: skip
        return found.detach().double().numpy()

    return attribute


def captum_default(module: Any, target: int) -> Attribute:
    """captum left alone: five draws of standard deviation one, absolute values. `draws` = 0 keeps its number."""
    tunnel = NoiseTunnel(Saliency(module))

    def attribute(rows: np.ndarray, draws: int, seed: int) -> np.ndarray:
        points = torch.tensor(rows, dtype=torch.float32, requires_grad=True)
        with seeded(seed):
            found = tunnel.attribute(points, target=target, **({"nt_samples": draws} if draws else {}))
        return found.detach().double().numpy()

    return attribute


def lime(predict: Callable[[np.ndarray], np.ndarray], target: int, sigma: float, d: int) -> Attribute:
    """C-LIME by the lime package: two training rows ±σ make its draws N(x, σ²), and its slopes count in σ."""
    explainer = LimeTabularExplainer(
        np.stack([np.full(d, sigma), np.full(d, -sigma)]),
        kernel=_flat,
        feature_selection="none",
        discretize_continuous=False,
        sample_around_instance=True,
        random_state=np.random.RandomState(0),
    )
    slopes = _lime(explainer, predict, target, d, model_regressor=LinearRegression())
    return lambda rows, draws, seed: slopes(rows, draws, seed) / sigma


def lime_default(predict: Callable[[np.ndarray], np.ndarray], target: int, x_train: np.ndarray) -> Attribute:
    """lime left alone: 5,000 draws, quartiles, ridge, its ten best features. `draws` = 0 keeps its number."""
    explainer = LimeTabularExplainer(x_train, random_state=np.random.RandomState(0))
    return _lime(explainer, predict, target, x_train.shape[1])


def _flat(distance: np.ndarray, kernel_width: float) -> np.ndarray:
    """Every draw counts alike."""
    return np.ones_like(distance)


def _lime(explainer: Any, predict: Any, target: int, d: int, **settings: Any) -> Attribute:
    def attribute(rows: np.ndarray, draws: int, seed: int) -> np.ndarray:
        found = np.zeros((len(rows), d))
        size = {"num_samples": draws} if draws else {}
        explainer.random_state.seed(seed)
        for row, weights in zip(rows, found, strict=True):
            answer = explainer.explain_instance(row, predict, labels=(target,), **size, **settings)
            for feature, weight in answer.as_map()[target]:
                weights[feature] = weight
        return found

    return attribute


def predictions(module: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A network as a function of arrays."""

    @torch.no_grad()
    def predict(points: np.ndarray) -> np.ndarray:
        return module(torch.from_numpy(points.astype(np.float32))).double().numpy()

    return predict


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """captum draws from torch's global generator; this one starts at `seed` and is put back."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
