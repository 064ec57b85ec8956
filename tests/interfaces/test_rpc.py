"""JSON-RPC 2.0, without a transport."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.interfaces.conftest import Host

from coterie.core.errors import InternalError
from coterie.interfaces import rpc
from coterie.operations.caller import Caller, Person
from coterie.operations.views import View


async def _answer(host: Host, body: bytes | str) -> Any:
    found = await rpc.answer(host.operations, Person(), body.encode() if isinstance(body, str) else body)
    return None if found is None else json.loads(found)


@pytest.mark.parametrize("request_id", [1, "one", 0, -1.5, None, ""])
async def test_an_answer_carries_the_id_of_its_call(host: Host, request_id: object) -> None:
    """Also the ids that are false in some languages."""
    body = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "app.health"})
    found = await _answer(host, body)
    assert found == {"jsonrpc": "2.0", "id": request_id, "result": await host.ask("app.health")}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"app.health"}',
        b'{"jsonrpc":"2.0","id":1,"method":"session.get","params":{"sessionId":"a","sessionId":"b"}}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"app.health"}',
        b'{"jsonrpc":"2.0","id":Infinity,"method":"app.health"}',
        b'{"jsonrpc":"2.0","id":1e999,"method":"app.health"}',
        b'{"jsonrpc":"2.0","id":%b,"method":"app.health"}' % (b"9" * 5000),
        b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"app.health"}',
        b'{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"title":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"collaboration.wait","params":{"messageIds":["\\udfff"]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"\\ud800":"title"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"app.health","params":%b}' % (b"[" * 100_000),
    ],
)
async def test_what_is_no_clear_json_is_a_parse_error(host: Host, body: bytes) -> None:
    """Two parsers could read it in two ways, or the ledger could not store it."""
    found = await _answer(host, body)
    assert found["id"] is None
    assert found["error"]["code"] == -32700
    assert found["error"]["data"] == {"errorCode": "INVALID_ARGUMENT", "retryable": False}
    assert (await host.ask("session.list"))["sessions"] == []


async def test_a_pair_of_surrogates_is_a_character(host: Host) -> None:
    """Escapes of a character outside the first plane are good JSON."""
    body = r'{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"title":"\ud83d\ude00"}}'
    assert (await _answer(host, body))["result"]["session"]["title"] == "😀"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[]", "batch"),
        ('[{"jsonrpc":"2.0","id":1,"method":"app.health"}]', "batch"),
        ('"app.health"', "object"),
        ("null", "object"),
        ("{}", "jsonrpc"),
        ('{"id":1,"method":"app.health"}', "jsonrpc"),
        ('{"jsonrpc":2.0,"id":1,"method":"app.health"}', "jsonrpc"),
        ('{"jsonrpc":"2.0","id":1}', "method"),
        ('{"jsonrpc":"2.0","id":1,"method":7}', "method"),
        ('{"jsonrpc":"2.0","id":true,"method":"app.health"}', "id"),
        ('{"jsonrpc":"2.0","id":{},"method":"app.health"}', "id"),
        ('{"jsonrpc":"2.0","id":1,"method":"session.release","parms":{}}', "did you mean params?"),
    ],
)
async def test_what_is_no_call_is_an_invalid_request(host: Host, body: str, words: str) -> None:
    """The text says which part is wrong."""
    error = (await _answer(host, body))["error"]
    assert error["code"] == -32600
    assert error["data"]["errorCode"] == "INVALID_ARGUMENT"
    assert words in error["message"]


@pytest.mark.parametrize("params", ["[]", "null", '"ses_x"', "7"])
async def test_parameters_go_by_name_only(host: Host, params: str) -> None:
    """A position says nothing about what it means."""
    found = await _answer(host, f'{{"jsonrpc":"2.0","id":7,"method":"session.get","params":{params}}}')
    assert found["id"] == 7
    assert found["error"]["code"] == -32602
    assert "params" in found["error"]["message"]


async def test_an_unknown_method_comes_with_near_names(host: Host) -> None:
    """A typing error is repaired at a glance."""
    error = (await _answer(host, '{"jsonrpc":"2.0","id":7,"method":"session.lst"}'))["error"]
    assert error["code"] == -32601
    assert error["data"]["errorCode"] == "NOT_FOUND"
    assert error["data"]["candidates"][0] == "session.list"


@pytest.mark.parametrize("method", ["session.create", "session.nothing", "session.get"])
async def test_a_notification_is_never_answered(host: Host, method: str) -> None:
    """Not even when it fails: nobody waits for it."""
    assert await _answer(host, json.dumps({"jsonrpc": "2.0", "method": method})) is None
    assert len((await host.ask("session.list"))["sessions"]) == (method == "session.create")


class _Failing:
    async def perform(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View:
        del caller, name, given
        raise InternalError("The log has it.")


async def test_a_fault_carries_the_id_too() -> None:
    """The client must know which of its calls failed."""
    body = b'{"jsonrpc":"2.0","id":"x","method":"app.health"}'
    found = await rpc.answer(_Failing(), Person(), body)
    assert found is not None
    assert json.loads(found)["id"] == "x"
    assert json.loads(found)["error"]["code"] == -32603
