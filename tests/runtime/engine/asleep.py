"""A lead in the middle of a turn: it sleeps in a tool call until the test lets the worker that it waits for go."""

from typing import Any, Final

from tests.runtime.engine.conftest import Stage

ASLEEP: Final = """
- when: {user: 'wait for (?P<id>msg_\\w+)', last: user}
  reply: {calls: [{tool: session_task, arguments: {action: wait, messageIds: ["${user.id}"]}}]}
- {when: {user: stand still}, reply: {hang: true}}
"""
"""First rules of a script."""


async def given_out(host: Stage, lead: str) -> str:
    """Give a worker a task of the lead's, at which it hangs; returns the task."""
    hanging = host.server.answering
    message_id = await host.task(lead, await host.session("worker"), "stand still")
    # So that a test may count requests: who is stopped before it has asked asks never.
    await host.until(lambda server: server.answering > hanging)
    return message_id


async def fall_asleep(host: Stage, lead: str, source: str | None = None) -> str:
    """Have the lead wait for a worker that hangs, in a person's turn or in that of a task of *source*.

    Returns the task that it waits for.
    """
    message_id = await given_out(host, lead)
    text = f"wait for {message_id}"
    await (host.prompt_later(lead, text) if source is None else host.task(source, lead, text))
    await host.until_items(lead, lambda items: bool(items) and "wait" in str(items[-1].get("calls")))
    return message_id


async def wake(host: Stage, message_id: str) -> None:
    """Let the wait for a task end: a person stops the worker."""
    message = (await host.ask("collaboration.message", messageId=message_id))["message"]
    await host.ask("collaboration.cancel", sessionId=message["targetSessionId"], messageId=message_id)


async def asleep(host: Stage, lead: str) -> bool:
    """Whether the call of a lead is still under way."""
    return (await host.items(lead))[-1]["kind"] != "tool_result"


def last_said(request: dict[str, Any], number: int) -> list[tuple[str, str]]:
    """Role and text of the last messages of a request."""
    return [(one["role"], one.get("content") or "") for one in request["messages"][-number:]]
