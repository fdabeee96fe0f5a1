"""What the routes share: models, limits, threads, counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InvalidArgument, WrongType
from .counters import Counters
from .limits import Limits
from .openapi import describe
from .served import Served
from .work import Work

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """The models by name, and all that a request needs besides."""

    models: Mapping[str, Served]
    limits: Limits
    has_token: bool
    work: Work
    counters: Counters = field(default_factory=Counters)

    @classmethod
    def of(cls, models: Mapping[str, Served], limits: Limits, *, has_token: bool) -> Service:
        """The service of some models, each with a name that can stand in a path."""
        if not models:
            msg = "models is empty; give at least one"
            raise InvalidArgument(msg, argument="models")
        for name, each in models.items():
            if not NAME.fullmatch(name):
                msg = f"models has the name {name!r}; a name is letters, digits, dots, dashes and underscores"
                raise InvalidArgument(msg, argument="models")
            if not isinstance(each, Served):
                msg = f"models must map names to Served(model, background); {name!r} is a {type(each).__name__}"
                raise WrongType(msg, argument="models")
        return cls(dict(models), limits, has_token, Work(limits))

    @property
    def openapi(self) -> dict[str, Any]:
        """What OpenAPI says of it."""
        columns = {name: tuple(zip(each.names, each.kinds, strict=True)) for name, each in self.models.items()}
        return describe(columns, self.limits, has_token=self.has_token)
