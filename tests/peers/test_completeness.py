"""Do attributions add up? Judged by captum's own measure: what they add up to, less f(x) − f(b).

Contributions are of the smoothed model, so they add up to f(x) − f(b) together with the two gaps that they come with.
The table of docs/what-adds-up.md has these numbers.
"""

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients, KernelShap
from sklearn.ensemble import RandomForestRegressor

import smoothlime as sl

pytestmark = pytest.mark.peers

SIGMA = 0.3
ROWS = np.random.default_rng(5).normal(size=(9, 6))
BASE = np.zeros((1, 6))


def network():
    generator = torch.Generator().manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ELU(), torch.nn.Linear(16, 16), torch.nn.ELU(),
                              torch.nn.Linear(16, 1))  # fmt: skip
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.6, generator=generator)
    return net.double().eval()


def forest():
    data = np.random.default_rng(6).normal(size=(400, 6))
    return RandomForestRegressor(20, max_depth=6, random_state=0).fit(data, data[:, 0] * data[:, 1] + data[:, 2])


def lacking(judge, values):
    """Median over rows of what is lacking, as captum counts, as a share of f(x) − f(b)."""
    asked = torch.as_tensor(np.ascontiguousarray(values)), torch.as_tensor(BASE), torch.as_tensor(ROWS)
    delta = judge.compute_convergence_delta(*asked).numpy()
    change = judge.forward_func(asked[2]) - judge.forward_func(asked[1])
    return float(np.median(np.abs(delta / change.detach().numpy().ravel())))


def with_gaps(found):
    """The gaps as two further features, put on the first column for a judge that only adds up."""
    values = found.values.copy()
    values[:, 0] += (found.prediction - found.total) - (found.base_prediction - found.base)
    return values


@pytest.mark.parametrize("kind", ["network", "forest"])
def test_contributions_add_up(kind):
    if kind == "network":
        model = network()
        asked = model
    else:
        asked = forest()

        def model(points):
            return torch.as_tensor(asked.predict(points.detach().numpy()))[:, None]

    judge = IntegratedGradients(model)
    found = sl.contributions(asked, ROWS, baseline=BASE, sigma=SIGMA, n_samples=4_096 if kind == "network" else None)
    ours = lacking(judge, with_gaps(found))
    smoothed = float(np.median(np.abs(found.residual / (found.total - found.base))))
    torch.manual_seed(0)
    rows, base = torch.as_tensor(ROWS), torch.as_tensor(BASE)
    each = [KernelShap(model).attribute(row[None], base, n_samples=100) for row in rows]
    shap = lacking(judge, torch.cat(each).detach().numpy())
    if kind == "network":
        gradients = lacking(judge, judge.attribute(rows, base, n_steps=50).detach().numpy())
    else:
        gradients = lacking(judge, np.zeros(ROWS.shape))  # a forest's gradients are 0 wherever there are any
    slopes = lacking(judge, sl.explain(asked, ROWS, sigma=SIGMA).values * (ROWS - BASE))
    assert shap < 1e-4
    assert ours < (0.01 if kind == "network" else 1e-10)
    assert smoothed < (0.01 if kind == "network" else 1e-10)
    assert slopes > 0.05
    assert (gradients < 1e-3) if kind == "network" else (gradients == 1.0)
