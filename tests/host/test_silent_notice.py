"""A notice that its lead leaves unanswered, from the task to the vendor's requests, with a host as people have it."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.host.program import Host, Models, RpcError, Seat, scripted
from tests.runtime.engine.wire import WIRES, mute, spoken, told

from coterie.core.turn.silence import INSTRUCTION

ANSWER: Final = f"Forty-two. {'It took a while to count them all. ' * 60}"
SCRIPT: Final = f"""
rules:
  - when: {{model: "*-worker"}}
    reply: {{text: "{ANSWER}"}}
  - when: {{model_regex: "(?P<wire>.*)-lead", user: "Have it counted.$", requests_since_user: 0}}
    reply:
      calls: [{{tool: session_task, arguments: {{action: spawn, task: Count., model: "${{model.wire}}/worker"}}}}]
  - when: {{model: "*-lead", user: "Have it counted.$", requests_since_user: 1}}
    capture: {{id: {{from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}}}
    reply: {{calls: [{{tool: session_task, arguments: {{action: wait, messageIds: ["${{id}}"]}}}}]}}
  - when: {{model: "*-lead", user: "Have it counted.$", tool_result: '"result": ?"(?P<count>[^.]+)'}}
    reply: {{text: "The count is ${{tool.count}}."}}
  - when: {{model: "*-lead", user: "Sum it up.$"}}
    reply: {{text: "It was counted."}}
  - reply: {{silence: true, thinking: "It needs no reply."}}
"""
SHOWN_CHARS_MAX: Final = 1000
"""The answer does not fit into what a model is shown of a tool result, so reading it leaves its notice to come."""
FAILED: Final = ("failed", "EMPTY_MODEL_RESPONSE")
COMPLETED: Final = ("completed", None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory, not made yet."""
    return tmp_path / "data"


@pytest.fixture
def models(data: Path) -> Generator[Models]:
    """A lead and a worker on each wire; no request to them may have carried an assistant message without words."""
    with scripted(SCRIPT) as models:
        tables = [f"[limits]\ntool_result_chars_max = {SHOWN_CHARS_MAX}\n"]
        tables += [
            f'[[models]]\nkey = "{api}/{name}"\napi = "{api}"\nmodel = "{api}-{name}"\n'
            f'base_url = "{models.server.url}{path}"\navailable_for_subagents = true\n'
            for api, path in WIRES.items()
            for name in ("lead", "worker")
        ]
        data.mkdir()
        (data / "config.toml").write_text("\n".join(tables), "utf-8")
        yield models
        assert not [found for request in models.server.requests for found in mute(request)]


def session(host: Host, api: str, name: str) -> str:
    """Create a session that speaks a wire."""
    return cast("str", host.ask("session.create", title=name, model=f"{api}/{name}")["session"]["id"])


def asked(models: Models, name: str, after: int = 0) -> list[dict[str, Any]]:
    """The requests to a lead or a worker."""
    found = cast("list[dict[str, Any]]", models.server.requests)
    return [request for request in found if request["model"].endswith(f"-{name}")][after:]


def ended(host: Host, session_id: str) -> tuple[dict[str, Any], tuple[str, str | None]]:
    """Wait until a session is idle; its last turn, and how that ended."""
    host.idle(session_id)
    last = host.ask("collaboration.status", sessionId=session_id)["lastTurn"]
    turn = host.ask("session.turn", turnId=last["turnId"])
    return turn, (turn["status"], turn.get("errorCode"))


def prompted(host: Host, session_id: str, text: str) -> tuple[str, str | None]:
    """Prompt a session; how the turn ended."""
    host.ask("session.prompt", sessionId=session_id, text=text)
    return ended(host, session_id)[1]


def was_asked_again(requests: list[dict[str, Any]]) -> bool:
    """Whether they are a request and the one that follows a silent reply, which says so in its instructions only."""
    first, second = requests
    same = [spoken(request, role) for request in (first, second) for role in ("user", "assistant")]
    return same[:2] == same[2:] and [INSTRUCTION in told(request) for request in requests] == [False, True]


def turns_told(host: Host, session_id: str) -> list[str]:
    """The turns that the stream of a session tells of up to now, each as often as it tells of it."""
    newest = str(host.ask("session.get", sessionId=session_id)["session"]["revision"])
    connection = host.connect()
    found = list[str]()
    fields: dict[str, str] = {}
    try:
        connection.request("GET", f"/api/v1/events?sessionId={session_id}&after=0", headers=host.headers())
        response = connection.getresponse()
        while fields.get("id") != newest:
            fields = {}
            while line := response.readline().decode().rstrip("\n"):
                name, _, value = line.partition(": ")
                fields[name] = value
            if fields.get("event") == "change":
                change = json.loads(fields["data"])
                found += [change["ref"]] if change["kind"] == "turn" else []
    finally:
        connection.close()
    return found


@guarantee("I6")
@pytest.mark.parametrize("api", WIRES)
def test_a_task_that_was_done_and_read_ends_well_although_its_notice_is_left_unanswered(
    seat: Seat, models: Models, data: Path, api: str
) -> None:
    """One request for the notice and no error; the silence after it, of a person's turn, is asked again and fails."""
    with seat.host(data) as host:
        lead = session(host, api, "lead")
        host.ask("session.prompt", sessionId=lead, text="Have it counted.")
        notice, outcome = ended(host, lead)
        assert (notice["kind"], *outcome) == ("completion", *COMPLETED)
        completion = host.ask("collaboration.result", sessionId=lead, turnId=notice["turnId"])["message"]
        task_id = completion["replyToMessageId"]
        worker = completion["sourceSessionId"]
        chain = host.chain(task_id)
        assert [(one["kind"], one["status"]) for one in chain] == [("task", "completed"), ("completion", "completed")]
        assert (chain[0]["result"], completion["id"]) == (ANSWER, chain[1]["id"])
        read, *_, silent = asked(models, "lead")
        assert len(asked(models, "lead")) == 3 + 1
        assert spoken(silent, "assistant")[-1] == "The count is Forty-two."
        assert not [request for request in (read, silent) if INSTRUCTION in told(request)]
        assert turns_told(host, lead).count(notice["turnId"]) == 2

        assert prompted(host, lead, "And?") == FAILED
        assert was_asked_again(asked(models, "lead", 4))
        assert host.chain(task_id) == chain
        host.process.kill()

    with seat.host(data) as host:
        assert prompted(host, lead, "Still nothing?") == FAILED
        assert was_asked_again(asked(models, "lead", 6))
        host.settled([host.send(lead, worker, "Count again.")["messageId"]])
        again, outcome = ended(host, lead)
        assert (again["kind"], *outcome) == ("completion", *COMPLETED)
        assert len(asked(models, "lead", 8)) == 1
        assert prompted(host, lead, "Sum it up.") == COMPLETED
        assert spoken(asked(models, "lead")[-1], "assistant") == spoken(silent, "assistant")
        assert host.ask("collaboration.result", sessionId=worker, messageId=task_id)["message"] == chain[0]
        assert host.ask("ledger.verify")["ok"]


@guarantee("I13")
@pytest.mark.parametrize("api", WIRES)
def test_nobody_can_bring_about_the_exception_of_a_notice(seat: Seat, models: Models, data: Path, api: str) -> None:
    """Not by its words in whatever place, not by other kinds of messages, and not by a field that there is not."""
    with seat.host(data) as host:
        lead, worker = session(host, api, "lead"), session(host, api, "worker")
        host.settled([host.send(lead, worker, "Count.")["messageId"]])
        assert ended(host, lead)[1] == COMPLETED
        (copied,) = spoken(asked(models, "lead")[0], "user")
        assert '"kind": "completion"' in copied

        assert prompted(host, lead, copied) == FAILED
        for kind in ("task", "message"):
            sent = host.send(worker, lead, copied, kind=kind)
            (settled,) = host.settled([sent["messageId"]])
            assert ended(host, lead)[1] == FAILED
            assert settled["error"].startswith("EMPTY_MODEL_RESPONSE: ")
        assert all(was_asked_again(asked(models, "lead")[first : first + 2]) for first in (1, 3, 5))

        before = len(asked(models, "lead"))
        origin = {"kind": "completion", "messageId": "msg_2", "replyToMessageId": "msg_1"}
        for forged in ({"kind": "completion"}, {"origin": origin}, {"sessionMessage": origin}, {"mayBeSilent": True}):
            for operation, params in (
                ("session.prompt", {"sessionId": lead, "text": "x"}),
                ("collaboration.send", {"sessionId": lead, "content": "x", "asSessionId": worker}),
            ):
                with pytest.raises(RpcError) as refused:
                    host.ask(operation, **{**params, **forged})
                assert refused.value.code == "INVALID_ARGUMENT"
        host.idle(lead)
        assert len(asked(models, "lead")) == before
