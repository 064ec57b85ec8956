"""Commands of an agent as those see them who watch: live, and with a word on what the machine cannot promise."""

import asyncio
import os
from typing import Any

import pytest
from tests.runtime.engine.conftest import BOUND_S, SetStage

from coterie.bootstrap.engine import World, engine, locked
from coterie.bootstrap.files import read_token
from coterie.operations import events
from coterie.operations.caller import Person
from coterie.ports.feed import Delta
from coterie.runtime.tools.shell import can_confine


async def test_what_a_command_prints_is_shown_while_it_runs(stage: SetStage) -> None:
    """And it names its call, so that nobody takes it for a piece of a reply."""
    host = await stage("""
    - when: {last: user}
      reply: {text: "I look.", calls: [{tool: bash, arguments: {command: "echo one; read x < go; echo two"}}]}
    - reply: {text: "All is well."}
    """)
    session = await host.session(mode="auto", folder=True)
    os.mkfifo(host.project / "go")
    seen = list[Delta]()
    stream = events.changes(host.engine.operations.host, session, 0, beat_s=BOUND_S)
    try:
        async with asyncio.timeout(BOUND_S):
            turn_id = await host.prompt(session, "go")
            async for event in stream:
                if isinstance(event, Delta):
                    seen.append(event)
                if isinstance(event, Delta) and event.call_id is not None:
                    if "two" in event.text:
                        break
                    await asyncio.to_thread((host.project / "go").write_text, "\n")
    finally:
        await stream.aclose()
    await host.idle(session)
    (call,) = [item["callId"] for item in await host.items(session) if item["kind"] == "tool_result"]
    printed = [one for one in seen if one.call_id is not None]
    assert printed == [Delta(session, turn_id, text, call) for text in ("one\n", "two\n")]
    assert "".join(one.text for one in seen if one.call_id is None) == "I look."


@pytest.mark.parametrize(
    "confined",
    [pytest.param(True, marks=pytest.mark.skipif(not can_confine(), reason="the kernel has no Landlock")), False],
)
async def test_a_host_that_cannot_confine_commands_says_so_to_all(stage: SetStage, *, confined: bool) -> None:
    """The person when they look, a door when it makes a session, the model when it is offered the tool."""
    host = await stage("""
    - when: {last: user}
      reply: {calls: [{tool: bash, arguments: {command: "cat ../data-0/token"}}]}
    - reply: {text: "All is well."}
    """)
    await host.stop()
    token = read_token(host.settings.data_dir)
    world = World(host.clock, can_confine=lambda: confined)
    with locked(host.settings.data_dir):
        async with engine(host.settings, world=world) as running, asyncio.timeout(BOUND_S):

            async def ask(operation: str, **params: Any) -> dict[str, Any]:
                return (await running.operations.perform(Person(), operation, params)).wire()

            made = await ask("session.create", projectPath=str(host.project), permissionMode="auto")
            session = made["session"]["id"]
            await ask("session.prompt", sessionId=session, text="go")
            await ask("collaboration.wait", sessionId=session, until="idle")
            answers = [made, await ask("app.health"), await ask("session.get", sessionId=session)]
            answers.append(await ask("session.rename", sessionId=session, title="new"))
            items = (await ask("session.items", sessionId=session))["items"]
    await host.start()
    assert [answer.get("unconfined") for answer in answers] == [None if confined else True] * 4
    assert (token in "".join(item["text"] for item in items)) is not confined
    (offered,) = [tool["function"] for tool in host.asked()[0]["tools"] if tool["function"]["name"] == "bash"]
    assert ("unconfined" in offered["description"]) is not confined
