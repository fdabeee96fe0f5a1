"""Credit scoring with categories and gaps: why was this applicant refused, and what would change it?

A bank scores applicants by boosted trees. The table has amounts, counts, categories, and incomes that some applicants
did not state. We explain one refusal, look at what other categories would have meant, and sum up a whole portfolio.

    pip install 'smoothlime[trees]' scikit-learn pandas
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import smoothlime as sl

# --- A table of applicants, made up here so that nothing has to be fetched. -------------------------------------------

rng = np.random.default_rng(0)
n = 2_000
applicants = pd.DataFrame(
    {
        "income": np.exp(rng.normal(10.3, 0.5, n)).round(-2),
        "amount": np.exp(rng.normal(9.0, 0.7, n)).round(-2),
        "age": rng.integers(19, 75, n),
        "late_payments": rng.poisson(0.6, n),
        "housing": rng.choice(["rent", "own", "family"], n, p=[0.5, 0.35, 0.15]),
        "purpose": rng.choice(["car", "home", "education", "other"], n),
    }
)
risk = (
    1.4 * np.log(applicants["amount"] / applicants["income"])
    + 0.9 * applicants["late_payments"]
    + 0.5 * (applicants["housing"] == "rent")
    - 0.015 * applicants["age"]
)
defaulted = rng.random(n) < 1 / (1 + np.exp(-(risk - risk.median())))
applicants.loc[rng.random(n) < 0.15, "income"] = np.nan  # not stated

words = ["housing", "purpose"]
columns = make_column_transformer((OrdinalEncoder(), words), remainder="passthrough", verbose_feature_names_out=False)
model = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=60, max_depth=4, random_state=0))
model.fit(applicants, np.where(defaulted, "defaults", "repays"))

# --- One applicant. ---------------------------------------------------------------------------------------------------
# The background says what the columns look like. Steps in ranks never leave what was ever seen: no negative amounts, no
# half payments. sigma=0.5 means half a standard step.

around = {"background": applicants, "scale": "ranks", "sigma": 0.5, "target": "defaults"}
scores = model.predict_proba(applicants)[:, 0]
worst = applicants.iloc[[int(scores.argmax())]]
e = sl.explain(model, worst, **around)
print(e)

assert e.converged.all()
late = e.feature_names.index("late_payments")
lower, upper = e.interval()
assert lower[0, late] > 0  # more late payments raise the risk, and the interval leaves no doubt

# --- What if a category were another? ---------------------------------------------------------------------------------

print(e.switches.to_frame()[["feature", "from", "to", "effect", "standard_error"]])

# --- An applicant who did not state an income. ------------------------------------------------------------------------
# The gap is held. All other features are explained, and the income has no slope there.

silent = applicants[applicants["income"].isna()].head(3)
gaps = sl.explain(model, silent, **around)
income = gaps.feature_names.index("income")
assert gaps.missing[:, income].all()
assert np.isnan(gaps.values[:, income]).all()

# --- The whole portfolio. ---------------------------------------------------------------------------------------------
# Mean slopes over a sample of applicants, by housing, with errors of drawing and of sampling.

portfolio = sl.explain(model, applicants.iloc[:200], **around)
effects = portfolio.effects(by="housing", rows="sample")
print(effects)
assert effects.groups.keys() == {"rent", "own", "family"}
