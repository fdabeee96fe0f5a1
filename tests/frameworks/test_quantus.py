"""Quantus's own metrics, fed by `explain_func`; and its Completeness, of contributions and of what others make.

Completeness compares sums with == : to the last bit nothing that is computed adds up. So both sides are rounded to two
digits here. The table of docs/what-adds-up.md has these counts.
"""

import warnings

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime.interop.quantus import explain_func

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own dependencies, while they are imported
    import quantus
    from captum.attr import IntegratedGradients, KernelShap

ROWS = np.random.default_rng(5).normal(size=(9, 1, 6)).astype(np.float32)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])


def network():
    generator = torch.Generator().manual_seed(3)
    layers = torch.nn.Linear(6, 16), torch.nn.ELU(), torch.nn.Linear(16, 3)
    net = torch.nn.Sequential(torch.nn.Flatten(), *layers)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.6, generator=generator)
    return net.eval()


@pytest.mark.filterwarnings("ignore")  # of quantus itself, on metrics that should be read with care
@pytest.mark.parametrize("metric", [quantus.MaxSensitivity, quantus.LocalLipschitzEstimate])
def test_explanations_by_smoothlime_are_judged_by_quantus(metric):
    np.random.seed(0)  # noqa: NPY002  # quantus draws from it
    judge = metric(nr_samples=3, disable_warnings=True, normalise=False)
    asked = {"x_batch": ROWS, "y_batch": LABELS, "a_batch": None, "device": "cpu"}
    options = {"sigma": 0.3, "n_samples": 128}
    scores = judge(model=network(), explain_func=explain_func, explain_func_kwargs=options, **asked)
    assert len(scores) == len(ROWS)
    assert np.isfinite(scores).all()


def complete(net, attributions):
    """How many rows Quantus calls complete, sums and changes being rounded to two digits."""
    judge = quantus.Completeness(
        normalise=False,
        perturb_baseline=0.0,
        output_func=lambda change: np.round(change, 2).astype(np.float32),
        disable_warnings=True,
    )
    sums = np.zeros(ROWS.shape, dtype=np.float32)
    sums[:, 0, 0] = np.round(attributions.reshape(len(ROWS), -1).sum(axis=1), 2)
    asked = {"x_batch": ROWS, "y_batch": LABELS, "a_batch": sums, "device": "cpu", "softmax": False}
    return int(np.sum(judge(model=net, **asked)))


@pytest.mark.filterwarnings("ignore")
def test_contributions_are_complete_with_their_gaps():
    net, base = network(), np.zeros((1, 1, 6), dtype=np.float32)
    found = sl.contributions(net, ROWS, baseline=base, target=LABELS.tolist(), sigma=0.3, n_samples=16_384, rtol=1e-3)
    gaps = (found.prediction - found.total) - (found.base_prediction - found.base)
    whole = np.column_stack([found.values, gaps])
    rows, labels = torch.as_tensor(ROWS), torch.as_tensor(LABELS)
    zero = torch.as_tensor(base)
    gradients = IntegratedGradients(net).attribute(rows, zero, target=labels, n_steps=200).detach().numpy()
    torch.manual_seed(0)
    shap = [
        KernelShap(net).attribute(row[None], zero, target=int(k), n_samples=200)
        for row, k in zip(rows, labels, strict=True)
    ]
    slopes = sl.explain(net, ROWS, target=LABELS.tolist(), sigma=0.3).values * ROWS[:, 0]
    counts = [complete(net, each) for each in (whole, gradients, torch.cat(shap).detach().numpy(), slopes)]
    assert 5 <= counts[0] <= 9  # an error of drawing of 0.1% moves some sums past a half
    assert counts[1:] == [9, 9, 0]
