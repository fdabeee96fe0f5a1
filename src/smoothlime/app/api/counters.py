"""Five counters, as Prometheus reads them."""

from __future__ import annotations

from threading import Lock

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .refusals import LOG, refusal

COUNTED = {
    "requests": "Requests that were answered.",
    "refused": "Requests that were refused, with a status from 400 to 499.",
    "failed": "Requests that failed here, with a status of 500 or more.",
    "rows": "Rows that were explained.",
    "evaluations": "Points at which models were asked.",
}


class Counters:
    """Numbers that only grow; threads may add to them."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(COUNTED, 0)
        self._lock = Lock()

    def add(self, **counts: int) -> None:
        """Add to some of them."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def __getitem__(self, name: str) -> int:
        """One of them."""
        return self._counts[name]

    def as_text(self) -> str:
        """All of them in the text format of Prometheus."""
        lines = []
        for name, what in COUNTED.items():
            full = f"smoothlime_{name}_total"
            lines += [f"# HELP {full} {what}", f"# TYPE {full} counter", f"{full} {self._counts[name]}"]
        return "\n".join(lines) + "\n"


class Counting:
    """Counts answers by their status; a mistake of ours becomes an answer too, and its trace goes to the log."""

    def __init__(self, app: ASGIApp, counters: Counters) -> None:
        self.app = app
        self.counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and look at the status."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def counted(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun, status = True, message["status"]
                self.counters.add(requests=1, refused=int(400 <= status < 500), failed=int(status >= 500))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        except Exception:
            LOG.exception("%s %s failed", scope["method"], scope["path"])
            if has_begun:
                raise
            await refusal(500, "this is an error of the service; its log says more")(scope, receive, counted)
