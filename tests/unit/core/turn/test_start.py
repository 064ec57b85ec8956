"""What a turn needs before it begins, and what its model is told."""

from dataclasses import replace

import pytest

from coterie.core.codes import Code
from coterie.core.ids import SessionId
from coterie.core.model_ref import Binding
from coterie.core.permission import Mode, StoredMode
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session
from coterie.core.turn.instructions import NOTES_CHARS_MAX, ProjectNote, instructions
from coterie.core.turn.start import binding_for

SESSION = Session(
    SessionId("ses_a"),
    "A",
    None,
    None,
    permission_mode=StoredMode.INHERIT,
    held=None,
    streak=0,
    ready=None,
    revision=0,
    created_at=0,
    updated_at=0,
)
ONE, OTHER = Binding("p/one", "anthropic", None, "one"), Binding("p/other", "anthropic", None, "other")


def test_a_session_keeps_the_model_it_was_made_with() -> None:
    """Never another one in its place, not even if that is the only one left."""
    assert binding_for(SESSION, [ONE, OTHER], "") is ONE
    assert binding_for(replace(SESSION, model="p/other"), [ONE, OTHER], "") is OTHER
    gone = binding_for(replace(SESSION, model="p/gone"), [ONE], "")
    assert isinstance(gone, Refusal)
    assert (gone.code, gone.candidates) == (Code.MODEL_NOT_FOUND, ("p/one",))


@pytest.mark.parametrize("model", [None, "p/one"])
def test_without_any_model_the_turn_tells_the_way_to_one(model: str | None) -> None:
    """Whatever the session had asked for: there is nothing to choose from."""
    none = binding_for(replace(SESSION, model=model), [], "Configure one.")
    assert none == Refusal(Code.MODEL_NOT_CONFIGURED, "Configure one.")


@pytest.mark.parametrize("mode", Mode)
def test_the_instructions_tell_where_the_model_is(mode: Mode) -> None:
    """Session, project and permission; a line for this one request comes last."""
    told = instructions(replace(SESSION, project_path="/srv/p"), mode, "Answer now.")
    assert "ses_a" in told
    assert "/srv/p" in told
    assert repr(mode.value) in told
    assert told.endswith("\nAnswer now.")
    assert "no project folder" in instructions(SESSION, mode)


def test_a_worker_is_told_that_its_reply_is_delivered() -> None:
    """Else it sends its answer twice."""
    said = "Your final reply is delivered"
    assert said in instructions(replace(SESSION, created_by=SessionId("ses_b")), Mode.ASK)
    assert said not in instructions(SESSION, Mode.ASK)


def test_what_the_project_says_is_told_by_file_and_the_nearest_has_room_first() -> None:
    """All of it together has a bound, and what is cut says so; blank files say nothing."""
    notes = [ProjectNote("../../AGENTS.md", "far"), ProjectNote("../AGENTS.md", "x" * NOTES_CHARS_MAX)]
    notes += [ProjectNote("AGENTS.md", "near"), ProjectNote("blank", " \n")]
    told = instructions(SESSION, Mode.ASK, "Answer now.", notes)
    head = "Instructions of the project, from the file "
    far, middle, near = told.split(head)[1:]
    assert far == "../../AGENTS.md (left out: there is no room):\n\n"
    assert middle.startswith("../AGENTS.md (cut):\nxxx")
    assert "32768 characters in all; the middle is left out" in middle
    assert near == "AGENTS.md:\nnear\nAnswer now."
    assert len(told) < NOTES_CHARS_MAX + 2_000
