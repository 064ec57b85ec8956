"""Reads over many sessions and messages: bounded, whatever the ledger holds (I15)."""

from collections.abc import Sequence
from typing import Protocol

from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.ledger.message import Message
from coterie.core.session.session import Session
from coterie.ports.rows import Acceptance, Reference, Used


class Directory(Protocol):
    """Reads over many sessions."""

    def held(self) -> tuple[SessionId, ...]:
        """Ids of the sessions that a restart has held."""
        ...

    def ready(self, other_than: SessionId | None) -> SessionId | None:
        """The session whose input has waited longest for nothing but a slot."""
        ...

    def page(self, before: tuple[int, int] | None, limit: int) -> tuple[tuple[Session, int, str], ...]:
        """Sessions, most recently updated first, after the cursor (updated_at, number).

        Each with its number and its status (`core.session.session.status_of`).
        """
        ...

    def near(self, text: str, limit: int) -> tuple[str, ...]:
        """Ids and titles that look like *text*, best first."""
        ...

    def references(self, ids: Sequence[SessionId]) -> dict[SessionId, Reference]:
        """How the sessions are called, deleted ones too."""
        ...

    def created_by(self, session_id: SessionId, limit: int) -> tuple[Reference, ...]:
        """The sessions that this one spawned, newest first."""
        ...

    def used(self, session_id: SessionId) -> Used:
        """What the turns of a session have used; its cost grows with them, and with nothing else."""
        ...

    def workers_active(self, session_id: SessionId) -> int:
        """How many sessions that this one spawned have a running turn or a non-empty queue."""
        ...

    def plugin_workers_active(self, plugin: str) -> int:
        """The same over all sessions that were spawned through a plugin."""
        ...

    def buried(self) -> SessionId | None:
        """A deleted session whose transcript is still there."""
        ...


class Exchanges(Protocol):
    """Reads over the messages of a session or a chain, and what sessions noted about them."""

    def inbound(self, session_id: SessionId) -> Message | None:
        """The newest message to a session."""
        ...

    def of_turn(self, turn_id: TurnId, party: SessionId | None) -> Message | None:
        """The message that a turn was created for, else the newest that it took in; of one party if given."""
        ...

    def sent_last(self, source: SessionId, target: SessionId) -> Message | None:
        """The newest task or message from *source* to *target*, among the last that *source* has sent."""
        ...

    def recent(self, session_id: SessionId, limit: int) -> tuple[Message, ...]:
        """The newest messages from or to a session."""
        ...

    def of_chain(
        self, chain_id: ChainId, after: int, limit: int, party: SessionId | None = None
    ) -> tuple[tuple[int, Message], ...]:
        """Messages of a chain with their sequence numbers above *after*, in order; of one session's if given."""
        ...

    def current(self, session_id: SessionId) -> Message | None:
        """The task or message that a session runs, else the first that it has queued."""
        ...

    def delivered(self, session_id: SessionId) -> Message | None:
        """The task or message to a session that settled last, among the newest to it."""
        ...

    def accept(self, acceptance: Acceptance) -> None:
        """Note that a result was accepted; a second note replaces the first."""
        ...

    def acceptance(self, message_id: MessageId) -> Acceptance | None:
        """The note about one message."""
        ...
