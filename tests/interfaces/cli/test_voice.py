"""How a reply is written from live text that may be lost or late, and from the item that counts."""

from typing import Any

import pytest
from tests.interfaces.cli.conftest import Line

from coterie.interfaces.cli.conversation import Voice
from coterie.interfaces.cli.terminal import Terminal


def reply(text: str, **more: Any) -> dict[str, Any]:
    """An item."""
    return {"kind": "reply", "text": text, **more}


def voice_of(line: Line) -> Voice:
    """A voice on the streams as they are now."""
    return Voice(Terminal(line.surroundings))


def test_an_item_completes_what_came_live(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """Live text that was lost is not missed."""
    voice = voice_of(line)
    voice.delta("one ")
    voice.item(reply("one two"))
    assert capsys.readouterr().out == "one two\n"


def test_live_text_that_comes_after_its_item_is_dropped(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """A wake-up may deliver an item before the last words of its stream."""
    voice = voice_of(line)
    voice.delta("one ")
    voice.item(reply("one two three"))
    voice.delta("two ")
    voice.delta("three")
    voice.delta("next")
    voice.item(reply("next"))
    assert capsys.readouterr().out == "one two three\nnext\n"


def test_live_text_of_several_replies_that_comes_after_their_items_is_dropped(
    line: Line, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fast turn has called its tool and answered before its first word arrives."""
    voice = voice_of(line)
    voice.item(reply("I look.", calls=[{"id": "1", "name": "read", "arguments": "{}"}]))
    voice.item({"kind": "tool_result", "tool": "read", "text": "fine"})
    voice.item(reply("Found."))
    for text in ("I lo", "ok.", "Fou", "nd.", "Next"):
        voice.delta(text)
    voice.item(reply("Next"))
    assert capsys.readouterr().out == "I look.\nFound.\nNext\n"


def test_a_reply_that_was_begun_anew_is_written_whole(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """The stream of a try that failed is not part of the reply."""
    voice = voice_of(line)
    voice.delta("one tw")
    voice.item(reply("other"))
    assert capsys.readouterr().out == "one tw\nother\n"


def test_what_a_tool_prints_is_told_by_lines_beside_the_reply(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """The output stream has the replies; and a line that came in two pieces is one line."""
    voice = voice_of(line)
    voice.live("I look.", None)
    voice.item(reply("I look.", calls=[{"id": "1", "name": "bash", "arguments": "{}"}]))
    voice.live("one\n\ntw", "1")
    voice.live("o\x1b[31m\nthree", "1")
    voice.item({"kind": "tool_result", "tool": "bash", "text": "one\ntwo\nthree"})
    voice.live("Done.", None)
    voice.item(reply("Done."))
    said = capsys.readouterr()
    assert said.out == "I look.\nDone.\n"
    assert said.err == "· bash {}\n│ one\n│ two[31m\n│ three\n"


def test_calls_of_tools_are_remarks(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """The output stream has the replies, and nothing else."""
    voice = voice_of(line)
    voice.item(reply("", calls=[{"id": "1", "name": "read", "arguments": '{"path": "a"}'}]))
    voice.item({"kind": "tool_result", "tool": "read", "text": "no such file", "error": True})
    voice.item({"kind": "tool_result", "tool": "read", "text": "fine"})
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == '· read {"path": "a"}\n· read: no such file\n'


def test_a_long_call_and_a_long_fault_show_that_they_were_cut(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """Half a path looks like a path."""
    voice = voice_of(line)
    voice.item(reply("", calls=[{"id": "1", "name": "read", "arguments": "x" * 101}]))
    voice.item({"kind": "tool_result", "tool": "read", "text": "y" * 101, "error": True})
    assert capsys.readouterr().err == f"· read {'x' * 100}…\n· read: {'y' * 100}…\n"


def test_a_voice_that_stops_ends_its_line(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """The shell's prompt must not stand behind half a reply."""
    voice = voice_of(line)
    voice.delta("half")
    voice.stop()
    voice.stop()
    assert capsys.readouterr().out == "half\n"


def test_what_a_tool_has_changed_is_shown_beside_the_reply(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """With its white space, a sign on each line, and not to programs."""
    result = {"kind": "tool_result", "tool": "edit", "text": "ok", "diff": "@@ -1 +1 @@\n-  a[b]\n+\tc\n"}
    voice_of(line).item(result)
    Voice(Terminal(line.surroundings, as_json=True)).item(result)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "    @@ -1 +1 @@\n    -  a[b]\n    +\tc\n".expandtabs(8)


def test_a_list_of_work_is_told_line_by_line(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    """Its answer says in words what its call says in JSON; one that was refused has changed nothing."""
    voice = voice_of(line)
    voice.item(reply("", calls=[{"id": "1", "name": "todo", "arguments": '{"items": []}'}]))
    voice.item({"kind": "tool_result", "tool": "todo", "text": "[x] look\n[ ] write"})
    voice.item({"kind": "tool_result", "tool": "todo", "text": "no\nlist", "error": True})
    assert capsys.readouterr().err == "· todo\n│ [x] look\n│ [ ] write\n· todo: no list\n"
