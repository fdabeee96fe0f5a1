"""A forest at scale: every row of a table explained exactly, in a job that can be interrupted and resumed.

Trees have a closed form, so nothing is drawn: tens of thousands of rows take seconds. The job writes Parquet files
block by block. We stop it half-way, start it again, load the result and sum it up.

    pip install 'smoothlime[trees,parquet]' scikit-learn
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestRegressor

import smoothlime as sl

# --- A table on disk: 20,000 houses, made up here so that nothing has to be fetched. ----------------------------------

rng = np.random.default_rng(0)
n = 20_000
houses = {
    "house": np.arange(n) + 1_000_000,
    "rooms": rng.integers(1, 9, n).astype(float),
    "area": rng.gamma(4.0, 30.0, n),
    "age": rng.exponential(30.0, n),
    "distance": rng.gamma(2.0, 5.0, n),
}
price = 2.5 * houses["area"] + 8 * houses["rooms"] - 0.4 * houses["age"] - 60 * np.log1p(houses["distance"])
table = pa.table(houses)
pq.write_table(table, "houses.parquet")

names = ["rooms", "area", "age", "distance"]
train = np.column_stack([houses[name] for name in names])
forest = RandomForestRegressor(20, max_depth=6, random_state=0).fit(train[:4_000], price[:4_000])

# --- The job. It is stopped after the first blocks, as a power cut or Ctrl-C would. -----------------------------------

known = table.select(names).slice(0, 4_000)  # gives the scale of each column; without it the job reads the table first
asked = {"key": "house", "columns": names, "background": known, "sigma": 0.3, "block_rows": 2_048}


class Stopped(Exception):
    """What we interrupt the job with."""


def stop_early(done: int, total: int) -> None:
    """A progress callback that gives up after a third of the rows."""
    if done > total / 3:
        raise Stopped


try:
    sl.explain_table(forest, "houses.parquet", "explained", progress=stop_early, **asked)
except Stopped:
    print("stopped;", len(list(Path("explained").glob("part-*.parquet"))), "files are there")

# --- The same call again goes on where it stopped. --------------------------------------------------------------------

done = sl.explain_table(forest, "houses.parquet", "explained", progress=False, **asked)
print(done)
assert done.rows == n

# --- What matters over all houses? ------------------------------------------------------------------------------------

e = sl.load("explained")
assert len(e) == n
assert e.is_exact
effects = e.effects(rows="sample")
print(effects)
assert effects.values[names.index("area")] > 0 > effects.values[names.index("distance")]
