"""One catalogue, two doors: the same answers and the same refusals."""

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interfaces.conftest import HOST, TOKEN, Door, compose, furnish, in_process

from coterie.interfaces.http import build_app
from coterie.interfaces.http.openapi import properties
from coterie.interfaces.wire.errors import ERRORS
from coterie.operations.catalogue import OPERATIONS, Operation
from coterie.testing.slots import IdleSlots

GOOD: Final[dict[str, dict[str, Any]]] = {
    "app.health": {},
    "session.create": {"title": "new", "model": "local/one", "permissionMode": "auto", "idempotencyKey": "k"},
    "session.list": {"limit": 1},
    "session.get": {"sessionId": "$a"},
    "session.items": {"sessionId": "$b", "after": 0, "limit": 5},
    "session.turn": {"turnId": "$t"},
    "session.prompt": {"sessionId": "$a", "text": "Good day.", "idempotencyKey": "k"},
    "session.release": {"sessionId": "$a"},
    "session.steer": {"sessionId": "$b", "text": "Mind the gap.", "idempotencyKey": "k"},
    "session.interrupt": {"sessionId": "$b", "cascade": False},
    "session.rename": {"sessionId": "$a", "title": "new name"},
    "session.configure": {"sessionId": "$a", "permissionMode": "auto", "inbound": "hold", "thinking": "low"},
    "session.archive": {"sessionId": "$a"},
    "session.delete": {"sessionId": "$b"},
    "session.diff": {"sessionId": "$w"},
    "session.apply": {"sessionId": "$w"},
    "session.drop": {"sessionId": "$w", "force": True},
    "session.fork": {"sessionId": "$b", "title": "fork", "upTo": 1},
    "session.retry": {"messageId": "$d"},
    "queue.list": {"sessionId": "$b"},
    "queue.remove": {"sessionId": "$b", "inputId": "$i"},
    "queue.promote": {"sessionId": "$b", "inputId": "$j"},
    "queue.move": {"sessionId": "$b", "inputId": "$j", "direction": "up"},
    "collaboration.message": {"messageId": "$d"},
    "collaboration.accept": {"messageId": "$d", "note": "Good.", "asSessionId": "$a"},
    "permissions.pending": {},
    "permissions.resolve": {"requestId": "$r", "decision": "grant", "seconds": 60},
    "permissions.answer": {"requestId": "$q", "answer": "The new one.", "idempotencyKey": "k"},
    "permissions.grants": {},
    "permissions.revoke": {"grantId": "$g"},
    "models.list": {},
    "models.resolve": {"name": "one", "delegated": True},
    "models.test": {"name": "one"},
    "collaboration.send": {"sessionId": "$b", "content": "More.", "kind": "task", "asSessionId": "$a"},
    "collaboration.spawn": {"content": "Work.", "title": "worker", "asSessionId": "$a"},
    "collaboration.result": {"sessionId": "$b", "messageId": "$m"},
    "collaboration.wait": {"messageIds": ["$m"], "mode": "any", "timeoutMs": 0},
    "collaboration.cancel": {"sessionId": "$b", "messageId": "$m", "cascade": False},
    "collaboration.status": {"sessionId": "$b"},
    "collaboration.list": {"limit": 2},
    "collaboration.chain": {"messageId": "$m"},
    "ledger.verify": {},
}
"""Parameters that succeed, with the short names of `furnish`."""

# What a refusal of the rules looks like; wrong parameters are tried one by one below.
REFUSED: Final[tuple[tuple[str, dict[str, Any], str], ...]] = (
    ("session.create", {"model": "local/three"}, "MODEL_NOT_FOUND"),
    ("session.create", {"model": "same"}, "MODEL_AMBIGUOUS"),
    ("session.create", {"projectPath": "relative"}, "INVALID_ARGUMENT"),
    ("session.create", {"idempotencyKey": "k" * 257}, "LIMIT_EXCEEDED"),
    ("session.create", {"idempotencyKey": "\u0000"}, "INVALID_ARGUMENT"),
    ("session.list", {"cursor": "nowhere"}, "INVALID_ARGUMENT"),
    ("session.get", {"sessionId": "ses_nothing"}, "NOT_FOUND"),
    ("session.get", {"sessionId": "é ?#"}, "NOT_FOUND"),
    ("session.items", {"sessionId": "$m"}, "NOT_FOUND"),
    ("session.turn", {"turnId": "turn_nothing"}, "NOT_FOUND"),
    ("session.prompt", {"sessionId": "$a", "text": " "}, "INVALID_ARGUMENT"),
    ("session.prompt", {"sessionId": "$a", "text": "x" * 65_537}, "LIMIT_EXCEEDED"),
    ("session.release", {"sessionId": "ses_nothing"}, "NOT_FOUND"),
    ("collaboration.send", {"sessionId": "$a", "content": "Me.", "asSessionId": "$a"}, "INVALID_ARGUMENT"),
    ("collaboration.send", {"sessionId": "$b", "content": "Who?"}, "INVALID_ARGUMENT"),
    ("collaboration.result", {"sessionId": "$a", "messageId": "$m"}, "NOT_FOUND"),
    ("collaboration.wait", {"messageIds": []}, "INVALID_ARGUMENT"),
    ("collaboration.wait", {"messageIds": ["msg_nothing"]}, "NOT_FOUND"),
    ("collaboration.cancel", {"sessionId": "$b", "messageId": ""}, "NOT_FOUND"),
    ("session.release", {"sessionId": ""}, "NOT_FOUND"),
    ("session.steer", {"sessionId": "ses_nothing", "text": "x"}, "NOT_FOUND"),
    ("session.interrupt", {"sessionId": "$m"}, "NOT_FOUND"),
    ("session.rename", {"sessionId": "$a", "title": " "}, "INVALID_ARGUMENT"),
    ("session.configure", {"sessionId": "$a", "model": "none such"}, "MODEL_NOT_FOUND"),
    ("session.archive", {"sessionId": "$b"}, "CONFLICT"),
    ("session.delete", {"sessionId": "$i"}, "NOT_FOUND"),
    ("session.diff", {"sessionId": "$m"}, "NOT_FOUND"),
    ("session.apply", {"sessionId": "$a"}, "CONFLICT"),
    ("session.drop", {"sessionId": "$b"}, "CONFLICT"),
    ("session.fork", {"sessionId": "$t"}, "NOT_FOUND"),
    ("session.retry", {"messageId": "$m"}, "CONFLICT"),
    ("queue.list", {"sessionId": "$i"}, "NOT_FOUND"),
    ("queue.remove", {"sessionId": "$a", "inputId": "$i"}, "NOT_FOUND"),
    ("queue.promote", {"sessionId": "$b", "inputId": "$b"}, "NOT_FOUND"),
    ("collaboration.message", {"messageId": "$t"}, "NOT_FOUND"),
    ("collaboration.accept", {"messageId": "$m", "asSessionId": "$a"}, "WORKER_NOT_READY"),
    ("collaboration.accept", {"messageId": "$d", "asSessionId": "$c"}, "PERMISSION_DENIED"),
    ("permissions.resolve", {"requestId": "req_nothing", "decision": "deny"}, "NOT_FOUND"),
    ("permissions.resolve", {"requestId": "$q", "decision": "once"}, "INVALID_ARGUMENT"),
    ("permissions.answer", {"requestId": "req_nothing", "answer": "x"}, "NOT_FOUND"),
    ("permissions.answer", {"requestId": "$r", "answer": "x"}, "NOT_FOUND"),
    ("permissions.answer", {"requestId": "$q", "answer": " "}, "INVALID_ARGUMENT"),
    ("permissions.answer", {"requestId": "$q", "answer": "x" * 65_537}, "LIMIT_EXCEEDED"),
    ("permissions.revoke", {"grantId": "$r"}, "NOT_FOUND"),
    ("models.resolve", {"name": "same"}, "MODEL_AMBIGUOUS"),
    ("models.test", {"name": "none such"}, "MODEL_NOT_FOUND"),
    ("models.resolve", {"name": "two", "delegated": True}, "PERMISSION_DENIED"),
    ("collaboration.chain", {}, "INVALID_ARGUMENT"),
    ("collaboration.chain", {"chainId": "chn_nothing"}, "NOT_FOUND"),
)
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}


@asynccontextmanager
async def _prepared(path: Path) -> AsyncGenerator[tuple[Door, dict[str, str]]]:
    """A furnished host; every one has the same ids."""
    async with AsyncExitStack() as stack:
        host, store = await compose(path, IdleSlots(free=9))
        stack.push_async_callback(store.close)
        app = build_app(host.operations, token=TOKEN, hosts=lambda: frozenset({HOST}), stopping=host.stopping)
        door = Door(await stack.enter_async_context(in_process(app)))
        yield door, await furnish(host)


def _filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, names) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]  # any JSON
    if isinstance(value, list):
        return [_filled(one, names) for one in value]  # pyright: ignore[reportUnknownVariableType]  # any JSON
    return names.get(value, value) if isinstance(value, str) else value


def test_the_table_has_every_operation() -> None:
    """A new operation is compared from its first day."""
    assert set(GOOD) == set(BY_NAME)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_both_doors_give_the_same_answer(tmp_path: Path, operation: Operation) -> None:
    """Two hosts of one seed are asked, so that even fresh ids compare."""
    async with _prepared(tmp_path / "one.db") as (door, names):
        rest = await door.rest(operation, _filled(GOOD[operation.name], names))
    async with _prepared(tmp_path / "two.db") as (door, names):
        called = await door.rpc(operation.name, _filled(GOOD[operation.name], names))
    assert rest.status_code == (201 if operation.name == "session.create" else 200), rest.text
    assert rest.json() == called["result"]


@pytest.mark.parametrize(("name", "params", "code"), REFUSED)
async def test_both_doors_give_the_same_refusal(tmp_path: Path, name: str, params: dict[str, Any], code: str) -> None:
    """Code, text and detail are equal; only the status is HTTP's own."""
    async with _prepared(tmp_path / "one.db") as (door, names):
        given = _filled(params, names)
        rest = await door.rest(BY_NAME[name], given)
        called = await door.rpc(name, given)
    assert rest.json() == {"error": called["error"]}
    assert called["error"]["data"]["errorCode"] == code
    row = next(row for known, row in ERRORS.items() if known == code)
    assert (rest.status_code, called["error"]["code"]) == (row.http, row.rpc)


def _wrong() -> list[tuple[Operation, dict[str, Any], str]]:
    found: list[tuple[Operation, dict[str, Any], str]] = []
    for operation in OPERATIONS:
        good, in_path = GOOD[operation.name], set(re.findall(r"\{(\w+)\}", operation.path))
        for name, shape in properties(operation).items():
            if name in in_path:
                continue
            found += [(operation, {**good, name: value}, name) for value in _misfits(operation, shape)]
        required = [name for name, field in operation.params.model_fields.items() if field.is_required()]
        wire = {name: operation.params.model_fields[name].alias or name for name in required}
        for name in wire.values():
            if name not in in_path:
                found.append((operation, {key: value for key, value in good.items() if key != name}, name))
        found.append((operation, {**good, "nonsense": "x"}, "nonsense"))
    return found


def _misfits(operation: Operation, shape: dict[str, Any]) -> list[Any]:
    """Values of a wrong type or out of range, as far as a door can carry them."""
    if shape.get("type") == "integer":
        low, high = shape.get("minimum"), shape.get("maximum")
        beyond = ([low - 1] if low is not None else []) + ([high + 1] if high is not None else [])
        return ["soon", "", *beyond]
    if shape.get("type") == "boolean":
        return ["yes"]
    # In a query everything is text, so only JSON can bring another type.
    if operation.verb == "GET":
        return []
    return [7, {"a": 1}, True]


@pytest.mark.parametrize(("operation", "params", "culprit"), _wrong())
async def test_a_wrong_parameter_is_named(
    tmp_path: Path, operation: Operation, params: dict[str, Any], culprit: str
) -> None:
    """Missing, unknown, of a wrong type or out of range: the same words at both doors."""
    async with _prepared(tmp_path / "one.db") as (door, names):
        given = _filled(params, names)
        rest, called = await door.rest(operation, given), await door.rpc(operation.name, given)
        assert rest.status_code == 400, rest.text
        assert rest.json() == {"error": called["error"]}
        assert called["error"]["data"]["errorCode"] == "INVALID_ARGUMENT"
        assert culprit in called["error"]["message"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_an_unknown_parameter_comes_with_the_nearest_name(tmp_path: Path, operation: Operation) -> None:
    """A typing error is repaired at a glance."""
    async with _prepared(tmp_path / "one.db") as (door, names):
        for name in properties(operation):
            misspelt = name + "z"
            called = await door.rpc(operation.name, {**_filled(GOOD[operation.name], names), misspelt: "x"})
            assert f"{misspelt} is unknown to {operation.name} (did you mean {name}?)" in called["error"]["message"]
