"""Ids: UUIDv7 text with a prefix that tells the kind.

Pure module: time and randomness are given. Ids are for finding things; order comes from sequence numbers.
"""

from collections.abc import Callable
from typing import Literal, NewType, TypeAlias

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
MessageId = NewType("MessageId", str)
InputId = NewType("InputId", str)
ChainId = NewType("ChainId", str)
HostId = NewType("HostId", str)
RequestId = NewType("RequestId", str)
GrantId = NewType("GrantId", str)

Prefix: TypeAlias = Literal["ses", "turn", "msg", "inp", "chn", "hst", "inv", "req", "grt", "dlg"]
NewId: TypeAlias = Callable[[Prefix], str]
"""Makes a fresh id of the kind that the prefix names."""

RANDOM_BITS = 74
"""How many random bits `uuid7` takes (RFC 9562, section 5.7)."""


def make_id(prefix: Prefix, now_ms: int, randomness: int) -> str:
    """Return `prefix_` and 32 hex digits of a UUIDv7 (RFC 9562, section 5.7).

    Args:
        prefix: The kind.
        now_ms: Epoch milliseconds; the upper 48 bits.
        randomness: At least `RANDOM_BITS` random bits.
    """
    low, high = randomness & ((1 << 62) - 1), (randomness >> 62) & 0xFFF
    value = (now_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low
    return f"{prefix}_{value:032x}"


def nonce_of(fresh: str) -> str:
    """The last 16 hex digits of a fresh id: 62 random bits, for a frame that nobody can guess."""
    return fresh[-16:]
