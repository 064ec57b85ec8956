"""The commands against a real host over a real port."""

import asyncio
import json
import secrets
from pathlib import Path

import pytest
from tests.interfaces.cli.conftest import BOUND_S, Line, Live

from coterie.app import recover
from coterie.core.codes import Code

ESCAPE = "\x1b"


async def test_run_streams_the_reply_and_ends_with_its_turn(live: Live) -> None:
    """Its words come once: live text and the item that replaces it are one reply."""
    found, _ = await asyncio.gather(live.line.beside("run", "Say hello."), live.answer_next("hello from the model"))

    assert (found.exit_code, found.stdout) == (0, "hello from the model \n"), found.output
    session = (await live.host.ask("session.list"))["sessions"][0]
    assert session["projectPath"] == str(live.line.surroundings.working_directory)
    assert session["title"] == "Say hello."


async def test_run_without_words_makes_no_session(live: Live) -> None:
    """The host would refuse the prompt, and an empty session would be left."""
    found = await live.line.beside("run", " \n")
    assert found.exit_code == 2
    assert found.stderr.startswith("INVALID_ARGUMENT: ")
    assert (await live.host.ask("session.list"))["sessions"] == []


async def test_run_prints_json_for_programs(live: Live) -> None:
    """One value, and nothing else on either stream."""
    found, _ = await asyncio.gather(live.line.json("run", "Say hello.", "--mode", "auto"), live.answer_next("hello"))

    session = (await live.host.ask("session.list"))["sessions"][0]
    turn_id = live.host.slots.handed_over[-1]
    assert found == {"sessionId": session["id"], "turnId": turn_id, "status": "completed", "text": "hello "}
    assert session["permissionMode"] == "auto"


async def test_a_turn_that_fails_ends_run_with_1_and_its_reason(live: Live) -> None:
    """A script must not take half a reply for a whole one."""
    found, _ = await asyncio.gather(
        live.line.beside("run", "Say hello."), live.answer_next("", code=Code.PROVIDER_AUTH)
    )

    assert found.exit_code == 1
    assert "The turn failed: PROVIDER_AUTH: The vendor refused the key." in found.stderr
    assert found.stdout == ""


async def test_a_queued_prompt_is_followed_through_the_turn_before_it(live: Live) -> None:
    """What the earlier turn says is not the answer."""
    session_id = await live.host.new_session("busy")
    first = await live.host.ask("session.prompt", sessionId=session_id, text="first")

    async def answer_both() -> None:
        with live.host.feed.listen([session_id]) as listener:
            while (await live.host.ask("collaboration.status", sessionId=session_id))["waiting"] == 0:
                assert await listener.wait(BOUND_S)
        await live.reply(first["turnId"], "the first answer")
        status = await live.host.ask("collaboration.status", sessionId=session_id)
        await live.reply(status["lastTurn"]["turnId"], "the second answer")

    found, _ = await asyncio.gather(live.line.beside("prompt", "busy", "second", "--wait"), answer_both())

    assert (found.exit_code, found.stdout) == (0, "the second answer \n"), found.output


async def test_a_turn_whose_session_runs_the_next_one_already_has_completed(live: Live) -> None:
    """The next input is claimed together with the outcome, so no summary of the session tells of that turn."""
    session_id = await live.host.new_session("busy")

    async def answer_first() -> None:
        with live.host.feed.listen([session_id]) as listener:
            while not live.host.slots.handed_over:
                assert await listener.wait(BOUND_S)
        await live.host.ask("session.prompt", sessionId=session_id, text="second")
        await live.reply(live.host.slots.handed_over[0], "the first answer")

    found, _ = await asyncio.gather(live.line.beside("run", "first", "--session", "busy", "--json"), answer_first())

    told = json.loads(found.stdout)
    assert (told["status"], told["text"]) == ("completed", "the first answer ")
    assert (await live.host.ask("collaboration.status", sessionId=session_id))["status"] == "running"


async def test_two_sessions_work_together_from_the_command_line(live: Live) -> None:
    """Create, send, wait, result: each prints exactly what the operation answered."""
    line = live.line
    lead = (await line.json("session", "new", "--title", "lead"))["session"]["id"]
    reader = (await line.json("session", "new", "--title", "reader"))["session"]["id"]

    sent = await line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.", "--key", "k1")
    assert sent["status"] == "running"
    assert sent["sessionId"] == reader
    again = await line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.", "--key", "k1")
    assert (again["messageId"], again["replayed"]) == (sent["messageId"], True)
    other = await line.beside("send", "--from", "lead", "--to", "reader", "Other.", "--key", "k1")
    assert other.exit_code == 1
    assert other.stderr.startswith("IDEMPOTENCY_CONFLICT: ")

    waiting, _ = await asyncio.gather(line.json("wait", sent["messageId"]), live.reply(sent["turnId"], "seven"))
    assert waiting == await live.host.ask("collaboration.wait", messageIds=[sent["messageId"]])
    assert waiting["messages"][0]["status"] == "completed"
    result = await line.json("result", "reader", "--message", sent["messageId"])
    assert result["message"]["result"] == "seven "
    assert result["message"]["sourceSessionId"] == lead

    status = await line.json("status", reader[-8:])
    assert status["title"] == "reader"
    items = await line.json("session", "items", "reader")
    assert [item["kind"] for item in items["items"]] == ["session", "reply"]
    assert (await line.json("session", "show", reader))["session"]["id"] == reader
    assert len((await line.json("session", "list"))["sessions"]) == 2
    assert (await line.json("release")) == {"released": 0}
    assert (await line.json("cancel", "reader"))["sessionRetained"] is True


async def test_a_wait_whose_time_runs_out_ends_with_1(live: Live) -> None:
    """`wait && next` must not go on with work that is not done."""
    session_id = await live.host.new_session("slow")
    await live.host.ask("session.prompt", sessionId=session_id, text="go")

    found = await live.line.beside("wait", "--idle", "slow", "--timeout", "0")

    assert (found.exit_code, found.stdout) == (1, "running\n")
    assert "The time ran out" in found.stderr


async def test_the_home_page_shows_sessions_states_and_what_is_held(live: Live) -> None:
    """After a restart a person has to see what waits for a word."""
    session_id = await live.host.new_session("lead")
    await live.host.new_session("réader 読")

    found = await live.line.beside()

    assert found.exit_code == 0, found.output
    assert session_id in found.stdout
    assert "réader 読" in found.stdout
    assert "idle" in found.stdout
    assert "http://127.0.0.1" in found.stdout
    assert "held" not in found.stdout.lower()
    told = await live.line.json()
    assert {session["title"] for session in told["sessions"]} == {"lead", "réader 読"}
    assert live.line.surroundings.started == []

    for text in ("first", "second"):
        await live.host.ask("session.prompt", sessionId=session_id, text=text)
    await live.host.parts.store.run(recover.hold_queues, None)
    found = await live.line.beside()
    assert "running, held (restart)" in found.stdout
    assert "lead: 1 waiting" in found.stdout
    assert "coterie release" in found.stdout
    assert (await live.line.json("release", "lead")) == {"released": 1}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("session", "list"),
        ("session", "show", "lead"),
        ("session", "items", "lead"),
        ("status", "lead"),
        ("result", "lead"),
        ("release",),
        ("queue", "list", "lead"),
        ("session", "configure", "lead", "--mode", "ask"),
        ("session", "fork", "lead"),
        ("session", "archive", "lead"),
        ("session", "delete", "lead", "--yes"),
        ("steer", "lead", "\x1b[2J"),
        ("interrupt", "lead"),
        ("cancel", "lead"),
    ],
)
async def test_what_is_piped_has_no_control_characters(live: Live, words: tuple[str, ...]) -> None:
    """Nor does what a model wrote: it must not move a person's cursor."""
    session_id = await live.host.new_session("lead")
    turn_id = (await live.host.ask("session.prompt", sessionId=session_id, text=f"{ESCAPE}[2J [bold]hi"))["turnId"]
    await live.reply(turn_id, f"{ESCAPE}]0;owned\a done")

    found = await live.line.beside(*words)

    assert found.exit_code == 0, found.output
    assert not [char for char in found.output if ord(char) < 32 and char not in "\n\t"]


async def test_a_title_is_no_markup(live: Live) -> None:
    """Rich would swallow what stands in brackets."""
    await live.host.new_session("[red]lead[/red]")
    found = await live.line.beside("session", "list")
    assert "[red]lead[/red]" in found.stdout


async def test_a_session_is_named_by_title_or_part_of_its_id(live: Live) -> None:
    """Ids are long; a title that is unique is as good."""
    session_id = await live.host.new_session("lead")
    for name in (session_id, session_id[-6:], session_id.removeprefix("ses_")[:30], "lead"):
        assert (await live.line.json("status", name))["sessionId"] == session_id


async def test_a_name_of_several_sessions_is_refused_with_all_of_them(live: Live) -> None:
    """To guess would prompt the wrong one."""
    ids = {await live.host.new_session("lead"), await live.host.new_session("lead")}

    found = await live.line.beside("prompt", "lead", "hi")
    assert found.exit_code == 2
    assert found.stderr.startswith("INVALID_ARGUMENT: ")
    assert all(id_ in found.stderr for id_ in ids)

    told = await live.line.beside("prompt", "lead", "hi", "--json")
    assert {text.split()[0] for text in json.loads(told.stderr)["candidates"]} == ids


async def test_an_unknown_session_is_refused_with_near_names(live: Live) -> None:
    """The host knows the near names; its error is one line with its code."""
    await live.host.new_session("reader")
    found = await live.line.beside("status", "readr")
    assert found.exit_code == 1
    assert found.stderr.startswith("NOT_FOUND: ")
    assert found.stderr.count("\n") == 1


async def test_a_prompt_can_come_from_the_input_stream(live: Live) -> None:
    """Long texts do not fit on a command line."""
    session_id = await live.host.new_session("lead")
    found = await asyncio.to_thread(lambda: live.line("prompt", "lead", "-", stdin="from a file\n"))
    assert found.exit_code == 0, found.output
    items = await live.host.ask("session.items", sessionId=session_id)
    assert items["items"][0]["text"] == "from a file"


async def test_a_folder_that_is_not_there_is_told(live: Live) -> None:
    """The text says what would be right."""
    found = await live.line.beside("session", "new", "--folder", "nowhere")
    assert found.exit_code == 2
    assert "nowhere" in found.stderr
    assert found.stderr.count("\n") == 1


async def test_a_wrong_token_is_told_with_its_code(live: Live, data: Path) -> None:
    """The refusal comes from before JSON-RPC and looks the same."""
    (data / "token").write_text(secrets.token_hex(), "utf-8")
    found = await live.line.beside("session", "list")
    assert found.exit_code == 1
    assert found.stderr.startswith("UNAUTHENTICATED: ")


async def test_every_command_prints_an_error_as_json_too(line: Line) -> None:
    """Programs read the same fields as at the other doors."""
    found = await line.beside("session", "list", "--json")
    told = json.loads(found.stderr)
    assert (found.exit_code, found.stdout) == (1, "")
    assert (told["errorCode"], told["retryable"]) == ("HOST_UNAVAILABLE", True)
    assert "coterie up" in told["message"]
