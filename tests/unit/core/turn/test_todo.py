"""The list that a model keeps of its work, and that no context loses."""

import pytest

from coterie.core.turn.context import LIST_NOTICE, UserPart, shown
from coterie.core.turn.fitting import fit, weight
from coterie.core.turn.items import Checkpoint, Item, PersonText, Reply, ToolCall, ToolResult
from coterie.core.turn.todo import TODO, Progress, listing, newest_list

EMPTY = listing([])


def _kept(text: str, *, error: bool = False) -> list[Item]:
    """A call of `todo` and what it has answered."""
    return [Reply("", (ToolCall(text, TODO, "{}"),)), ToolResult(text, TODO, text, error)]


def _shown_list(items: list[Item], room: int) -> list[str]:
    told = [part.text for part in fit(items, 0, room) if isinstance(part, UserPart)]
    return [text.partition(f"{LIST_NOTICE}\n")[2] for text in told if LIST_NOTICE in text]


def test_a_list_has_a_line_for_each_entry_and_says_where_it_is_empty() -> None:
    """A person and a model read the same."""
    entries = [(Progress.DONE, "look"), (Progress.IN_PROGRESS, "write"), (Progress.PENDING, "run")]
    assert listing(entries) == "[x] look\n[>] write\n[ ] run"
    assert EMPTY == "The list is empty."


@pytest.mark.parametrize(
    ("items", "kept", "newest"),
    [
        ([], None, None),
        ([], "[ ] old", "[ ] old"),
        ([PersonText("go"), *_kept("[ ] one"), *_kept("[x] one"), Reply("done")], "[ ] old", "[x] one"),
        ([*_kept("[ ] one"), *_kept("no list", error=True)], None, "[ ] one"),
        ([*_kept("[ ] one"), *_kept(EMPTY)], "[ ] old", None),
        ([ToolResult("c", "bash", "[ ] one")], None, None),
    ],
)
def test_the_newest_list_counts(items: list[Item], kept: str | None, newest: str | None) -> None:
    """Not one that was refused, and not what looks like one; an empty one ends it."""
    assert newest_list(items, Checkpoint("sum", 1, todo=kept)) == newest
    if kept is None:
        assert newest_list(items, None) == newest


def test_a_checkpoint_shows_its_list_until_there_is_a_newer_one() -> None:
    """Two lists would contradict each other."""
    before = Checkpoint("sum", 1, todo="[ ] old")
    (told, *_) = shown([before, PersonText("go")])
    assert told.text.endswith(f"sum\n\n{LIST_NOTICE}\n[ ] old")
    for newer in (_kept("[x] old"), _kept(EMPTY)):
        (told, *_) = shown([before, PersonText("go"), *newer])
        assert told.text.endswith("sum")


def test_a_list_whose_call_is_left_out_is_shown_all_the_same() -> None:
    """What does not fit is dropped from the oldest on, and the list may be older than anything that is shown."""
    old: list[Item] = [PersonText("first"), *_kept("[ ] one"), Reply("a" * 4_000)]
    items = [*old, PersonText("second"), Reply("b" * 400)]
    assert _shown_list(items, 1_000) == ["[ ] one"]
    assert _shown_list(items, 2_000) == []
    assert _shown_list([*items, *_kept("[x] one")], 1_000) == []
    assert _shown_list([*old, *_kept(EMPTY), PersonText("second"), Reply("b" * 400)], 1_000) == []


def test_a_long_list_is_cut_and_does_not_take_all_the_room() -> None:
    """An eighth of it, for the list is to help with the work and not to replace it."""
    items: list[Item] = [PersonText("first"), *_kept("[ ] step\n" * 400), PersonText("second"), Reply("b" * 400)]
    (told,) = _shown_list(items, 800)
    assert weight(fit(items, 0, 800)) <= 800
    assert 200 < len(told) <= 400
