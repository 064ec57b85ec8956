"""What a turn may do without asking: its session's mode, and never more than who caused it."""

from pathlib import Path
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import SetStage, Stage
from tests.runtime.engine.test_approvals import answer

WRITE: Final = "{tool: write, arguments: {path: a.txt, content: new}}"
EDIT: Final = "{tool: edit, arguments: {path: a.txt, old: old, new: new}}"
BASH: Final = "{tool: bash, arguments: {command: 'echo new > a.txt'}}"
READ: Final = "{tool: read, arguments: {path: a.txt}}"


def _script(call: str) -> str:
    return f"""
    - when: {{last: user}}
      reply: {{calls: [{call}]}}
    - reply: {{text: "${{tool}}"}}
    """


def _file(project: Path) -> Path:
    path = project / "a.txt"
    path.write_text("old\n")
    return path


@pytest.mark.parametrize(
    ("mode", "call"), [("accept-edits", WRITE), ("accept-edits", EDIT), ("auto", WRITE), ("auto", EDIT), ("auto", BASH)]
)
async def test_a_call_within_the_mode_runs(stage: SetStage, mode: str, call: str) -> None:
    """The modes are an order: what a weaker one lets run, a stronger one does too."""
    host = await stage(_script(call))
    path = _file(host.project)
    session = await host.session(mode=mode, folder=True)
    await host.prompt(session, "go")
    await host.idle(session)

    assert path.read_text().strip() == "new"


async def test_reading_needs_no_permission(stage: SetStage) -> None:
    """In the weakest mode a session can still look."""
    host = await stage(_script(READ))
    _file(host.project)
    session = await host.session(mode="ask", folder=True)
    await host.prompt(session, "go")

    assert "old" in ((await host.ended(session)).result or "")


@guarantee("I11")
@pytest.mark.parametrize(
    ("lead_mode", "call", "clamped"),
    [("ask", WRITE, "ask"), ("ask", BASH, "ask"), ("accept-edits", BASH, "accept-edits")],
)
async def test_a_message_lends_no_more_than_its_sender_may(
    stage: SetStage, lead_mode: str, call: str, clamped: str
) -> None:
    """Else an agent that may not write would have a stronger one write for it; the stored mode stays as it is."""
    host = await stage(
        """
        - when: {model: lead, last: user, user: 'send (?P<to>\\S+)'}
          reply: {calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.to}", message: write it}}]}
        - when: {model: lead}
          reply: {text: "sent"}
        """,
        _script(call),
    )
    path = _file(host.project)
    lead = await host.session("lead", mode=lead_mode, folder=True)
    worker = await host.session("worker", mode="auto", folder=True)
    await host.prompt(lead, f"send {worker}")
    await host.idle(lead)
    await answer(host, "deny")

    turn = await host.ended(worker)

    assert (turn.kind, turn.permission.value) == ("message", clamped)
    assert "Denied by a person" in (turn.result or "")
    assert path.read_text() == "old\n"
    assert f"mode in this turn is '{clamped}'" in host.asked("worker")[0]["messages"][0]["content"]
    assert (await host.ask("session.get", sessionId=worker))["session"]["permissionMode"] == "auto"
    await host.prompt(worker, "now you")
    await host.idle(worker)
    assert path.read_text().strip() == "new"


@guarantee("I11")
async def test_a_message_from_a_stronger_sender_raises_nothing(stage: SetStage) -> None:
    """A ceiling is a bound from above: the target's own mode holds."""
    host = await stage(_script(WRITE))
    path = _file(host.project)
    lead = await host.session("lead", mode="auto", folder=True)
    worker = await host.session("worker", mode="ask", folder=True)

    message_id = await host.task(lead, worker)
    await answer(host, "deny")
    await host.settled(message_id)

    assert (await host.last_turn(worker)).permission.value == "ask"
    assert path.read_text() == "old\n"


@guarantee("I11")
async def test_the_turn_of_a_completion_has_no_more_than_what_it_answers(stage: SetStage) -> None:
    """A completion is no new authority: it carries the ceiling of its message, whatever the sender may do now."""
    host = await stage(
        """
        - when: {model: worker}
          reply: {text: "42"}
        """,
        _script(WRITE),
    )
    path = _file(host.project)
    lead, worker = await host.session("lead", mode="ask", folder=True), await host.session("worker", mode="auto")
    message_id = await host.task(lead, worker)
    await host.settled(message_id)
    await answer(host, "deny")

    turn = await host.ended(lead)

    assert (turn.kind, turn.permission.value) == ("completion", "ask")
    assert (await host.completion(message_id))["ceiling"] == "ask"
    assert path.read_text() == "old\n"


async def test_a_worker_inherits_the_mode_of_its_creator(stage: SetStage) -> None:
    """And its folder, or it could not work at all."""
    host = await stage(
        """
        - when: {model: lead, last: user, user: go}
          reply: {calls: [{tool: session_task, arguments: {action: spawn, task: write it, model: worker}}]}
        - when: {model: lead}
          reply: {text: "spawned"}
        """,
        _script(WRITE),
    )
    path = _file(host.project)
    lead = await host.session("lead", mode="accept-edits", folder=True)
    await host.prompt(lead, "go")
    await host.idle(lead)
    worker = (await host.exchanges(lead))[0]["peer"]["sessionId"]

    await host.idle(worker)

    session = (await host.ask("session.get", sessionId=worker))["session"]
    assert (session["permissionMode"], session["createdBySessionId"]) == ("accept-edits", lead)
    assert session["projectPath"] == str(host.project)
    assert path.read_text() == "new"


@guarantee("I11")
@pytest.mark.parametrize(("lead_mode", "worker_mode"), [("auto", "ask"), ("ask", "auto")])
async def test_two_sessions_of_unequal_rights_work_for_each_other(
    stage: SetStage, lead_mode: str, worker_mode: str
) -> None:
    """The worker has the least of both and answers all the same; with the answer the lead has what it had before."""
    host = await stage(
        """
        - when: {model: lead, user: 'give (?P<to>ses_\\w+)', requests_since_user: 0}
          reply:
            calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.to}", message: go, kind: task}}]
        - reply: {text: "It is done."}
        """
    )
    lead, worker = await host.session("lead", mode=lead_mode), await host.session("worker", mode=worker_mode)

    await host.prompt(lead, f"give {worker}")
    prompted = await host.last_turn(lead)
    sent = (await host.settled(*[one["messageId"] for one in await _sent_by(host, lead)]))[0]
    told = await host.completion(sent["id"])
    await host.settled(told["id"])

    worked, heard = [await host.ask("session.turn", turnId=one["turnId"]) for one in (sent, told)]
    assert (prompted.permission.value, worked["permission"]) == (lead_mode, "ask")
    assert (sent["status"], worked["result"]) == ("completed", "It is done.")
    assert (heard["sessionId"], heard["kind"], heard["permission"]) == (lead, "completion", lead_mode)
    assert {one["ceiling"] for one in await host.chain(sent["id"])} == {lead_mode}


async def _sent_by(host: Stage, session_id: str) -> list[dict[str, Any]]:
    """What a session has sent, once its turn has ended."""
    await host.idle(session_id)
    return [one for one in await host.exchanges(session_id) if one["direction"] == "outgoing"]
