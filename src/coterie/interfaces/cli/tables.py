"""How sessions, messages and transcripts look to a person; a state is always a word, colour only repeats it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from coterie.core.turn.todo import TODO
from coterie.interfaces.cli.dial import Answer
from coterie.interfaces.cli.differences import diff_lines
from coterie.interfaces.cli.display import one_line, plain, shortened
from coterie.interfaces.cli.endings import words_of

_STYLES: Final = {
    "running": "cyan",
    "queued": "yellow",
    "completed": "green",
    "failed": "red",
    "interrupted": "magenta",
}
PREVIEW_CHARS_MAX: Final = 120


def state(word: str, held: str | None = None) -> Text:
    """A state, and why its queue does not move."""
    shown = Text(one_line(word), style=_STYLES.get(word, ""))
    if held == "archived":
        shown.append(", archived", style="dim")
    elif held:
        shown.append(f", held ({one_line(held)})", style="bold yellow")
    return shown


def preview(text: str | None) -> Text:
    """The start of a text, on one line."""
    return Text(shortened(one_line(text or ""), PREVIEW_CHARS_MAX))


def noted(note: str, text: str) -> Text:
    """The start of a text, and what there is to say about it."""
    return Text(f"{one_line(note)}: ") + preview(text) if text else Text(one_line(note))


def table(titles: Sequence[str], rows: Iterable[Sequence[Text | str]]) -> Table:
    """A table without lines; nothing in it is cut."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        made.add_column(title, overflow="fold", no_wrap=title == "ID")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Names and values, one pair a line; what is not there is left out."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            made.add_row(name, value if isinstance(value, Text) else Text(plain(str(value))))
    return made


def named(reference: Answer | None) -> str | None:
    """A session by title and id, and whether it is still there."""
    return f"{titled(reference)} ({reference['sessionId']})" if reference else None


def titled(reference: Answer) -> str:
    """A session by title, and whether it is still there."""
    return f"{reference['title']}{'' if reference.get('available', True) else ' [deleted]'}"


def message_facts(message: Answer) -> Table:
    """A message of the ledger with its outcome."""
    return facts(
        [
            ("message", message["id"]),
            ("kind", message["kind"]),
            ("state", state(message["status"])),
            ("from", f"{message['sourceTitle']} ({message['sourceSessionId']})"),
            ("to", f"{message['targetTitle']} ({message['targetSessionId']})"),
            ("turn", message.get("turnId")),
            ("answers", message.get("replyToMessageId")),
            ("retry of", message.get("retryOfMessageId")),
            ("expires", message.get("expiresAt")),
            ("error", message.get("error")),
            ("result", message.get("result")),
            ("", "The result is cut; `coterie session items` has all of it." if message.get("truncated") else None),
        ]
    )


def item_lines(item: Answer) -> list[str | Text]:
    """An item of a transcript: who speaks, then what is said."""
    origin: Answer = item.get("origin") or {}
    speaker = {
        "person": "person",
        "session": f"{origin.get('kind', 'message')} from {origin.get('sourceTitle', 'a session')}",
        "reply": "reply",
        "tool_result": f"{item.get('tool', 'tool')} {'failed' if item.get('error') else 'answered'}",
        "checkpoint": f"checkpoint: in later contexts it stands for everything up to {item.get('upTo')}",
    }.get(item["kind"], item["kind"])
    unread = ", unread: the turn ended before a model was shown it" if item.get("unread") else ""
    lines: list[str | Text] = [Text(one_line(f"{item['number']}. {speaker}{unread}"), style="bold")]
    if item["text"]:
        lines.append(words_of(origin.get("kind", ""), item["text"]))
    elif item["kind"] == "reply" and not item.get("calls"):
        lines.append("(no words)")
    if item.get("diff"):
        lines += diff_lines(item["diff"])
    if item.get("outputRef"):
        lines.append(f"(all of it: blobs/{item['outputRef']} in the data directory)")
    if item.get("imageRef"):
        lines.append(f"(the image: blobs/{item['imageRef']} in the data directory)")
    lines += [one_line(f"calls {call['name']} {arguments_of(call)}") for call in item.get("calls") or ()]
    return lines


def arguments_of(call: Answer) -> str:
    """What a tool was called with; nothing for `todo`, whose answer says the same in words."""
    return "" if call["name"] == TODO else str(call["arguments"])
