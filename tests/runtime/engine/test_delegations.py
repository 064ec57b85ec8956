"""A turn gives work to subagents of its own session: they report, and end with it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage, said, system_text
from tests.runtime.engine.test_approvals import answer, questions

from coterie.core.turn.states import TurnState
from coterie.runtime import worker

GIVES: Final = """
- when: {model: one, last: user, user: '^give (?P<what>.+)'}
  reply: {calls: [{tool: task, arguments: {prompt: "sub ${user.what}"}}]}
"""
SUB: Final = """
- when: {user: '^sub (?P<what>\\S+)$'}
  reply: {text: "found ${user.what}"}
"""
REST: Final = """
- reply: {text: "done"}
"""


def reports(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reports in a transcript."""
    return [item for item in items if item["kind"] == "report"]


async def heartbeats(host: Stage, session: str) -> list[dict[str, Any]]:
    """What a person is shown of delegations that run."""
    status = await host.ask("collaboration.status", sessionId=session)
    found: list[dict[str, Any]] = status.get("delegations") or []
    return found


def define(host: Stage, name: str, front: str, text: str = "") -> None:
    """Write a definition into the project."""
    folder = host.project / ".coterie/agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\n{front}\n---\n{text}\n", "utf-8")


async def test_a_turn_stays_open_for_what_it_gave_away_and_is_told_what_came_of_it(stage: SetStage) -> None:
    """The model may have nothing more to say before the report is there; its answer comes after it."""
    host = await stage(
        GIVES,
        SUB,
        """
        - when: {user: 'delegation-report'}
          reply: {text: "I know now."}
        - reply: {text: "I wait."}
        """,
    )
    session = await host.session()
    await host.prompt(session, "give a")

    turn = await host.ended(session)

    assert (turn.state, turn.result) == (TurnState.COMPLETED, "I know now.")
    (report,) = reports(await host.items(session))
    assert (report["text"], report["delegation"]["agent"], report["delegation"]["status"]) == (
        "found a",
        "general",
        "completed",
    )
    assert await host.turns(session) == 1


async def test_a_report_that_was_waited_for_is_told_once(stage: SetStage) -> None:
    """Its text is in the tool's answer; an item besides would be the same words a second time."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub a}}, {tool: task_wait, arguments: {}}]}
        """,
        SUB,
        REST,
    )
    session = await host.session()
    await host.prompt(session, "go")
    await host.idle(session)

    waited = json.loads((await host.results(session))[-1])
    assert [one["report"] for one in waited["delegations"]] == ["found a"]
    assert reports(await host.items(session)) == []


async def test_a_subagent_knows_its_task_alone_and_only_reads(stage: SetStage) -> None:
    """Neither the conversation nor a tool that changes anything, nor one to give the work on."""
    host = await stage(GIVES, SUB, REST)
    session = await host.session(folder=True)
    await host.prompt(session, "give a")
    await host.idle(session)

    (asked,) = [request for request in host.asked() if said(request)[0]["content"] == "sub a"]
    assert [one["function"]["name"] for one in asked["tools"]] == ["read", "glob", "grep"]
    assert "You are a subagent" in system_text(asked)
    assert len(said(asked)) == 1


async def test_a_definition_says_what_a_subagent_is(stage: SetStage) -> None:
    """Name, tools, model and words come from a file of the project; what it may not give stays away."""
    host = await stage(
        """
        - when: {model: one, last: user, user: go}
          reply: {calls: [{tool: task, arguments: {prompt: sub b, agent: writer, wait: true}}]}
        - when: {model: other}
          reply: {text: "written"}
        """,
        REST,
    )
    define(
        host,
        "writer",
        "description: Writes.\ntools: [write, read, session_task, task, ask_user]\nmodel: other",
        "Be quick.",
    )
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await host.idle(session)

    (asked,) = host.asked("other")
    assert [one["function"]["name"] for one in asked["tools"]] == ["write", "read"]
    assert "Be quick." in system_text(asked)
    assert json.loads((await host.results(session))[0])["delegations"][0]["report"] == "written"


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("tools: [read]", "description is missing"),
        ("description: x\ncolour: red", "'colour' is not one of"),
        ("description: [", "its front matter is not YAML"),
        ("description: x\nname: '../x'", "its name must be"),
        ("description: x\ntools: {a: 1}", "tools must be a list"),
        ("description: x\nmodel: 3", "model must be"),
        ("- x", "no list of names and values"),
    ],
)
async def test_a_file_that_is_no_definition_is_named_with_its_flaw(stage: SetStage, front: str, told: str) -> None:
    """The model can go on with another one, and its person can repair the file."""
    host = await stage(
        """
        - when: {last: user}
          reply: {calls: [{tool: task, arguments: {prompt: sub b, agent: bad}}]}
        """,
        REST,
    )
    define(host, "bad", front)
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await host.idle(session)

    (result,) = await host.results(session)
    assert "There is no agent 'bad'" in result
    assert told in result
    assert "Known: general" in result


@guarantee("I11")
async def test_what_a_subagent_may_not_do_by_itself_is_asked_for_its_session(stage: SetStage) -> None:
    """A definition gives no rights: the question is the turn's own."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub write, agent: writer, wait: true}}]}
        - when: {last: user, user: '^sub write$'}
          reply: {calls: [{tool: write, arguments: {path: a.txt, content: new}}]}
        """,
        REST,
    )
    define(host, "writer", "description: Writes.\ntools: write")
    session = await host.session(folder=True)
    turn_id = await host.prompt(session, "go")

    (asked,) = await questions(host)

    assert (asked["sessionId"], asked["turnId"], asked["tool"]) == (session, turn_id, "write")
    assert not (host.project / "a.txt").exists()
    await answer(host, "once")
    await host.idle(session)
    assert (host.project / "a.txt").read_text() == "new"


async def test_a_subagent_that_waits_for_a_person_gives_away_no_slot_of_a_turn_that_works(stage: SetStage) -> None:
    """The turn asks its model meanwhile, so one more would run than the host may."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub write, agent: writer}}]}
        - when: {last: user, user: '^sub write$'}
          reply: {calls: [{tool: write, arguments: {path: a.txt, content: new}}]}
        - when: {model: one}
          reply: {hang: true}
        """,
        REST,
        turns_max=1,
    )
    define(host, "writer", "description: Writes.\ntools: write")
    session, other = await host.session(folder=True), await host.session("other")
    await host.prompt(session, "go")
    await questions(host)
    await host.until(lambda server: server.answering == 1)

    prompted = await host.ask("session.prompt", sessionId=other, text="go")

    assert prompted["status"] == "queued"
    await host.ask("session.interrupt", sessionId=session)
    await host.idle(session, other)


async def test_a_subagent_that_is_stopped_leaves_no_open_question(stage: SetStage) -> None:
    """Its turn goes on, and a yes would do nothing."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub write, agent: writer}}]}
        - when: {last: user, user: '^sub write$'}
          reply: {calls: [{tool: write, arguments: {path: a.txt, content: new}}]}
        - when: {last: user, user: '^stop (?P<id>dlg_\\w+)$'}
          reply: {calls: [{tool: task_stop, arguments: {id: "${user.id}"}}]}
        - when: {last: user, user: 'delegation-report'}
          reply: {hang: true}
        - reply: {text: "I wait."}
        """
    )
    define(host, "writer", "description: Writes.\ntools: write")
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await questions(host)
    (beat,) = await heartbeats(host, session)

    await host.ask("session.steer", sessionId=session, text=f"stop {beat['id']}")
    await host.until_items(session, lambda items: any(item.get("tool") == "task_stop" for item in items))

    assert await questions(host, 0) == []
    assert (await host.last_turn(session)).state is TurnState.RUNNING
    await host.ask("session.interrupt", sessionId=session)
    await host.idle(session)


async def test_ten_run_one_hangs_one_breaks_and_an_interrupt_ends_and_reports_all(
    stage: SetStage, tmp_path: Path
) -> None:
    """No request and no process goes on, and the transcript says of each how it ended."""
    pipe = tmp_path / "running"
    os.mkfifo(pipe)
    calls = ", ".join(f"{{tool: task, arguments: {{prompt: sub {n}, agent: shell}}}}" for n in range(10))
    host = await stage(
        f"""
        - when: {{last: user, user: '^go$'}}
          reply: {{calls: [{calls}]}}
        - when: {{user: '^sub 0$'}}
          reply: {{hang: true}}
        - when: {{user: '^sub 1$'}}
          reply: {{error: {{status: 400}}}}
        - when: {{last: user, user: '^sub 2$'}}
          reply: {{calls: [{{tool: bash, arguments: {{command: 'echo > {pipe}; exec sleep 1000'}}}}]}}
        - when: {{user: '^sub (?P<n>\\\\d)$'}}
          reply: {{text: "found ${{user.n}}"}}
        - reply: {{text: "I wait."}}
        """
    )
    define(host, "shell", "description: Runs.\ntools: bash")
    session = await host.session(mode="auto", folder=True)
    await host.prompt(session, "go")
    async with asyncio.timeout(BOUND_S):
        await asyncio.to_thread(pipe.read_text)
    await host.until_items(session, lambda items: len(reports(items)) == 8)

    await host.ask("session.interrupt", sessionId=session)

    assert (await host.ended(session)).state is TurnState.CANCELLED
    found = {item["delegation"]["id"]: item["delegation"]["status"] for item in reports(await host.items(session))}
    assert sorted(found.values()) == ["completed"] * 7 + ["failed"] + ["stopped"] * 2
    assert await heartbeats(host, session) == []
    await host.until(lambda server: server.answering == 0)
    assert not [one for one in psutil.Process().children(recursive=True) if "sleep" in one.name()]


async def test_an_eleventh_is_refused_with_the_name_of_the_limit(stage: SetStage) -> None:
    """And the ten go on."""
    calls = ", ".join("{tool: task, arguments: {prompt: sub x}}" for _ in range(11))
    host = await stage(
        f"""
        - when: {{last: user, user: '^go$'}}
          reply: {{calls: [{calls}]}}
        - when: {{user: '^sub x$'}}
          reply: {{hang: true}}
        - when: {{last: tool}}
          reply: {{calls: [{{tool: task_list, arguments: {{}}}}]}}
        """
    )
    session = await host.session()
    await host.prompt(session, "go")
    await host.until_items(session, lambda items: any(item.get("tool") == "task_list" for item in items))

    assert "(delegations_max)" in (await host.results(session))[10]
    assert len(await heartbeats(host, session)) == 10
    await host.ask("session.interrupt", sessionId=session)
    await host.idle(session)


async def test_one_that_is_stopped_ends_alone(stage: SetStage) -> None:
    """Its session is told what it had, which is nothing; another one reports."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub hang}}]}
        - when: {user: '^sub hang$'}
          reply: {hang: true}
        - when: {last: tool, results_since_user: 1, tool_result: '"id": "(?P<id>dlg_\\w+)"'}
          reply:
            calls:
              - {tool: task, arguments: {prompt: sub b}}
              - {tool: task_stop, arguments: {id: "${tool.id}"}}
              - {tool: task_wait, arguments: {}}
        """,
        SUB,
        REST,
    )
    session = await host.session()
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert turn.result == "done"
    ended = json.loads((await host.results(session))[-1])["delegations"]
    assert [one["status"] for one in ended] == ["stopped", "completed"]
    assert ended[1]["report"] == "found b"
    assert reports(await host.items(session)) == []


async def test_a_host_that_stops_leaves_no_subagent_behind(stage: SetStage) -> None:
    """They live in the process, and end with their turn, which is told so."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub x}}]}
        - when: {user: '^sub x$'}
          reply: {hang: true}
        - reply: {text: "I wait."}
        """
    )
    session = await host.session()
    await host.prompt(session, "go")
    await host.until(lambda server: server.answering == 1)

    await host.restart()

    assert (await host.last_turn(session)).state is TurnState.INTERRUPTED
    assert await heartbeats(host, session) == []
    assert [one["delegation"]["status"] for one in reports(await host.items(session))] == ["stopped"]


async def test_what_subagents_use_is_counted_with_the_turn(stage: SetStage) -> None:
    """Else a chain could spend without bound by giving its work away."""
    usage = "usage: {input_tokens: 100, output_tokens: 10}"
    host = await stage(
        f"""
        - when: {{last: user, user: '^go$'}}
          reply: {{calls: [{{tool: task, arguments: {{prompt: sub x, wait: true}}}}], {usage}}}
        - reply: {{text: "done", {usage}}}
        """
    )
    session = await host.session()
    await host.prompt(session, "go")

    turn = await host.ended(session)

    assert (turn.input_tokens, turn.output_tokens) == (300, 30)


async def test_steering_reaches_a_turn_that_waits_for_reports(stage: SetStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person does not have to wait for a subagent that hangs, nor for the turn's next look around."""
    monkeypatch.setattr(worker, "LOOK_S", 10 * BOUND_S)
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply: {calls: [{tool: task, arguments: {prompt: sub x}}]}
        - when: {user: '^sub x$'}
          reply: {hang: true}
        - when: {user: '^stop it$', last: user}
          reply: {calls: [{tool: task_list, arguments: {}}]}
        - reply: {text: "I wait."}
        """
    )
    session = await host.session()
    await host.prompt(session, "go")
    await host.until(lambda server: server.answering == 1)
    await host.until_items(session, lambda items: items[-1]["text"] == "I wait.")

    await host.ask("session.steer", sessionId=session, text="stop it")

    await host.until_items(session, lambda items: any(item.get("tool") == "task_list" for item in items))
    await host.ask("session.interrupt", sessionId=session)
    await host.idle(session)


async def test_a_subagent_sees_nothing_of_what_its_session_is_told(stage: SetStage) -> None:
    """Case 39: the report of another one, and what a person says meanwhile, are for the session."""
    host = await stage(
        """
        - when: {last: user, user: '^go$'}
          reply:
            calls:
              - {tool: task, arguments: {prompt: sub a}}
              - {tool: task, arguments: {prompt: sub b, agent: writer}}
        - when: {user: '^sub b$', last: user}
          reply: {calls: [{tool: write, arguments: {path: b.txt, content: b}}]}
        - when: {user: '^sub b$'}
          reply: {text: "found b"}
        """,
        SUB,
        REST,
    )
    define(host, "writer", "description: writes\ntools: [write]")
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await questions(host)
    await host.until_items(session, lambda items: "found a" in str(reports(items)))
    assert (await host.ask("session.steer", sessionId=session, text="by the way"))["accepted"]
    await answer(host, "deny")
    assert (await host.ended(session)).state is TurnState.COMPLETED

    requests = [request for request in host.asked() if str(said(request)[0]["content"]) == "sub b"]
    assert len(requests) == 2
    assert not [word for word in ("found a", "by the way") if word in json.dumps(requests)]
    assert "by the way" in json.dumps(host.asked()[-1])


async def test_a_long_report_is_told_by_its_ends_and_kept_whole(stage: SetStage) -> None:
    """Its session reads the rest by reference; one that is waited for is told whole as far as a result may be long."""
    words = f"begin {'x' * 20_000} end"
    host = await stage(
        f"""
        - when: {{user: '^sub long$'}}
          reply: {{text: "{words}"}}
        - when: {{user: 'with ref (?P<ref>[0-9a-f]{{64}})', last: user}}
          reply: {{calls: [{{tool: read_output, arguments: {{ref: "${{user.ref}}", offset: 15000, limit: 9}}}}]}}
        - when: {{last: user, user: '^wait$'}}
          reply: {{calls: [{{tool: task, arguments: {{prompt: sub long, wait: true}}}}]}}
        """,
        GIVES,
        REST,
    )
    session = await host.session()
    await host.prompt(session, "give long")
    assert (await host.ended(session)).state is TurnState.COMPLETED
    (report,) = reports(await host.items(session))
    assert len(report["text"]) == 12_000
    assert report["text"].endswith(" end")
    assert (host.settings.data_dir / "blobs" / report["outputRef"]).read_text("utf-8") == words
    assert "xxxxxxxxx" in (await host.results(session))[-1]
    assert "read on with offset 15009" in (await host.results(session))[-1]

    await host.prompt(session, "wait")
    assert (await host.ended(session)).state is TurnState.COMPLETED
    assert words in (await host.results(session))[-1]
