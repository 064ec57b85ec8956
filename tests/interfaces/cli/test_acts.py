"""What a person does to sessions, queues and questions, against a real host over a real port."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interfaces.cli.conftest import BOUND_S, PROGRAM, Line, Live

from coterie.core.codes import Code
from coterie.core.ids import SessionId, TurnId
from coterie.core.turn.loop import ModelFailed
from coterie.operations.caller import Agent
from coterie.testing.probe import ScriptedProbe

FAR: Final = "9999-01-01"


async def across(live: Live) -> tuple[str, str]:
    """A turn of the session `lead` writes to `reader` in another project; returns the message and its target."""
    here = live.line.surroundings.working_directory
    (here / "other").mkdir(exist_ok=True)
    lead = await live.host.ask("session.create", title="lead", projectPath=str(here))
    reader = await live.host.ask("session.create", title="reader", projectPath=str(here / "other"))
    lead_id, reader_id = lead["session"]["id"], reader["session"]["id"]
    message_id = await written(live, lead_id, reader_id)
    return message_id, reader_id


async def written(live: Live, source_id: str, target_id: str) -> str:
    """A message that a turn of the source has sent; the turn has ended."""
    turn_id = (await live.host.ask("session.prompt", sessionId=source_id, text="Write."))["turnId"]
    with live.host.parts.invocations.live(SessionId(source_id), TurnId(turn_id), "call", None) as invocation:
        given = {"sessionId": target_id, "content": "Look here."}
        sent = await live.host.operations.perform(Agent(invocation), "collaboration.send", given)
    await live.reply(turn_id, "written")
    return str(sent.wire()["messageId"])


async def clock_of(live: Live, session_id: str) -> datetime:
    """The time of the host."""
    found = await live.host.ask("collaboration.status", sessionId=session_id)
    return datetime.fromisoformat(found["observedAt"])


async def state_of(live: Live, message_id: str) -> str:
    """Where a message is."""
    found = await live.host.ask("collaboration.message", messageId=message_id)
    return str(found["message"]["status"])


async def test_a_session_is_renamed_and_configured(live: Live) -> None:
    """What is left out stays, and every door shows the change."""
    line, session_id = live.line, await live.host.new_session("lead")

    assert (await line.json("session", "rename", "lead", "Head"))["session"]["title"] == "Head"
    changes = ("--model", "local/two", "--mode", "ask", "--inbound", "hold", "--current-turn")
    changed = (await line.json("session", "configure", "Head", *changes))["session"]

    stored = (await live.host.ask("session.get", sessionId=session_id))["session"]
    assert {**changed, "revision": 0} == {**stored, "revision": 0}
    assert (changed["title"], changed["model"], changed["permissionMode"]) == ("Head", "local/two", "ask")
    assert (changed["inbound"], changed["currentTurnDelivery"]) == ("hold", True)
    back = (await line.json("session", "configure", "Head", "--no-current-turn", "--title", "lead"))["session"]
    assert (back["currentTurnDelivery"], back["inbound"], back["title"]) == (False, "hold", "lead")
    shown = await line.beside("session", "show", "lead")
    assert "hold: what other sessions send waits for your release" in shown.stdout
    assert "messages wait for the next turn" in shown.stdout
    assert (await line.beside("session", "rename", "lead", "Head")).stdout == "Renamed to 'Head'.\n"


async def test_to_configure_nothing_is_a_mistake(live: Live) -> None:
    """The person meant something, and would not know that nothing was done."""
    await live.host.new_session("lead")
    found = await live.line.beside("session", "configure", "lead")
    assert found.exit_code == 2
    assert found.stderr.startswith("INVALID_ARGUMENT: Nothing was to be changed")


async def test_an_archived_session_comes_back_by_its_release(live: Live) -> None:
    """It is put away, not gone; and it does not look like one that a restart has held."""
    line = live.line
    session_id = await live.host.new_session("lead")
    assert (await line.json("session", "archive", "lead"))["session"]["held"] == "archived"
    archived = await line.beside("session", "archive", "lead")
    assert archived.stdout == "Archived 'lead'.\n"
    assert f"`coterie release {session_id}`" in archived.stderr
    listed = (await line.beside("session", "list")).stdout
    assert "idle, archived" in listed
    assert "held" not in listed
    assert "does not go on" not in (await line.beside()).stdout
    assert (await line.json("release", "lead")) == {"released": 1}
    assert "archived" not in (await line.beside("session", "list")).stdout


async def test_nothing_is_deleted_where_nobody_can_be_asked(live: Live) -> None:
    """A script that means it says so."""
    session_id = await live.host.new_session("lead")
    for more in ((), ("--json",)):
        found = await live.line.beside("session", "delete", "lead", *more)
        assert found.exit_code == 2
        assert "INVALID_ARGUMENT" in found.stderr
        assert "--yes" in found.stderr
    assert (await live.host.ask("session.get", sessionId=session_id))["session"]["title"] == "lead"


async def test_what_ends_with_a_deleted_session_is_told(live: Live) -> None:
    """What waited for it has ended too, and its sender's summary says that it is gone."""
    line = live.line
    await live.host.new_session("lead")
    reader = await live.host.new_session("reader")
    turn_id = (await live.host.ask("session.prompt", sessionId=reader, text="go"))["turnId"]
    message_id = (await line.json("send", "--from", "lead", "--to", "reader", "hi"))["messageId"]

    found = await line.beside("session", "delete", "reader", "-y")

    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines() == [
        f"Deleted {reader}.",
        f"Cancelled {message_id}.",
        f"Stopping {turn_id}; it ends at its next step.",
    ]
    assert "message to reader [deleted]" in (await line.beside("status", "lead")).stdout
    assert (await line.json("session", "delete", "lead", "--yes"))["deleted"] is True


@pytest.mark.parametrize(("typed", "gone"), [(b"n\n", False), (b"\n", False), (b"\x04", False), (b"Yes\n", True)])
async def test_a_person_is_asked_before_a_session_goes_for_ever(
    live: Live, data: Path, *, typed: bytes, gone: bool
) -> None:
    """Only a clear yes deletes, and the question is no part of the result."""
    session_id = await live.host.new_session("lead")
    ended, printed, seen = await asyncio.to_thread(_typed, ["session", "delete", "lead", "--data", str(data)], typed)

    assert f"Delete the session 'lead' ({session_id}) with its transcript, for ever? [y/N]" in seen
    sessions = (await live.host.ask("session.list"))["sessions"]
    assert (ended, printed, sessions == []) == ((0, f"Deleted {session_id}.\n", True) if gone else (1, "", False))


def _typed(words: list[str], answer: bytes) -> tuple[int, str, str]:
    """Run the program on a terminal and answer its question; returns status, output and what the terminal showed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, *words]
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True) as running:
        os.close(theirs)
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(ours, 1024)
        os.write(ours, answer)
        printed, _ = running.communicate(timeout=BOUND_S)
    os.close(ours)
    return running.returncode, printed, seen.decode()


async def test_a_fork_begins_with_what_was_said(live: Live) -> None:
    """As much of it as was asked for, in a session of its own."""
    line, session_id = live.line, await live.host.new_session("lead")
    turn_id = (await live.host.ask("session.prompt", sessionId=session_id, text="one"))["turnId"]
    await live.reply(turn_id, "two")

    fork = (await line.json("session", "fork", "lead", "--up-to", "1", "--title", "other"))["session"]

    items = (await live.host.ask("session.items", sessionId=fork["id"]))["items"]
    assert [item["text"] for item in items] == ["one"]
    assert fork["title"] == "other"
    assert "lead (fork)" in (await line.beside("session", "fork", "lead")).stdout


async def test_steering_reaches_the_running_turn_or_becomes_a_prompt(live: Live) -> None:
    """The person is told which, and what no model has read is marked in the transcript."""
    line = live.line
    await live.host.new_session("lead")
    first = await line.beside("steer", "lead", "begin")
    turn_id = live.host.slots.handed_over[0]
    assert first.stdout.startswith(f"No turn could take it in, so it is a prompt. Running in {turn_id}; ")
    assert (await line.json("steer", "lead", "More."))["accepted"] is True
    second = await line.beside("steer", "lead", "And more.")
    assert second.stdout == f"Given to {turn_id}, which sees it with its next model request.\n"
    assert "offered to the running turn" in (await line.beside("queue", "list", "lead")).stdout

    assert (await line.beside("interrupt", "lead")).stdout == f"Stopping {turn_id}; it ends at its next step.\n"
    await live.reply(turn_id, "")
    items = (await line.beside("session", "items", "lead")).stdout
    assert "2. person, unread: the turn ended before a model was shown it\nMore.\n" in items
    assert "1. person\nbegin\n" in items


async def test_an_interrupt_stops_what_runs_and_no_more(live: Live) -> None:
    """What the turn has sent may be left alone; what waits goes on."""
    line = live.line
    assert await live.host.new_session("lead")
    nothing = await line.beside("interrupt", "lead")
    assert (nothing.exit_code, nothing.stdout) == (0, "No turn runs.\n")
    reader = await live.host.new_session("reader")
    sent = await line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.")
    await live.host.ask("session.prompt", sessionId=reader, text="next")
    stopped = await line.json("interrupt", "reader", "--no-cascade")
    assert (stopped["messageIds"], stopped["runningTurnIds"]) == ([sent["messageId"]], [sent["turnId"]])
    assert (await live.host.ask("queue.list", sessionId=reader))["waiting"] == 1


async def test_a_delivery_that_has_ended_can_be_tried_once_more(live: Live) -> None:
    """As a new message that names the old one; one that has not ended is a conflict."""
    line = live.line
    await live.host.new_session("lead")
    await live.host.new_session("reader")
    sent = await line.json("send", "--from", "lead", "--to", "reader", "Count.")
    early = await line.beside("retry", sent["messageId"])
    assert early.exit_code == 1
    assert early.stderr.startswith("CONFLICT: ")
    await live.reply(sent["turnId"], "seven")

    again = await line.json("retry", sent["messageId"])

    assert again["messageId"] != sent["messageId"]
    assert f"retry of  {sent['messageId']}" in (await line.beside("result", "reader")).stdout
    await live.reply(again["turnId"], "eight")
    assert "`coterie wait msg_" in (await line.beside("retry", again["messageId"])).stderr


async def test_a_queue_is_put_in_order_by_parts_of_ids(live: Live) -> None:
    """Ids are long, and stand on the screen."""
    line = live.line
    session_id = await live.host.new_session("lead")
    assert (await line.beside("queue", "list", "lead")).stdout == "Nothing waits.\n"
    await live.host.ask("session.prompt", sessionId=session_id, text="running")
    ids = [(await line.json("prompt", "lead", text))["inputId"] for text in ("one", "two", "three")]
    one, two, three = (id_[-6:] for id_ in ids)

    listed = await line.beside("queue", "list", "lead")
    assert [row.split()[0] for row in listed.stdout.splitlines()[1:]] == ids
    assert "A turn runs; the next one starts when it ends." in listed.stderr

    assert (await line.beside("queue", "move", "lead", two, "--up")).stdout == "Moved up.\n"
    assert "it is the last of its kind" in (await line.beside("queue", "move", "lead", three, "--down")).stdout
    assert await line.json("queue", "move", "lead", two, "--up") == {"moved": False}
    assert (await line.beside("queue", "promote", "lead", three)).stdout.startswith("Promoted")
    assert "goes first" in (await line.beside("queue", "list", "lead")).stdout
    again = await line.beside("queue", "promote", "lead", three)
    assert again.stderr.startswith("CONFLICT: ")
    assert (await line.beside("queue", "remove", "lead", one)).stdout == "Removed.\n"
    gone = await line.beside("queue", "remove", "lead", one)
    assert (gone.exit_code, gone.stderr.partition(":")[0]) == (1, "NOT_FOUND")
    left = (await line.json("queue", "list", "lead"))["inputs"]
    assert [item["inputId"] for item in left] == [ids[2], ids[1]]
    assert await line.json("queue", "promote", "lead", two) == {"promoted": True}
    assert await line.json("queue", "remove", "lead", two) == {"removed": True}


async def test_a_removed_message_is_cancelled(live: Live) -> None:
    """Its sender must not wait for it."""
    line = live.line
    await live.host.new_session("lead")
    reader = await live.host.new_session("reader")
    await live.host.ask("session.prompt", sessionId=reader, text="running")
    message_id = (await line.json("send", "--from", "lead", "--to", "reader", "hi"))["messageId"]
    input_id = (await line.json("queue", "list", "reader"))["inputs"][0]["inputId"]
    found = await line.beside("queue", "remove", "reader", input_id)
    assert found.stdout == f"Removed; {message_id} is cancelled, and its sender is told.\n"
    assert await state_of(live, message_id) == "cancelled"


async def test_a_part_of_several_ids_is_refused(live: Live) -> None:
    """To guess would throw away the wrong input."""
    session_id = await live.host.new_session("lead")
    for text in ("running", "one", "two"):
        await live.host.ask("session.prompt", sessionId=session_id, text=text)
    ids = [one["inputId"] for one in (await live.host.ask("queue.list", sessionId=session_id))["inputs"]]
    common = next(ids[0][:length] for length in range(len(ids[0]), 0, -1) if ids[1].startswith(ids[0][:length]))
    assert len(common) >= len("inp_") + 4
    found = await live.line.beside("queue", "remove", "lead", common)
    assert found.exit_code == 2
    assert "names 2 inputs" in found.stderr
    assert all(id_ in found.stderr for id_ in ids)


async def test_a_question_across_projects_is_shown_and_approved_once(live: Live) -> None:
    """At home, by `approve` alone, and with the input that waits for it; then the message may start."""
    line = live.line
    assert (await line.beside("approve")).stdout == "Nothing waits for your answer.\n"
    message_id, reader = await across(live)

    pending = await line.json("approve")
    request_id = pending["requests"][0]["requestId"]
    assert pending == await live.host.ask("permissions.pending")
    assert (await line.json())["requests"] == pending["requests"]
    for shown in (await line.beside(), await line.beside("approve")):
        assert "lead" in shown.stdout
        assert request_id in shown.stdout
        assert "`coterie deny ID`" in shown.stdout
    assert "does not go on" not in (await line.beside()).stdout
    queue = await line.beside("queue", "list", "reader")
    assert "waits for your approval: its sender works in another project" in queue.stdout
    assert "`coterie approve` shows the question" in queue.stderr
    assert f"`coterie queue list {reader}`" in (await line.beside("status", "reader")).stderr

    found = await line.beside("approve", request_id[-6:])

    assert (found.exit_code, found.stdout) == (0, "Approved once: 1 message may start.\n")
    assert (await line.json("approve"))["requests"] == []
    assert "waits for your approval" not in (await line.beside("queue", "list", "reader")).stdout
    assert await state_of(live, message_id) == "queued"


async def test_a_question_is_approved_for_a_time_that_can_be_ended(live: Live) -> None:
    """A grant is listed, and while it holds nobody is asked."""
    line = live.line
    assert "`--session` or `--for 1h`" in (await line.beside("grants")).stdout
    await across(live)
    request_id = (await line.json("approve"))["requests"][0]["requestId"]
    for words in (("--for", "1x"), ("--for", "400d")):
        assert (await line.beside("approve", request_id, *words)).exit_code == 2
    assert (await line.beside("approve", "--for", "1h")).exit_code == 2

    found = await line.beside("approve", request_id, "--for", "1h30m")

    assert found.stdout == "Approved for 1h30m: 1 message may start, and so may what is sent in that time.\n"
    grant = (await line.json("grants"))["grants"][0]
    assert await line.json("grants", "list") == await line.json("grants") == await live.host.ask("permissions.grants")
    assert grant["grantId"] in (await line.beside("grants", "list")).stdout
    assert (await line.beside("grants", "revoke", grant["grantId"][-6:])).stdout.startswith("Revoked")
    assert (await line.json("grants"))["grants"] == []
    again = await line.beside("grants", "revoke", grant["grantId"])
    assert again.stderr.startswith("NOT_FOUND: ")


async def test_a_denied_message_is_cancelled(live: Live) -> None:
    """Its sender hears that a person has refused."""
    line = live.line
    message_id, _ = await across(live)
    request_id = (await line.json("approve"))["requests"][0]["requestId"]
    found = await line.beside("deny", request_id)
    assert found.stdout == "Denied: 1 message cancelled, and the sender is told.\n"
    assert await state_of(live, message_id) == "cancelled"
    assert (await line.beside("deny", request_id)).stderr.startswith("NOT_FOUND: ")
    assert (await line.beside("approve", request_id)).stderr.startswith("NOT_FOUND: ")


async def test_answers_are_json_for_programs(live: Live) -> None:
    """Each is what the operation has answered."""
    line = live.line
    _, reader = await across(live)
    request_id = (await line.json("approve"))["requests"][0]["requestId"]
    assert await line.json("approve", request_id, "--for", "1h") == {"decision": "grant", "messages": 1}
    grant_id = (await line.json("grants"))["grants"][0]["grantId"]
    assert await line.json("grants", "revoke", grant_id) == {"revoked": True}
    lead = (await line.json("status", reader))["currentTask"]["senderSession"]["sessionId"]
    await written(live, lead, reader)
    request_id = (await line.json("approve"))["requests"][0]["requestId"]
    assert await line.json("deny", request_id) == {"decision": "deny", "messages": 1}


async def test_what_a_session_holds_back_is_shown_and_released(live: Live) -> None:
    """The home page says why it does not go on, and how it does."""
    line = live.line
    lead, reader = await live.host.new_session("lead"), await live.host.new_session("reader")
    await line.json("session", "configure", "reader", "--inbound", "hold")
    await written(live, lead, reader)

    home = (await line.beside()).stdout
    assert "reader: 1 waiting for a release: the session holds what other sessions send" in home
    assert "`coterie release`" in home
    told = {one["title"]: one.get("waitingFor") for one in (await line.json())["sessions"]}
    assert told == {"lead": None, "reader": ["policy"]}
    assert f"`coterie release {reader}`" in (await line.beside("queue", "list", "reader")).stderr

    assert (await line.beside("release", "reader")).stdout == "Released 1 session.\n"
    assert "does not go on" not in (await line.beside()).stdout


async def test_a_message_may_be_meant_for_the_running_turn_and_may_expire(live: Live) -> None:
    """The host is told both; a duration begins by its clock."""
    line = live.line
    await live.host.new_session("lead")
    reader = await live.host.new_session("reader")
    await line.json("session", "configure", "reader", "--current-turn")
    await live.host.ask("session.prompt", sessionId=reader, text="running")
    words = ("send", "--from", "lead", "--to", "reader", "hi", "--deliver", "current-turn")

    earliest = await clock_of(live, reader)
    sent = await line.json(*words, "--expires", "1h")
    message = (await live.host.ask("collaboration.message", messageId=sent["messageId"]))["message"]
    assert sent["deliver"] == "current_turn"
    hour = timedelta(hours=1)
    assert earliest + hour <= datetime.fromisoformat(message["expiresAt"]) <= await clock_of(live, reader) + hour
    told = await line.beside(*words)
    assert "the running turn, with its next model request" in told.stdout
    task = await line.beside(*words, "--kind", "task")
    assert "It waits for a turn of its own" in task.stderr
    assert (await line.beside(*words, "--expires", "soon")).exit_code == 2

    keyed = (*words, "--expires", f"{FAR}T00:00Z", "--key", "k")
    first = await line.json(*keyed)
    assert (await line.json(*keyed))["messageId"] == first["messageId"]


async def test_a_level_of_thinking_that_has_no_effect_is_told(live: Live) -> None:
    """It is kept, for the session may get a model that reasons; until then the person should know."""
    await live.host.new_session("lead")
    told = await live.line.json("session", "configure", "lead", "--thinking", "high")
    assert told["session"]["thinking"] == "high"
    assert "local/one is not marked as reasoning" in told["note"]
    shown = await live.line.beside("session", "show", "lead")
    assert "thinking" in shown.stdout
    assert "has no effect" in shown.stderr
    assert (await live.line.beside("session", "configure", "lead", "--thinking", "deep")).exit_code == 2


async def test_models_are_listed_and_found_by_what_people_call_them(live: Live) -> None:
    """Without asking a model anything."""
    line = live.line
    listed = await line.json("models", "list")
    assert listed == await line.json("models") == await live.host.ask("models.list")
    rows = (await line.beside("models")).stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["KEY", "local/one", "local/two"]
    assert "default" in rows[1]
    found = await line.json("models", "resolve", "TWO")
    assert (found["model"]["key"], found["selection"]) == ("local/two", "explicit")
    shown = await line.beside("models", "resolve", "--delegated")
    assert "local/one" in shown.stdout
    assert "as the default" in shown.stdout
    several = await line.beside("models", "resolve", "same")
    assert several.exit_code == 1
    assert several.stderr.startswith("MODEL_AMBIGUOUS: ")
    assert "local/two" in several.stderr


async def test_a_model_is_asked_for_a_word_and_the_answer_is_told(live: Live) -> None:
    """Latency, tokens and price of one request, without a session."""
    line = live.line
    found = await line.json("models", "test", "TWO")
    assert found == {
        "model": "local/two",
        "ok": True,
        "latencyMs": 42,
        "text": "Hello.",
        "inputTokens": 11,
        "outputTokens": 2,
        "costUsd": 0.00015,
    }
    shown = (await line.beside("models", "test")).stdout
    expected = ("local/one", "Hello.", "42 ms", "11 read, 2 written", "0.000150")
    assert [words for words in expected if words not in shown] == []
    assert (await live.host.ask("session.list"))["sessions"] == []


async def test_a_model_that_does_not_answer_ends_the_command_with_its_fault(live: Live) -> None:
    """A script can tell by the status, a person by the text."""
    probe = live.host.parts.probe
    assert isinstance(probe, ScriptedProbe)
    probe.outcome = ModelFailed(Code.PROVIDER_AUTH, "local/one: the key was refused.", transient=False)
    shown = await live.line.beside("models", "test", "local/one")
    told = await live.line.beside("models", "test", "--json")
    assert (shown.exit_code, told.exit_code) == (1, 1)
    assert "PROVIDER_AUTH: local/one: the key was refused." in shown.stdout
    assert json.loads(told.stdout)["errorCode"] == "PROVIDER_AUTH"
    several = await live.line.beside("models", "test", "same")
    assert several.stderr.startswith("MODEL_AMBIGUOUS: ")
    assert probe.probed == ["local/one"] * 2


@pytest.mark.parametrize("words", [("grants", "--json", "list"), ("models", "--data", "d", "list")])
def test_options_of_a_group_are_not_dropped_before_a_command(line: Line, words: tuple[str, ...]) -> None:
    """As on the home page."""
    found = line(*words)
    assert found.exit_code == 2
    assert "behind the name of the command" in found.stderr


async def test_the_summary_tells_what_came_of_the_newest_work(live: Live) -> None:
    """Model, task, result; and the delivery only where it is another one."""
    line = live.line
    await live.host.new_session("lead")
    reader = await live.host.new_session("reader")
    assert "local/one" in (await line.beside("status", "reader")).stdout
    sent = await line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.")
    assert "task from lead, running: Count." in (await line.beside("status", "reader")).stdout
    await live.reply(sent["turnId"], "seven")
    settled = (await line.beside("status", "reader")).stdout
    assert f"{sent['messageId']} completed: seven" in settled
    assert "last delivery" not in settled
    await live.host.ask("session.prompt", sessionId=reader, text="next")
    later: dict[str, Any] = json.loads((await line.beside("status", "reader", "--json")).stdout)
    assert "result" not in later
    told = (await line.beside("status", "reader")).stdout
    assert f"last delivery  {sent['messageId']} completed: seven" in told
