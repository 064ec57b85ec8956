"""Idempotency keys as clients use them: what is the same request, and what its repetition answers later on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.interfaces.conftest import Door, Host

from coterie.operations.caller import Person
from coterie.operations.catalogue import BY_NAME
from coterie.operations.perform import Operations
from coterie.ports.store import C, Query, R, Store, UseCase

SEND: Final = "collaboration.send"
SPAWN: Final = "collaboration.spawn"
TASK: Final[dict[str, Any]] = {"kind": "task"}
BOTH_WAYS: Final = pytest.mark.parametrize("doors", ["rest, rpc", "rpc, rest"])


async def _asked(door: Door, which: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a door answers: a result or an error."""
    if which == "rest":
        answer: dict[str, Any] = (await door.rest(BY_NAME[name], given)).json()
        return answer if "error" in answer else {"result": answer}
    called = await door.rpc(name, given)
    return {key: called[key] for key in ("result", "error") if key in called}


async def _with_key(host: Host, name: str) -> dict[str, Any]:
    """The least request of a kind."""
    source = await host.new_session()
    given = {"asSessionId": source, "content": "Do.", "idempotencyKey": "k"}
    return {**given, "sessionId": await host.new_session()} if name == SEND else given


@guarantee("I14")
@BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "first", "again"),
    [
        (SEND, TASK, {"notifyOnCompletion": True}),
        (SEND, TASK, {"notifyOnCompletion": None}),
        (SEND, {}, {"notifyOnCompletion": False, "kind": "message", "deliver": "next_turn"}),
        (SEND, {"expiresAt": "2999-01-01T00:00:00Z"}, {"expiresAt": "2999-01-01T05:30:00.000+05:30"}),
        (SPAWN, {}, {"notifyOnCompletion": True}),
        (SPAWN, {"notifyOnCompletion": False}, {"notifyOnCompletion": False, "title": None}),
    ],
)
async def test_a_default_is_the_same_whether_it_is_written_or_not(
    door: Door, host: Host, doors: str, *, name: str, first: dict[str, Any], again: dict[str, Any]
) -> None:
    """A client may come back in another version of itself, or with another clock, and means the same."""
    one, other = doors.split(", ")
    given = await _with_key(host, name)

    made = (await _asked(door, one, name, given | first))["result"]
    told = (await _asked(door, other, name, given | first | again))["result"]

    assert (told["messageId"], made["replayed"], told["replayed"]) == (made["messageId"], False, True)


@guarantee("I14")
@BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "first", "again"),
    [
        (SEND, TASK, {"notifyOnCompletion": False}),
        (SEND, {}, {"notifyOnCompletion": True}),
        (SEND, {"notifyOnCompletion": True}, TASK),
        (SEND, {"expiresAt": "2999-01-01T00:00:00Z"}, {"expiresAt": "2999-01-01T00:00:00+05:30"}),
        (SPAWN, {}, {"notifyOnCompletion": False}),
    ],
)
async def test_what_differs_from_a_default_is_another_request(
    door: Door, host: Host, doors: str, *, name: str, first: dict[str, Any], again: dict[str, Any]
) -> None:
    """Whoever meant another thing must hear that it was not done."""
    one, other = doors.split(", ")
    given = await _with_key(host, name)

    await _asked(door, one, name, given | first)
    told = await _asked(door, other, name, given | first | again)

    assert told["error"]["data"]["errorCode"] == "IDEMPOTENCY_CONFLICT"


@pytest.mark.parametrize("kind", ["task", "message"])
async def test_a_completion_comes_back_for_a_task_if_nobody_says(host: Host, kind: str) -> None:
    """What is compared is what is done."""
    given = {**await _with_key(host, SEND), "kind": kind}
    sent = await host.ask(SEND, **given)
    await host.ask("collaboration.cancel", sessionId=given["sessionId"])
    found = (await host.ask("collaboration.chain", messageId=sent["messageId"]))["messages"]
    assert [one["kind"] for one in found] == [kind, *(["completion"] if kind == "task" else [])]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_a_time_that_no_clock_in_utc_can_show_is_refused(door: Door, host: Host, at: str) -> None:
    """Reading the message would fail for everybody."""
    told = await _asked(door, "rpc", SEND, {**await _with_key(host, SEND), "expiresAt": at})
    assert told["error"]["data"]["errorCode"] == "INVALID_ARGUMENT"
    assert "expiresAt: " in told["error"]["message"]


# What is gone

ACTS: Final[dict[str, dict[str, Any]]] = {
    "session.create": {"title": "one", "permissionMode": "auto"},
    "session.fork": {"title": "one"},
    "session.rename": {"title": "one"},
    "session.configure": {"title": "one", "model": "local/two"},
    "session.archive": {},
}


async def _request(host: Host, name: str) -> dict[str, Any]:
    of = {} if name == "session.create" else {"sessionId": await host.new_session("one")}
    return {**of, **ACTS[name], "idempotencyKey": "k"}


@guarantee("I14")
@pytest.mark.parametrize("name", ACTS)
async def test_a_repeated_request_is_answered_although_the_session_is_gone(door: Door, host: Host, name: str) -> None:
    """Whoever lost the answer must learn the id, and not that nothing was ever done."""
    given = await _request(host, name)
    made = (await _asked(door, "rest", name, given))["result"]["session"]
    assert "status" not in made
    await host.ask("session.delete", sessionId=made["id"])

    told = [(await _asked(door, which, name, given))["result"] for which in ("rest", "rpc")]

    assert told[0] == told[1]
    session = told[0]["session"]
    assert (session["id"], session["title"], session["permissionMode"]) == (made["id"], "one", made["permissionMode"])
    assert (session["status"], told[0]["replayed"]) == ("deleted", True)


@dataclass
class MeddlingStore:
    """Does something right after each commit, before whoever asked for it can go on."""

    store: Store
    meddle: Callable[[Any], Awaitable[None]]

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        result = await self.store.run(use_case, command, brief=brief)
        await self.meddle(result)
        return result

    async def read(self, query: Query[C, R], command: C, *, brief: bool = False) -> R:
        """See the port."""
        return await self.store.read(query, command, brief=brief)


@pytest.mark.parametrize("name", ACTS)
async def test_an_act_is_answered_although_the_session_is_deleted_right_behind_it(host: Host, name: str) -> None:
    """It was done: a refusal would let its client do it again."""
    given = await _request(host, name)

    async def delete(result: Any) -> None:
        await host.ask("session.delete", sessionId=result[0].id)

    operations = Operations(replace(host.parts, store=MeddlingStore(host.parts.store, delete)))
    answer = (await operations.perform(Person(), name, given)).wire()

    assert answer["session"]["title"] == "one"
    assert "replayed" not in answer
