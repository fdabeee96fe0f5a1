"""A torch network: gradients, predictions, and whether they tell the same story.

We train a small network on scikit-learn's breast cancer data, explain its probability from gradients and from
predictions alone, test that both agree, and ask how far an explanation can move when its row moves.

    pip install 'smoothlime[torch]' scikit-learn
"""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer

import smoothlime as sl

torch.manual_seed(0)
torch.set_num_threads(1)  # the network is tiny: threads would only wait for each other

data = load_breast_cancer()
rows = ((data.data - data.data.mean(axis=0)) / data.data.std(axis=0))[:, :10].astype(np.float32)
names = [str(name) for name in data.feature_names[:10]]

net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ELU(), torch.nn.Linear(16, 2))
optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
inputs, labels = torch.as_tensor(rows), torch.as_tensor(data.target)
for _ in range(100):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(inputs), labels).backward()
    optimiser.step()

# as_model puts a softmax on the two logits, and gives names to what goes in and comes out.
model = sl.as_model(net.eval(), output="probability", feature_names=names, outputs=["malignant", "benign"])
few = rows[[0, 20, 40]]

# --- Two ways to the same slopes. -------------------------------------------------------------------------------------

by_gradients = sl.explain(model, few, sigma=0.5, target="malignant")
by_predictions = sl.explain(model, few, sigma=0.5, target="malignant", method="clime")
print(by_gradients[0])
print("evaluations:", by_gradients.n_evaluations.tolist(), "and", by_predictions.n_evaluations.tolist())

apart = np.linalg.norm(by_gradients.standardised - by_predictions.standardised, axis=1)
assert (apart <= by_gradients.radius + by_predictions.radius).all()  # as near as their error bounds say

# --- Is that so for every feature, or did we not look closely enough? -------------------------------------------------

verdict = sl.agreement(model, few, sigma=0.5, target="malignant")
print(verdict)
assert verdict.verdict is not False  # nothing speaks against the gradients

# --- How far can an explanation move when its row moves? --------------------------------------------------------------
# A probability stays between 0 and 1. That alone bounds it, without a single call of the network.

certificate = sl.certify(model, few, sigma=0.5, target="malignant")
print(certificate)

# --- Does the answer depend on sigma? ---------------------------------------------------------------------------------

path = sl.sigma_path(model, few[0], [0.1, 0.25, 0.5, 1.0], target="malignant")
print(path)
