"""A model is asked for a word over the wire, outside of any session."""

import asyncio

import pytest
from tests.runtime.engine.conftest import BOUND_S, SetStage, said, system_text

from coterie.core.codes import Code
from coterie.core.errors import PermissionDeniedError
from coterie.core.turn.loop import ModelFailed
from coterie.runtime.probe import ProviderProbe
from coterie.runtime.providers.direct import DirectProvider
from coterie.testing.clock import FakeClock

FINE = """
- when: {model: other}
  reply: {error: {status: 503, message: Too busy.}}
- when: {model: worker}
  reply: {hang: true}
- reply: {text: Hello., usage: {input_tokens: 11, output_tokens: 2}}
"""


async def test_a_model_that_answers_is_told_with_what_it_used(stage: SetStage) -> None:
    """One request without a tool, and nothing of it stays on the host."""
    host = await stage(FINE)

    told = await host.ask("models.test", name="lead")

    # On a clock that stands still.
    assert told == {
        "model": "local/lead",
        "ok": True,
        "latencyMs": 0,
        "text": "Hello.",
        "inputTokens": 11,
        "outputTokens": 2,
    }
    (request,) = host.asked()
    assert "one word" in system_text(request)
    assert len(said(request)) == 1
    assert "tools" not in request
    assert (await host.ask("session.list"))["sessions"] == []
    assert (await host.ask("models.test"))["model"] == "local/one"


async def test_a_fault_is_told_at_once_as_a_turn_would_tell_it(stage: SetStage) -> None:
    """Whoever tests wants to know of the first fault, so it is not tried again."""
    host = await stage(FINE)
    told = await host.ask("models.test", name="other")
    assert (told["ok"], told["errorCode"], len(host.asked())) == (False, Code.PROVIDER_ERROR.value, 1)
    assert "Too busy." in told["error"]
    assert host.clock.slept == []


async def test_a_model_that_never_answers_is_given_up(stage: SetStage) -> None:
    """A person waits for it."""
    host = await stage(FINE)
    provider = DirectProvider()
    (binding,) = [model for model in host.settings.models if model.model == "worker"]
    async with asyncio.timeout(BOUND_S):
        probed = await ProviderProbe(provider, FakeClock(), patience_s=0.2).probe(binding)
        await host.until(lambda server: server.answering == 0)
    await provider.close()
    assert isinstance(probed.outcome, ModelFailed)
    assert probed.outcome.message == "local/worker: no whole answer came within 0.2 seconds."


async def test_an_agent_may_not_test_a_model(stage: SetStage) -> None:
    """It would spend outside of every chain and its bounds."""
    host = await stage("- {when: {model: worker}, reply: {hang: true}}", FINE)
    session = await host.session("worker")
    await host.prompt(session, "go")
    with host.calling(await host.last_turn(session)) as invocation, pytest.raises(PermissionDeniedError):
        await host.act(invocation, "models.test", name="one")
    await host.ask("session.interrupt", sessionId=session)
    await host.idle(session)
