"""REST: what HTTP adds to an operation, and what may never come of it."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from tests.guarantees import guarantee
from tests.interfaces.conftest import BOUND_S, HOST, TOKEN, Door, Host, in_process

from coterie.core.codes import Code
from coterie.core.limits import Limits
from coterie.interfaces.http import build_app
from coterie.interfaces.http.application import BODY_BYTES_MAX, body_bytes_max
from coterie.interfaces.http.rest import ROOT
from coterie.operations.caller import Caller
from coterie.operations.catalogue import OPERATIONS
from coterie.operations.collaboration import LISTED_CHARS_MAX
from coterie.operations.perform import Operations
from coterie.operations.views import View


async def test_the_document_shows_every_operation(door: Door) -> None:
    """Generators of clients read it: route, verb, name, parameters, answer and refusals."""
    document = (await door.client.get(f"{ROOT}/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    routes = {one["operationId"]: one for path in document["paths"].values() for one in path.values()}
    assert set(routes) == {operation.name for operation in OPERATIONS} | {"events.subscribe"}
    for operation in OPERATIONS:
        route = routes[operation.name]
        assert route is document["paths"][ROOT + operation.path][operation.verb.lower()]
        success = route["responses"]["201" if operation.name == "session.create" else "200"]
        schema = success["content"]["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{operation.result.__name__}"}
        assert {"400", "401", "421", "500"} <= set(route["responses"])
        shown = {one["name"] for one in route.get("parameters", []) if one["in"] != "header"}
        if "requestBody" in route:
            shown |= set(route["requestBody"]["content"]["application/json"]["schema"]["properties"])
        assert shown == {field.alias or name for name, field in operation.params.model_fields.items()}
    codes = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["data"]["properties"]
    assert set(codes["errorCode"]["enum"]) == set(Code)
    assert "422" not in routes["session.get"]["responses"]


async def test_every_reference_of_the_document_leads_somewhere(door: Door) -> None:
    """A dangling one breaks every generator."""
    document = (await door.client.get(f"{ROOT}/openapi.json")).json()
    schemas, waiting = document["components"]["schemas"], [document]
    while waiting:
        found: Any = waiting.pop()
        if isinstance(found, dict):
            if isinstance(reference := found.get("$ref"), str):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # any JSON
                assert reference.removeprefix("#/components/schemas/") in schemas
            waiting += found.values()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # any JSON
        elif isinstance(found, list):
            waiting += found


async def test_what_an_answer_may_leave_out_is_not_required(door: Door) -> None:
    """Answers leave null out, and the document must not promise otherwise."""
    document = (await door.client.get(f"{ROOT}/openapi.json")).json()
    session = document["components"]["schemas"]["SessionView"]
    assert "model" not in session["required"]
    assert session["properties"]["model"]["type"] == "string"
    answered = (await door.client.post(f"{ROOT}/sessions", json={})).json()["session"]
    assert set(session["required"]) <= set(answered) <= set(session["properties"])


@pytest.mark.parametrize(
    ("headers", "body", "replayed"),
    [
        ([("Idempotency-Key", "k")], {}, True),
        ([("Idempotency-Key", "k")], {"idempotencyKey": "k"}, True),
        ([], {"idempotencyKey": "k"}, True),
        ([("Idempotency-Key", "other")], {}, None),
    ],
)
async def test_a_key_is_the_same_in_header_and_body(
    door: Door, headers: list[tuple[str, str]], body: dict[str, Any], replayed: object
) -> None:
    """Clients that retry often set the header below the layer that writes bodies."""
    await door.client.post(f"{ROOT}/sessions", json={"idempotencyKey": "k"})
    answer = await door.client.post(f"{ROOT}/sessions", json=body, headers=headers)
    assert answer.json().get("replayed") is replayed


async def test_a_key_of_any_script_is_the_same_in_header_and_body(door: Door) -> None:
    """Header bytes come as Latin-1, a body as UTF-8."""
    await door.client.post(f"{ROOT}/sessions", json={"idempotencyKey": "ключ"})
    answer = await door.client.post(f"{ROOT}/sessions", headers=[(b"idempotency-key", "ключ".encode())])
    assert answer.json()["replayed"] is True


@pytest.mark.parametrize(
    "headers",
    [
        [("idempotency-key", "other")],
        [("idempotency-key", "k"), ("idempotency-key", "k")],
        [("idempotency-key", b"\xff")],
    ],
)
async def test_two_keys_for_one_request_are_refused(door: Door, headers: list[tuple[str, str]]) -> None:
    """Whichever were taken, the other would be a surprise."""
    answer = await door.client.post(f"{ROOT}/sessions", json={"idempotencyKey": "k"}, headers=headers)
    assert answer.status_code == 400
    assert "idempotencyKey" in answer.json()["error"]["message"]


async def test_the_path_and_the_body_name_one_session(door: Door, host: Host) -> None:
    """Equal is fine; different is refused, not guessed."""
    first, second = await host.new_session(), await host.new_session()
    path = f"{ROOT}/sessions/{first}/prompts"
    assert (await door.client.post(path, json={"sessionId": first, "text": "Hi."})).status_code == 200
    refused = await door.client.post(path, json={"sessionId": second, "text": "Hi."})
    assert refused.status_code == 400
    assert "sessionId" in refused.json()["error"]["message"]


@pytest.mark.parametrize("query", ["limit=1&limit=1", "limit=1&limit=2"])
async def test_a_parameter_that_is_given_twice_is_refused(door: Door, query: str) -> None:
    """Readers differ on which one counts."""
    answer = await door.client.get(f"{ROOT}/sessions?{query}")
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "limit is given twice.")


async def test_a_query_cannot_widen_what_is_posted(door: Door, host: Host) -> None:
    """Were it ignored, this would release every session instead of one."""
    session_id = await host.new_session()
    answer = await door.client.post(f"{ROOT}/releases?sessionId={session_id}")
    assert answer.status_code == 400
    assert "sessionId stands in the query" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'"x"', b"null", b'{"title":NaN}', b'{"title":"a","title":"b"}', b"\xff"]
)
async def test_a_body_that_is_no_object_is_refused(door: Door, body: bytes) -> None:
    """Never a fault of the host."""
    answer = await door.client.post(f"{ROOT}/sessions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["data"]["errorCode"] == "INVALID_ARGUMENT"


async def test_an_empty_body_has_no_parameters(door: Door) -> None:
    """Everything may be left to its default."""
    assert (await door.client.post(f"{ROOT}/sessions")).status_code == 201


@pytest.mark.parametrize("path", [f"{ROOT}/sessions", "/rpc"])
async def test_a_body_over_the_bound_is_not_read(door: Door, path: str) -> None:
    """Memory is bounded whatever a client sends."""
    answer = await door.client.post(path, content=b" " * (BODY_BYTES_MAX + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["data"]["errorCode"] == "INVALID_ARGUMENT"


def test_the_longest_message_fits_into_a_body() -> None:
    """Also where a person has raised the limit, and every character is escaped."""
    assert body_bytes_max(Limits()) == BODY_BYTES_MAX
    assert body_bytes_max(Limits(content_chars_max=1_000_000)) > len("\\ud83d\\ude00") * 1_000_000


@pytest.mark.parametrize(
    ("verb", "path", "told"),
    [
        ("GET", "/nothing", (404, "NOT_FOUND")),
        ("GET", f"{ROOT}/sessions/", (404, "NOT_FOUND")),
        ("GET", "/docs", (404, "NOT_FOUND")),
        ("DELETE", f"{ROOT}/sessions", (405, "INVALID_ARGUMENT")),
        ("GET", "/rpc", (405, "INVALID_ARGUMENT")),
    ],
)
async def test_what_is_not_there_is_told_in_the_same_body(
    door: Door, verb: str, path: str, told: tuple[int, str]
) -> None:
    """A client has one way to read a refusal."""
    answer = await door.client.request(verb, path)
    assert (answer.status_code, answer.json()["error"]["data"]["errorCode"]) == told


async def test_a_notification_is_performed_and_not_answered(door: Door, host: Host) -> None:
    """HTTP has an answer for that: no content."""
    answer = await door.client.post("/rpc", json={"jsonrpc": "2.0", "method": "session.create"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert len((await host.ask("session.list"))["sessions"]) == 1


class _Broken(Operations):
    async def perform(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View:
        del caller, name, given
        raise ZeroDivisionError("/secret/place")


async def test_a_fault_of_the_host_is_told_without_its_cause(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """The log has it; the wire must not, over either door."""
    app = build_app(_Broken(host.parts), token=TOKEN, hosts=lambda: frozenset({HOST}), stopping=host.stopping)
    async with in_process(app) as client:
        rest = await client.get(f"{ROOT}/health")
        called = await Door(client).rpc("app.health")
        streamed = await client.get(f"{ROOT}/events", params={"sessionId": "ses_x"})
    assert rest.status_code == streamed.status_code == 500
    assert rest.json() == streamed.json() == {"error": called["error"]}
    assert called["id"] == 1
    assert called["error"]["data"]["errorCode"] == "INTERNAL"
    assert "secret" not in rest.text + streamed.text + str(called)
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == 3
    assert "/secret/place" in caplog.text


@guarantee("I15")
async def test_a_page_of_a_chain_shows_long_messages_by_their_ends(host: Host) -> None:
    """Five hundred of them would be a page of megabytes; one by one each is whole."""
    first, second = await host.new_session(), await host.new_session()
    content = f"begin {'😀' * 60_000} end"
    sent = await host.ask("collaboration.send", sessionId=second, content=content, asSessionId=first)

    (listed,) = (await host.ask("collaboration.chain", messageId=sent["messageId"]))["messages"]
    whole = (await host.ask("collaboration.message", messageId=sent["messageId"]))["message"]

    assert (listed["shortened"], listed["content"][:6], listed["content"][-4:]) == (True, "begin ", " end")
    assert len(listed["content"]) < LISTED_CHARS_MAX + 200
    assert (whole["content"], "shortened" in whole) == (content, False)


@pytest.mark.parametrize("over", ["rest", "rpc"])
async def test_a_wait_ends_when_the_host_stops(door: Door, host: Host, over: str) -> None:
    """It can be asked again; a stop should not wait for it."""
    first, second = await host.new_session(), await host.new_session()
    sent = await host.ask("collaboration.send", sessionId=second, content="Do.", asSessionId=first)
    params = {"messageIds": [sent["messageId"]], "timeoutMs": 45_000}
    operation = next(one for one in OPERATIONS if one.name == "collaboration.wait")
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        asked = door.rest(operation, params) if over == "rest" else door.client.post("/rpc", json=_wait(params))
        waiting = group.create_task(asked)
        await host.feed.listened.wait()
        host.stopping.set()
    error = waiting.result().json()["error"]
    assert error["data"] == {"errorCode": "HOST_UNAVAILABLE", "retryable": True}
    assert waiting.result().status_code == (503 if over == "rest" else 200)


def _wait(params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "collaboration.wait", "params": params}
