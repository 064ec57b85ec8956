"""What comes between the steps of a tool call: its end before its transaction, and what no item will show."""

import asyncio
from typing import Final

import pytest
from tests.guarantees import guarantee
from tests.runtime.engine.calls import HANG, running, told
from tests.runtime.engine.conftest import SetStage

from coterie.core.errors import PermissionDeniedError
from coterie.operations.caller import Agent

WORKS: Final = "- {when: {model: worker}, reply: {text: counted}}\n"


@guarantee("I10")
async def test_a_call_that_ends_while_its_request_waits_for_the_database_writes_nothing(stage: SetStage) -> None:
    """It was alive when it asked; what counts is whether it is when the transaction comes."""
    host = await stage(HANG)
    turn, other = await running(host), await host.session("other")

    with host.calling(turn) as invocation:
        operations = host.engine.operations
        given = {"sessionId": other, "content": "too late"}
        sending = asyncio.ensure_future(operations.perform(Agent(invocation), "collaboration.send", given))
        # It has asked for its transaction, which begins in a later round of the loop.
        await asyncio.sleep(0)

    with pytest.raises(PermissionDeniedError, match="has ended"):
        await sending
    assert await host.exchanges(other) == []


@guarantee("I7")
@pytest.mark.parametrize("action", ["result", "wait", "status"])
async def test_an_outcome_that_no_item_shows_is_still_to_be_told(stage: SetStage, action: str) -> None:
    """Who reads it and crashes before that is in the transcript would never hear of it again."""
    host = await stage(WORKS, HANG)
    turn, worker = await running(host), await host.session("worker")
    which = {"sessionId": worker} if action == "result" else {"sessionIds": [worker]}

    with host.calling(turn) as invocation:
        sent = await told(host, invocation, action="send", sessionId=worker, message="count", kind="task")
        await host.settled(sent["messageId"])
        answer = await told(host, invocation, action=action, **which)

    assert "counted" in str(answer)
    assert (await host.completion(sent["messageId"]))["status"] == "queued"


@guarantee("I7")
@pytest.mark.parametrize(("shown_max", "turns"), [(2_000, 2), (30_000, 1)])
async def test_an_outcome_whose_middle_an_item_leaves_out_is_still_to_be_told(
    stage: SetStage, shown_max: int, turns: int
) -> None:
    """The tool told all of it, and the bound of what goes before a model took a part away."""
    host = await stage(
        """
        - when: {model: lead, user: "^go", requests_since_user: 0}
          reply: {calls: [{tool: session_task, arguments: {action: spawn, task: count, model: worker}}]}
        - when: {model: lead, user: "^go"}
          unless: {tool_result: "xxx"}
          reply: {calls: [{tool: session_task, arguments: {action: status}}]}
        - when: {model: lead}
          reply: {text: "done"}
        """,
        f"- {{when: {{model: worker}}, reply: {{text: '{'x' * 1_900}'}}}}\n",
        tool_result_chars_max=shown_max,
    )
    lead = await host.session("lead")
    await host.prompt(lead, "go")

    await host.idle(lead)

    assert await host.turns(lead) == turns
