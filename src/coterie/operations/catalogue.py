"""Every operation, once: doors, plugins and the terminal are fed from this table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from coterie.core.permission import Risk
from coterie.operations import (
    bindings,
    collaboration,
    lifecycle,
    params,
    permissions,
    projection,
    queue,
    sessions,
    views,
    waiting,
    workspaces,
)
from coterie.operations.act import Act
from coterie.operations.params import Keyed, Params
from coterie.operations.views import View

Verb = Literal["GET", "POST"]
_POSTED: Final = frozenset({"collaboration.wait", "models.test"})
"""Change nothing here, yet are no plain reads: one sleeps, and one costs money elsewhere."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked of the host."""

    name: str
    params: type[Params]
    result: type[View]
    run: Callable[[Act, Any], Awaitable[View]]
    risk: Risk
    agents: bool
    """Whether a running turn may ask for it, by a live tool call."""
    path: str
    """Its REST route below `/api/v1`; names in braces are parameters."""

    @property
    def mutates(self) -> bool:
        """Whether it changes the ledger; then it takes an idempotency key."""
        return issubclass(self.params, Keyed)

    @property
    def verb(self) -> Verb:
        """Its HTTP method."""
        return "POST" if self.mutates or self.name in _POSTED else "GET"

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


_LOW, _EDIT = Risk.LOW, Risk.EDIT
_PERSON, _AGENTS = False, True
_SESSION = "/sessions/{sessionId}"
_INPUT = "/sessions/{sessionId}/queue/{inputId}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("app.health", params.NoParams, views.Health, sessions.health, _LOW, _PERSON, "/health"),
    Operation("session.create", params.SessionCreate, views.OneSession, sessions.create, _EDIT, _PERSON, "/sessions"),
    Operation("session.list", params.SessionList, views.SessionPage, sessions.page, _LOW, _PERSON, "/sessions"),
    Operation("session.get", params.SessionRef, views.OneSession, sessions.get, _LOW, _PERSON, _SESSION),
    Operation("session.turn", params.TurnRef, views.TurnView, sessions.turn, _LOW, _PERSON, "/turns/{turnId}"),
    Operation("session.items", params.SessionItems, views.ItemPage, sessions.items, _LOW, _PERSON, f"{_SESSION}/items"),
    Operation(
        "session.prompt",
        params.SessionPrompt,
        views.PromptReceipt,
        sessions.prompt,
        _EDIT,
        _PERSON,
        f"{_SESSION}/prompts",
    ),
    Operation(
        "session.steer",
        params.SessionPrompt,
        views.SteerReceipt,
        lifecycle.steer,
        _EDIT,
        _PERSON,
        f"{_SESSION}/steering",
    ),
    Operation(
        "session.interrupt",
        params.SessionInterrupt,
        views.CancelledView,
        lifecycle.stop,
        _EDIT,
        _PERSON,
        f"{_SESSION}/interruptions",
    ),
    Operation(
        "session.rename", params.SessionRename, views.OneSession, lifecycle.rename, _EDIT, _PERSON, f"{_SESSION}/title"
    ),
    Operation(
        "session.configure",
        params.SessionConfigure,
        views.OneSession,
        lifecycle.configure,
        _EDIT,
        _PERSON,
        f"{_SESSION}/settings",
    ),
    Operation(
        "session.archive",
        params.SessionKeyed,
        views.OneSession,
        lifecycle.archive,
        _EDIT,
        _PERSON,
        f"{_SESSION}/archive",
    ),
    Operation(
        "session.delete",
        params.SessionKeyed,
        views.DeletedView,
        lifecycle.delete,
        _EDIT,
        _PERSON,
        f"{_SESSION}/deletion",
    ),
    Operation("session.diff", params.SessionRef, views.DiffView, workspaces.diff, _LOW, _PERSON, f"{_SESSION}/diff"),
    Operation(
        "session.apply",
        params.SessionKeyed,
        views.AppliedView,
        workspaces.apply,
        _EDIT,
        _PERSON,
        f"{_SESSION}/application",
    ),
    Operation(
        "session.drop", params.SessionDrop, views.DroppedView, workspaces.drop, _EDIT, _PERSON, f"{_SESSION}/drop"
    ),
    Operation(
        "session.fork", params.SessionFork, views.OneSession, lifecycle.fork, _EDIT, _PERSON, f"{_SESSION}/forks"
    ),
    Operation(
        "session.retry",
        params.SessionRetry,
        views.SendReceipt,
        lifecycle.retry,
        _EDIT,
        _PERSON,
        "/messages/{messageId}/retries",
    ),
    Operation("session.release", params.SessionRelease, views.Released, lifecycle.release, _EDIT, _PERSON, "/releases"),
    Operation("queue.list", params.SessionRef, views.QueueView, queue.listing, _LOW, _PERSON, f"{_SESSION}/queue"),
    Operation("queue.remove", params.QueueInput, views.RemovedInput, queue.remove, _EDIT, _PERSON, f"{_INPUT}/removal"),
    Operation(
        "queue.promote", params.QueueInput, views.PromotedInput, queue.promote, _EDIT, _PERSON, f"{_INPUT}/promotion"
    ),
    Operation("queue.move", params.QueueMove, views.MovedInput, queue.move, _EDIT, _PERSON, f"{_INPUT}/moves"),
    Operation("collaboration.send", params.Send, views.SendReceipt, collaboration.send, _LOW, _AGENTS, "/messages"),
    Operation("collaboration.spawn", params.Spawn, views.SendReceipt, collaboration.spawn, _LOW, _AGENTS, "/workers"),
    Operation(
        "collaboration.message",
        params.MessageRef,
        views.OneMessage,
        collaboration.message,
        _LOW,
        _AGENTS,
        "/messages/{messageId}",
    ),
    Operation(
        "collaboration.result",
        params.Result,
        views.ResultView,
        collaboration.result,
        _LOW,
        _AGENTS,
        f"{_SESSION}/result",
    ),
    Operation(
        "collaboration.accept",
        params.Accept,
        views.AcceptedView,
        collaboration.accept,
        _LOW,
        _AGENTS,
        "/messages/{messageId}/acceptance",
    ),
    Operation("collaboration.wait", params.Wait, views.Waited, waiting.wait, _LOW, _AGENTS, "/waits"),
    Operation(
        "collaboration.cancel",
        params.Cancel,
        views.CancelledView,
        collaboration.cancel,
        _LOW,
        _AGENTS,
        f"{_SESSION}/cancellations",
    ),
    Operation(
        "collaboration.status",
        params.SessionRef,
        views.StatusView,
        projection.status,
        _LOW,
        _AGENTS,
        f"{_SESSION}/status",
    ),
    Operation(
        "collaboration.list", params.SessionList, views.Directory, projection.directory, _LOW, _AGENTS, "/directory"
    ),
    Operation("collaboration.chain", params.ChainOf, views.ChainView, collaboration.chain, _LOW, _AGENTS, "/chains"),
    Operation(
        "permissions.pending", params.NoParams, views.PendingView, permissions.pending, _LOW, _PERSON, "/permissions"
    ),
    Operation(
        "permissions.resolve",
        params.Resolve,
        views.ResolvedView,
        permissions.resolve,
        _EDIT,
        _PERSON,
        "/permissions/{requestId}/answer",
    ),
    Operation(
        "permissions.answer",
        params.Answer,
        views.AnsweredView,
        permissions.answer,
        _EDIT,
        _PERSON,
        "/questions/{requestId}/answer",
    ),
    Operation("permissions.grants", params.NoParams, views.GrantList, permissions.grants, _LOW, _PERSON, "/grants"),
    Operation(
        "permissions.revoke",
        params.RevokeGrant,
        views.RevokedView,
        permissions.revoke,
        _EDIT,
        _PERSON,
        "/grants/{grantId}/revocation",
    ),
    Operation("models.list", params.NoParams, views.ModelList, bindings.listing, _LOW, _AGENTS, "/models"),
    Operation("models.resolve", params.ModelName, views.ModelChoice, bindings.resolve, _LOW, _PERSON, "/models/choice"),
    Operation("models.test", params.ModelTest, views.ModelTested, bindings.test, _LOW, _PERSON, "/models/tests"),
    Operation("ledger.verify", params.NoParams, views.VerifyView, sessions.verify, _LOW, _PERSON, "/verification"),
)

BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
