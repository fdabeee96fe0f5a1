"""A service that explains: JSON in, JSON out, by the protocol of KServe. `smoothlime serve --api` runs it."""

from ..._core.optional import require

for _module in ("starlette", "uvicorn"):
    require(_module, extra="app", to="serve models")

from .create import create_app  # noqa: E402  after the check
from .limits import Limits  # noqa: E402
from .served import Served  # noqa: E402

__all__ = ["Limits", "Served", "create_app"]
