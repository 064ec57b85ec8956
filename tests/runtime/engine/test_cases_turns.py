"""Faults that hosts of agents are known for, in the turns of a whole host; each test names its case."""

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from typing import Any, Final

import pytest
from tests.runtime.engine.calls import HANG, refused, running, told
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage

from coterie.core.codes import Code
from coterie.core.errors import PermissionDeniedError
from coterie.core.turn.context import INTERRUPTED
from coterie.core.turn.states import TurnState
from coterie.operations import events
from coterie.operations.approving import Person
from coterie.plugins.loader import load_tools
from coterie.ports.feed import Delta
from coterie.ports.rows import Change
from coterie.runtime.tools.asking import ask_user_tool
from coterie.runtime.tools.catalogue import native_tools
from coterie.runtime.tools.delegating import delegating_tools
from coterie.runtime.tools.kept import read_output_tool
from coterie.runtime.tools.todo import todo_tool
from coterie.storage.blobs import FileOutputs
from coterie.storage.sqlite.store import SqliteStore

NOTED: Final = '- {when: {user: \'"kind": "completion"\'}, reply: {text: noted}}\n'
DONE: Final = "- {reply: {text: done}}\n"


async def test_a_turn_whose_worker_is_gone_is_ended_and_the_next_one_runs(stage: SetStage) -> None:
    """Cases 5 and 89: a turn that is lost is ended as any turn is, with one answer, and the queue goes on."""
    host = await stage("- {when: {model: worker}, times: 1, reply: {hang: true}}\n", NOTED, DONE)
    lead, worker = await host.session("lead"), await host.session("worker")
    first, second = await host.task(lead, worker), await host.task(lead, worker)
    await host.until(lambda server: server.answering == 1)

    (task,) = [one for one in asyncio.all_tasks() if "Supervisor._work" in repr(one.get_coro())]
    task.cancel()

    settled = await host.settled(first, second)
    await host.idle(lead, worker)
    assert [one["status"] for one in settled] == ["failed", "completed"]
    assert settled[0]["error"].startswith("INTERNAL: ")
    chain = await host.chain(first)
    assert [one["targetSessionId"] for one in chain if one["kind"] == "completion"] == [lead]


async def test_a_worker_that_gave_work_away_and_ended_is_told_of_it(stage: SetStage) -> None:
    """Case 16: no session is for one turn only, so what comes back later finds who asked for it."""
    host = await stage(
        """
        - when: {model: lead, user: 'go (?P<other>ses_\\w+)', requests_since_user: 0}
          reply: {calls: [{tool: session_task, arguments: {action: spawn, task: "ask ${user.other}", model: worker}}]}
        - when: {model: worker, user: 'ask (?P<other>ses_\\w+)', requests_since_user: 0}
          reply:
            calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.other}", message: q, kind: task}}]
        - {when: {model: other}, reply: {text: "42", first_delay_ms: 30}}
        """,
        NOTED,
        DONE,
    )
    lead, other = await host.session("lead"), await host.session("other")
    await host.prompt(lead, f"go {other}")
    await host.until(lambda server: len(server.requests) == 7)

    worker = (await host.exchanges(other))[0]["peer"]["sessionId"]
    turn = await host.ended(worker)
    await host.idle(lead)

    assert (turn.kind, turn.result, await host.turns(worker)) == ("completion", "noted", 2)
    assert '"result": "42"' in [item["text"] for item in await host.items(worker) if item["kind"] == "session"][-1]


async def test_a_turn_that_leaves_a_program_behind_ends_and_is_answered(stage: SetStage) -> None:
    """Case 20: a turn is over when its last reply is there; a program in the background ends with its command."""
    host = await stage(
        """
        - when: {model: worker, last: user}
          reply: {calls: [{tool: bash, arguments: {command: "exec 3> pipe; sleep 60 & echo begun"}}]}
        """,
        NOTED,
        DONE,
    )
    lead, worker = await host.session("lead", mode="auto"), await host.session("worker", mode="auto", folder=True)
    os.mkfifo(host.project / "pipe")
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        gone = group.create_task(asyncio.to_thread((host.project / "pipe").read_bytes))
        message_id = await host.task(lead, worker)
        (settled,) = await host.settled(message_id)

    # The end of the pipe: nobody who had it open lives.
    assert gone.result() == b""
    assert (settled["status"], settled["result"]) == ("completed", "done")
    await host.idle(lead)
    assert (await host.completion(message_id))["status"] == "completed"


async def _follow(host: Stage, session_id: str | None, seen: list[Change | Delta | None]) -> None:
    seen += [one async for one in events.changes(host.engine.operations.host, session_id, 0, beat_s=BOUND_S)]


async def test_two_who_look_at_a_session_make_no_second_turn(stage: SetStage) -> None:
    """Case 27: who looks owns nothing; the answer is the session's, and starts one turn of it."""
    host = await stage("- {when: {model: worker}, reply: {text: '42', first_delay_ms: 30}}\n", NOTED, DONE)
    lead, worker = await host.session("lead"), await host.session("worker")
    seen: tuple[list[Change | Delta | None], ...] = ([], [], [])
    looking = [
        asyncio.ensure_future(_follow(host, session_id, into))
        for session_id, into in zip((lead, lead, None), seen, strict=True)
    ]

    message_id = await host.task(lead, worker)
    await host.settled(message_id)
    turn = await host.ended(lead)

    for one in looking:
        one.cancel()
    await asyncio.gather(*looking, return_exceptions=True)
    assert (turn.kind, await host.turns(lead), len(host.asked("lead"))) == ("completion", 1, 1)
    assert (await host.completion(message_id))["turnId"] == turn.id


async def test_a_fork_during_a_call_leaves_its_result_where_it_belongs(stage: SetStage) -> None:
    """Case 38: a worker writes by the id of its turn, so whatever is opened meanwhile gets nothing of it."""
    host = await stage(
        """
        - when: {user: go, last: user}
          reply: {calls: [{tool: bash, arguments: {command: "echo begun > begun; cat go_on"}}]}
        """,
        DONE,
    )
    session = await host.session(mode="auto", folder=True)
    for name in ("begun", "go_on"):
        os.mkfifo(host.project / name)
    await host.prompt(session, "go")
    async with asyncio.timeout(BOUND_S):
        await asyncio.to_thread((host.project / "begun").read_text)
        forked = await host.ask("session.fork", sessionId=session)
        fork: str = forked["session"]["id"]
        await asyncio.to_thread((host.project / "go_on").write_text, "mine\n")

    turn = await host.ended(session)
    await host.prompt(fork, "and you?")
    await host.ended(fork)

    assert (turn.state, [text.split("\n")[0] for text in await host.results(session)]) == (
        TurnState.COMPLETED,
        ["mine"],
    )
    assert await host.results(fork) == []
    # The call that has no result there is shown as interrupted.
    (shown,) = [one["content"] for one in host.asked()[-1]["messages"] if one["role"] == "tool"]
    assert INTERRUPTED in shown


async def test_each_of_several_questions_to_one_session_has_its_own_answer(stage: SetStage) -> None:
    """Cases 73 and 88: the fifth is as good as the first, and is read from the fifth turn."""
    host = await stage(
        """
        - when: {model: worker, user: 'the word is (?P<word>\\w+)'}
          reply: {text: "I heard ${user.word}."}
        """,
        HANG,
    )
    turn, worker = await running(host), await host.session("worker")
    heard: list[tuple[str, str]] = []

    with host.calling(turn) as invocation:
        for word in ("alpha", "bravo", "charlie", "delta", "echo"):
            sent = await told(
                host, invocation, action="send", sessionId=worker, message=f"the word is {word}", kind="task"
            )
            waited = await told(host, invocation, action="wait", messageIds=[sent["messageId"]])
            found = await told(host, invocation, action="result", sessionId=worker, messageId=sent["messageId"])
            assert found["message"]["result"] == waited["messages"][0]["result"] == f"I heard {word}."
            heard.append((found["message"]["turnId"], word))

    assert len({turn_id for turn_id, _ in heard}) == 5


async def test_an_agent_meets_the_same_bounds_as_a_person(stage: SetStage) -> None:
    """Case 67: what it sends starts an idle session, waits for a busy one, and is refused by a full one."""
    host = await stage(HANG, inbox_max=2)
    turn, other = await running(host), await host.session("other")

    with host.calling(turn) as invocation:
        sent = [await told(host, invocation, action="send", sessionId=other, message="hello") for _ in range(3)]
        fault = await refused(host, invocation, action="send", sessionId=other, message="hello")

    assert [(one["status"], one.get("position")) for one in sent] == [("running", None), ("queued", 1), ("queued", 2)]
    assert (fault["code"], fault["limit"], fault["value"]) == ("AGENT_BUSY", "inbox_max", 2)


async def test_two_sessions_of_one_kind_answer_each_other(stage: SetStage) -> None:
    """Case 76: an answer settles the task that was sent, and is no task, though both are alike in all but ids."""
    host = await stage(
        """
        - when: {user: 'go (?P<other>ses_\\w+)', requests_since_user: 0}
          reply:
            calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.other}", message: q, kind: task}}]
        - when: {user: '^go', requests_since_user: 1}
          capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}
          reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}]}
        - {when: {user: '^go'}, reply: {text: "I know."}}
        """,
        "- {reply: {text: '42'}}\n",
    )
    one, other = await host.session(), await host.session()
    await host.prompt(one, f"go {other}")

    turn = await host.ended(one)

    (task,) = [found for found in await host.exchanges(other) if found["kind"] == "task"]
    message = (await host.ask("collaboration.message", messageId=task["messageId"]))["message"]
    assert (turn.result, message["status"], message["result"]) == ("I know.", "completed", "42")
    assert (await host.completion(message["id"]))["turnId"] == turn.id
    assert (await host.turns(one), await host.turns(other)) == (1, 1)


async def test_a_vendor_that_refuses_is_an_outcome_and_no_message(stage: SetStage) -> None:
    """Case 82: the one who asked is told once; what it says to that is sent to nobody, so nothing goes round."""
    host = await stage(
        """
        - {when: {model: worker}, reply: {error: {status: 429, retry_after: 0}}}
        - when: {model: lead, user: 'go (?P<other>ses_\\w+)', requests_since_user: 0}
          reply:
            calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.other}", message: q, kind: task}}]
        - {reply: {text: "✓"}}
        """
    )
    lead, worker = await host.session("lead"), await host.session("worker")
    await host.prompt(lead, f"go {worker}")
    await host.until(lambda server: len(server.requests) == 2 + 4 + 1)

    turn = await host.ended(lead)
    await host.idle(worker)

    chain = await host.chain((await host.exchanges(worker))[0]["messageId"])
    assert [(one["kind"], one["status"]) for one in chain] == [("task", "failed"), ("completion", "completed")]
    assert (turn.kind, await host.turns(lead), await host.turns(worker)) == ("completion", 2, 1)


async def test_a_spawner_of_spawners_comes_to_its_end_and_is_told_why(stage: SetStage) -> None:
    """Cases 84 and 86: depth and number are bounded for whichever way, and the list shows who made whom."""
    spawns = ", ".join(["{tool: session_task, arguments: {action: spawn, task: research, model: worker}}"] * 5)
    host = await stage(
        NOTED,
        f"- {{when: {{user: research, last: user}}, reply: {{calls: [{spawns}]}}}}\n",
        DONE,
        turns_max=1,
    )
    lead = await host.session("lead")
    await host.prompt(lead, "research")
    await host.until(lambda server: [one["model"] for one in server.requests].count("worker") == 8)
    await host.idle(lead)

    listed = (await host.ask("collaboration.list"))["sessions"]
    made = [one["sessionId"] for one in listed if one.get("createdBySessionId") == lead]
    assert (len(listed), len(made)) == (5, 4)
    refusal = json.loads((await host.results(lead))[-1])["error"]
    assert (refusal["code"], refusal["limit"], refusal["value"]) == ("LIMIT_EXCEEDED", "workers_active_max", 4)
    for worker in made:
        await host.idle(worker)
        assert {json.loads(text)["error"]["code"] for text in await host.results(worker)} == {"PERMISSION_DENIED"}
        with pytest.raises(PermissionDeniedError):
            await host.ask("collaboration.spawn", content="more", asSessionId=worker)
    assert len((await host.ask("session.list"))["sessions"]) == 5


async def test_a_message_that_nobody_survives_is_tried_once(stage: SetStage) -> None:
    """Case 127: what a host died of is not given to the next one, and what is behind it goes on."""
    host = await stage("- {when: {user: poison}, reply: {hang: true}}\n", NOTED, DONE)
    lead, worker = await host.session("lead"), await host.session("worker")
    poison, sound = await host.task(lead, worker, "poison"), await host.task(lead, worker, "sound")
    await host.until(lambda server: server.answering == 1)

    for _ in range(2):
        await host.restart()
    await host.ask("session.release")

    settled = await host.settled(poison, sound)
    await host.idle(lead)
    assert [one["status"] for one in settled] == ["interrupted", "completed"]
    assert len(host.asked("worker")) == 2


async def test_a_spoilt_row_fails_the_turns_that_need_it_and_no_others(stage: SetStage) -> None:
    """Case 148: its senders are told, nothing is tried without end, and every other session goes on."""
    host = await stage(NOTED, DONE)
    lead, spoilt, sound = await host.session("lead"), await host.session("worker"), await host.session("other")
    await host.prompt(spoilt, "first")
    await host.idle(spoilt)
    with closing(sqlite3.connect(host.settings.data_dir / "coterie.db", isolation_level=None)) as other:
        assert other.execute("UPDATE items SET body = '{' WHERE session_id = ?", (spoilt,)).rowcount == 2
    asked = len(host.asked())

    sent = [await host.task(lead, one) for one in (spoilt, spoilt, sound)]

    settled = await host.settled(*sent)
    await host.idle(lead, spoilt)
    assert [(one["status"], one.get("result")) for one in settled] == [
        ("failed", None),
        ("failed", None),
        ("completed", "done"),
    ]
    assert (await host.last_turn(spoilt)).error_code == Code.INTERNAL.value
    assert (await host.turns(lead), len(host.asked("worker"))) == (3, asked)


async def test_bytes_that_are_no_text_spoil_nothing(stage: SetStage) -> None:
    """Case 141: they are replaced where they come in, so every later request can be written."""
    host = await stage(
        """
        - when: {user: go, last: user}
          reply: {calls: [{tool: bash, arguments: {command: "printf 'a\\\\377\\\\376\\\\000\\\\355\\\\240\\\\200z'"}}]}
        """,
        DONE,
    )
    session = await host.session(mode="auto", folder=True)
    for text in ("go", "more"):
        await host.prompt(session, text)
        assert (await host.ended(session)).state is TurnState.COMPLETED

    (text,) = await host.results(session)
    assert text.startswith("a\ufffd\ufffd")
    assert text.endswith("z\nexit status 0")
    assert not {"\x00", "\xff"} & set(text)
    assert text.encode()


async def test_what_an_agent_is_told_is_what_there_is_now(stage: SetStage) -> None:
    """Case 214: tools come from the one list of them, and a summary is read anew each time it is asked for."""
    host = await stage(HANG)
    turn, other = await running(host), await host.session("other")
    seen: list[tuple[Any, ...]] = []

    async def look() -> None:
        (row,) = (await told(host, invocation, action="status", sessionId=other))["sessions"]
        seen.append((row["title"], row["status"], row.get("held")))

    with host.calling(turn) as invocation:
        await look()
        await host.ask("session.rename", sessionId=other, title="renamed")
        await look()
        await host.prompt(other, "go")
        await look()
        await host.ask("session.interrupt", sessionId=other)
        await host.idle(other)
        await host.ask("session.archive", sessionId=other)
        await look()
        await host.ask("session.delete", sessionId=other)
        gone = await refused(host, invocation, action="status", sessionId=other)

    assert seen == [
        ("other", "idle", None),
        ("renamed", "idle", None),
        ("renamed", "running", None),
        ("renamed", "cancelled", "archived"),
    ]
    assert gone["code"] == "NOT_FOUND"
    await host.until(lambda server: bool(server.requests))
    offered = {tool["function"]["name"]: tool["function"]["description"] for tool in host.asked()[0]["tools"]}
    kept = read_output_tool(host.engine.store, FileOutputs(host.settings.data_dir, host.clock), 0)
    given_away = delegating_tools(host.engine.operations.host.delegates, host.engine.supervisor)
    plugins = load_tools(host.engine.operations, {}).values()
    parts = host.engine.operations.host
    asking = ask_user_tool(Person(parts.store, parts.feed, host.engine.supervisor))
    native = native_tools(closed=(), environment={}, confined=parts.confined)
    known = [*native, kept, *given_away, asking, todo_tool(), *plugins]
    assert offered == {tool.spec.name: tool.spec.description for tool in known}


async def test_the_file_beside_the_ledger_stays_small_under_many_writers(stage: SetStage) -> None:
    """Case 132: one thread writes, many requests to a commit, and what is written ahead is folded in as it grows."""
    host = await stage(HANG, prompts_max=1_000)
    session = await host.session()
    store = host.engine.store
    assert isinstance(store, SqliteStore)
    ahead, commits = host.settings.data_dir / "coterie.db-wal", store.commits
    sizes: list[int] = []

    for _ in range(12):
        asked = [host.ask("session.prompt", sessionId=session, text="x" * 65_000) for _ in range(50)]
        await asyncio.gather(*asked, host.ask("session.list"), host.ask("queue.list", sessionId=session))
        sizes.append(ahead.stat().st_size)

    assert (await host.ask("queue.list", sessionId=session))["waiting"] == 12 * 50 - 1
    assert store.commits - commits < 12 * 50 / 2
    assert max(sizes) < 24 << 20 < sum(len("x" * 65_000) for _ in range(600))
