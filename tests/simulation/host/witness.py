"""Who watches a simulated host: each commit as it comes, the whole ledger where the host dies, starts and rests.

Like the witness of a ledger it knows no verb: what it holds against the host is what its rows have said before, and
what it has answered to somebody.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.simulation.host.requests import MADE, Request, Wire

from coterie.core.ids import MessageId, SessionId, TurnId
from coterie.core.ledger.message import Kind, Message
from coterie.core.ledger.states import SETTLED, MessageState
from coterie.core.turn.items import Checkpoint, PersonText, Reply, Report, SessionText, ToolResult
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import Input
from coterie.ports.store import Tx
from coterie.runtime.supervisor import AUDIT_S

ALL: Final = 1000
"""More than one life has of anything."""
AT_ONCE_S: Final = 0.5
"""What a wake-up brings about has begun by then, where none is lost and nothing slow: sooner than by any audit."""
UNREAD: Final = (TurnState.CANCELLED, TurnState.INTERRUPTED)
"""How a turn ends whose unread steering stays in the history."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a start must keep."""

    queues: dict[SessionId, tuple[Input, ...]]
    running: frozenset[TurnId]


class HostWitness:
    """Compares what it sees with what it remembers."""

    def __init__(self, slots: int, patience_s: float) -> None:
        """Begin to watch.

        Args:
            slots: How many turns may run.
            patience_s: How late what is to happen may happen.
        """
        self._slots, self._patience_s = slots, patience_s
        self._due: dict[str, float] = {}
        """Since when what may start might, what is to stop should, and what is over is."""
        self._expiring: dict[MessageId, int] = {}
        """Until when queued messages are worth starting."""
        self._free_at = 0.0
        """Since when there is a slot."""
        self.sessions: list[SessionId] = []
        self.gone: set[SessionId] = set()
        """Deleted."""
        self.accepted: list[MessageId] = []
        """Every task and message so far."""
        self.turns: dict[TurnId, Turn] = {}
        self.messages: dict[MessageId, Message] = {}
        self.settled_at: dict[MessageId, float] = {}
        self.requests: list[Request] = []
        self._changed_at = 0
        self._seen = 0
        """The number of the last change that was looked at."""

    # Each commit

    def see(self, tx: Tx, now_s: float, wall_ms: int) -> int:
        """Look at what a commit has changed; returns how much."""
        for id_, expires_at in self._expiring.items():
            self._is_due(id_, now_s + 2 * AUDIT_S, due=expires_at <= wall_ms)
        changes = tx.journal.changes(self._seen, None, ALL)
        self._nothing_is_late(now_s)
        if not changes:
            return 0
        at = [self._changed_at, *(change.at for change in changes)]
        assert at == sorted(at), "the time of the ledger never steps back"
        self._changed_at = at[-1]
        self._seen = changes[-1].number
        for id_ in dict.fromkeys(change.session_id for change in changes):
            self._see_session(tx, id_, now_s)
        for id_ in dict.fromkeys(change.ref for change in changes if change.kind == "turn"):
            self._see_turn(tx, TurnId(id_), now_s)
        for id_ in dict.fromkeys(change.ref for change in changes if change.kind == "message"):
            self._see_message(tx, MessageId(id_), now_s)
        return len(changes)

    def starts(self) -> None:
        """A process has started: nobody could do anything before."""
        self._due.clear()

    def _nothing_is_late(self, now_s: float) -> None:
        """What was to begin by now has begun."""
        busy = len(self.busy())
        if busy >= self._slots:
            self._free_at = now_s
        for id_, since_s in self._due.items():
            # Whoever began a turn may have gone before it got its worker; then the next audit finds it.
            able_s = max(since_s, self._free_at) if id_ in self.sessions else since_s + AUDIT_S
            late_s = now_s - able_s - self._patience_s
            assert late_s <= 0, f"{id_} is {late_s:.3f} s late"

    def _is_due(self, id_: str, now_s: float, *, due: bool) -> None:
        if due:
            self._due.setdefault(id_, now_s)
        else:
            self._due.pop(id_, None)

    def _see_session(self, tx: Tx, id_: SessionId, now_s: float) -> None:
        session = tx.sessions.known(id_)
        assert session is not None, "a change is one of a session"
        self._is_due(id_, now_s, due=session.ready is not None)
        if session.deleted:
            self.gone.add(id_)
            self.sessions = [one for one in self.sessions if one != id_]
        elif id_ not in self.sessions:
            assert id_ not in self.gone, "a session that was deleted does not come back"
            self.sessions.append(id_)

    def _see_turn(self, tx: Tx, id_: TurnId, now_s: float) -> None:
        turn, before = tx.turns.get(id_), self.turns.get(id_)
        assert turn is not None
        self._is_due(id_, now_s, due=turn.fenced and turn.state is TurnState.RUNNING)
        if before is not None and before.state is not TurnState.RUNNING:
            assert turn == before, "how a turn has ended is how it has ended"
        if turn.state is TurnState.RUNNING:
            assert turn.epoch == tx.host.epoch, "a turn runs in the epoch that has begun it"
        self.turns[id_] = turn

    def _see_message(self, tx: Tx, id_: MessageId, now_s: float) -> None:
        message, before = tx.messages.get(id_), self.messages.get(id_)
        assert message is not None
        if before is not None and before.state in SETTLED:
            assert message == before, "how a message has ended is how it has ended"
        if before is not None and before.state is MessageState.RUNNING:
            assert message.state is not MessageState.QUEUED, "what has begun does not begin again"
            assert message.turn_id == before.turn_id
        if before is None and message.kind is not Kind.COMPLETION:
            self.accepted.append(id_)
        told = tx.messages.completion_of(id_)
        if message.state in SETTLED:
            self.settled_at.setdefault(id_, now_s)
            listens = tx.sessions.get(message.source_session_id) is not None
            assert told is not None or not (message.notify and listens), "its sender is told with the settling itself"
            turn = tx.turns.get(message.turn_id) if message.turn_id else None
            assert turn is None or turn.fenced or turn.state.value == message.state.value
            assert turn is None or message.result is None or message.result == turn.result
        assert told is None or (message.notify and message.state in SETTLED)
        self.messages[id_] = message
        if message.expires_at is not None and message.state is MessageState.QUEUED:
            self._expiring[id_] = message.expires_at
        elif self._expiring.pop(id_, None) is not None:
            self._due.pop(id_, None)

    # The whole

    def sight(self, tx: Tx) -> Sight:
        """What is there when a host dies."""
        queues = {id_: tx.inputs.page(id_, ALL) for id_ in self.sessions}
        return Sight(queues, frozenset(id_ for id_, turn in self.turns.items() if turn.state is TurnState.RUNNING))

    def check(self, tx: Tx) -> None:
        """Hold the whole ledger against what is remembered and promised."""
        _, violations = tx.journal.violations()
        assert violations == (), str(violations)
        for id_, message in self.messages.items():
            assert tx.messages.get(id_) == message, "nothing changes without a change"
        for id_, turn in self.turns.items():
            found = tx.turns.get(id_)
            assert found is not None
            assert found.state is turn.state, "nothing changes without a change"
        self._each_answer_is_true_still(tx)
        self._what_was_said_is_there_once(tx)

    def has_kept(self, tx: Tx, before: Sight, *, resume: bool) -> None:
        """A start has begun nothing, lost nothing, and ended what was running."""
        for id_ in sorted(before.running):
            turn = self.turns[id_]
            assert turn.state in {TurnState.INTERRUPTED, TurnState.CANCELLED}, f"{id_} is {turn.state}"
            assert turn.fenced or turn.state is TurnState.INTERRUPTED
        if resume:
            return
        for session, queue in before.queues.items():
            kept = [one.id for one in queue if not self._ends_with_a_start(one)]
            after = [one.id for one in tx.inputs.page(session, ALL)]
            assert [id_ for id_ in after if id_ in kept] == kept, "what waited waits still, in its order"
            found = tx.sessions.get(session)
            assert found is None or not after or found.held is not None, "nothing begins by itself"

    def _ends_with_a_start(self, waiting: Input) -> bool:
        message = self.messages[waiting.message_id] if waiting.message_id else None
        return waiting.kind == "steer" or (message is not None and message.state in SETTLED)

    def _each_answer_is_true_still(self, tx: Tx) -> None:
        for request in self.requests:
            if request.answers:
                assert self._is_true(tx, request.operation, request.answers[0]), f"what {request} was told"

    def _is_true(self, tx: Tx, operation: str, told: Wire) -> bool:
        match operation:
            case "session.create" | "session.fork" | "session.configure" | "session.archive":
                session = tx.sessions.known(SessionId(told["session"]["id"]))
                return session is not None and session.revision >= told["session"]["revision"]
            case "collaboration.send" | "collaboration.spawn" | "session.retry":
                return tx.messages.get(MessageId(told["messageId"])) is not None
            case "session.interrupt" | "collaboration.cancel" | "session.delete":
                return self._are_over(tx, told["messageIds"], told["runningTurnIds"])
            case "queue.remove":
                settled = self._are_over(tx, [told["messageId"]] if "messageId" in told else [], [])
                return settled and bool(told["removed"])
            case "permissions.resolve":
                return True
            case "collaboration.accept":
                return tx.exchanges.acceptance(MessageId(told["messageId"])) is not None
            case _:
                return True

    def _are_over(self, tx: Tx, messages: Iterable[str], turns: Iterable[str]) -> bool:
        ended = [tx.messages.get(MessageId(id_)) for id_ in messages]
        fenced = [tx.turns.get(TurnId(id_)) for id_ in turns]
        return all(one is not None and one.state is MessageState.CANCELLED for one in ended) and all(
            one is not None and one.fenced for one in fenced
        )

    def _what_was_said_is_there_once(self, tx: Tx) -> None:
        said = self._said(tx)
        for (session, text), count in said.items():
            if "-" in text or text.startswith("msg_"):
                assert count == 1, f"{text} is {count} times in {session}"
        taken_back = {one.params["inputId"] for one in self.requests if one.operation == "queue.remove"}
        for request in self.requests:
            if request.operation in {"session.prompt", "session.steer"} and request.answers:
                session, input_id = request.params["sessionId"], request.answers[0]["inputId"]
                there = said[session, request.params["text"]]
                assert there or session in self.gone or input_id in taken_back, f"{request} is lost"

    def _said(self, tx: Tx) -> Counter[tuple[str, str]]:
        """How often which words are with which session, forks not counted."""
        said: Counter[tuple[str, str]] = Counter()
        for session in self.sessions:
            said.update((session, one.text) for one in tx.inputs.page(session, ALL) if one.text is not None)
            said.update((session, text) for text in self._heard(tx, session))
        for message in self.messages.values():
            if message.kind is not Kind.COMPLETION and message.retry_of is None:
                said[message.target_session_id, f"to: {message.content}"] += 1
        return said

    def _heard(self, tx: Tx, session: SessionId) -> Iterator[str]:
        """What stands in a session's transcript, but for what a fork has from another one."""
        last: dict[TurnId, str] = {}
        for one in tx.items.page(session, 0, ALL):
            turn = self.turns[one.turn_id]
            if turn.session_id != session:
                continue
            match one.item:
                case PersonText(text, unread):
                    assert not unread or turn.state in UNREAD, "who goes on reads what was said"
                    yield text
                case Reply(text, calls):
                    last[turn.id] = text
                    yield text
                    yield from (f"asked: {call.id}" for call in calls)
                case ToolResult(call_id):
                    yield f"answered: {call_id}"
                case SessionText(origin):
                    yield origin.message_id
                case Report(delegation_id):
                    yield delegation_id
                case Checkpoint():
                    raise AssertionError("no life is so long that it has to be summarised")
        for id_, text in last.items():
            turn = self.turns[id_]
            assert turn.state is not TurnState.COMPLETED or turn.result == text, "a turn ends with its last words"

    # The end

    def rests(self, tx: Tx) -> list[str]:
        """What still runs or waits, for a person's eyes; nothing at rest."""
        left = [f"{turn.id} runs" for turn in self.turns.values() if turn.state is TurnState.RUNNING]
        left += [f"{one.id} waits in {id_}" for id_ in self.sessions for one in tx.inputs.page(id_, ALL)]
        return left + [f"{one.id} is {one.state}" for one in self.messages.values() if one.state not in SETTLED]

    # What is answered

    def answered(self, request: Request, told: Wire, now_s: float) -> None:
        """Hold an answer against what was answered to the same request before, and against the rows."""
        request.answers.append(told)
        if request.operation in MADE:
            made = MADE[request.operation]
            assert made(told) == made(request.answers[0]), f"{request} was answered in two ways"
            fresh = [one for one in request.answers if not one.get("replayed")]
            assert len(fresh) <= 1 or not request.keyed, f"{request} was done twice"
        if "messageIds" in request.params:
            self._waited(request, told, now_s)

    def _waited(self, request: Request, told: Wire, now_s: float) -> None:
        ends: list[float] = []
        for one in told["messages"]:
            if one["status"] in SETTLED:
                known = self.messages[MessageId(one["id"])]
                assert (known.state, known.result) == (one["status"], one.get("result"))
            ends.append(self.settled_at.get(MessageId(one["id"]), float("inf")))
        choose = min if request.params["mode"] == "any" else max
        came_at = max(choose(ends), request.asked_at)
        assert told["timedOut"] or came_at <= now_s, "what it has waited for has come"
        assert now_s <= came_at + self._patience_s, f"{request} was told late"

    def knows(self, session_id: str) -> bool:
        """Whether the session was ever there."""
        return session_id in self.sessions or session_id in self.gone

    def target_of(self, message_id: str) -> str | None:
        """The session that a message went to."""
        message = self.messages.get(MessageId(message_id))
        return message.target_session_id if message else None

    def settled(self) -> list[MessageId]:
        """Tasks and messages that are over."""
        return [id_ for id_ in self.accepted if self.messages[id_].state in SETTLED]

    def busy(self) -> list[SessionId]:
        """Sessions that run something."""
        return [turn.session_id for turn in self.turns.values() if turn.state is TurnState.RUNNING]
