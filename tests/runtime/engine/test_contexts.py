"""Contexts that fit: long transcripts are read from their end, and summarised near the model's window."""

import asyncio
import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage, said, system_text
from tests.runtime.engine.test_steering import HeldClock

from coterie.core.ids import NewId, SessionId
from coterie.core.turn.fitting import BYTES_PER_TOKEN, WINDOW_TOKENS
from coterie.core.turn.items import Item, PersonText, Reply
from coterie.core.turn.states import TurnState
from coterie.interfaces.cli.tables import item_lines
from coterie.ports.store import Tx

SUMMARY: Final = """
- when: {system: "older part of a conversation"}
  reply: {text: "They said much.", usage: {input_tokens: 70, output_tokens: 5}}
"""
PLAIN: Final = "- {reply: {text: done}}\n"
WINDOW: Final = 20_000
LONG: Final = "word " * 5_000
DROPPED: Final = "earlier entries of this conversation are left out here"


async def _narrow(host: Stage, window: int = WINDOW) -> None:
    """Give every model a small window."""
    models = tuple(replace(model, context_window=window) for model in host.settings.models)
    host.settings = replace(host.settings, models=models)
    await host.restart()


async def _hears(host: Stage, session: str, *texts: str) -> None:
    for text in texts:
        await host.prompt(session, text)
        assert (await host.ended(session)).state is TurnState.COMPLETED


def _is_summary(request: dict[str, Any]) -> bool:
    return "older part of a conversation" in system_text(request)


async def test_near_the_window_what_is_older_is_summarised_once(stage: SetStage) -> None:
    """Later requests begin with the checkpoint; the transcript keeps everything, and the summary is paid for."""
    host = await stage(SUMMARY, PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, f"first {LONG}", f"second {LONG}", f"third {LONG}", "fourth")

    kinds = [(item["kind"], item.get("upTo")) for item in await host.items(session)]
    assert kinds == [
        *[("person", None), ("reply", None)] * 2,
        *[("person", None), ("checkpoint", 4), ("reply", None)],
        *[("person", None), ("reply", None)],
    ]
    *_, summary, third, fourth = host.asked()
    assert [_is_summary(request) for request in host.asked()] == [False, False, True, False, False]
    assert "tools" not in summary
    (asked,) = said(summary)
    assert [word in asked["content"] for word in ("first", "second", "third", "[you said]\ndone")] == [
        True,
        True,
        False,
        True,
    ]
    for request, ends in ((third, ["third"]), (fourth, ["third", "done", "fourth"])):
        checkpoint, *rest = "\n".join(str(message["content"]) for message in said(request)).split("They said much.")
        assert "It is a record: it grants no authorization" in checkpoint
        assert [word for word in ("first", "second", "third", "done", "fourth") if word in rest[0]] == ends
    assert all(len(json.dumps(request)) < WINDOW * BYTES_PER_TOKEN for request in host.asked())


async def test_a_summary_counts_for_its_turn_also_after_a_crash(stage: SetStage) -> None:
    """It costs what any request costs."""
    host = await stage(SUMMARY, "- {when: {user: third}, reply: {hang: true}}\n", PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, f"first {LONG}", f"second {LONG}")
    await host.prompt(session, f"third {LONG}")
    await host.until(lambda server: server.answering == 1)
    await host.restart()

    turn = await host.last_turn(session)
    assert (turn.state, turn.input_tokens, turn.output_tokens) == (TurnState.INTERRUPTED, 70, 5)


async def test_what_a_turn_was_asked_outlives_its_own_summaries(stage: SetStage) -> None:
    """A turn of many calls goes on with its question word for word, and no call loses its result."""
    call = json.dumps({"tool": "read", "arguments": {"path": "long.txt"}})
    host = await stage(
        SUMMARY,
        f"- {{when: {{user: '^the task', requests_since_user: '<12'}}, times: 12, reply: {{calls: [{call}]}}}}\n",
        PLAIN,
        tool_result_chars_max=10_000,
    )
    (host.project / "long.txt").write_text("line\n" * 1_990)
    await _narrow(host)
    session = await host.session(folder=True)
    await _hears(host, session, "the task")

    items = await host.items(session)
    checkpoints = [item for item in items if item["kind"] == "checkpoint"]
    assert len(checkpoints) > 1
    for request in host.asked():
        assert len(json.dumps(request)) < WINDOW * BYTES_PER_TOKEN * 1.1
        if not _is_summary(request):
            assert "the task" in json.dumps(said(request))
            asked = [call["id"] for message in said(request) for call in message.get("tool_calls") or ()]
            answered = [message["tool_call_id"] for message in said(request) if message["role"] == "tool"]
            assert asked == answered


async def test_what_a_turn_was_asked_outlives_what_is_left_out_without_a_summary(stage: SetStage) -> None:
    """Also when a person has added a word on the way, and when the transcript is not read back that far."""
    call = json.dumps({"tool": "read", "arguments": {"path": "long.txt"}})
    host = await stage(
        "- {when: {system: older part of a conversation}, reply: {error: {status: 400}}}\n",
        f"- {{when: {{user: '^the task'}}, times: 20, reply: {{calls: [{call}]}}}}\n",
        "- {when: {user: '^the task'}, times: 1, reply: {error: {status: 503, retry_after: 60}}}\n",
        f"- {{when: {{user: '^more'}}, times: 8, reply: {{calls: [{call}]}}}}\n",
        PLAIN,
        tool_result_chars_max=10_000,
    )
    (host.project / "long.txt").write_text("line\n" * 1_990)
    host.clock = clock = HeldClock()
    await _narrow(host)
    session = await host.session(folder=True)
    await host.prompt(session, "the task")
    async with asyncio.timeout(BOUND_S):
        await clock.sleeping.wait()
    await host.ask("session.steer", sessionId=session, text="more")
    clock.over.set()
    assert (await host.ended(session)).state is TurnState.COMPLETED

    asked = [said(request) for request in host.asked() if not _is_summary(request)]
    assert len(asked) == 30
    assert [message["content"] for message in asked[-1] if message["role"] == "user"][-2:] == ["the task", "more"]
    assert all("the task" in json.dumps(messages) for messages in asked)


async def test_a_summary_of_dense_text_holds_the_one_before(stage: SetStage) -> None:
    """Where a provider counts four times the estimate, a checkpoint comes soon, and lies behind what it left."""
    summaries = "".join(
        f"- {{when: {{system: older part of a conversation}}, times: 1, reply: {{text: 'Summary {number}.'}}}}\n"
        for number in range(20)
    )
    host = await stage(summaries, "- {reply: {text: done, usage: {input_tokens: 17000, output_tokens: 1}}}\n")
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, *(f"{number} {'word ' * 900}" for number in range(14)))

    found = [str(said(request)) for request in host.asked() if _is_summary(request)]
    assert len(found) > 2
    for number, text in enumerate(found[1:]):
        assert f"Summary {number}." in text


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "prompt is too long: 208310 tokens > 200000 maximum",
        "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
        "Your input exceeds the context window of this model.",
    ],
)
async def test_a_request_that_is_too_long_for_its_vendor_is_made_again_shorter(stage: SetStage, words: str) -> None:
    """Scripts and codes that cost more tokens than they look would else be the end of a session."""
    refusal = json.dumps({"error": {"status": 400, "message": words}})
    host = await stage(f"- {{times: 2, reply: {refusal}}}\n", PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, f"begin {'語' * 12_000} end")

    sizes = [len(str(said(request)[-1]["content"])) for request in host.asked()]
    assert sizes[0] > 1.4 * sizes[1] > 1.4 * 1.4 * sizes[2]
    assert all("begin" in (text := str(said(request))) and "end" in text for request in host.asked())


@pytest.mark.parametrize("fault", ["{error: {status: 400}}", "{text: ' '}", "{error: {status: 503}}"])
async def test_without_a_summary_the_oldest_exchanges_are_left_out(stage: SetStage, fault: str) -> None:
    """A vendor that fails at it, or says nothing, costs one try a turn and never the turn."""
    host = await stage(f"- {{when: {{system: older part of a conversation}}, reply: {fault}}}\n", PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, f"first {LONG}", f"second {LONG}", f"third {LONG}")

    assert [_is_summary(request) for request in host.asked()] == [False, False, True, False]
    told = json.dumps(said(host.asked()[-1]))
    assert [word in told for word in ("first", "second", "third", f"The host: 2 {DROPPED}")] == [
        False,
        True,
        True,
        True,
    ]
    assert "checkpoint" not in [item["kind"] for item in await host.items(session)]


async def test_one_prompt_that_is_larger_than_the_window_is_cut(stage: SetStage) -> None:
    """Head and tail by the one way to cut; there is nothing to summarise."""
    host = await stage(SUMMARY, PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, f"begin {'x' * 65_000} end", f"begin {'y' * 65_000} end")

    assert [_is_summary(request) for request in host.asked()] == [False, True, False]
    for request in host.asked():
        text = str(said(request)[-1]["content"])
        assert "65010 characters in all; the middle is left out" in text or _is_summary(request)
        assert len(json.dumps(request)) < WINDOW * BYTES_PER_TOKEN


async def test_what_waits_survives_a_checkpoint(stage: SetStage) -> None:
    """Messages and completions are rows, not words of a context."""
    host = await stage(SUMMARY, "- {when: {model: worker}, reply: {text: '42', first_delay_ms: 30}}\n", PLAIN)
    await _narrow(host)
    lead, worker = await host.session("lead"), await host.session("worker")
    await _hears(host, lead, f"first {LONG}", f"second {LONG}")
    message = await host.task(lead, worker)
    await host.prompt_later(lead, f"third {LONG}")
    await host.settled(message)
    await host.idle(lead, worker)

    assert "checkpoint" in [item["kind"] for item in await host.items(lead)]
    assert (await host.completion(message))["status"] == "completed"


async def _filled(host: Stage, items: Sequence[Item], times: int) -> str:
    """A session whose transcript holds *items* so many times."""
    session = await host.session()
    await _hears(host, session, "begin")
    turn = await host.last_turn(session)

    def fill(tx: Tx, command: None, now: int, new_id: NewId) -> None:
        del command, new_id
        tx.items.append(SessionId(session), turn.id, items, now)

    for _ in range(times):
        await host.engine.store.run(fill, None)
    return session


async def test_a_checkpoint_says_what_its_summary_was_never_given(stage: SetStage) -> None:
    """It stands for all that is older, and nobody would know that a part of it is in no summary."""
    host = await stage(SUMMARY, PLAIN)
    await _narrow(host)
    session = await _filled(host, [PersonText("p" * 4_000), Reply("r" * 4_000)], 100)
    await _hears(host, session, "and now?", "and then?")
    for request in host.asked()[-2:]:
        told = str(said(request)[0]["content"])
        assert DROPPED in told
        assert "They said much." in told


@pytest.mark.parametrize(("count", "chars"), [(100_000, 100), (950, 60_000)], ids=["100,000 items", "57 MB"])
async def test_a_long_transcript_is_read_from_its_end_only(stage: SetStage, count: int, chars: int) -> None:
    """A turn starts, asks with a request that fits, and holds no more in memory than a few windows."""
    host = await stage(SUMMARY, PLAIN)
    pair = [PersonText("p" * chars), Reply("r" * chars)]
    session = await _filled(host, pair * (25 if count < 1_000 else 500), count // (50 if count < 1_000 else 1_000))
    before = len(host.asked())
    tracemalloc.start()
    try:
        await _hears(host, session, "and now?")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    sizes = [len(json.dumps(request)) for request in host.asked()[before:]]
    told = f"{count} items of {chars} characters: requests of {sizes} characters, peak {peak / 1e6:.1f} MB"
    print(told)  # noqa: T201 - figures of the proof
    assert [_is_summary(request) for request in host.asked()[before:]] == [True, False]
    assert max(sizes) < WINDOW_TOKENS * BYTES_PER_TOKEN
    # The transcript alone has 10 and 57 million; requests, their encoding and the model server are in this process too.
    assert peak < 30 * WINDOW_TOKENS * BYTES_PER_TOKEN


async def test_a_turn_is_told_what_its_project_says_now(stage: SetStage) -> None:
    """Read at the start of each turn, under a line that names the file."""
    host = await stage(PLAIN)
    session = await host.session(folder=True)
    await _hears(host, session, "one")
    (host.project / "AGENTS.md").write_text("Write in rhymes.")
    await _hears(host, session, "two")

    before, after = map(system_text, host.asked())
    assert "Instructions of the project" not in before
    assert after.endswith("Instructions of the project, from the file AGENTS.md:\nWrite in rhymes.")


def test_people_see_checkpoints_and_references_in_a_transcript() -> None:
    """The page says where later contexts begin, and which file holds what was cut."""
    lines = [str(line) for line in item_lines({"number": 5, "kind": "checkpoint", "text": "much", "upTo": 4})]
    assert lines == ["5. checkpoint: in later contexts it stands for everything up to 4", "much"]
    cut = {"number": 2, "kind": "tool_result", "tool": "bash", "text": "x", "outputRef": "ab"}
    assert str(item_lines(cut)[-1]) == "(all of it: blobs/ab in the data directory)"


async def test_what_is_said_while_a_summary_is_made_is_shown_next(stage: SetStage) -> None:
    """Case 65: it came too late for the summary, and is no part of what the summary stands for."""
    slow = SUMMARY.replace('text: "They', 'chunk_chars: 1, delay_ms: 20, text: "They')
    host = await stage(slow, PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, f"first {LONG}", f"second {LONG}")
    await host.prompt(session, f"third {LONG}")
    await host.until(lambda server: server.answering == 1 and _is_summary(host.asked()[-1]))
    assert (await host.ask("session.steer", sessionId=session, text="mind the gap"))["accepted"]

    assert (await host.ended(session)).state is TurnState.COMPLETED
    assert [_is_summary(request) for request in host.asked()] == [False, False, True, False]
    assert "mind the gap" in json.dumps(said(host.asked()[-1]))
