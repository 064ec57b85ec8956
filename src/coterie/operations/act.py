"""One performance of one operation: the caller, the host's parts, and the way a verb binds a turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coterie.app.idempotency import Key, is_known
from coterie.app.sender import Sender
from coterie.core.errors import InvalidArgumentError, ModelNotConfiguredError, PermissionDeniedError, RefusedError
from coterie.core.ids import NewId, SessionId, TurnId
from coterie.core.limits import Limits
from coterie.core.model_ref import Binding, Chosen, choose
from coterie.core.refusal import Refusal
from coterie.operations.asleep import Waits
from coterie.operations.caller import Agent, Caller
from coterie.operations.invocations import Invocations
from coterie.ports.clock import Clock
from coterie.ports.delegates import Delegates
from coterie.ports.feed import Feed
from coterie.ports.model_probe import ModelProbe
from coterie.ports.outputs import Outputs
from coterie.ports.slots import Slots
from coterie.ports.store import C, R, Store, Tx, UseCase
from coterie.ports.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class HostParts:
    """What operations stand on."""

    store: Store
    feed: Feed
    clock: Clock
    slots: Slots
    invocations: Invocations
    models: Sequence[Binding]
    limits: Limits
    version: str
    delegates: Delegates
    probe: ModelProbe
    workspaces: Workspaces | None = None
    outputs: Outputs | None = None
    waits: Waits = field(default_factory=Waits)
    confined: bool = True
    """Whether commands of tools are kept out of the data directory."""

    @property
    def unconfined(self) -> bool | None:
        """What answers say of it: true, or nothing."""
        return None if self.confined else True


@dataclass(frozen=True, slots=True)
class Act:
    """One call."""

    host: HostParts
    caller: Caller
    key: Key | None

    @property
    def reader(self) -> SessionId | None:
        """The session whose messages may be read; None reads as a person."""
        return self.caller.session_id

    async def is_replay(self) -> bool:
        """Whether the request was answered before: its answer does not depend on what the world is like by now."""
        return self.key is not None and await self.host.store.read(is_known, self.key, brief=True)

    def sender(self, as_session_id: str | None) -> Sender:
        """Who sends.

        Raises:
            PermissionDeniedError: An agent tried to name the sender (I10).
            InvalidArgumentError: A person named none.
        """
        if isinstance(self.caller, Agent):
            if as_session_id is not None:
                raise PermissionDeniedError("An agent speaks for its own session only; leave asSessionId out.")
            return Sender(self.caller.invocation.session_id, self.caller.invocation.turn_id, self.caller.plugin)
        if as_session_id is None:
            raise InvalidArgumentError("asSessionId is missing: name the session that you speak for.")
        return Sender(SessionId(as_session_id), None)

    def model(self, name: str | None, *, delegated: bool = False) -> Chosen | None:
        """The model that *name* means; without a name the automatic choice, None where there is no model at all.

        Args:
            name: Key, alias, id, label or description.
            delegated: The model is for a spawned session.

        Raises:
            ModelNotConfiguredError: A name was given, but there is no model at all.
            RefusedError: It names none, several, or one that is not open to spawned sessions.
        """
        models = self.host.models
        if not models:
            if name is None or not name.strip():
                return None
            raise ModelNotConfiguredError("No model is configured; `coterie up` tells the ways.")
        found = choose(models, name, delegated=delegated)
        if isinstance(found, Refusal):
            raise RefusedError(found)
        return found

    def model_key(self, name: str | None) -> str | None:
        """The key of the model that *name* means, which a session then keeps; see `model`."""
        chosen = self.model(name)
        return chosen.binding.key if chosen else None

    async def run(self, use_case: UseCase[C, R], command: C, *, brief: bool = False) -> R:
        """Run a use case for the caller, whose invocation must live inside the transaction too."""
        caller = self.caller
        if not isinstance(caller, Agent):
            return await self.host.store.run(use_case, command, brief=brief)

        def checked(tx: Tx, given: C, now: int, new_id: NewId) -> R:
            self.host.invocations.check(caller.invocation)
            return use_case(tx, given, now, new_id)

        return await self.host.store.run(checked, command, brief=brief)

    async def bind(
        self,
        use_case: UseCase[C, R],
        command: Callable[[bool], C],
        bound: Callable[[R], TurnId | None],
        *,
        brief: bool = True,
    ) -> R:
        """Run a use case that may start a turn: reserve a slot for it, then hand it over or give it back.

        Args:
            use_case: What to run.
            command: Makes its command, told whether there is a slot.
            bound: The turn that the result has started, if any.
            brief: See `ports.store.Store.run`.
        """
        slots = self.host.slots
        slot = slots.reserve()
        turn_id: TurnId | None = None
        try:
            result = await self.run(use_case, command(slot), brief=brief)
            turn_id = bound(result)
            return result
        finally:
            # A call that was cancelled may have bound a turn all the same: the supervisor's audit finds it.
            if slot and turn_id is not None:
                slots.hand_over(turn_id)
            elif slot:
                slots.give_back()
