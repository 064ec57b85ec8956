"""What a vendor's wire format is to the server: four functions and how a key is shown."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from coterie.model_server.answer import Answer, to_json
from coterie.model_server.request import Request

JsonObject: TypeAlias = dict[str, object]


class Place(Enum):
    """Which part of a stream a frame belongs to."""

    FRAMEWORK = auto()
    """Sent without delay and not counted."""
    CHUNK = auto()
    """A piece of thinking, text or arguments: delayed, counted, and where a cut can happen."""
    CLOSING = auto()
    """The finish reason and what follows it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event."""

    place: Place
    data: bytes


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How one API reads requests and writes answers."""

    decode: Callable[[bytes], Request]
    """Raises `ValueError` where the body is no request."""
    frames: Callable[[Answer], Iterator[Frame]]
    whole: Callable[[Answer], JsonObject]
    fault: Callable[[int, str], JsonObject]


def sse(place: Place, body: Mapping[str, object], event: str = "") -> Frame:
    """Return *body* as a server-sent event."""
    head = f"event: {event}\n" if event else ""
    return Frame(place, f"{head}data: {to_json(body)}\n\n".encode())


def pieces(arguments: str) -> tuple[str, ...]:
    """Return *arguments* in two pieces, so that a client has to put them together."""
    half = len(arguments) // 2
    return tuple(piece for piece in (arguments[:half], arguments[half:]) if piece)
