"""Tables of any size: explained block by block into a folder of Parquet files, and taken up again where they stopped.

explain_table ─► plan (columns, scales, first rows) ─► manifest
       │
       └─► source ─► blocks ─► engine ─► work.explain_block ─► parts, then the journal
           (Parquet, CSV)      (local, ray, dask)              (written whole, renamed)

`load` and `merge` read such a folder.
"""

from .explain_table import explain_table
from .load import load

__all__ = ["explain_table", "load"]
