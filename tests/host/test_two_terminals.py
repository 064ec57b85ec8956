"""Two terminals: one is the host, the other speaks JSON-RPC to it."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.host.conftest import seat_in
from tests.host.program import Host, RpcError

SCRIPT: Final = """
rules:
  - when: {user: "(?s)primes"}
    reply: {text: "Two, three and five are primes.", chunk_chars: 4, delay_ms: 2}
  - reply: {text: "Noted."}
"""
REPLY: Final = "Two, three and five are primes."


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Generator[Host]:
    """A host whose model is a scripted server in a process of its own."""
    folder = tmp_path_factory.mktemp("terminals")
    seat = seat_in(folder)
    script = folder / "script.yaml"
    script.write_text(SCRIPT, "utf-8")
    with seat.start("model-server", script, "--port", "0", "--json") as models:
        seat.variables = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": f"{models.said()['url']}/v1"}
        with seat.host(folder / "data") as host:
            yield host


@dataclass(frozen=True)
class Told:
    """One event of the stream."""

    name: str
    position: int | None
    data: dict[str, Any]


def events(host: Host, *, session_id: str, after: int | None = None, resumed: int | None = None) -> Generator[Told]:
    """The events of a session, by the position of the query or of the header with which a browser comes back."""
    connection = host.connect()
    headers = host.headers() | ({} if resumed is None else {"Last-Event-ID": str(resumed)})
    query = f"?sessionId={session_id}" + ("" if after is None else f"&after={after}")
    try:
        connection.request("GET", f"/api/v1/events{query}", headers=headers)
        response = connection.getresponse()
        assert response.getheader("content-type", "").startswith("text/event-stream")
        fields = dict[str, str]()
        while line := response.readline().decode().rstrip("\n"):
            while line:
                name, _, value = line.partition(": ")
                fields[name] = value
                line = response.readline().decode().rstrip("\n")
            if "event" in fields:
                position = int(fields["id"]) if "id" in fields else None
                yield Told(fields["event"], position, json.loads(fields["data"]))
            fields = {}
    finally:
        connection.close()


@guarantee("I4")
@guarantee("I10")
@guarantee("I14")
def test_a_task_from_one_session_to_another_is_answered_once_however_often_it_is_sent(host: Host) -> None:
    """The whole way of a person with two terminals: send, wait, result, and the same key again."""
    lead, worker = host.session("lead"), host.session("worker")
    sent = host.send(lead, worker, "Name three primes.", idempotencyKey="primes")
    assert not sent["replayed"]
    (state,) = host.settled([sent["messageId"]])
    assert state["status"] == "completed"

    told = host.ask("collaboration.result", sessionId=worker, messageId=sent["messageId"])
    assert told["ready"]
    message = told["message"]
    assert (message["status"], message["result"], message["via"]) == ("completed", REPLY, "person")
    assert (message["sourceSessionId"], message["targetSessionId"]) == (lead, worker)

    again = host.send(lead, worker, "Name three primes.", idempotencyKey="primes")
    assert again["replayed"]
    assert (again["messageId"], again["turnId"], again["status"]) == (message["id"], message["turnId"], "completed")
    given = {"asSessionId": lead, "sessionId": worker, "content": "Name three primes.", "kind": "task"}
    for other in ({"content": "Name four primes."}, {"kind": "message"}, {"sessionId": lead, "asSessionId": worker}):
        with pytest.raises(RpcError) as refused:
            host.ask("collaboration.send", idempotencyKey="primes", **{**given, **other})
        assert refused.value.code == "IDEMPOTENCY_CONFLICT"
    assert len(host.delivered(worker)) == 1

    host.idle(lead, worker)
    completion = host.completion(message["id"])
    assert (completion["targetSessionId"], completion["status"]) == (lead, "completed")
    assert REPLY in completion["content"]


def test_the_words_of_a_reply_come_one_by_one_before_it_is_whole(host: Host) -> None:
    """The model's stream is passed on while it comes. Its last pieces may be lost, for the item replaces them."""
    worker = host.session("live")
    stream = events(host, session_id=worker)
    assert next(stream).name == "cursor"
    turn = host.ask("session.prompt", sessionId=worker, text="primes, please")["turnId"]
    pieces = [told for told in takewhile(lambda told: not _ended(host, worker, told), stream) if told.name == "delta"]
    assert len(pieces) > 1
    assert {piece.data["turnId"] for piece in pieces} == {turn}
    assert REPLY.startswith("".join(piece.data["text"] for piece in pieces))


def _ended(host: Host, session_id: str, told: Told) -> bool:
    if told.name != "change" or told.data["kind"] != "turn":
        return False
    return cast("str", host.ask("collaboration.status", sessionId=session_id)["status"]) not in {"running", "queued"}


@pytest.mark.parametrize("by", ["after", "resumed"])
def test_a_stream_goes_on_where_it_broke(host: Host, by: str) -> None:
    """What happened while nobody listened comes when somebody does, without a gap and nothing twice."""
    worker = host.session("resumed")
    first = events(host, session_id=worker, after=0)
    host.ask("session.prompt", sessionId=worker, text="primes, please")
    heard = [told for told in (next(first) for _ in range(4)) if told.name == "change"]
    first.close()
    host.idle(worker)
    host.ask("session.prompt", sessionId=worker, text="and once more")
    host.idle(worker)

    newest = host.ask("session.get", sessionId=worker)["session"]["revision"]
    last = heard[-1].position
    assert last is not None
    position: dict[str, Any] = {by: last}
    for told in events(host, session_id=worker, **position):
        if told.name == "change":
            heard.append(told)
        if told.position == newest:
            break
    assert [told.position for told in heard] == list(range(1, newest + 1))


def test_a_caller_without_the_right_token_learns_nothing(host: Host) -> None:
    """The token is what tells the owner from every other program of the machine."""
    for token in ("", "wrong", host.token[:-1]):
        connection = host.connect()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("POST", "/rpc", '{"jsonrpc": "2.0", "id": 1, "method": "session.list"}', headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status == 401
        assert answer["error"]["data"]["errorCode"] == "UNAUTHENTICATED"
        assert set(answer) == {"error"}
