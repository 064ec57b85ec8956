"""How much of a model's window a transcript takes, and what is shown where it takes too much.

Pure module. Nobody here knows a vendor's tokens: four bytes of UTF-8 count as one, and where the provider counted more
than that, its count is believed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from coterie.core.text import head_and_tail
from coterie.core.turn.context import LIST_NOTICE, Shown, UserPart, newest_checkpoint, shown
from coterie.core.turn.items import Checkpoint, Item, Reply, Report, SessionText, ToolResult
from coterie.core.turn.todo import is_list, newest_list

WINDOW_TOKENS: Final = 128_000
"""The window of a model that nobody has told us about."""
FILL: Final = 0.8
"""The part of a window that a request may fill; the rest is for the answer, and for what the estimate misses."""
KEPT: Final = 0.2
"""The part of a window that a summary leaves as it was said."""
BYTES_PER_TOKEN: Final = 4
_PART_TOKENS: Final = 8
"""What stands around each part of a request."""
IMAGE_TOKENS: Final = 1_600
"""A picture, at the size to which vendors bring a large one."""
_FRAME_TOKENS: Final = 160
"""The frame around what another session wrote."""
_LINE_TOKENS: Final = 40


def tokens_of(text: str) -> int:
    """The estimate for *text*; words in other scripts than Latin have more bytes, and more tokens."""
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    return -(-size // BYTES_PER_TOKEN)


def weight(parts: Iterable[Item | Shown]) -> int:
    """The estimate for entries of a transcript, or parts of a request, together."""
    return sum(_PART_TOKENS + _tokens(part) for part in parts)


def _tokens(part: Item | Shown) -> int:
    match part:
        case Reply(text, calls):
            # Reasoning goes back to the provider only with the state that belongs to it.
            thought = part.thinking if part.state is not None else ""
            asked = sum(_PART_TOKENS + tokens_of(call.name) + tokens_of(call.arguments) for call in calls)
            return tokens_of(text) + tokens_of(thought) + asked
        case SessionText():
            return tokens_of(part.content) + _FRAME_TOKENS
        case Report():
            return tokens_of(part.text) + _FRAME_TOKENS
        case ToolResult(image=image):
            return tokens_of(part.text) + (IMAGE_TOKENS if image is not None else 0)
        case Checkpoint(text, todo=todo):
            return tokens_of(text) + tokens_of(todo or "")
        case _:
            return tokens_of(part.text)


def measure(items: Sequence[Item], overhead: int) -> int:
    """The tokens that the next request would take: what the provider counted last, and what came since.

    Counts from before the newest checkpoint are of another context. The estimate counts where it is higher, because
    what the provider saw may have been less than all.

    Args:
        items: What is remembered of the transcript.
        overhead: The estimate for instructions and tools, where nothing was counted yet.
    """
    estimate = overhead + weight(items)
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, Checkpoint):
            break
        if isinstance(item, Reply) and item.usage.input_tokens is not None:
            written = item.usage.output_tokens
            said = weight([item]) if written is None else written
            return max(estimate, item.usage.input_tokens + said + weight(items[index + 1 :]))
    return estimate


def allowance(items: Sequence[Item], overhead: int, window: int) -> int:
    """The estimated tokens that entries may take in the next request.

    Where the provider counts more than the estimate, there is less room. A quarter of the window is always theirs.
    """
    room = FILL * window / _density(items, overhead) - overhead
    return max(int(room), window // 4)


def spared(items: Sequence[Item], overhead: int, window: int) -> int:
    """The estimated tokens of the newest entries that a summary leaves as they are; see `allowance`."""
    return int(KEPT * window / _density(items, overhead))


def _density(items: Sequence[Item], overhead: int) -> float:
    """How many tokens one of the estimate is, by the provider's last count."""
    estimate = overhead + weight(items)
    return measure(items, overhead) / estimate if estimate else 1.0


def older(items: Sequence[Item], kept_tokens: int) -> int:
    """How many of the first items a summary may cover.

    The newest stay as far as they fit, the very newest always; results stay with their calls.
    """
    room, start = kept_tokens, len(items)
    while start:
        begin = start - 1
        while begin and isinstance(items[begin], ToolResult | Checkpoint):
            begin -= 1
        size = weight(items[begin:start])
        if size > room and start < len(items):
            break
        room, start = room - size, begin
    return start


def shortened(text: str, tokens_max: int) -> str:
    """*text* in at most *tokens_max* estimated tokens, by its start and end."""
    chars, found = tokens_max * BYTES_PER_TOKEN, text
    while tokens_of(found) > tokens_max:
        found, _ = head_and_tail(text, chars)
        chars = chars * 3 // 4
    return found


def fit(items: Sequence[Item], left_out: int, tokens_max: int, task: Item | None = None) -> tuple[Shown, ...]:
    """Return what a model may see of *items*, in at most *tokens_max* estimated tokens.

    The oldest exchanges are dropped whole, and a line says so. The checkpoint, the task, what was heard last, the
    newest step and the list of `todo` stay, cut where they are too long. One exchange that is too long by itself loses
    its oldest steps.

    Args:
        items: What is remembered of the transcript.
        left_out: How many entries before them are not.
        tokens_max: The room.
        task: What the turn was asked, one of *items*.
    """
    parts = shown(items)
    head = parts[:1] if newest_checkpoint(items) is not None else ()
    if weight(parts) + _LINE_TOKENS <= tokens_max:
        return (*head, *_line(left_out), *parts[len(head) :])
    head = _cut(head, tokens_max // 4)
    units = _units(parts[len(head) :])
    heard = [index for index, unit in enumerate(units) if isinstance(unit[0], UserPart)]
    told = shown([task] if task is not None else [])
    asked = [index for index in heard if units[index] == told]
    pinned = sorted({*asked[-1:], *heard[-1:]})
    listed = _listed(items, tokens_max // 8)
    room = tokens_max - weight(head) - weight(listed) - _LINE_TOKENS
    for index in pinned:
        units[index] = _cut(units[index], tokens_max // (4 * len(pinned)))
        room -= weight(units[index])
    if units and len(units) - 1 not in pinned:
        units[-1] = _cut(units[-1], room)
    start = len(units)
    while start and (start - 1 in pinned or weight(units[start - 1]) <= room):
        start -= 1
        room -= 0 if start in pinned else weight(units[start])
    # From the first thing that was heard, so that no exchange is shown without its beginning.
    begin = next((index for index in heard if index >= start), start)
    kept = [part for index in pinned if index < begin for part in units[index]]
    kept += [part for unit in units[begin:] for part in unit]
    dropped = sum(map(len, units)) - len(kept)
    return (*head, *_line(left_out + dropped), *(() if any(map(is_list, kept)) else listed), *kept)


def _listed(items: Sequence[Item], tokens_max: int) -> tuple[UserPart, ...]:
    """The list of `todo`, as it stands where the call that made it does not."""
    found = newest_list(items, None)
    return () if found is None else (UserPart(f"{LIST_NOTICE}\n{shortened(found, tokens_max)}"),)


def _units(parts: Sequence[Shown]) -> list[tuple[Shown, ...]]:
    """Each reply with its results, everything else alone."""
    found: list[tuple[Shown, ...]] = []
    for part in parts:
        if isinstance(part, ToolResult):
            found[-1] += (part,)
        else:
            found.append((part,))
    return found


def missing(left_out: int) -> str:
    """The line that says how many entries are not shown."""
    return f"[The host: {left_out} earlier entries of this conversation are left out here, because they do not fit.]"


def _line(left_out: int) -> tuple[UserPart, ...]:
    return (UserPart(missing(left_out)),) if left_out else ()


def _cut(unit: tuple[Shown, ...], room: int) -> tuple[Shown, ...]:
    """*unit* in about *room* tokens, its parts cut alike."""
    if weight(unit) <= room:
        return unit
    share = max(1, room // len(unit) - _PART_TOKENS)
    return tuple(_cut_part(part, share) for part in unit)


def _cut_part(part: Shown, share: int) -> Shown:
    if isinstance(part, ToolResult) and part.image is not None:
        if _tokens(part) <= share:
            return part
        part = replace(part, image=None)
    if not isinstance(part, Reply):
        return replace(part, text=shortened(part.text, share))
    if _tokens(part) <= share:
        return part
    share = max(1, share // (len(part.calls) + 1) - _PART_TOKENS)
    calls = tuple(replace(call, arguments=shortened(call.arguments, share)) for call in part.calls)
    # The state holds what was said in full.
    return replace(part, text=shortened(part.text, share), calls=calls, thinking="", state=None)


def transcribed(items: Sequence[Item], tokens_max: int) -> str:
    """*items* as one text to be summarised, in at most *tokens_max* estimated tokens.

    As text, because vendors refuse calls and results in a request that offers no tools.
    """
    return shortened("\n\n".join(map(_told, shown(items))), tokens_max)


def _told(part: Shown) -> str:
    match part:
        case UserPart(text):
            return f"[heard]\n{text}"
        case ToolResult(name=name, text=text):
            return f"[{name} answered]\n{text}"
        case Reply(text, calls):  # pragma: no branch - the last of all
            lines = (f"[calls {call.name} {call.arguments}]" for call in calls)
            return "\n".join(("[you said]", text, *lines))
