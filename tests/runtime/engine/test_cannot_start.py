"""What keeps a turn from starting is an outcome, told like any other."""

import shutil

import pytest
from tests.runtime.engine.conftest import SetStage

from coterie.core.turn.states import TurnState

ANSWERS = """
- reply: {text: "done"}
"""


async def test_a_folder_that_is_gone_fails_the_turn_and_tells_the_sender(stage: SetStage) -> None:
    """The send that started it stands; the next turn of the session runs (case 111)."""
    host = await stage(ANSWERS)
    lead, worker = await host.session(), await host.session("worker", folder=True)
    shutil.rmtree(host.project)

    message = await host.task(lead, worker)
    (settled,) = await host.settled(message)

    assert settled["status"] == "failed"
    assert settled["error"].startswith("FOLDER_GONE: ")
    assert (await host.completion(message))["kind"] == "completion"
    host.project.mkdir()
    await host.prompt(worker, "again")
    assert (await host.ended(worker)).state is TurnState.COMPLETED


@pytest.mark.parametrize("keep", [0, 1])
async def test_a_model_that_is_not_configured_any_more_is_never_replaced(stage: SetStage, keep: int) -> None:
    """A session goes on with the model that it was created with, or not at all."""
    host = await stage(ANSWERS)
    session = await host.session("worker")
    await host.stop()
    host.settings = host.without_models_after(keep)
    await host.start()

    await host.prompt(session, "hello")

    assert (await host.ended(session)).error_code == ("MODEL_NOT_FOUND" if keep else "MODEL_NOT_CONFIGURED")
    assert not host.asked()
