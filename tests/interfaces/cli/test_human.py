"""What a person reads: the same answers in words."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.cli.conftest import BOUND_S, MESSAGE, SESSION, Line, Live, Stub, change, write_host

from coterie.core.errors import ConfigInvalidError

HOSTILE = "\x1b[2J[red]x\x9b\r"
SEND = ("send", "--from", SESSION, "--to", SESSION, "hi")
RECEIPT: dict[str, Any] = {
    "messageId": "msg_1",
    "sessionId": SESSION,
    "status": "queued",
    "position": 1,
    "remainingHops": 8,
    "replayed": False,
}
STATUS: dict[str, Any] = {
    "sessionId": SESSION,
    "title": "lead",
    "status": "idle",
    "waiting": 0,
    "permissionMode": "ask",
    "recentExchanges": [],
}


async def test_work_between_sessions_is_told_in_words(live: Live) -> None:
    """Each command says what came of it, and what may be done next."""
    line = live.line
    lead, reader = await live.host.new_session("lead"), await live.host.new_session("reader")
    empty = await line.beside("result", "reader")
    assert empty.stdout == "The session has got no message.\n"

    sent = await line.beside("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.")
    assert "running" in sent.stdout
    message_id = sent.stdout.split()[1]
    assert f"`coterie wait {message_id}`" in sent.stderr
    early = await line.beside("result", "reader")
    assert "No outcome yet" in early.stderr

    await live.reply(live.host.slots.handed_over[0], "seven")
    waited = await line.beside("wait", message_id)
    assert "completed" in waited.stdout
    assert "seven" in waited.stdout
    told = await line.beside("result", "reader")
    assert f"lead ({lead})" in told.stdout
    status = await line.beside("status", reader)
    assert "task from lead" in status.stdout
    items = await line.beside("session", "items", "reader", "--limit", "1")
    assert "1. task from lead" in items.stdout
    assert "More: --after 1" in items.stderr


async def test_prompts_and_their_end_are_told_in_words(live: Live) -> None:
    """What waits has a position, what is stopped a name."""
    line = live.line
    await live.host.new_session("lead")
    assert "Running in turn_" in (await line.beside("prompt", "lead", "first")).stdout
    assert (await line.beside("prompt", "lead", "second")).stdout == "Queued at position 1.\n"
    assert json.loads((await line.beside("prompt", "lead", "third", "--json")).stdout)["position"] == 2
    stopped = await line.beside("cancel", "lead")
    assert stopped.exit_code == 0
    assert (await line.beside("release", "lead")).stdout == "Nothing was held.\n"


async def test_a_part_of_an_id_has_to_be_long_enough(live: Live) -> None:
    """Three hexadecimal digits would name a stranger by chance."""
    session_id = await live.host.new_session("lead")
    assert (await live.line.beside("status", session_id[-3:])).exit_code == 1
    assert (await live.line.beside("status", session_id[-4:])).exit_code == 0


async def test_lists_are_told_in_words(live: Live) -> None:
    """An empty one says how to fill it, a long one how to go on."""
    line = live.line
    assert "coterie run" in (await line.beside("session", "list")).stdout
    assert "coterie run" in (await line.beside()).stdout
    made = await line.beside("session", "new", "--title", "a")
    assert str(line.surroundings.working_directory) in made.stdout
    assert "a" in (await line.beside("session", "show", "a")).stdout
    for number in range(21):
        await live.host.new_session(f"session {number}")
    assert "More: --cursor" in (await line.beside("session", "list", "--limit", "2")).stderr
    assert "coterie session list" in (await line.beside()).stdout


def test_cancel_names_what_it_stopped(line: Line, stub: Stub) -> None:
    """A turn ends at its next step, a message at once."""
    stub.says({"messageIds": ["msg_1"], "runningTurnIds": ["turn_1"]}, {"messageIds": [], "runningTurnIds": []})
    assert line("cancel", SESSION).stdout == "Cancelled msg_1.\nStopping turn_1; it ends at its next step.\n"
    nothing = line("cancel", SESSION)
    assert (nothing.stdout, nothing.stderr) == ("Nothing was left to stop.\n", "")


def test_a_conversation_survives_its_connection(line: Line, stub: Stub) -> None:
    """The prompt is sent again with its key, and what was missed is read."""
    session = {"session": {"id": SESSION, "revision": 3}}
    receipt = {"inputId": "inp_1", "status": "running", "turnId": "turn_1", "replayed": False}
    last = {"turnId": "turn_1", "status": "cancelled"}
    items = {"items": [{"number": 1, "turnId": "turn_1", "kind": "person", "text": "hi"}]}
    stub.says(session, {"items": []}, receipt, receipt, {"requests": []}, last, items)
    stub.events = [change(4).replace(b'"turn"', b'"other"'), b""]

    found = line("prompt", SESSION, "hi", "--wait")

    assert found.exit_code == 1
    assert "The turn was cancelled: no reason is known" in found.stderr
    prompts = [params for name, params in stub.calls if name == "session.prompt"]
    assert len(prompts) == 2
    assert prompts[0] == prompts[1]


def test_a_host_that_does_not_start_is_told_by_its_code(line: Line) -> None:
    """The reason is the starter's."""

    def start(_: Path) -> None:
        raise ConfigInvalidError("config.toml:3: unknown key.")

    line.surroundings.start = start
    found = line("run", "hi")
    assert (found.exit_code, found.stderr) == (2, "CONFIG_INVALID: config.toml:3: unknown key.\n")


def test_session_options_do_not_go_with_an_old_session(line: Line) -> None:
    """They would be dropped without a word."""
    assert line("run", "hi", "--session", "lead", "--model", "m").exit_code == 2


def test_a_refusal_of_the_system_is_one_line(line: Line) -> None:
    """A full disk is no reason for a traceback."""

    def refuse(_: Path) -> None:
        raise OSError(28, "No space left on device")

    line.surroundings.start = refuse
    found = line("run", "hi")
    assert found.exit_code == 1
    assert found.stderr.startswith("INTERNAL: The system refused: ")


def test_a_data_directory_of_nobody_is_told(line: Line) -> None:
    """The shell leaves `~nobody-here` as it is."""
    line.surroundings.fault = RuntimeError("Could not determine home directory.")
    found = line("session", "list", "--data", "~nobody-here")
    assert found.exit_code == 2
    assert found.stderr.startswith("INVALID_ARGUMENT: ")


async def test_an_interrupted_wait_ends_by_itself(live: Live) -> None:
    """Its calls are bounded."""
    await live.host.new_session("lead")
    found = await asyncio.wait_for(live.line.beside("wait", "--idle", "lead"), BOUND_S)
    assert (found.exit_code, found.stdout) == (0, "idle\n")


def test_a_token_file_of_another_form_is_told(line: Line, data: Path) -> None:
    """It cannot stand in a header."""
    write_host(data, "http://127.0.0.1:1", token="a\nb")
    found = line("session", "list")
    assert found.exit_code == 1
    assert found.stderr.startswith("HOST_UNAVAILABLE: ")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"waiting": "budget"}, f"`coterie release {SESSION}` lets it go on."),
        ({"waiting": "policy"}, f"`coterie release {SESSION}` lets it go on."),
        ({"waiting": "across_projects"}, "`coterie approve` shows the question"),
        ({"held": True}, f"`coterie release {SESSION}` lets its queue go on."),
        ({}, "`coterie wait msg_1` waits for its outcome."),
    ],
)
def test_a_message_that_waits_for_a_person_says_how_they_let_it_go(
    line: Line, stub: Stub, more: dict[str, Any], told: str
) -> None:
    """To wait for it would be to wait for oneself."""
    stub.says({**RECEIPT, **more})
    for words in (SEND, ("retry", MESSAGE)):
        found = line(*words)
        assert found.exit_code == 0, found.output
        assert told in found.stderr
        assert ("waits for" in found.stdout) == ("waiting" in more)


def test_a_reason_of_a_newer_host_is_shown_as_it_is(line: Line, stub: Stub) -> None:
    """It may know reasons that this program does not."""
    stub.says({**RECEIPT, "waiting": "full_moon"})
    assert "full_moon" in line(*SEND).stdout


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ({}, "none is configured"),
        ({"modelKey": "a/b"}, "a/b, which is not configured any more"),
        ({"modelKey": "a/b", "providerName": "a", "modelName": "Bee"}, "Bee (a/b)"),
    ],
)
def test_a_summary_names_the_model(line: Line, stub: Stub, model: dict[str, str], told: str) -> None:
    """A model that is gone explains why the next turn fails."""
    stub.says({**STATUS, **model})
    assert told in line("status", SESSION).stdout


@pytest.mark.parametrize(
    ("blocked", "told"),
    [
        ("held: restart", f"`coterie release {SESSION}` lets it go on."),
        ("held: archived", f"`coterie release {SESSION}` or a prompt brings it back."),
        ("running", "A turn runs"),
        ("waiting", "Nothing of it starts by itself."),
        ("slot", "free slot"),
        ("full moon", "full moon"),
    ],
)
def test_a_queue_says_why_it_does_not_move(line: Line, stub: Stub, blocked: str, told: str) -> None:
    """And how much of it is not shown."""
    waiting = {"inputId": "inp_1", "kind": "prompt", "preview": "hi", "promoted": False}
    stub.says({"sessionId": SESSION, "blockedBy": blocked, "waiting": 101, "inputs": [waiting]})
    found = line("queue", "list", SESSION)
    assert told in found.stderr
    assert "101 wait; these are the first 1." in found.stderr


def test_a_host_that_cannot_confine_commands_says_so(line: Line, stub: Stub) -> None:
    """At home and with each new session; whoever trusts in a wall should know that there is none."""
    unconfined = {"unconfined": True}
    nothing = list[Any]()
    home: tuple[dict[str, Any], ...] = ({}, {"sessions": nothing}, {"requests": nothing})
    stub.says(*home, unconfined)
    assert line().stderr.startswith("unconfined: ")
    stub.says(*home, unconfined)
    assert json.loads(line("--json").stdout)["unconfined"] is True
    stub.says(*home, {})
    assert "unconfined" not in line().output
    session: dict[str, Any] = {
        "id": SESSION,
        "title": "a",
        "permissionMode": "ask",
        "inbound": "accept",
        "currentTurnDelivery": False,
    }
    session |= {"mode": "agent", "revision": 1, "createdAt": "now", "updatedAt": "now"}
    stub.says({"session": session} | unconfined)
    assert line("session", "new").stderr.startswith("unconfined: ")


def test_a_host_without_models_says_so(line: Line, stub: Stub) -> None:
    """With what to do."""
    stub.says({"models": []})
    assert "`coterie up`" in line("models").stdout


ENDS: dict[str, str] = {"sourceTitle": HOSTILE, "targetTitle": HOSTILE, "createdAt": "now", "expiresAt": "then"}
OUTCOME: dict[str, str] = {"messageId": "msg_1", "status": "failed", "error": HOSTILE}
PEER: dict[str, Any] = {"sessionId": SESSION, "title": HOSTILE, "available": False}
MODEL: dict[str, Any] = {
    "key": HOSTILE,
    "label": HOSTILE,
    "aliases": [HOSTILE],
    "origin": HOSTILE,
    "default": True,
    "availableForSubagents": True,
    "reasoning": True,
    "contextWindow": 8,
}
SUMMARY: dict[str, Any] = {
    "title": HOSTILE,
    "modelKey": "a/b",
    "modelName": HOSTILE,
    "currentTask": {"senderSession": PEER, "kind": "task", "status": "failed", "text": HOSTILE},
    "result": OUTCOME,
    "lastDelivery": {**OUTCOME, "messageId": "msg_2"},
    "createdSessions": [PEER],
}
QUEUED: dict[str, Any] = {"inputId": "inp_1", "kind": "task", "preview": HOSTILE, "promoted": True, **ENDS}

PAIR: dict[str, Any] = {
    "kind": "across_projects",
    "sessionTitle": HOSTILE,
    "targetTitle": HOSTILE,
    "createdAt": "2026-01-01T00:00:00Z",
    "expiresAt": "2026-01-01T01:00:00Z",
}
CALL: dict[str, Any] = {
    "requestId": "req_1",
    "kind": "tool",
    "sessionTitle": HOSTILE,
    "tool": "bash",
    "risk": "high",
    "subject": HOSTILE,
    "shown": f"{HOSTILE}\n{HOSTILE}",
    "mode": "ask",
    "ceilingTitle": HOSTILE,
    "createdAt": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("approve",), {"requests": [{**PAIR, "requestId": "req_1", "messages": 2}]}),
        (("approve",), {"requests": [CALL]}),
        (("approve", "req_1", "--show"), {"requests": [CALL]}),
        (("grants",), {"grants": [{**PAIR, "grantId": "grt_1"}, {**CALL, "grantId": "grt_2"}]}),
        (("models",), {"models": [MODEL]}),
        (("models", "test"), {"model": HOSTILE, "ok": True, "latencyMs": 1, "text": HOSTILE}),
        (("models", "resolve"), {"model": MODEL, "selection": HOSTILE}),
        (("status", SESSION), {**STATUS, **SUMMARY}),
        (("queue", "list", SESSION), {"sessionId": SESSION, "waiting": 1, "inputs": [QUEUED]}),
        (("session", "rename", SESSION, "x"), {"session": {"title": HOSTILE}}),
        (("session", "archive", SESSION), {"session": {"id": SESSION, "title": HOSTILE}}),
    ],
)
def test_what_others_wrote_moves_no_cursor(
    line: Line, stub: Stub, words: tuple[str, ...], answer: dict[str, Any]
) -> None:
    """Titles and texts are a model's or another session's."""
    stub.says(answer)
    found = line(*words)
    assert found.exit_code == 0, found.output
    assert not [char for char in found.output if char in "\x1b\x9b\r"]
    assert "[red]x" in found.output
