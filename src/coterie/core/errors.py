"""The one tree of faults.

Pure module.

    HostError
    ├── InvalidArgumentError     the request is not well formed
    ├── NotFoundError            a string that names nothing
    ├── RefusedError             a rule said no (`Refusal`)
    ├── ConflictError            somebody else moved first
    │   └── IdempotencyConflictError
    ├── UnauthenticatedError
    ├── PermissionDeniedError
    ├── ForbiddenHostError, ForbiddenOriginError
    ├── ModelNotConfiguredError
    ├── StorageError             nothing was written
    │   └── StorageUnknownError  written or not: ask again with the same key
    ├── HostUnavailableError
    ├── InternalError
    └── StartError               the host cannot start: ConfigInvalidError, PortInUseError, HostRunningError,
                                 ExtraMissingError, SchemaNewerError, DatabaseCorruptError, DatabaseUnusableError,
                                 PublicBindRefusedError
"""

from typing import ClassVar

from coterie.core.codes import Code
from coterie.core.refusal import Refusal


class HostError(Exception):
    """Base of every fault that a door may show. Its text is one sentence, fit for a person."""

    code: Code = Code.INTERNAL
    retryable: ClassVar[bool] = False

    def detail(self) -> dict[str, object]:
        """What a client may act on besides code and text; keys are wire names."""
        return {}


class InvalidArgumentError(HostError):
    """The request cannot be understood or lacks something."""

    code = Code.INVALID_ARGUMENT


class NotFoundError(HostError):
    """*subject* names nothing; *candidates* are near names and ids."""

    code = Code.NOT_FOUND

    def __init__(self, kind: str, subject: str, candidates: tuple[str, ...] = ()) -> None:
        near = f" Near: {', '.join(candidates)}." if candidates else ""
        super().__init__(f"There is no {kind} {subject!r}.{near}")
        self.kind, self.subject, self.candidates = kind, subject, candidates

    def detail(self) -> dict[str, object]:
        """The near names."""
        return {"candidates": list(self.candidates)} if self.candidates else {}


class RefusedError(HostError):
    """A rule refused; the refusal's own code is the error's code."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.code = refusal.code

    def detail(self) -> dict[str, object]:
        """Limit, value, candidates and path, where the rule gave them."""
        refusal = self.refusal
        found: dict[str, object] = {"limit": refusal.limit, "value": refusal.value}
        found |= {"candidates": list(refusal.candidates), "path": list(refusal.path)}
        return {key: value for key, value in found.items() if value not in (None, [])}


class ConflictError(HostError):
    """A concurrent writer moved *subject* first, so the caller's view is stale."""

    code = Code.CONFLICT

    def __init__(self, subject: str, expected: str, found: str) -> None:
        super().__init__(f"{subject} is {found}, not {expected}.")
        self.subject, self.expected, self.found = subject, expected, found


class IdempotencyConflictError(ConflictError):
    """The key was used before, for another operation or with other parameters."""

    code = Code.IDEMPOTENCY_CONFLICT

    def __init__(self, key: str) -> None:
        HostError.__init__(
            self,
            f"The idempotency key {key!r} belongs to an earlier request with other parameters. "
            "Use a new key for a new request.",
        )
        self.key = key


class UnauthenticatedError(HostError):
    """No credential, or one that the host does not know."""

    code = Code.UNAUTHENTICATED


class PermissionDeniedError(HostError):
    """The credential is good but may not do this."""

    code = Code.PERMISSION_DENIED


class ForbiddenHostError(HostError):
    """The Host header is not one of this host's names."""

    code = Code.FORBIDDEN_HOST


class ForbiddenOriginError(HostError):
    """The Origin header is not one of this host's."""

    code = Code.FORBIDDEN_ORIGIN


class ModelNotConfiguredError(HostError):
    """There is no model to run a session with."""

    code = Code.MODEL_NOT_CONFIGURED


class StorageError(HostError):
    """The database refused this write; nothing of it was kept."""

    code = Code.STORAGE_ERROR
    retryable = True


class StorageUnknownError(StorageError):
    """The commit failed, so the write may or may not be there: repeat it with the same idempotency key."""

    code = Code.STORAGE_UNKNOWN


class HostUnavailableError(HostError):
    """No host answers, or it is stopping."""

    code = Code.HOST_UNAVAILABLE
    retryable = True


class InternalError(HostError):
    """A fault of ours; the log has the cause."""

    code = Code.INTERNAL


class StartError(HostError):
    """The host cannot start; nothing was changed."""


class ConfigInvalidError(StartError):
    """A setting is wrong; the text names file, line and what would be right."""

    code = Code.CONFIG_INVALID


class PortInUseError(StartError):
    """Another program listens there."""

    code = Code.PORT_IN_USE


class HostRunningError(StartError):
    """Another host has the data directory."""

    code = Code.HOST_RUNNING


class ExtraMissingError(StartError):
    """An optional dependency is not installed; the text names the extra."""

    code = Code.EXTRA_MISSING


class SchemaNewerError(StartError):
    """The database was written by a newer Coterie."""

    code = Code.SCHEMA_NEWER


class DatabaseUnusableError(StartError):
    """The database cannot be opened or written where it is."""

    code = Code.STORAGE_ERROR


class DatabaseCorruptError(StartError):
    """The database file is not readable as one."""

    code = Code.DATABASE_CORRUPT


class PublicBindRefusedError(StartError):
    """The address is not a loopback address."""

    code = Code.PUBLIC_BIND_REFUSED
