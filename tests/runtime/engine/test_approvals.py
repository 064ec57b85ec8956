"""A tool call that its turn may not make by itself waits for a person, and for nobody else."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage, said

from coterie.core.errors import ConflictError, HostError, InvalidArgumentError, NotFoundError, PermissionDeniedError
from coterie.core.permission import Rule
from coterie.core.turn.states import TurnState

WRITE: Final = "{tool: write, arguments: {path: a.txt, content: new}}"
EDIT: Final = "{tool: edit, arguments: {path: a.txt, old: old, new: new}}"
BASH: Final = "{tool: bash, arguments: {command: 'printf new > a.txt'}}"
READ: Final = "{tool: read, arguments: {path: a.txt}}"
LONG: Final = "".join(f"line {number}\n" for number in range(9_000))
SAME_TWICE: Final = f"""
    - when: {{last: user}}
      reply: {{calls: [{WRITE}]}}
    - when: {{requests_since_user: 1}}
      reply: {{calls: [{WRITE}]}}
    - reply: {{text: "${{tool}}"}}
    """


def script(call: str) -> str:
    """A model that makes one call and then says what it answered."""
    return f"""
    - when: {{last: user}}
      reply: {{calls: [{call}]}}
    - reply: {{text: "${{tool}}"}}
    """


async def questions(host: Stage, count: int = 1) -> list[dict[str, Any]]:
    """Wait until so many tool calls wait for a person."""
    async with asyncio.timeout(BOUND_S):
        with host.engine.operations.host.feed.listen(None) as listener:
            while True:
                found = (await host.ask("permissions.pending"))["requests"]
                if len(found) == count:
                    return found
                await listener.wait(1)


async def answer(host: Stage, decision: str, **more: Any) -> dict[str, Any]:
    """Answer the only open question."""
    (one,) = await questions(host)
    return await host.ask("permissions.resolve", requestId=one["requestId"], decision=decision, **more)


def old_file(project: Path) -> Path:
    """A file to change."""
    path = project / "a.txt"
    path.write_text("old\n")
    return path


@pytest.mark.parametrize(
    ("mode", "call", "risk"),
    [
        ("ask", WRITE, "edit"),
        ("ask", EDIT, "edit"),
        ("ask", BASH, "high"),
        ("accept-edits", BASH, "high"),
        ("inherit", WRITE, "edit"),
        ("inherit", BASH, "high"),
    ],
)
async def test_a_call_beyond_the_mode_waits_for_a_person_and_then_runs(
    stage: SetStage, mode: str, call: str, risk: str
) -> None:
    """The question says who wants what and why it is asked; before the answer nothing has happened."""
    host = await stage(script(call))
    path = old_file(host.project)
    session = await host.session(mode=mode, folder=True)
    turn_id = await host.prompt(session, "go")

    (asked,) = await questions(host)

    assert path.read_text() == "old\n"
    assert (asked["kind"], asked["sessionId"], asked["turnId"]) == ("tool", session, turn_id)
    assert (asked["risk"], asked["mode"]) == (risk, "ask" if mode == "inherit" else mode)
    assert "ceilingSessionId" not in asked
    answered = await host.ask("permissions.resolve", requestId=asked["requestId"], decision="once")
    turn = await host.ended(session)
    assert (answered["decision"], turn.state) == ("once", TurnState.COMPLETED)
    assert path.read_text().strip() == "new"
    assert (await host.ask("permissions.pending"))["requests"] == []


@pytest.mark.parametrize(
    ("call", "subject", "shown"),
    [
        (EDIT, "a.txt", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"),
        (
            WRITE,
            "a.txt",
            "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n",
        ),
        (BASH, "printf new > a.txt", "printf new > a.txt"),
    ],
)
async def test_a_person_sees_what_the_call_would_do(stage: SetStage, call: str, subject: str, shown: str) -> None:
    """An answer is worth as much as what was shown before it."""
    host = await stage(script(call))
    old_file(host.project)
    await host.prompt(await host.session(folder=True), "go")

    (asked,) = await questions(host)

    assert (asked["subject"], asked["shown"]) == (subject, shown)
    await answer(host, "deny")


async def test_a_denied_call_does_not_run_and_its_model_is_told(stage: SetStage) -> None:
    """With what the person adds; the turn goes on."""
    host = await stage(script(WRITE))
    path = old_file(host.project)
    session = await host.session(folder=True)
    await host.prompt(session, "go")

    await answer(host, "deny", comment="Leave that file alone.")

    turn = await host.ended(session)
    assert (turn.state, path.read_text()) == (TurnState.COMPLETED, "old\n")
    told = said(host.asked()[-1])[-1]["content"]
    assert "Denied by a person. They say: Leave that file alone." in told
    (result,) = [item for item in await host.items(session) if item["kind"] == "tool_result"]
    assert result["error"]


async def test_leave_for_the_session_is_exact_listed_and_revocable(stage: SetStage) -> None:
    """The same call passes from then on, another is asked about, and a revoked one is asked about again."""
    host = await stage(SAME_TWICE)
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await answer(host, "session")
    await host.idle(session)

    assert len([text for text in await host.results(session) if "a.txt" in text]) == 2
    (grant,) = (await host.ask("permissions.grants"))["grants"]
    assert (grant["kind"], grant["sessionId"], grant["tool"], grant["subject"]) == ("tool", session, "write", "a.txt")
    await host.ask("permissions.revoke", grantId=grant["grantId"])
    await host.prompt(session, "again")
    await answer(host, "deny")
    # Once for each of the two calls.
    await answer(host, "deny")
    await host.idle(session)
    assert (await host.ask("permissions.grants"))["grants"] == []


async def test_leave_for_one_session_is_none_for_another(stage: SetStage) -> None:
    """Nor for another subject of the same tool."""
    host = await stage(
        """
        - when: {last: user, user: 'write (?P<name>\\S+)'}
          reply: {calls: [{tool: write, arguments: {path: "${user.name}", content: new}}]}
        - reply: {text: "done"}
        """
    )
    session, other = await host.session(folder=True), await host.session(folder=True)
    await host.prompt(session, "write a.txt")
    await answer(host, "session")
    await host.idle(session)

    await host.prompt(session, "write b.txt")
    await host.prompt(other, "write a.txt")

    asked = await questions(host, 2)
    assert {(one["sessionId"], one["subject"]) for one in asked} == {(session, "b.txt"), (other, "a.txt")}
    for one in asked:
        await host.ask("permissions.resolve", requestId=one["requestId"], decision="deny")


@guarantee("I11")
@pytest.mark.parametrize("call", [WRITE, BASH])
async def test_a_clamped_worker_asks_and_the_question_names_whose_ceiling_it_is(stage: SetStage, call: str) -> None:
    """Case 173: a session that may do all works for one that may not; a person may say yes, once, to that one call."""
    host = await stage(
        """
        - when: {model: lead, last: user, user: 'send (?P<to>\\S+)'}
          reply: {calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.to}", message: write it}}]}
        - when: {model: lead}
          reply: {text: "sent"}
        """,
        script(call),
    )
    path = old_file(host.project)
    lead = await host.session("lead", mode="ask", folder=True)
    worker = await host.session("worker", mode="auto", folder=True)
    await host.prompt(lead, f"send {worker}")

    (asked,) = await questions(host)

    assert (asked["sessionId"], asked["mode"]) == (worker, "ask")
    assert (asked["ceilingSessionId"], asked["ceilingTitle"]) == (lead, "lead")
    with pytest.raises(HostError, match="approve it once"):
        await host.ask("permissions.resolve", requestId=asked["requestId"], decision="session")
    await answer(host, "once")
    await host.idle(worker)
    assert path.read_text().strip() == "new"


@guarantee("I11")
async def test_the_ceiling_of_a_long_way_down_is_told_by_who_it_comes_from(stage: SetStage) -> None:
    """Case 170: the one who passed it on may do more by itself, and is not the reason."""
    host = await stage(
        """
        - when: {model: lead, last: user, user: 'send (?P<to>\\S+) (?P<then>\\S+)'}
          reply:
            calls:
              - tool: session_task
                arguments: {action: send, sessionId: "${user.to}", message: "pass on to ${user.then}"}
        - when: {model: other, last: user, user: 'pass on to (?P<to>ses_\\w+)'}
          reply: {calls: [{tool: session_task, arguments: {action: send, sessionId: "${user.to}", message: write it}}]}
        - when: {model: lead}
          reply: {text: "sent"}
        - when: {model: other}
          reply: {text: "sent"}
        """,
        script(WRITE),
    )
    lead = await host.session("lead", mode="ask", folder=True)
    other = await host.session("other", mode="auto", folder=True)
    worker = await host.session("worker", mode="auto", folder=True)

    await host.prompt(lead, f"send {other} {worker}")

    (asked,) = await questions(host)
    assert (asked["sessionId"], asked["ceilingSessionId"]) == (worker, lead)
    await answer(host, "deny")


@guarantee("I11")
async def test_leave_for_the_session_does_not_count_below_its_mode(stage: SetStage) -> None:
    """What a person lets a session do is not what it may do for somebody weaker."""
    host = await stage(script(WRITE))
    weak = await host.session("lead", mode="ask", folder=True)
    worker = await host.session("worker", mode="ask", folder=True)
    await host.prompt(worker, "go")
    await answer(host, "session")
    await host.idle(worker)
    await host.ask("session.configure", sessionId=worker, permissionMode="accept-edits")

    await host.task(weak, worker)

    (asked,) = await questions(host)
    assert (asked["sessionId"], asked["ceilingSessionId"]) == (worker, weak)
    await answer(host, "deny")


@guarantee("I13")
async def test_no_agent_answers_a_question(stage: SetStage) -> None:
    """Case 169: only a person's credential can."""
    host = await stage(script(WRITE))
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    (asked,) = await questions(host)

    with host.calling(await host.last_turn(session)) as invocation:
        for operation in ("permissions.resolve", "permissions.pending", "permissions.grants"):
            given = {"requestId": asked["requestId"], "decision": "once"} if operation.endswith("resolve") else {}
            with pytest.raises(PermissionDeniedError):
                await host.act(invocation, operation, **given)
    await answer(host, "deny")


async def test_a_waiting_turn_holds_no_slot(stage: SetStage) -> None:
    """One open question never keeps another session from working."""
    host = await stage(
        """
        - when: {model: other}
          reply: {text: "free"}
        """,
        script(WRITE),
        turns_max=1,
    )
    session, other = await host.session(folder=True), await host.session("other")
    await host.prompt(session, "go")
    await questions(host)

    await host.prompt_later(other, "go")

    assert (await host.ended(other)).result == "free"
    await answer(host, "once")
    assert (await host.ended(session)).state is TurnState.COMPLETED


async def test_a_question_is_answered_once(stage: SetStage) -> None:
    """The second answer is told that it came too late; the same request again is told what it did."""
    host = await stage(script(WRITE))
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    (asked,) = await questions(host)
    given = {"requestId": asked["requestId"], "decision": "once", "idempotencyKey": "one"}
    first = await host.ask("permissions.resolve", **given)

    assert await host.ask("permissions.resolve", **given) == first | {"replayed": True}
    with pytest.raises((NotFoundError, ConflictError)):
        await host.ask("permissions.resolve", requestId=asked["requestId"], decision="deny")
    await host.idle(session)
    assert await host.ask("permissions.resolve", **given) == first | {"replayed": True}
    with pytest.raises(NotFoundError):
        await host.ask("permissions.resolve", requestId=asked["requestId"], decision="deny")


async def test_an_interrupt_ends_the_question(stage: SetStage) -> None:
    """What nobody waits for is not shown, and an answer finds nothing."""
    host = await stage(script(WRITE))
    path = old_file(host.project)
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    (asked,) = await questions(host)

    await host.ask("session.interrupt", sessionId=session)

    assert (await host.ended(session)).state is TurnState.CANCELLED
    assert await questions(host, 0) == []
    with pytest.raises(NotFoundError):
        await host.ask("permissions.resolve", requestId=asked["requestId"], decision="once")
    assert path.read_text() == "old\n"


@guarantee("I9")
async def test_a_restart_ends_the_question_and_runs_nothing(stage: SetStage) -> None:
    """The turn is interrupted with it: an answer to a turn that is gone must not start anything."""
    host = await stage(script(WRITE))
    path = old_file(host.project)
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await questions(host)

    await host.restart()

    assert (await host.last_turn(session)).state is TurnState.INTERRUPTED
    assert (await host.ask("permissions.pending"))["requests"] == []
    assert path.read_text() == "old\n"


async def test_nobody_is_asked_about_a_call_that_cannot_be_done(stage: SetStage) -> None:
    """A person's yes must matter (case 167): what is unfit is told to the model at once."""
    host = await stage(script("{tool: edit, arguments: {path: a.txt, old: nowhere, new: new}}"))
    old_file(host.project)
    session = await host.session(folder=True)

    await host.prompt(session, "go")

    assert "does not occur" in ((await host.ended(session)).result or "")


@pytest.mark.parametrize("call", [WRITE, EDIT])
async def test_a_change_runs_only_as_it_was_shown(stage: SetStage, call: str) -> None:
    """Days may lie between question and answer; what somebody else wrote meanwhile was not what a person gave away."""
    host = await stage(script(call))
    path = old_file(host.project)
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await questions(host)
    path.write_text("old\nand more\n")

    await answer(host, "once")

    assert "has changed since" in ((await host.ended(session)).result or "")
    assert path.read_text() == "old\nand more\n"


@pytest.mark.parametrize(
    ("call", "before", "since"),
    [
        (WRITE, LONG, LONG.replace("line 4500", "mine 4500")),
        (WRITE, LONG * 4, LONG.replace("line 4500", "mine 4500") + LONG * 3),
        (WRITE, "\0old", "\0own"),
        (EDIT, f"old\n{LONG}", f"old\n{LONG.replace('line 4500', 'mine 4500')}"),
    ],
)
async def test_a_change_too_long_to_be_shown_runs_only_as_it_was_too(
    stage: SetStage, call: str, before: str, since: str
) -> None:
    """What is left out of the middle was not given away either; nor is a file that cannot be shown."""
    host = await stage(script(call))
    path = old_file(host.project)
    path.write_text(before)
    session = await host.session(folder=True)
    await host.prompt(session, "go")
    await questions(host)
    path.write_text(since)

    await answer(host, "once")

    assert "has changed since" in ((await host.ended(session)).result or "")
    assert path.read_text() == since


async def test_a_person_sees_that_a_binary_file_would_be_replaced(stage: SetStage) -> None:
    """It must not look like a file that is new."""
    host = await stage(script(WRITE))
    old_file(host.project).write_bytes(b"\0old")
    await host.prompt(await host.session(folder=True), "go")

    (asked,) = await questions(host)

    assert asked["shown"] == "a.txt is a binary file of 4 bytes. It becomes:\nnew"
    await answer(host, "deny")


@pytest.mark.parametrize("mode", ["ask", "auto"])
@pytest.mark.parametrize(
    ("rule", "call"),
    [
        (Rule("bash", "printf *"), BASH),
        (Rule("write", "*.txt"), WRITE),
        (Rule("*", "a.*"), EDIT),
        (Rule("read"), READ),
    ],
)
async def test_what_a_rule_denies_is_refused_in_every_mode_and_nobody_is_asked(
    stage: SetStage, mode: str, rule: Rule, call: str
) -> None:
    """Case 171: the rule is a person's too, and the one that was written down."""
    host = await stage(script(call))
    await host.stop()
    host.settings = replace(host.settings, denied=(rule,))
    await host.start()
    path = old_file(host.project)
    session = await host.session(mode=mode, folder=True)

    await host.prompt(session, "go")

    turn = await host.ended(session)
    assert f"Denied by the rule {rule} of this host" in (turn.result or "")
    assert path.read_text() == "old\n"


async def test_a_rule_holds_wherever_a_path_takes_its_way(stage: SetStage) -> None:
    """It is about the file, not about how it was written."""
    host = await stage(script("{tool: write, arguments: {path: './sub/../a.txt', content: new}}"))
    await host.stop()
    host.settings = replace(host.settings, denied=(Rule("write", "a.txt"),))
    await host.start()
    path = old_file(host.project)
    session = await host.session(mode="auto", folder=True)

    await host.prompt(session, "go")
    await host.idle(session)

    assert path.read_text() == "old\n"


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        (Rule("*", "secrets/*"), "{tool: grep, arguments: {pattern: word}}"),
        (Rule("*", "secrets/*"), "{tool: grep, arguments: {pattern: word, path: secrets}}"),
        (Rule("read", "*/key"), "{tool: grep, arguments: {pattern: word}}"),
        (Rule("read", "*/key"), "{tool: grep, arguments: {pattern: word, path: secrets/key}}"),
        (Rule("grep", "secrets/*"), "{tool: grep, arguments: {pattern: word, path: link}}"),
        (Rule("*", "secrets/*"), "{tool: glob, arguments: {pattern: '*', path: secrets}}"),
        (Rule("glob", "*/key"), "{tool: glob, arguments: {pattern: '*'}}"),
    ],
)
async def test_a_search_leaves_out_the_files_that_a_rule_names(stage: SetStage, rule: Rule, call: str) -> None:
    """It is about a folder, and tells of each file in it; a link is no way around either."""
    host = await stage(script(call))
    await host.stop()
    host.settings = replace(host.settings, denied=(rule,))
    await host.start()
    secrets = host.project / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text("the word\n")
    (host.project / "link").symlink_to(secrets / "key")
    session = await host.session(mode="auto", folder=True)

    await host.prompt(session, "go")

    told = (await host.ended(session)).result or ""
    assert "the word" not in told
    assert "secrets/key" not in told.replace(str(rule), "")
    assert "left out" in told or "Denied by the rule" in told


@pytest.mark.parametrize("decision", ["grant"])
async def test_an_answer_of_the_other_kind_is_refused(stage: SetStage, decision: str) -> None:
    """Leave for a time is for pairs of sessions."""
    host = await stage(script(WRITE))
    session = await host.session(folder=True)
    await host.prompt(session, "go")

    with pytest.raises(InvalidArgumentError, match="'session'"):
        await answer(host, decision)
    await answer(host, "deny")
    await host.idle(session)
