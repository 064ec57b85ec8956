"""Every operation, once: doors, plugins and the terminal are fed from this table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from coterie.core.permission import Risk
from coterie.operations import collaboration, params, sessions, views, waiting
from coterie.operations.act import Act
from coterie.operations.params import Keyed, Params
from coterie.operations.views import View

Verb = Literal["GET", "POST"]


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
        return "POST" if self.mutates or self.name == "collaboration.wait" else "GET"

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


_LOW, _EDIT = Risk.LOW, Risk.EDIT
_PERSON, _AGENTS = False, True

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("app.health", params.NoParams, views.Health, sessions.health, _LOW, _PERSON, "/health"),
    Operation("session.create", params.SessionCreate, views.OneSession, sessions.create, _EDIT, _PERSON, "/sessions"),
    Operation("session.list", params.SessionList, views.SessionPage, sessions.page, _LOW, _PERSON, "/sessions"),
    Operation("session.get", params.SessionRef, views.OneSession, sessions.get, _LOW, _PERSON, "/sessions/{sessionId}"),
    Operation("session.turn", params.TurnRef, views.TurnView, sessions.turn, _LOW, _PERSON, "/turns/{turnId}"),
    Operation(
        "session.items",
        params.SessionItems,
        views.ItemPage,
        sessions.items,
        _LOW,
        _PERSON,
        "/sessions/{sessionId}/items",
    ),
    Operation(
        "session.prompt",
        params.SessionPrompt,
        views.PromptReceipt,
        sessions.prompt,
        _EDIT,
        _PERSON,
        "/sessions/{sessionId}/prompts",
    ),
    Operation("session.release", params.SessionRelease, views.Released, sessions.release, _EDIT, _PERSON, "/releases"),
    Operation("collaboration.send", params.Send, views.SendReceipt, collaboration.send, _LOW, _AGENTS, "/messages"),
    Operation("collaboration.spawn", params.Spawn, views.SendReceipt, collaboration.spawn, _LOW, _AGENTS, "/workers"),
    Operation(
        "collaboration.result",
        params.Result,
        views.ResultView,
        collaboration.result,
        _LOW,
        _AGENTS,
        "/sessions/{sessionId}/result",
    ),
    Operation("collaboration.wait", params.Wait, views.Waited, waiting.wait, _LOW, _AGENTS, "/waits"),
    Operation(
        "collaboration.cancel",
        params.Cancel,
        views.CancelledView,
        collaboration.cancel,
        _LOW,
        _AGENTS,
        "/sessions/{sessionId}/cancellations",
    ),
    Operation(
        "collaboration.status",
        params.SessionRef,
        views.StatusView,
        collaboration.status,
        _LOW,
        _AGENTS,
        "/sessions/{sessionId}/status",
    ),
    Operation(
        "collaboration.list", params.SessionList, views.Directory, collaboration.directory, _LOW, _AGENTS, "/directory"
    ),
    Operation("collaboration.chain", params.ChainOf, views.ChainView, collaboration.chain, _LOW, _PERSON, "/chains"),
    Operation("ledger.verify", params.NoParams, views.VerifyView, sessions.verify, _LOW, _PERSON, "/verification"),
)

BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
