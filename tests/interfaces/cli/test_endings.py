"""How ends are told: of turns in a transcript, of messages in their completions, and of what nobody has to stop."""

import json
from typing import Any, Final

import pytest
from tests.interfaces.cli.conftest import MESSAGE, SESSION, Line, Live, Stub, failure, write_host

from coterie.core.codes import Code
from coterie.interfaces.cli.display import interrupted, plain
from coterie.interfaces.cli.endings import completion_words, ending

COMPLETION: Final = {"workerSessionId": SESSION, "messageId": MESSAGE, "turnId": "turn_1", "status": "completed"}
ASKED: Final = ("session", "items", SESSION)


def item(number: int, turn: int, kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    """An item of a transcript."""
    return {"number": number, "turnId": f"turn_{turn}", "kind": kind, "text": text, **more}


async def test_a_transcript_tells_which_turns_did_not_complete(live: Live) -> None:
    """A prompt without an answer looks as if the host had forgotten it."""
    session_id = await live.host.new_session("lead")
    for text, code in (("one", Code.PROVIDER_ERROR), ("two", None)):
        turn_id = (await live.host.ask("session.prompt", sessionId=session_id, text=text))["turnId"]
        await live.reply(turn_id, "" if code else "fine", code=code)
    await live.host.ask("session.prompt", sessionId=session_id, text="three")

    told = (await live.line.beside("session", "items", "lead")).stdout

    assert "1. person\none\n\n(turn failed: PROVIDER_ERROR: The vendor refused the key.)\n\n2. person\ntwo\n" in told
    assert told.count("(turn ") == 1


def test_a_turn_that_goes_on_behind_the_page_has_no_end_there(line: Line, stub: Stub) -> None:
    """It is told where the turn ends, and then once."""
    page = {"items": [item(1, 1, "person", "hi")], "cursor": 1}
    stub.says(page, {"items": [item(2, 1, "reply", "x")]})
    assert "(turn" not in line(*ASKED, "--limit", "1").stdout
    ended = {"turnId": "turn_1", "status": "interrupted", "errorCode": "INTERRUPTED", "error": "The host stopped."}
    for behind in ([item(2, 2, "person")], []):
        stub.says(page, {"items": behind}, ended)
        assert "\n(turn interrupted: The host stopped.)\n" in line(*ASKED, "--limit", "1").stdout


def test_only_turns_without_a_last_word_are_looked_up(line: Line, stub: Stub) -> None:
    """A page of a hundred answers is one call; a turn that a deleted session has taken along is no fault."""
    stub.says({"items": [item(1, 1, "person", "hi"), item(2, 1, "reply"), item(3, 2, "person", "more")]})
    stub.answers.append(failure("NOT_FOUND", "There is no turn."))
    found = line(*ASKED)
    assert found.exit_code == 0, found.output
    assert "2. reply\n(no words)\n" in found.stdout
    assert [given for name, given in stub.calls if name == "session.turn"] == [{"turnId": "turn_2"}]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({**COMPLETION, "result": "Done: x"}, "completed: Done: x"),
        ({**COMPLETION, "status": "failed", "error": "No key."}, "failed: No key."),
        (COMPLETION, "completed"),
    ],
)
def test_a_completion_is_told_in_words(body: dict[str, Any], told: str) -> None:
    """Its JSON is for a model."""
    assert completion_words(json.dumps(body)) == told


def test_a_completion_that_was_cut_is_told_as_far_as_it_goes() -> None:
    """Summaries show the beginning of a text only; no place of a cut is a fault."""
    whole = json.dumps({**COMPLETION, "result": 'a "b"\n\u00e9 c'})
    told = {completion_words(whole[:end]) for end in range(whole.index("completed") + 10, len(whole))}
    assert {"completed", 'completed: a "b"\né c'} <= told
    assert all('completed: a "b"\né c'.startswith(one) for one in told)
    for text in ("no JSON", "[1]", '{"a": 1}', "{"):
        assert completion_words(text) == text


async def test_completions_are_words_wherever_a_person_reads_them(live: Live) -> None:
    """In the transcript, the summary and the queue."""
    line = live.line
    lead = await live.host.new_session("lead")
    await live.host.new_session("reader")
    sent = await line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.")
    await live.host.ask("session.prompt", sessionId=lead, text="busy")
    await live.reply(sent["turnId"], "seven")
    assert "completed: seven" in (await line.beside("queue", "list", "lead")).stdout
    assert "completed: seven" in (await line.beside("status", "lead")).stdout
    await live.reply(live.host.slots.handed_over[1], "fine")
    assert "completion from reader\ncompleted: seven \n" in (await line.beside("session", "items", "lead")).stdout


def test_a_code_that_repeats_the_state_is_left_out() -> None:
    """`interrupted: INTERRUPTED` says it twice."""
    assert ending("interrupted", "INTERRUPTED: The host stopped.") == "interrupted: The host stopped."
    assert ending("failed", "PROVIDER_AUTH: No.") == "failed: PROVIDER_AUTH: No."


async def test_a_message_is_named_by_the_end_of_its_id_among_the_newest_of_a_session(live: Live) -> None:
    """Where no session is named there is no list to look in, so the whole id is asked for."""
    line = live.line
    await live.host.new_session("lead")
    await live.host.new_session("reader")
    sent = await line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count.")
    await live.reply(sent["turnId"], "seven")
    part = sent["messageId"][-8:]

    assert (await line.json("result", "reader", "--message", part))["message"]["id"] == sent["messageId"]
    nothing = await line.beside("cancel", "reader", "--message", part)
    assert nothing.stdout == "Nothing was left to stop.\n"
    assert f"what it had sent may go on; `coterie map {sent['messageId']}` shows that" in nothing.stderr
    for words in (("retry", part), ("wait", part), ("map", f"msg_{part}"), ("result", "reader", "--message", "ffff")):
        found = await line.beside(*words)
        assert (found.exit_code, found.stderr.partition(":")[0]) == (2, "INVALID_ARGUMENT"), words
        assert "is not the whole id of a message" in found.stderr


def test_a_whole_id_of_a_message_is_not_looked_up(line: Line, stub: Stub) -> None:
    """An outcome outlives its session, whose summary does not."""
    stub.says({"message": None})
    line("result", SESSION, "--message", MESSAGE)
    assert [name for name, _ in stub.calls] == ["collaboration.result"]


async def test_a_name_of_many_sessions_tells_their_number_and_shows_some(live: Live) -> None:
    """What is shown is not all there is."""
    for _ in range(9):
        await live.host.new_session("lead")
    found = await live.line.beside("status", "lead")
    assert "names 9 sessions, 8 of which are shown" in found.stderr
    assert found.stderr.count("ses_") == 8


def test_a_prompt_that_starts_at_once_is_not_called_queued(line: Line, stub: Stub) -> None:
    """The host gives it a turn a moment later; only what waits for something has a place."""
    receipt = {"inputId": "inp_1", "status": "queued", "position": 1}
    queues: list[dict[str, Any]] = [{"blockedBy": "slot", "inputs": [{"inputId": "inp_1"}]}, {"inputs": []}]
    for queue in queues:
        stub.says(receipt, queue)
        assert line("prompt", SESSION, "hi").stdout.startswith("It starts as soon as the host has a free slot")


def test_who_starts_a_host_is_told_what_its_last_stop_has_cut_off(line: Line, stub: Stub) -> None:
    """Nothing of it is repeated, so somebody has to know."""
    (line.surroundings.home / "host.json").unlink()
    line.surroundings.start = lambda data: write_host(data, stub.url, interrupted=2)
    stub.says({"sessions": []}, {"requests": []})
    found = line()
    assert found.exit_code == 0, found.output
    assert "2 turns were interrupted by the last stop; nothing of them is repeated." in found.stderr
    assert interrupted(1) == "1 turn was interrupted by the last stop; nothing of it is repeated."


def test_what_turns_the_words_around_it_is_taken_out_of_every_text() -> None:
    """A title must not show its end first; what joins letters stays."""
    assert plain("a\u202eb\u2066c\u200ed\u061ce\u200d\tf\n") == "abcde\u200d\tf\n"
