"""The OpenAPI description of a service: what its models take, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.version import __version__
from .limits import Limits
from .requests import settings

Columns = tuple[tuple[str, str], ...]

TYPES = {"number": "number", "text": "string", "boolean": "boolean"}

REASONS = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such model.",
    405: "The path does not take this method.",
    408: "The body did not come in time.",
    413: "The body, or the number of instances, is beyond the limit.",
    415: "The body is not said to be JSON.",
    421: "The Host header names another host.",
    422: "The instances or parameters cannot be explained; the reason says which and why.",
    429: "Too many requests wait; come again after the seconds in Retry-After.",
    500: "An error of the service.",
    503: "The service is shutting down.",
    504: "It took too long.",
}
ALWAYS = (405, 421, 500)


def describe(models: Mapping[str, Columns], limits: Limits, *, has_token: bool) -> dict[str, Any]:
    """A document of OpenAPI 3.1, with a path for each model."""
    paths: dict[str, Any] = {}
    for name, columns in models.items():
        paths[f"/v1/models/{name}:explain"] = {"post": _explain(name, columns, limits)}
        told = _object({"name": {"const": name}, "ready": {"type": "boolean"}, "columns": {"type": "array"}})
        paths[f"/v1/models/{name}"] = {"get": _get(f"The columns of {name}, and whether it is ready.", told, (404,))}
    listed = _object({"models": {"type": "array", "items": {"enum": list(models)}}})
    paths["/v1/models"] = {"get": _get("The names of the models.", listed)}
    for what in ("live", "ready"):
        more = (503,) if what == "ready" else ()
        told = _get(f"Whether the service is {what}.", _object({what: {"const": True}}), more)
        paths[f"/v2/health/{what}"] = {"get": {**told, "security": []}}
    text = {"text/plain": {"schema": {"type": "string"}}}
    paths["/metrics"] = {"get": _get("Five counters, in the text format of Prometheus.", None, content=text)}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "smoothlime", "version": __version__, "description": "Slopes of models, with error bars."},
        "paths": paths,
    }
    if has_token:
        document["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        document["security"] = [{"token": []}]
        for path in paths.values():
            for operation in path.values():
                if "security" not in operation:
                    operation["responses"]["401"] = _reason(401)
    return document


def _explain(name: str, columns: Columns, limits: Limits) -> dict[str, Any]:
    values = {column: {"type": [TYPES[kind], "null"]} for column, kind in columns}
    listed = {"type": "array", "prefixItems": list(values.values()), "minItems": len(values), "maxItems": len(values)}
    by_name = _object(values, closed=True)
    instances = {"type": "array", "minItems": 1, "maxItems": limits.rows, "items": {"oneOf": [listed, by_name]}}
    chosen = {each: kind.schema() for each, kind in settings(limits).items()}
    parameters = {"type": "object", "properties": chosen, "additionalProperties": False}
    body = {
        "type": "object",
        "properties": {"instances": instances, "parameters": parameters},
        "required": ["instances"],
        "additionalProperties": False,
    }
    return {
        "summary": f"Slopes of {name} around each instance, with standard errors.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": _responses(_answer(values), (400, 404, 408, 413, 415, 422, 429, 503, 504)),
    }


def _answer(values: dict[str, Any]) -> dict[str, Any]:
    number: dict[str, Any] = {"type": ["number", "null"]}
    by_name = _object(dict.fromkeys(values, number), closed=True)
    row = _object({
        "smoothed": number, **dict.fromkeys(("values", "standard_error", "lower", "upper", "standardised"), by_name),
        "radius": number, "converged": {"type": "boolean"}, "n_samples": {"type": "integer"},
    })  # fmt: skip
    about = _object({"output": {"type": "string"}, "method": {"type": "string"}, "is_exact": {"type": "boolean"}})
    return _object({
        "predictions": {"type": "array", "items": number}, "explanations": {"type": "array", "items": row},
        "about": about,
    })  # fmt: skip


def _get(
    what: str, schema: dict[str, Any] | None, more: tuple[int, ...] = (), *, content: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"summary": what, "responses": _responses(schema, more, content=content)}


def _responses(
    schema: dict[str, Any] | None, more: tuple[int, ...], *, content: dict[str, Any] | None = None
) -> dict[str, Any]:
    good = {"description": "The answer.", "content": content or {"application/json": {"schema": schema}}}
    return {"200": good, **{str(status): _reason(status) for status in sorted((*ALWAYS, *more))}}


def _reason(status: int) -> dict[str, Any]:
    schema = _object({"error": {"type": "string"}}, closed=True)
    return {"description": REASONS[status], "content": {"application/json": {"schema": schema}}}


def _object(properties: dict[str, Any], *, closed: bool = False) -> dict[str, Any]:
    """An object in which all of these stand, and no others if it is closed."""
    more = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": list(properties), **more}
