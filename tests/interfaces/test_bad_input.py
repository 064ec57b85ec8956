"""Whatever is asked, a host answers with a code that it knows, in one shape, and does nothing by halves."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import httpx2
import pytest
import pytest_asyncio
from tests.interfaces.bad_input import (
    EMPTY,
    FINE,
    GOOD,
    MEGABYTE,
    NULS,
    Odd,
    over_rest,
    posted,
    shape_faults,
    shapes,
    value_faults,
)
from tests.interfaces.conftest import BOUND_S
from tests.interfaces.world import World, world_at

from coterie.core.codes import Code
from coterie.interfaces.http.events import SUBSCRIBE
from coterie.interfaces.http.openapi import responses
from coterie.interfaces.rpc.call import PARSE_ERROR
from coterie.interfaces.wire.errors import ERRORS
from coterie.operations.catalogue import OPERATIONS, Operation

REFUSAL_BYTES_MAX: Final = 16_384
"""A refusal does not send back what was too large to be taken."""
_DETAILS: Final = {"errorCode", "retryable", "limit", "value", "candidates", "path"}
_BLAMELESS: Final = {code for code, row in ERRORS.items() if row.http < 500}

pytestmark = pytest.mark.asyncio(loop_scope="module")

Ask: TypeAlias = Callable[[World, Operation, Odd], Awaitable[Code | None]]
"""Asks over one door, and returns what it was refused with."""


async def _over_rest(world: World, operation: Operation, odd: Odd) -> Code | None:
    asked = over_rest(operation, odd)
    assert asked is not None, "the route can carry it"
    headers = {"content-type": "application/json"}
    answer = await world.door.client.request(operation.verb, f"/api/v1{asked.url}", content=asked.body, headers=headers)
    error = _told(answer).get("error")
    if error is None:
        assert answer.status_code in {200, 201}
        return None
    code = _code(answer, error)
    assert (answer.status_code, error["code"]) == (ERRORS[code].http, ERRORS[code].rpc)
    assert f"`{code}`" in responses(operation)[answer.status_code]["description"], "the document does not name it"
    return code


async def _over_rpc(world: World, operation: Operation, odd: Odd) -> Code | None:
    call = f'{{"jsonrpc":"2.0","id":1,"method":"{operation.name}","params":{posted(odd.given)}}}'
    answer = await world.door.client.post("/rpc", content=call.encode())
    told = _told(answer)
    assert (answer.status_code, told["jsonrpc"], len(told)) == (200, "2.0", 3)
    if "result" in told:
        assert told["id"] == 1
        return None
    code = _code(answer, told["error"])
    assert (told["error"]["code"], told["id"]) in {(ERRORS[code].rpc, 1), (PARSE_ERROR, None)}
    return code


def _told(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/json"
    return cast("dict[str, Any]", json.loads(answer.content.decode("utf-8", "strict")))


def _code(answer: httpx2.Response, error: Mapping[str, Any]) -> Code:
    assert len(answer.content) <= REFUSAL_BYTES_MAX
    assert set(error) == {"code", "message", "data"}
    assert {"errorCode", "retryable"} <= set(error["data"]) <= _DETAILS
    assert error["data"]["errorCode"] in _BLAMELESS
    assert error["message"]
    return Code(error["data"]["errorCode"])


async def _tried(ask: Ask, world: World, operation: Operation, odd: Odd) -> Code | None:
    """Ask, and look at what has come of it in the ledger."""
    before = world.written()
    async with asyncio.timeout(BOUND_S):
        code = await ask(world, operation, odd)
    if code is not None:
        assert world.written() == before, "it was refused, and something was done"
        assert odd.codes is None or code in odd.codes, f"it was refused with {code}"
        return code
    assert not odd.codes, "it was taken"
    assert odd.kept is None or await world.tells(odd.kept), "it was not kept as it was given"
    if operation.mutates:
        assert not await world.new_flaws()
        world.restore()
    return None


async def _corpus(world: World, operation: Operation) -> list[Odd]:
    """Every odd request of an operation; an odd value stands in a request that succeeds without it, if one is found."""
    good, _ = await world.request_with(operation, None)
    found = list(shape_faults(operation, good))
    for name, shape in shapes(operation).items():
        good, sure = await world.request_with(operation, name)
        found += value_faults(shape, good, world.names, sure=sure)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twins(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[World, World]]:
    """Two hosts that are alike."""
    folder = tmp_path_factory.mktemp("twins")
    async with world_at(folder / "rest") as behind_rest, world_at(folder / "rpc") as behind_rpc:
        yield behind_rest, behind_rpc


@pytest.fixture
def worlds(twins: tuple[World, World]) -> tuple[World, World]:
    """Both as they were at first."""
    for world in twins:
        world.restore()
    return twins


@pytest.fixture
def world(worlds: tuple[World, World]) -> Iterator[World]:
    """One of them; it may be stopped."""
    yield worlds[0]
    worlds[0].host.stopping.clear()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_an_odd_request_is_refused_whole_or_done_whole(
    worlds: tuple[World, World], operation: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    """The two doors agree, no fault of the host comes of it, and what is refused has changed nothing."""
    behind_rest, behind_rpc = worlds
    complaints = list[str]()
    for odd in await _corpus(behind_rpc, operation):
        try:
            code = await _tried(_over_rpc, behind_rpc, operation, odd)
            if over_rest(operation, odd) is not None:
                again = await _tried(_over_rest, behind_rest, operation, odd)
                assert again == code, f"over /rpc it was {code or 'taken'}, over REST {again or 'taken'}"
        except (AssertionError, TimeoutError) as error:
            complaints.append(f"{odd.label}: {str(error)[:400]}")
            behind_rest.restore()
            behind_rpc.restore()
    assert not complaints, "\n" + "\n".join(complaints)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_every_text_parameter_has_an_example_that_is_good() -> None:
    """Without one its odd values would stand in requests that fail anyway."""
    wanted = {name for operation in OPERATIONS for name, shape in shapes(operation).items() if not shape.good_by_schema}
    assert wanted == set(GOOD)


async def test_a_request_that_does_something_is_seen(world: World) -> None:
    """An eye that sees nothing would call every refusal whole; and a ledger is as it was when it is restored."""
    before = world.written()
    assert not await world.tells("seen")
    assert (await world.door.rpc("session.create", {"title": "seen"}))["result"]
    assert world.written() != before
    assert await world.tells("seen")
    world.restore()
    assert not await world.tells("seen")


async def test_an_odd_method_is_not_found(world: World) -> None:
    """What it is called is not sent back at any length."""
    for method in (*FINE.values(), *EMPTY.values(), *NULS.values(), "\ud800", "x" * MEGABYTE):
        call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method})
        answer = await world.door.client.post("/rpc", content=call.encode())
        assert _code(answer, _told(answer)["error"]) in {Code.NOT_FOUND, Code.INVALID_ARGUMENT}


async def test_an_odd_subscription_is_refused_or_streams(world: World) -> None:
    """It is told before the stream begins, for a stream has no status any more."""
    world.host.stopping.set()
    good = {"sessionId": world.names["$a"], "after": 0}
    odd = list(shape_faults(SUBSCRIBE, good))
    for shape in shapes(SUBSCRIBE).values():
        odd += value_faults(shape, good, world.names, sure=True)
    for one in odd:
        asked = over_rest(SUBSCRIBE, one)
        if asked is not None:
            code = await _subscribed(world, asked.url)
            assert code in one.codes if code and one.codes else not one.codes, (one.label, code)


async def test_an_odd_position_to_go_on_from_is_refused_or_streams(world: World) -> None:
    """A browser sends back whatever id it was given."""
    world.host.stopping.set()
    for sent in (b"", b" ", b"-1", b"1.5", b"9" * 18, b"9" * 30, b"0x1", b"1 1", "٣".encode(), b"\xff", b"x" * 8_000):
        await _subscribed(world, "/events", [(b"last-event-id", sent)])


async def _subscribed(world: World, url: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> Code | None:
    answer = await world.door.client.get(f"/api/v1{url}", headers=headers)
    if answer.headers["content-type"].startswith("text/event-stream"):
        return None
    return _code(answer, _told(answer)["error"])


RAW: Final = ("%FF", "%ED%A0%80", "%C0%80", "%00", "%", "%zz", "%25", "%2e%2e%2f", "%0d%0aX:1", "+", ";", "%E2%80%AE")


async def test_bytes_of_a_url_that_are_no_text_are_told_as_any_refusal(world: World) -> None:
    """A URL may hold any bytes, whatever a client would write."""
    for operation in OPERATIONS:
        for raw in RAW if operation.verb == "GET" else ():
            path = re.sub(r"\{\w+\}", raw, operation.path)
            for query in ("", f"?{raw}", *(f"?{name}={raw}" for name in shapes(operation))):
                answer = await world.door.client.get(f"/api/v1{path}{query}")
                if answer.status_code != 200:
                    _code(answer, _told(answer)["error"])
