"""A trial of a file in a process of its own: boosting libraries end the process on some damaged files of theirs.

What can be checked of a file is checked before; this is for the rest, which is theirs.
"""

from __future__ import annotations

import subprocess
import sys

LONGEST = 120
"""Seconds that a trial may take."""

CODE = {
    "XGBoost": """
import numpy as np, xgboost
model = xgboost.Booster(model_file=bytearray(data))
model.set_param({"nthread": 1})
rows = np.array(table(model.num_features()))
model.predict(xgboost.DMatrix(rows, feature_names=model.feature_names, nthread=1))
""",
    "LightGBM": """
import numpy as np, lightgbm
model = lightgbm.Booster(model_str=data.decode())
model.predict(np.array(table(model.num_feature())))
""",
    "CatBoost": """
import catboost, os, tempfile
model = catboost.CatBoost()
if data.startswith(b"CBM1"):
    model.load_model(blob=data, format="cbm")
else:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        with open(path, "wb") as file:
            file.write(data)
        model.load_model(path, format="json")
held = set(model.get_cat_feature_indices()) | set(model.get_text_feature_indices())
rows = table(len(model.feature_names_))
model.predict([["a" if j in held else each for j, each in enumerate(row)] for row in rows])
""",
}
"""How each library reads `data`, and what it is asked."""

TABLE = """
import sys
data = sys.stdin.buffer.read()
def table(width):
    values = [-1e3, -1.0, 0.0, 0.5, 1.0, 1e3, float("nan")]
    rows = max(1, min(49, 2**20 // max(width, 1)))
    return [[values[(i + i // 7 * j + j) % 7] for j in range(width)] for i in range(rows)]
"""


def survives(library: str, data: bytes) -> None:
    """A ValueError where the process does not end by itself; what the library says against a file, it says again."""
    command = [sys.executable, "-P", "-c", TABLE + CODE[library]]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired as err:
        msg = f"{library} did not answer within {LONGEST} s"
        raise ValueError(msg) from err
    if done.returncode not in (0, 1):
        msg = f"it is damaged: {library} crashes on it"
        raise ValueError(msg)
