"""One tree of faults, each with a stable code."""

from collections.abc import Iterator

from coterie.core import errors
from coterie.core.codes import Code
from coterie.core.errors import (
    ConflictError,
    HostError,
    IdempotencyConflictError,
    NotFoundError,
    RefusedError,
    StorageError,
)
from coterie.core.limits import RANGES, Limits
from coterie.core.refusal import Refusal


def _tree(root: type[HostError]) -> Iterator[type[HostError]]:
    yield root
    for branch in root.__subclasses__():
        yield from _tree(branch)


def test_every_fault_is_in_the_picture_and_has_a_code() -> None:
    """The picture at the top of the module is what a reader believes."""
    picture = errors.__doc__ or ""
    for fault in _tree(HostError):
        if fault.__module__ == errors.__name__:
            assert fault.__name__ in picture
        assert isinstance(fault.code, Code)


def test_a_code_is_its_own_text() -> None:
    """Clients compare text."""
    assert all(code.value == code.name for code in Code)


def test_only_what_may_be_repeated_says_so() -> None:
    """Repeating a refusal or a conflict would meet it again."""
    repeatable = {fault.__name__ for fault in _tree(HostError) if fault.retryable}
    assert repeatable == {"StorageError", "StorageUnknownError", "HostUnavailableError"}


def test_a_refusal_becomes_a_fault_with_what_the_rule_knew() -> None:
    """Limit, value, candidates and path, as far as there are any; zero is a value."""
    full = RefusedError(Refusal(Code.AGENT_BUSY, "No.", "x_max", 0, ("a",), ("s", "t")))
    bare = RefusedError(Refusal(Code.AGENT_BUSY, "No."))
    assert (full.code, str(full)) == (Code.AGENT_BUSY, "No.")
    assert full.detail() == {"limit": "x_max", "value": 0, "candidates": ["a"], "path": ["s", "t"]}
    assert bare.detail() == {}
    assert StorageError("x").detail() == {}


def test_faults_say_what_they_are_about() -> None:
    """In one sentence, fit for a person."""
    near, none = NotFoundError("session", "x", ("y", "z")), NotFoundError("session", "x")
    assert str(near) == "There is no session 'x'. Near: y, z."
    assert (near.detail(), none.detail()) == ({"candidates": ["y", "z"]}, {})
    assert str(none) == "There is no session 'x'."
    assert str(ConflictError("Turn t", "running", "failed")) == "Turn t is failed, not running."
    key = IdempotencyConflictError("k")
    assert "'k'" in str(key)
    assert (key.code, key.key) == (Code.IDEMPOTENCY_CONFLICT, "k")


def test_every_limit_has_a_range_that_holds_its_default() -> None:
    """A default that could not be written into the settings would be a trap."""
    limits = Limits()
    assert set(RANGES) == set(Limits.__slots__)
    for name, (least, most) in RANGES.items():
        assert least <= getattr(limits, name) <= most
