"""Replies as Markdown while they are written: what is shown when, on a terminal of any width."""

from typing import Final

import pytest

from coterie.interfaces.cli.markdown import Blocks

_REPLIES: Final = {
    "paragraphs": ("One\n*word*.\n\n\n\nMore", "One word.\n\nMore"),
    "list": ("- a\n- b\n\nEnd.", " • a\n • b\n\nEnd."),
    "list of steps": (
        "1. Do:\n\n    ```sh\n    ls\n    ```\n\n    - so\n\n2. End.\n",
        " 1 Do:\n   ls\n    • so\n\n 2 End.",
    ),
    "code in code": ("````md\n```sh\nls\n```\n\nTwo.\n````\n\nEnd.\n", "```sh\nls\n```\n\nTwo.\n\nEnd."),
    "code in a line": ("```one line``` of\n\ncode\n", "one line of\n\ncode"),
    "code in a list": ("- ~~~\n  a\n  ~~~\n\nEnd.\n", " • a\n\nEnd."),
    "table": ("| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.", " a  b\n ────\n 1  2\n\nEnd."),
    "controls": ("&#x1b;[2J\x1b]0;t\x07\n", "�[2J]0;t"),
    "nothing": ("\n \n", ""),
}
_CODE: Final = [f"x{number}" for number in range(5000)]


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """What stands on the screen, without what only pads a line."""
    return "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", _REPLIES)
def test_a_reply_looks_the_same_in_whatever_pieces_it_comes(
    capsys: pytest.CaptureFixture[str], name: str, size: int
) -> None:
    """Vendors send letters or paragraphs; lists keep what is indented below them, and code what stands in it."""
    reply, looks = _REPLIES[name]
    blocks = Blocks()
    for at in range(0, len(reply), size):
        blocks.write(reply[at : at + size])
    blocks.end()
    assert shown(capsys).rstrip("\n") == looks


def test_a_block_is_shown_as_soon_as_it_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A paragraph at its end; a list, which may go on, when something else begins."""
    blocks = Blocks()
    blocks.write("One.\n\n")
    assert shown(capsys) == "One.\n\n"
    blocks.write("- two\n\n")
    assert shown(capsys) == ""
    blocks.write("T")
    assert shown(capsys) == " • two\n\n"


def test_a_code_block_of_5000_lines_is_shown_while_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    """Case 158. Nobody waits for its end, and no line is lost or doubled where two pieces meet."""
    blocks, seen = Blocks(), ""
    blocks.write("Here:\n```python\n")
    for number, line in enumerate(_CODE):
        blocks.write(f"{line}\n")
        if number % 50 == 49:
            seen += shown(capsys)
            assert len(seen.splitlines()) > number - 25, "it is held back"
    blocks.write("```\nEnd.\n")
    blocks.end()
    seen += shown(capsys)
    assert [line for line in seen.splitlines() if line] == ["Here:", *_CODE, "End."]


def test_empty_lines_of_code_stay_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Pieces end anywhere."""
    code = [line for number in range(40) for line in (f"x{number}", "")]
    blocks = Blocks()
    blocks.write("\n".join(["```", *code, "```", ""]))
    blocks.end()
    assert shown(capsys).splitlines()[: len(code)] == code
