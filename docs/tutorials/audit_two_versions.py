"""Auditing two versions of a model: the accuracy is the same, but has the model changed its mind?

A model is retrained every quarter. One quarter a column arrived in another order by mistake. Both new models are nearly
as accurate as the old one. `compare` tells which of them says something else about the same people.

    pip install smoothlime scikit-learn
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import smoothlime as sl

patients, diagnosis = load_breast_cancer(return_X_y=True, as_frame=True)
patients = patients.iloc[:, [0, 1, 20, 21, 23]]


def trained(table):
    """The bank's, hospital's or insurer's usual model."""
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(table, diagnosis)


last_quarter = make_pipeline(StandardScaler(), LogisticRegression()).fit(patients.iloc[:450], diagnosis.iloc[:450])
this_quarter = trained(patients)

broken = patients.copy()
broken["worst area"] = broken["worst area"].sample(frac=1, random_state=0).to_numpy()
by_mistake = trained(broken)

for name, model, table in (
    ("last quarter", last_quarter, patients),
    ("this quarter", this_quarter, patients),
    ("by mistake", by_mistake, patients),
):
    print(f"{name}: {model.score(table, diagnosis):.1%} right")

# --- Both versions are asked at the same points, so most of the noise cancels. ----------------------------------------
# The margin says which change would matter: a quarter of the old slopes.

asked = {"background": patients, "sigma": 0.5, "target": 1, "margin": 0.25}
audited = patients.iloc[[37, 74, 81]]

retrained = sl.compare(last_quarter, this_quarter, audited, **asked)
print(retrained)
assert retrained.verdict == "unchanged"

mistaken = sl.compare(last_quarter, by_mistake, audited, **asked)
print(mistaken)
assert mistaken.verdict == "changed"

# In a pipeline the same question is a command, and its exit code the answer (0 unchanged, 3 changed, 4 cannot tell):
#
#     smoothlime compare models:last_quarter models:this_quarter patients.csv --path .
