"""Once per key: a mutating use case repeated with its idempotency key does nothing and answers as before (I14)."""

from dataclasses import dataclass

from coterie.core.errors import IdempotencyConflictError
from coterie.ports.store import Tx


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


def once(tx: Tx, key: Key | None, ref: str) -> str | None:
    """Claim *key* for what *ref* names; return the first request's ref if it was claimed before.

    The claim is rolled back with the transaction, so a refusal may be tried again.

    Raises:
        IdempotencyConflictError: The key belongs to a request with other parameters.
    """
    if key is None:
        return None
    first = tx.journal.claim_key(key.scope, key.key, key.fingerprint, ref)
    if first is None:
        return None
    fingerprint, known = first
    if fingerprint != key.fingerprint:
        raise IdempotencyConflictError(key.key)
    return known
