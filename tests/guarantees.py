"""The promises that this version keeps, each once; `docs/guarantees.md` tells them in full.

A test proves a promise by carrying its id: `@guarantee("I7")`. `test_guarantees.py` fails when a promise has no proof
or a proof names no promise.
"""

from typing import Final

import pytest

PROMISES: Final[dict[str, str]] = {
    "I1": "A session never has two running turns.",
    "I2": "A message leaves the queue once, in one transaction, and a turn belongs to one input.",
    "I3": "A message is queued exactly as long as its place in the queue exists.",
    "I4": "What was answered is on disk.",
    "I5": "What has ended does not change.",
    "I6": "A message ends as its turn ends, whatever the text says.",
    "I7": "A message that asked for a completion gets exactly one, however it ends.",
    "I8": "A completion goes to the session that sent the message.",
    "I9": "A restart runs nothing, loses nothing and says what it interrupted.",
    "I10": "The sender is read from the credential, never from a parameter.",
    "I11": "A turn may do at most what every session on the way from the person to it may do.",
    "I12": "A chain of messages ends: in depth, in number, in money, and never in a ring of waits.",
    "I13": "Nothing that a text says changes permissions, senders, approvals or the right to be silent.",
    "I14": "The same idempotency key does the work once.",
    "I15": "A list, a page or a summary costs the same in a young ledger and in an old one.",
    "I16": "An idle session with something in its queue shows why it does not run.",
}


def guarantee(promise: str) -> pytest.MarkDecorator:
    """Mark a test as a proof of *promise*."""
    return pytest.mark.guarantee(promise)
