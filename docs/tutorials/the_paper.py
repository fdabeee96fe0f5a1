"""The paper in one page: SmoothGrad and C-LIME meet, and where they do not.

Agarwal et al. (2021) prove that SmoothGrad, the mean gradient near a row, and C-LIME, a least squares line through
predictions near it, have the same limit. We watch them meet on a function whose slopes are known, count the samples
that takes, and see the theorem fail where a function jumps.

    pip install smoothlime
"""

import warnings

import numpy as np

import smoothlime as sl

x, sigma = [0.3, -0.2, 0.5], 0.5
wave = sl.testing.Sine([2.0, -1.0, 0.5])
truth = wave.slopes(x, sl.Neighbourhood(sigma))[0]

# --- Theorem 1: one limit. --------------------------------------------------------------------------------------------
# The paper's protocol: independent draws, new ones for each row, as many as we say. 200 repeats are 200 equal rows.

rows = np.tile(x, (200, 1))
protocol = {"sigma": sigma, "design": "iid", "draws": "independent"}
print("draws  SmoothGrad  C-LIME   mean distance from the truth, and from each other")
for n in (100, 400, 1_600):
    by_gradients = sl.explain(wave, rows, method="smoothgrad", n_samples=n, **protocol).values
    by_predictions = sl.explain(wave, rows, method="clime", n_samples=n, **protocol).values
    errors = [np.linalg.norm(found - truth, axis=1).mean() for found in (by_gradients, by_predictions)]
    apart = np.linalg.norm(by_gradients - by_predictions, axis=1).mean()
    print(f"{n:>5,}  {errors[0]:.4f}      {errors[1]:.4f}   {apart:.4f}")
assert apart < 0.2 * np.linalg.norm(truth)

# --- How many samples? The paper's order of magnitude, with a constant that is proved. --------------------------------

plan = sl.plan("stein", eps=0.05, d=3, output_range=(-1, 1))
print(plan)

# What "auto" takes: the same quantity, with far fewer evaluations.
e = sl.explain(wave, x, sigma=sigma)
print(e)
assert np.linalg.norm((e.values[0] - truth) * sigma) <= e.radius[0]

# --- Where the theorem does not hold: a step has gradient 0 nearly everywhere, and yet a slope. -----------------------

step = sl.testing.Step([1.0, 0.0])
with warnings.catch_warnings(action="ignore", category=sl.errors.JumpsUnseen):
    blind = sl.explain(step, [0.0, 0.0], method="smoothgrad", n_samples=1_024)
seen = sl.explain(step, [0.0, 0.0], method="clime", n_samples=4_096)
print("a step: SmoothGrad", blind.values[0].round(3), "C-LIME", seen.values[0].round(3), "truth", 0.399)
assert blind.values[0, 0] == 0
assert abs(seen.values[0, 0] - 0.3989) < 5 * seen.standard_error[0, 0]

# `smoothlime reproduce` redoes every figure on the paper's data, and tests each claim.
