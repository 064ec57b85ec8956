"""The OpenAPI document, and the parts of it that the catalogue gives for one route."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from coterie.core.codes import Code
from coterie.interfaces.wire.errors import ERRORS
from coterie.operations.catalogue import OPERATIONS, Operation

_REF: Final = "#/components/schemas/{model}"
_PATH_NAME: Final = re.compile(r"\{(\w+)\}")
_ANYWHERE: Final = (
    Code.INVALID_ARGUMENT,
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN_HOST,
    Code.INTERNAL,
    Code.STORAGE_ERROR,
    Code.HOST_UNAVAILABLE,
)
_POSTED: Final = (Code.FORBIDDEN_ORIGIN,)
_CHOOSING: Final = (
    Code.PERMISSION_DENIED,
    Code.MODEL_NOT_CONFIGURED,
    Code.MODEL_NOT_FOUND,
    Code.MODEL_AMBIGUOUS,
    Code.LIMIT_EXCEEDED,
)
"""What a model's name may be refused with."""
_MUTATING: Final = (
    Code.CONFLICT,
    Code.IDEMPOTENCY_CONFLICT,
    Code.WORKER_NOT_READY,
    Code.AGENT_BUSY,
    Code.QUEUE_FULL,
    *_CHOOSING,
    Code.STORAGE_UNKNOWN,
)
_OF_WORKTREES: Final = {
    "session.diff": (Code.CONFLICT, Code.WORKER_NOT_READY, Code.FOLDER_GONE),
    "session.apply": (Code.FOLDER_GONE,),
    "session.drop": (Code.FOLDER_GONE,),
}
"""What those may be refused with beside the rest."""
_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "description": "JSON-RPC's error object, the same at every door.",
            "required": ["code", "message", "data"],
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "data": {
                    "type": "object",
                    "required": ["errorCode", "retryable"],
                    "properties": {
                        "errorCode": {"type": "string", "enum": [code.value for code in Code]},
                        "retryable": {"type": "boolean"},
                        "limit": {"type": "string"},
                        "value": {"type": "integer"},
                        "candidates": {"type": "array", "items": {"type": "string"}},
                        "path": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
        }
    },
}
_KEY_HEADER: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same as idempotencyKey in the body.",
    "schema": {"type": "string", "minLength": 1},
}


@cache
def _schema(operation: Operation) -> dict[str, Any]:
    return TypeAdapter(operation.params).json_schema(by_alias=True, ref_template=_REF)


def properties(operation: Operation) -> dict[str, dict[str, Any]]:
    """The schema of each parameter by its wire name, without null: outside of JSON what is absent is left out."""
    return {name: _without_null(schema) for name, schema in _schema(operation).get("properties", {}).items()}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    kept = [one for one in schema.get("anyOf", []) if one.get("type") != "null"]
    if len(kept) != 1:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf" and not (key == "default" and value is None)}
    return {**rest, **kept[0]}


def request(operation: Operation) -> dict[str, Any]:
    """The parameters and the body of a route."""
    schema, in_path = _schema(operation), _PATH_NAME.findall(operation.path)
    wanted, shapes = schema.get("required", []), properties(operation)
    given = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or name in wanted,
            "schema": shape,
        }
        for name, shape in shapes.items()
        if name in in_path or operation.verb == "GET"
    ]
    if operation.verb == "GET":
        return {"parameters": given}
    members = {name: shape for name, shape in schema.get("properties", {}).items() if name not in in_path}
    body = {key: value for key, value in schema.items() if key not in {"$defs", "properties", "required"}}
    body |= {"properties": members, "required": [name for name in wanted if name not in in_path]}
    return {
        "parameters": given + ([_KEY_HEADER] if operation.mutates else []),
        "requestBody": {"required": bool(body["required"]), "content": {"application/json": {"schema": body}}},
    }


def responses(operation: Operation) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, by status."""
    codes = [*_ANYWHERE]
    if any(name.endswith(("Id", "Ids")) for name in properties(operation)):
        codes.append(Code.NOT_FOUND)
    if operation.verb == "POST":
        codes += _POSTED
    if operation.mutates:
        codes += _MUTATING
    elif operation.name.startswith("models."):
        codes += _CHOOSING
    codes += _OF_WORKTREES.get(operation.name, ())
    if operation.name == "collaboration.wait":
        codes.append(Code.WAIT_CYCLE)
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted({ERRORS[code].http for code in codes}):
        found[status] = _refused(code for code in codes if ERRORS[code].http == status)
    if operation.verb == "POST":
        found[413] = _refused([Code.INVALID_ARGUMENT])
    return found


def _refused(codes: Iterable[Code]) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    return {"description": ", ".join(f"`{code}`" for code in codes), "content": content}


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    found = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=app.description,
        routes=app.routes,
    )
    components = found.setdefault("components", {})
    answers: dict[str, Any] = {name: _absent_is_null(one) for name, one in components.get("schemas", {}).items()}
    shared = [definition for operation in OPERATIONS for definition in _schema(operation).get("$defs", {}).items()]
    components["schemas"] = {**answers, **dict(shared), "Error": _ERROR}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    found["security"] = [{"token": []}]
    return found


def _absent_is_null(schema: dict[str, Any]) -> dict[str, Any]:
    # Answers leave out what is null, so a member that may be null is one that may be absent.
    members = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    optional = {name for name, one in members.items() if {"type": "null"} in one.get("anyOf", [])}
    return {
        **schema,
        "properties": {name: _without_null(one) for name, one in members.items()},
        "required": [name for name in schema.get("required", []) if name not in optional],
    }
