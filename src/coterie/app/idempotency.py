"""Once per key: a mutating use case repeated with its idempotency key does nothing and answers as before (I14)."""

from dataclasses import dataclass
from typing import Final

from coterie.core.errors import IdempotencyConflictError
from coterie.core.ids import NewId
from coterie.ports.store import Tx

KEPT_DAYS: Final = 30
"""How long the key of an act that makes no row is kept."""
PURGE_BATCH: Final = 500
"""Keys that one transaction forgets."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key of one request."""

    scope: str
    """Kind of credential, and its session or person: keys of others do not clash."""
    key: str
    fingerprint: str
    """Stands for the operation and all its parameters after defaults."""


def is_known(tx: Tx, key: Key) -> bool:
    """Whether a request with *key* was kept before: then nothing about the world needs to be asked."""
    return tx.journal.key_is_known(key.scope, key.key)


def until(now: int) -> int:
    """When the key of an act of *now* that makes no row may be forgotten; both in epoch milliseconds."""
    return now + KEPT_DAYS * 86_400_000


def once(tx: Tx, key: Key | None, ref: str, *, kept_until: int | None = None) -> str | None:
    """Claim *key* for what *ref* names; return the first request's ref if it was claimed before.

    The claim is rolled back with the transaction, so a refusal may be tried again.

    Args:
        tx: The transaction.
        key: None claims nothing.
        ref: The row that the request makes, or its answer.
        kept_until: When the key may be forgotten, in epoch milliseconds; None keeps it with its row.

    Raises:
        IdempotencyConflictError: The key belongs to a request with other parameters.
    """
    if key is None:
        return None
    first = tx.journal.claim_key(key.scope, key.key, key.fingerprint, ref, kept_until=kept_until)
    if first is None:
        return None
    fingerprint, known = first
    if fingerprint != key.fingerprint:
        raise IdempotencyConflictError(key.key)
    return known


def anything_old(tx: Tx, now: int) -> bool:
    """Whether a key may be forgotten at *now*, in epoch milliseconds."""
    return tx.journal.old_keys(now, 1) > 0


def forget_old(tx: Tx, command: None, now: int, new_id: NewId) -> int:
    """Forget keys whose time is over, a batch at once; returns how many."""
    del command, new_id
    return tx.journal.forget_keys(now, PURGE_BATCH)
