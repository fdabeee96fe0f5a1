"""Rows that are suspected of jumps: those without any slope, whichever feature comes first."""

import numpy as np
import pytest
import torch

import smoothlime as sl
from smoothlime.errors import JumpsUnseen


class JumpsFarOut(torch.nn.Module):
    """Where the first feature is large it only rounds the second; elsewhere it is smooth, and knows no other."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))

    def forward(self, a):
        return torch.where(a[:, :1] > 50, torch.round(3 * a[:, 1:2]), self.one * torch.tanh(a[:, 1:2]))


@pytest.mark.parametrize("fixed", [(), (0,)])
def test_rows_are_named_that_have_no_slope_at_all(fixed):
    rows = np.array([[0.0, 0, 0], [100, 0, 0], [100, 1, 0]])
    with pytest.warns(JumpsUnseen, match="are 0 around row 1 and 1 more"):
        sl.explain(
            JumpsFarOut().eval(), rows, sigma=sl.Neighbourhood(1.0, fixed=fixed), n_samples=128, method="smoothgrad"
        )


def test_a_model_that_knows_only_its_second_feature_has_a_slope():
    e = sl.explain(JumpsFarOut().eval(), np.zeros((2, 3)), n_samples=128, method="smoothgrad")  # warnings are errors
    assert (e.values[:, 0] == 0).all()
    assert (e.values[:, 1] > 0).all()
