"""Getting results out: files that can be loaded again, data frames, and the form that shap's plots take.

Explanation ─ contents ─► header + arrays ─┬─ as_json ────┬─► files (save, load)
    (settings, digests)                    └─ as_parquet ─┘
Explanation ─ frames ─► data frame          Explanation ─ shap_view ─► shap.Explanation
"""

from .files import load

__all__ = ["load"]
