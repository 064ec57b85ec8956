"""Pictures that tools have read: kept beside the ledger, and sent with every request whose context shows them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from coterie.core.model_ref import Binding
from coterie.core.text import mend
from coterie.core.turn.context import Shown
from coterie.core.turn.items import Image, ToolCall, ToolResult
from coterie.ports.outputs import Images
from coterie.ports.tool import ToolOutput

REQUEST_BYTES_MAX: Final = 12_000_000
"""Bytes of pictures in one request: on the wire they grow by a third, and vendors take 20 MB or more."""
_LOG: Final = logging.getLogger(__name__)
_LEFT_OUT: Final = "\n[The host: the image itself is not in this request.]"


def pictured(images: Images | None, binding: Binding, call: ToolCall, output: ToolOutput) -> ToolResult:
    """The result of a call that answered with a picture, once that is kept; it blocks.

    Args:
        images: Where it is kept.
        binding: The model that is to see it.
        call: Who asked for it.
        output: The answer.
    """
    text, picture = mend(output.text), output.picture
    if images is None or picture is None or not binding.images:
        why = f"It is not shown: the model {binding.key} takes no images. (Those that do have `images = true`.)"
        return ToolResult(call.id, call.name, f"{text}. {why}", error=True)
    try:
        ref = images.keep_image(picture.data)
    except OSError as error:
        why = f"It is not shown, because it could not be kept: {error.strerror or error}."
        return ToolResult(call.id, call.name, f"{text}. {why}", error=True)
    return ToolResult(call.id, call.name, f"{text}.", image=Image(ref, picture.media_type, len(picture.data)))


def are_in(seen: Sequence[Shown]) -> bool:
    """Whether a context has a picture."""
    return any(_image(part) for part in seen)


def fetched(images: Images | None, binding: Binding, seen: Sequence[Shown]) -> Mapping[str, bytes]:
    """The pictures that a request carries, the newest first as far as there is room; it blocks."""
    found, room = dict[str, bytes](), REQUEST_BYTES_MAX
    if images is None or not binding.images:
        return found
    for part in reversed(seen):
        image = _image(part)
        if image is None or image.ref in found:
            continue
        room -= image.size
        if room < 0:
            break
        try:
            found[image.ref] = images.image(image.ref)
        except OSError as error:
            _LOG.warning("image %s cannot be read: %s", image.ref, error)
    return found


def without(seen: Sequence[Shown], found: Mapping[str, bytes]) -> tuple[Shown, ...]:
    """*seen*, with a word in the place of each picture that was not *found*."""
    return tuple(_without(part, found) for part in seen)


def _without(part: Shown, found: Mapping[str, bytes]) -> Shown:
    if not isinstance(part, ToolResult) or part.image is None or part.image.ref in found:
        return part
    return replace(part, text=part.text + _LEFT_OUT, image=None)


def _image(part: Shown) -> Image | None:
    return part.image if isinstance(part, ToolResult) else None
