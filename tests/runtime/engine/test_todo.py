"""The list that an agent keeps of its work: it lives in the transcript, and no context loses it."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.runtime.engine.conftest import SetStage, Stage, said

from coterie.core.turn.states import TurnState

SUMMARY: Final = """
- when: {system: "older part of a conversation"}
  reply: {text: "They said much."}
"""
NO_SUMMARY: Final = """
- when: {system: "older part of a conversation"}
  reply: {error: {status: 400}}
"""
LIST: Final = "[{text: look, status: done}, {text: write, status: in_progress}, {text: run, status: pending}]"
CALL: Final = f"""
- when: {{last: user, user: plan}}
  reply: {{calls: [{{tool: todo, arguments: {{items: {LIST}}}}}]}}
"""
DONE: Final = """
- when: {last: user, user: finish}
  reply: {calls: [{tool: todo, arguments: {items: []}}]}
"""
PLAIN: Final = "- {reply: {text: done}}\n"
SHOWN: Final = "[x] look\n[>] write\n[ ] run"
NOTICE: Final = "the list that you keep with todo"
LONG: Final = "word " * 5_000


async def _narrow(host: Stage) -> None:
    models = tuple(replace(model, context_window=20_000) for model in host.settings.models)
    host.settings = replace(host.settings, models=models)
    await host.restart()


async def _hears(host: Stage, session: str, *texts: str) -> None:
    for text in texts:
        await host.prompt(session, text)
        assert (await host.ended(session)).state is TurnState.COMPLETED


def _listed(request: dict[str, Any]) -> list[str]:
    """What a request shows of the list beside the call that made it."""
    texts = [str(message["content"]) for message in said(request) if message["role"] == "user"]
    return [text for text in texts if NOTICE in text]


async def test_a_list_is_answered_in_words_and_replaced_as_a_whole(stage: SetStage) -> None:
    """In a mode that asks, nobody is asked; the transcript has the newest list last."""
    host = await stage(CALL, DONE, PLAIN)
    session = await host.session(mode="ask")

    await _hears(host, session, "plan", "finish")

    assert await host.results(session) == [SHOWN, "The list is empty."]


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ("nothing", "items"),
        ("[{text: look}]", "items.0.status"),
        ("[{text: look, status: finished}]", "'pending', 'in_progress' or 'done'"),
        ("[{text: ' ', status: done}]", "blank"),
        ('[{text: "a\\nb", status: done}]', "one line"),
        (f"[{{text: {'x' * 201}, status: done}}]", "at most 200 characters"),
        (f"[{', '.join(['{text: x, status: done}'] * 51)}]", "at most 50 items"),
    ],
)
async def test_a_list_that_is_none_changes_nothing_and_its_model_is_told(
    stage: SetStage, items: str, told: str
) -> None:
    """With what would be right."""
    rule = f"- {{when: {{last: user}}, reply: {{calls: [{{tool: todo, arguments: {{items: {items}}}}}]}}}}\n"
    host = await stage(rule, PLAIN)
    session = await host.session()

    await _hears(host, session, "go")

    (result,) = [item for item in await host.items(session) if item["kind"] == "tool_result"]
    assert result["error"]
    assert told in result["text"]


async def test_a_list_outlives_the_summaries_of_what_came_with_it(stage: SetStage) -> None:
    """Word for word, over several of them and a restart: what a model writes of it could be wrong."""
    host = await stage(SUMMARY, CALL, DONE, PLAIN)
    await _narrow(host)
    session = await host.session()
    await _hears(host, session, "plan", f"a {LONG}", f"b {LONG}", f"c {LONG}", f"d {LONG}")
    await host.restart()
    await _hears(host, session, f"e {LONG}", "the last")

    kinds = [item["kind"] for item in await host.items(session)]
    assert kinds.count("checkpoint") > 1
    (told,) = _listed(host.asked()[-1])
    assert told.endswith(f"]\n{SHOWN}")

    await _hears(host, session, "finish")

    assert _listed(host.asked()[-1]) == []


async def test_a_list_outlives_what_is_left_out_without_a_summary(stage: SetStage) -> None:
    """Also where the vendor fails at it."""
    host = await stage(NO_SUMMARY, CALL, PLAIN)
    await _narrow(host)
    session = await host.session()

    await _hears(host, session, "plan", f"a {LONG}", f"b {LONG}", f"c {LONG}")

    request = host.asked()[-1]
    assert "are left out here" in json.dumps(request)
    assert not [message for message in said(request) if message["role"] == "tool"]
    (told,) = _listed(request)
    assert told.endswith(f"]\n{SHOWN}")
