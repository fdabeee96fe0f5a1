"""captum's NoiseTunnel over Saliency is SmoothGrad too: the same question, another implementation.

Both answers are random, so they are compared within their joint standard error. captum reports none; it is asked
REPEATS times, and the scatter of its answers says how well it knows their mean.
"""

from functools import cache

import numpy as np
import pytest
import torch
from captum.attr import NoiseTunnel, Saliency

import smoothlime as sl

pytestmark = pytest.mark.peers

SIGMA = 0.7
REPEATS = 32
DRAWS = 2_048
"""Of captum, per repeat and row."""
ROWS = np.random.default_rng(5).normal(size=(4, 3))


@cache
def network(dtype):
    """A small ELU network, 3-16-16-2, bent enough over one σ that a wrong σ shows."""
    generator = torch.Generator().manual_seed(3)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 16), torch.nn.ELU(), torch.nn.Linear(16, 16), torch.nn.ELU(), torch.nn.Linear(16, 2)
    )
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.6, generator=generator)
    return net.to(dtype).eval()


@cache
def captum_answers(dtype, target):
    """captum's SmoothGrad of one output, or of the output listed for each row: (REPEATS, r, d)."""
    tunnel = NoiseTunnel(Saliency(network(dtype)))
    with torch.random.fork_rng():  # captum draws from torch's global generator
        torch.manual_seed(11)
        answers = [
            tunnel.attribute(
                torch.as_tensor(ROWS, dtype=dtype),
                nt_type="smoothgrad",
                nt_samples=DRAWS,
                nt_samples_batch_size=DRAWS // 2,
                stdevs=SIGMA,
                abs=False,
                target=target if isinstance(target, int) else torch.tensor(target),
            )
            for _ in range(REPEATS)
        ]
    return torch.stack(answers).to(torch.float64).numpy()


def assert_agree(e, answers, *, sees):
    """Equal within the joint standard error; Student's t on the fewer degrees of freedom of the two."""
    error = answers.std(axis=0, ddof=1) / np.sqrt(len(answers))
    sl.testing.assert_matches(
        e.values,
        answers.mean(axis=0),
        np.hypot(e.standard_error, error),
        sees=sees,
        degrees_of_freedom=min(float(e.degrees_of_freedom.min()), len(answers) - 1),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("target", [0, 1])
def test_smoothgrad_by_the_book_agrees_with_captum(dtype, target):
    e = sl.explain(
        network(dtype), ROWS, method="smoothgrad", sigma=SIGMA, target=target,
        design="iid", draws="independent", n_samples=REPEATS * DRAWS,
    )  # fmt: skip
    assert_agree(e, captum_answers(dtype, target), sees=0.02)


# Nets have 7 degrees of freedom, which make t at a chance of 1e-6 three times as large: hence the looser `sees`.
@pytest.mark.parametrize(
    ("design", "sees"), [("auto", 0.05), ("antithetic", 0.02), ("orthogonal", 0.02), ("sobol", 0.05)]
)
def test_every_design_agrees_with_captum(design, sees):
    e = sl.explain(
        network(torch.float32), ROWS, method="smoothgrad", sigma=SIGMA, target=1, design=design, n_samples=32_768
    )
    assert_agree(e, captum_answers(torch.float32, 1), sees=sees)


def test_the_predicted_target_agrees_with_captum_asked_for_each_rows_own_class():
    net = network(torch.float64)
    with torch.no_grad():
        top = tuple(net(torch.as_tensor(ROWS)).argmax(dim=1).tolist())
    assert len(set(top)) == 2  # else one fixed target would do as well
    e = sl.explain(net, ROWS, method="smoothgrad", sigma=SIGMA, target="predicted", n_samples=32_768)
    assert_agree(e, captum_answers(torch.float64, top), sees=0.05)


def test_a_contrast_agrees_with_the_difference_of_two_captum_answers():
    e = sl.explain(
        network(torch.float64), ROWS, method="smoothgrad", sigma=SIGMA, target={0: 1, 1: -1}, n_samples=32_768
    )
    # the same seed twice: captum's two answers stand on the same noise, and so does their difference
    assert_agree(e, captum_answers(torch.float64, 0) - captum_answers(torch.float64, 1), sees=0.05)
