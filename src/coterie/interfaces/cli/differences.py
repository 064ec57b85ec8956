"""What a tool has changed in a file, as a person is shown it; a sign begins each line, colour only repeats it."""

from typing import Final

from rich.text import Text

from coterie.interfaces.cli.display import plain, shortened

LINES_MAX: Final = 20
"""Lines of one change that are shown; programs get all of it."""
_CHARS_MAX: Final = 400
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def diff_lines(diff: str) -> list[Text]:
    """The lines of a unified difference, and how many are left out."""
    lines = plain(diff).removesuffix("\n").split("\n")
    shown = [_line(line) for line in lines[:LINES_MAX]]
    left = len(lines) - len(shown)
    if left:
        shown.append(Text(f"    … {left} more {'line' if left == 1 else 'lines'} …", style="dim"))
    return shown


def _line(line: str) -> Text:
    style = "bold" if line.startswith(("--- ", "+++ ")) else _STYLES.get(line[:1], "dim")
    return Text(f"    {shortened(line, _CHARS_MAX)}", style=style)
