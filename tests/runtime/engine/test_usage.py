"""What a session has used, as the host tells it."""

from dataclasses import replace

from tests.runtime.engine.conftest import SetStage, Stage


async def _priced(host: Stage, *names: str) -> None:
    """Give models a price: a dollar for each token that is read, two for one that is written."""
    prices = {"input_price": 1e6, "output_price": 2e6}
    models = tuple(replace(one, **prices) if one.model in names else one for one in host.settings.models)
    host.settings = replace(host.settings, models=models)
    await host.restart()


async def test_a_session_tells_what_its_turns_and_their_delegations_have_used(stage: SetStage) -> None:
    """A turn pays for what it gives away; a model without price leaves the cost a part, and says of what."""
    host = await stage(
        """
        - when: {user: '^give', last: user}
          reply:
            calls: [{tool: task, arguments: {prompt: sub, wait: true}}]
            usage: {input_tokens: 1, output_tokens: 2}
        - when: {user: '^sub$'}
          reply: {text: found, usage: {input_tokens: 10, output_tokens: 20}}
        - when: {last: tool}
          reply: {text: I know, usage: {input_tokens: 1000, output_tokens: 2000}}
        - reply: {text: done, usage: {input_tokens: 10000, output_tokens: 20000}}
        """
    )
    await _priced(host, "one")
    session = await host.session()
    before = (await host.ask("session.get", sessionId=session))["usage"]
    for text, model in (("give", "one"), ("again", "other")):
        await host.ask("session.configure", sessionId=session, model=model)
        await host.prompt(session, text)
        await host.idle(session)

    none = {"turns": 0, "inputTokens": 0, "outputTokens": 0, "costUsd": 0.0}
    assert before == {**none, "turnsUncounted": 0, "turnsUnpriced": 0}
    assert (await host.ask("session.get", sessionId=session))["usage"] == {
        "turns": 2,
        "inputTokens": 11_011,
        "outputTokens": 22_022,
        "turnsUncounted": 0,
        "costUsd": 1_011.0 + 2 * 2_022.0,
        "turnsUnpriced": 1,
    }


async def test_what_nobody_has_counted_is_not_zero(stage: SetStage) -> None:
    """A turn that failed may have cost something all the same."""
    host = await stage("- {reply: {error: {status: 400}}}\n")
    session = await host.session()
    await host.prompt(session, "go")
    await host.idle(session)

    used = (await host.ask("session.get", sessionId=session))["usage"]
    assert used == {"turns": 1, "turnsUncounted": 1, "turnsUnpriced": 1}
