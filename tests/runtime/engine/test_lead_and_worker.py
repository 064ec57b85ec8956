"""A lead gives work away and hears of it once: by what it reads, or by a notice that starts a turn."""

import asyncio
import json
import os
from typing import Final

from tests.guarantees import guarantee
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage

from coterie.core.codes import Code
from coterie.core.ids import NewId, TurnId
from coterie.core.turn.states import TurnState
from coterie.model_server import ModelServer
from coterie.ports.store import Tx

SPAWN: Final = """
  - when: {model: lead, user: "^go", requests_since_user: 0}
    reply: {calls: [{tool: session_task, arguments: {action: spawn, task: count, model: worker}}]}
"""
WAIT: Final = """
  - when: {model: lead, user: "^go", requests_since_user: 1}
    capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"', nth: -1}}
    reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}]}
"""
ANSWER: Final = """
  - when: {model: lead, user: "^go", requests_since_user: 2, tool_result: '"result": ?"(?P<answer>[^"]+)"'}
    reply: {text: "It is ${tool.answer}."}
  - when: {model: worker}
    reply: {text: "42"}
"""


async def _sent(stage: Stage, session_id: str) -> str:
    """The one message that a session has sent."""
    (sent,) = [one for one in await stage.exchanges(session_id) if one["direction"] == "outgoing"]
    return sent["messageId"]


@guarantee("I7")
async def test_a_lead_that_waits_answers_from_the_result_and_is_not_told_again(stage: SetStage) -> None:
    """Case 1: a second turn for what was read would cost a request and confuse the lead."""
    host = await stage(SPAWN, WAIT, ANSWER)
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    turn = await host.ended(lead)

    assert (turn.state, turn.result) == (TurnState.COMPLETED, "It is 42.")
    sent = await _sent(host, lead)
    completion = await host.completion(sent)
    assert (completion["status"], completion["turnId"]) == ("completed", turn.id)
    assert (len(host.asked("lead")), len(host.asked("worker"))) == (3, 1)
    assert await host.turns(lead) == 1
    (task,) = [one for one in await host.chain(sent) if one["kind"] == "task"]
    assert (task["status"], task["result"]) == ("completed", "42")


@guarantee("I8")
async def test_two_workers_make_one_completion_each_for_the_lead_that_spawned_them(stage: SetStage) -> None:
    """Case 9: one that lands while the lead reads another must be there too."""
    host = await stage(
        """
      - when: {model: lead, user: "^go", requests_since_user: 0}
        reply:
          calls:
            - {tool: session_task, arguments: {action: spawn, task: first, model: worker}}
            - {tool: session_task, arguments: {action: spawn, task: second, model: worker}}
      - when: {model: lead, user: "^go", requests_since_user: 1}
        capture:
          a: {from: tool_results, pattern: '"messageId": ?"([^"]+)"', nth: 1}
          b: {from: tool_results, pattern: '"messageId": ?"([^"]+)"', nth: 2}
        reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${a}", "${b}"]}}]}
      - when: {model: lead, user: "^go"}
        reply: {text: "both"}
      - when: {model: worker, user: first}
        reply: {text: "one"}
      - when: {model: worker}
        reply: {text: "two"}
    """,
    )
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    turn = await host.ended(lead)

    chain = await host.chain((await host.exchanges(lead))[0]["messageId"])
    tasks = [one for one in chain if one["kind"] == "task"]
    completions = [one for one in chain if one["kind"] == "completion"]
    assert [one["result"] for one in tasks] == ["one", "two"]
    assert sorted(one["replyToMessageId"] for one in completions) == sorted(one["id"] for one in tasks)
    assert {(one["targetSessionId"], one["status"], one["turnId"]) for one in completions} == {
        (lead, "completed", turn.id)
    }
    assert len(host.asked("lead")) == 3


@guarantee("I7")
async def test_a_lead_that_does_not_wait_is_told_in_a_turn_of_its_own(stage: SetStage) -> None:
    """Cases 13 and 69: the lead is idle when the worker ends, so the notice itself must start it."""
    host = await stage(
        SPAWN,
        """
      - when: {model: lead, user: "^go"}
        reply: {text: "It is on its way."}
      - when: {model: lead, user: '"kind": "completion"'}
        reply: {text: "It has come."}
      - when: {model: worker}
        reply: {text: "42", first_delay_ms: 30}
    """,
    )
    lead = await host.session("lead")
    await host.prompt(lead, "go")
    await host.until(lambda server: len(server.requests) == 4)

    turn = await host.ended(lead)

    assert (turn.kind, turn.result) == ("completion", "It has come.")
    completion = await host.completion(await _sent(host, lead))
    assert (completion["status"], completion["turnId"]) == ("completed", turn.id)
    told = json.loads(completion["content"])
    assert (told["status"], told["result"]) == ("completed", "42")
    assert (len(host.asked("lead")), await host.turns(lead)) == (3, 2)


@guarantee("I7")
async def test_a_result_that_the_running_turn_reads_is_not_told_again(stage: SetStage) -> None:
    """Reading by `result` counts like waiting: what matters is that the outcome stands in the transcript."""
    host = await stage(
        SPAWN,
        """
      - when: {model: lead, user: "^go", tool_result: '"ready": ?true.*"result": ?"(?P<answer>[^"]+)"'}
        reply: {text: "It is ${tool.answer}."}
      - when: {model: lead, user: "^go"}
        capture:
          session: {from: tool_results, pattern: '"sessionId": ?"([^"]+)"'}
          message: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}
        reply:
          delay_ms: 10
          calls:
            - tool: session_task
              arguments: {action: result, sessionId: "${session}", messageId: "${message}"}
      - when: {model: worker}
        reply: {text: "42"}
    """,
    )
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    turn = await host.ended(lead)

    assert (turn.state, turn.result) == (TurnState.COMPLETED, "It is 42.")
    completion = await host.completion(await _sent(host, lead))
    assert (completion["status"], completion["turnId"]) == ("completed", turn.id)
    assert await host.turns(lead) == 1


async def test_a_result_that_is_written_with_the_end_of_the_turn_is_not_told_again(stage: SetStage) -> None:
    """A turn that ends at its bound of requests keeps what its last tool answered, and has read it."""
    host = await stage(SPAWN, WAIT, ANSWER, "- {reply: {text: told}}", model_requests_max=2)
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    turn = await host.ended(lead)

    assert '"result": "42"' in (await host.results(lead))[1]
    assert (turn.kind, turn.error_code, await host.turns(lead)) == ("prompt", Code.LIMIT_EXCEEDED.value, 1)
    completion = await host.completion(await _sent(host, lead))
    assert (completion["status"], completion["turnId"]) == ("failed", turn.id)


@guarantee("I9")
async def test_a_crash_between_reading_and_writing_brings_the_notice_again(stage: SetStage) -> None:
    """Nobody can tell whether the lead had understood it, so it is told, but by no start of the host."""
    host = await stage(
        SPAWN,
        """
      - when: {model: lead, user: "^go", requests_since_user: 1}
        capture: {id: {from: tool_results, pattern: '"messageId": ?"([^"]+)"'}}
        reply:
          calls:
            - {tool: session_task, arguments: {action: wait, messageIds: ["${id}"]}}
            - {tool: bash, arguments: {command: "echo read > pipe; sleep 60"}}
      - when: {model: lead, user: '"kind": "completion"'}
        reply: {text: "told"}
      - when: {model: worker}
        reply: {text: "42"}
    """,
    )
    lead = await host.session("lead", mode="auto", folder=True)
    os.mkfifo(host.project / "pipe")
    await host.prompt(lead, "go")
    # The second call of a reply begins when the first one has its result.
    async with asyncio.timeout(BOUND_S):
        assert await asyncio.to_thread((host.project / "pipe").read_text) == "read\n"

    await host.restart()

    sent = await _sent(host, lead)
    status = await host.ask("collaboration.status", sessionId=lead)
    assert (status["held"], status["waiting"], status["lastTurn"]["status"]) == ("restart", 1, "interrupted")
    assert (await host.completion(sent))["status"] == "queued"
    assert (host.engine.interrupted, host.engine.held, len(host.asked())) == (1, 1, 3)
    await host.ask("session.release", sessionId=lead)
    turn = await host.ended(lead)
    assert (turn.kind, turn.result) == ("completion", "told")
    completion = await host.completion(sent)
    assert (completion["status"], completion["turnId"]) == ("completed", turn.id)
    assert (await host.turns(lead), len(host.asked())) == (2, 4)


async def test_leads_that_wait_leave_their_slots_to_their_workers(stage: SetStage) -> None:
    """Twelve leads fill four slots three times over: if waiting held a slot, no worker could ever begin."""
    host = await stage(
        SPAWN,
        WAIT,
        """
          - when: {model: lead, user: "^go"}
            reply: {text: "done", first_delay_ms: 40}
          - when: {model: worker}
            reply: {text: "42", first_delay_ms: 40}
        """,
        turns_max=4,
    )
    seen: set[int] = set()

    def never(server: ModelServer) -> bool:
        seen.add(server.answering)
        return False

    watching = asyncio.ensure_future(host.server.until(never))
    leads = [await host.session("lead") for _ in range(12)]
    for lead in leads:
        await host.ask("session.prompt", sessionId=lead, text="go")

    ended = [await host.ended(lead) for lead in leads]

    watching.cancel()
    assert {(turn.state, turn.result) for turn in ended} == {(TurnState.COMPLETED, "done")}
    assert max(seen) <= 4
    assert (len(host.asked("lead")), len(host.asked("worker"))) == (36, 12)
    assert [await host.turns(lead) for lead in leads] == [1] * 12


async def test_a_turn_that_has_waited_goes_before_new_work(stage: SetStage) -> None:
    """Otherwise a full queue keeps a lead from answering for as long as people go on prompting."""
    host = await stage(
        SPAWN,
        WAIT,
        """
          - when: {model: lead, user: "^go"}
            reply: {text: "done"}
          - when: {model: worker}
            reply: {text: "42", first_delay_ms: 300}
          - when: {model: other}
            reply: {text: "more", first_delay_ms: 40}
        """,
        turns_max=1,
    )
    lead = await host.session("lead")
    others = [await host.session("other") for _ in range(4)]
    await host.prompt(lead, "go")
    await host.until(lambda server: [request["model"] for request in server.requests].count("worker") == 1)
    for other in others:
        await host.ask("session.prompt", sessionId=other, text="next")

    await host.idle(lead, *others)

    order = [request["model"] for request in host.asked()]
    # One that was claimed in the moment of the worker's end may go first.
    assert order[:3] == ["lead", "lead", "worker"]
    assert "lead" in order[3:5], order


LONG = """
- when: {model: lead, last: user}
  reply:
    calls:
      - {tool: session_task, arguments: {action: spawn, model: worker, task: one}}
      - {tool: session_task, arguments: {action: spawn, model: worker, task: two}}
      - {tool: session_task, arguments: {action: spawn, model: worker, task: three}}
- when: {model: lead, last: tool, requests_since_user: 1}
  capture:
    one: {from: tool_results, tool: session_task, pattern: '"messageId":\\s*"([^"]+)"', nth: 1}
    two: {from: tool_results, tool: session_task, pattern: '"messageId":\\s*"([^"]+)"', nth: 2}
    three: {from: tool_results, tool: session_task, pattern: '"messageId":\\s*"([^"]+)"', nth: 3}
  reply:
    calls:
      - {tool: session_task, arguments: {action: wait, messageIds: ["${one}", "${two}", "${three}"]}}
- when: {model: lead}
  reply: {text: "read"}
"""


async def test_long_results_of_one_wait_all_reach_the_model(stage: SetStage) -> None:
    """What was cut out of a tool's answer was not shown, and its notice must not be taken for read (case 115)."""
    worker = f"- when: {{model: worker}}\n  reply: {{text: '{'x' * 12_000}'}}\n"
    host = await stage(LONG, worker)
    lead = await host.session("lead")

    await host.prompt(lead, "ask three")
    await host.idle(lead)

    shown = json.loads((await host.results(lead))[-1])
    assert [message["status"] for message in shown["messages"]] == ["completed"] * 3
    assert all(message["truncated"] and "characters in all" in message["result"] for message in shown["messages"])
    assert await host.turns(lead) == 1


async def test_a_repeated_create_answers_although_its_folder_is_gone(stage: SetStage) -> None:
    """A replay tells what was done; what the world is like by now is no part of it."""
    host = await stage("- reply: {text: hi}")
    asked = {"title": "t", "projectPath": str(host.project), "idempotencyKey": "k"}
    first = await host.ask("session.create", **asked)
    host.project.rmdir()

    again = await host.ask("session.create", **asked)

    assert (again["session"]["id"], again["replayed"]) == (first["session"]["id"], True)


async def test_a_cancel_that_nobody_was_told_of_is_found(stage: SetStage) -> None:
    """Wake-ups may be lost; the worker looks again by itself."""
    host = await stage("- reply: {hang: true}")
    session = await host.session()
    turn = TurnId(await host.prompt(session, "go"))
    await host.until(lambda server: server.answering == 1)

    def fence(tx: Tx, command: TurnId, now: int, new_id: NewId) -> None:
        del now, new_id
        assert tx.turns.fence(command)

    await host.engine.store.run(fence, turn)

    assert (await host.ended(session)).state is TurnState.CANCELLED
