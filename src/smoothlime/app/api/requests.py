"""What a request asks for, checked: instances, and the settings that a request may choose."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .limits import Limits
from .refusals import Refused

METHODS = ("auto", "exact", "smoothgrad", "clime", "stein", "differences", "jumps")
OUTPUTS = ("probability", "margin")

LONGEST_NAME = 200
"""Letters of a target."""


@dataclass(frozen=True, slots=True)
class Between:
    """A number between two others."""

    low: float
    high: float
    is_whole: bool = False

    def schema(self) -> dict[str, Any]:
        """The same for those who ask."""
        return {"type": "integer" if self.is_whole else "number", "minimum": self.low, "maximum": self.high}

    def read(self, value: Any, name: str) -> Any:
        """The number, if it is one."""
        what = "a whole number" if self.is_whole else "a number"
        if not is_number(value) or not self.low <= value <= self.high or (self.is_whole and int(value) != value):
            msg = f"{name} must be {what} from {self.low:g} to {self.high:g}; got {shown(value)}"
            raise Refused(422, msg)
        return int(value) if self.is_whole else float(value)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        """The same for those who ask."""
        return {"type": "string", "enum": list(self.words)}

    def read(self, value: Any, name: str) -> Any:
        """The word, if it is one of them."""
        if value not in self.words or not isinstance(value, str):
            msg = f"{name} must be one of {', '.join(self.words)}; got {shown(value)}"
            raise Refused(422, msg)
        return value


@dataclass(frozen=True, slots=True)
class Target:
    """An output by name or position, "predicted", or weights of several by name."""

    def schema(self) -> dict[str, Any]:
        """The same for those who ask."""
        weights = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}
        name = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
        return {"oneOf": [name, {"type": "integer", "minimum": 0}, weights]}

    def read(self, value: Any, name: str) -> Any:
        """What `explain` takes."""
        if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME:
            return value
        if is_number(value) and int(value) == value and 0 <= value < 2**31:
            return int(value)
        if isinstance(value, dict) and value and all(is_number(each) for each in value.values()):
            return value
        msg = (
            f'{name} must be the name or the position of an output, "predicted", or weights of outputs by name;'
            f" got {shown(value)}"
        )
        raise Refused(422, msg)


def settings(limits: Limits) -> dict[str, Between | OneOf | Target]:
    """What a request may choose, and within which limits."""
    return {
        "target": Target(),
        "output": OneOf(OUTPUTS),
        "method": OneOf(METHODS),
        "sigma": Between(1e-3, 10.0),
        "rtol": Between(0.01, 1.0),
        "confidence": Between(0.5, 0.999),
        "n_samples": Between(1, limits.max_samples, is_whole=True),
        "seed": Between(0, 2**32 - 1, is_whole=True),
    }


def read_request(body: bytes, limits: Limits) -> tuple[list[Any], dict[str, Any]]:
    """The instances, and the settings that were given."""
    told = _parsed(body)
    if not isinstance(told, dict) or "instances" not in told:
        msg = 'the body must be an object with a list "instances", and "parameters" if need be'
        raise Refused(422, msg)
    unknown = sorted(set(told) - {"instances", "parameters"})
    if unknown:
        msg = f'the body has {shown(unknown[0])}; it may have "instances" and "parameters"'
        raise Refused(422, msg)
    instances = told["instances"]
    if not isinstance(instances, list) or not instances:
        msg = f"instances must be a list of one or more rows; got {shown(instances)}"
        raise Refused(422, msg)
    if len(instances) > limits.rows:
        msg = f"instances has {len(instances)} rows, and the limit is {limits.rows}; send them in parts"
        raise Refused(413, msg)
    return instances, _chosen(told.get("parameters", {}), limits)


def _chosen(given: Any, limits: Limits) -> dict[str, Any]:
    known = settings(limits)
    if not isinstance(given, dict):
        msg = f"parameters must be an object; got {shown(given)}"
        raise Refused(422, msg)
    unknown = sorted(set(given) - set(known))
    if unknown:
        msg = f"parameters has {shown(unknown[0])}; a request may choose {', '.join(known)}"
        raise Refused(422, msg)
    return {name: known[name].read(value, f"parameters.{name}") for name, value in given.items()}


def _parsed(body: bytes) -> Any:
    refuse: Callable[[str], Any] = _refuse_constant
    try:
        return json.loads(body.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as err:
        reason = "it is nested too deep" if isinstance(err, RecursionError) else str(err)
        msg = f"the body is no JSON: {reason}"
        raise Refused(400, msg) from err


def _refuse_constant(name: str) -> Any:
    msg = f"{name} is not in JSON; write null for what is missing"
    raise ValueError(msg)


def is_number(value: Any) -> bool:
    """Whether it is a finite number: true and false are none, and numbers of 400 digits are none that is computed."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def shown(value: Any) -> str:
    """What was sent, in few letters."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
