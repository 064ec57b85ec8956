"""How much a model thinks is a setting of its session, and reaches only a model that can."""

from dataclasses import replace

from tests.runtime.engine.conftest import SetStage, Stage

SPAWNS = """
- when: {model: lead, last: user, user: spawn}
  reply: {calls: [{tool: session_task, arguments: {action: spawn, model: worker, task: Work.}}]}
- reply: {text: Done.}
"""


async def reasoning(host: Stage, *names: str) -> None:
    """Have these models reason."""
    await host.stop()
    models = tuple(replace(model, reasoning=model.model in names) for model in host.settings.models)
    host.settings = replace(host.settings, models=models)
    await host.start()


async def test_a_level_reaches_the_model_from_the_next_request_on(stage: SetStage) -> None:
    """It is stored with the session, so a restart keeps it."""
    host = await stage(SPAWNS)
    await reasoning(host, "lead")
    session = await host.session("lead")
    await host.prompt(session, "first")
    await host.idle(session)
    configured = await host.ask("session.configure", sessionId=session, thinking="high")
    await host.restart()
    await host.prompt(session, "second")
    await host.idle(session)

    assert "note" not in configured
    assert (await host.ask("session.get", sessionId=session))["session"]["thinking"] == "high"
    assert [request.get("reasoning_effort") for request in host.asked()] == [None, "high"]


async def test_a_model_that_does_not_reason_is_asked_without_it_and_the_answer_says_so(stage: SetStage) -> None:
    """The level stays for another model; a request with it would be refused."""
    host = await stage(SPAWNS)
    await reasoning(host, "other")
    created = await host.ask("session.create", model="lead", thinking="low")
    session = created["session"]["id"]
    await host.prompt(session, "first")
    await host.idle(session)
    moved = await host.ask("session.configure", sessionId=session, model="other")

    assert "reasoning_effort" not in host.asked()[0]
    assert created["note"] == "The model local/lead is not marked as reasoning, so thinking (low) has no effect."
    assert (moved["session"]["thinking"], moved.get("note")) == ("low", None)


async def test_a_spawned_session_thinks_as_its_spawner_does(stage: SetStage) -> None:
    """A person who wants quick work wants it of the workers too."""
    host = await stage(SPAWNS)
    await reasoning(host, "lead", "worker")
    created = await host.ask("session.create", model="lead", thinking="low", permissionMode="auto")
    await host.prompt(created["session"]["id"], "spawn")
    await host.until(lambda server: any(request["model"] == "worker" for request in server.requests))
    await host.idle(created["session"]["id"])

    assert [request["reasoning_effort"] for request in host.asked("worker")] == ["low"]
