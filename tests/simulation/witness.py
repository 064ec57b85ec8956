"""Who watches a simulated ledger: it remembers what was accepted, said and ended, and finds what is not as promised.

It knows no verb. All that it holds against the ledger is what the ledger has answered, and what it showed before.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain as joined
from typing import Final

from coterie.core.chain import Chain, is_spent
from coterie.core.ids import ChainId, MessageId, SessionId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.ledger.message import Joined, Kind, Message
from coterie.core.ledger.states import SETTLED
from coterie.core.permission import Mode, covers, resolve
from coterie.core.session.session import Session
from coterie.core.turn.items import Checkpoint, PersonText, Reply, Report, SessionText, ToolResult, Usage, total
from coterie.core.turn.states import TURN_TABLE, TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import HostFacts, Input, NumberedItem, PairGrant, PairRequest, Violation
from coterie.ports.store import Tx

ALL: Final = 1000
"""More than one life of a ledger has of anything."""
UNREAD: Final = (TurnState.CANCELLED, TurnState.INTERRUPTED)
"""How a turn ends whose unread steering stays in the history."""
READ: Final = (TurnState.RUNNING,)


@dataclass(frozen=True, slots=True)
class Sight:
    """The ledger after one step."""

    host: HostFacts
    violations: tuple[Violation, ...] = ()
    sessions: dict[SessionId, Session] = field(default_factory=dict[SessionId, Session])
    queues: dict[SessionId, tuple[Input, ...]] = field(default_factory=dict[SessionId, tuple[Input, ...]])
    messages: dict[MessageId, Message] = field(default_factory=dict[MessageId, Message])
    turns: dict[TurnId, Turn] = field(default_factory=dict[TurnId, Turn])
    chains: dict[ChainId, Chain] = field(default_factory=dict[ChainId, Chain])
    asked: tuple[PairRequest, ...] = ()
    granted: tuple[PairGrant, ...] = ()

    @property
    def running(self) -> list[Turn]:
        """Every running turn, of whatever epoch."""
        return [turn for turn in self.turns.values() if turn.state is TurnState.RUNNING]

    @property
    def waiting(self) -> list[Input]:
        """Every input of every queue."""
        return list(joined.from_iterable(self.queues.values()))


class Witness:
    """Compares what it sees with what it remembers."""

    def __init__(self, host: HostFacts) -> None:
        self.now = Sight(host)
        self.sessions: list[SessionId] = []
        self.gone: list[SessionId] = []
        """Deleted."""
        self.accepted: list[MessageId] = []
        self.said: dict[str, SessionId] = {}
        """What people said, each time in other words, and to whom."""
        self.taken_back: set[str] = set()
        self._ended: dict[str, Message | Turn] = {}
        """How messages and turns have ended: for good."""
        self._owed: dict[MessageId, bool] = {}
        """Whether a settled message has a completion: its sender has asked for one, and was there."""
        self._heard: dict[SessionId, list[NumberedItem]] = {}
        self._spoken: Counter[tuple[SessionId, str]] = Counter()
        """How often a session's transcript has a person's words, or a message."""
        self._used: defaultdict[TurnId, list[Usage]] = defaultdict(list)
        """What the replies in a turn's transcript have used."""
        self._charged: Counter[ChainId] = Counter()
        """How many messages each chain has paid for."""

    def look(self, tx: Tx) -> Sight:
        """Read what there is to see; of transcripts, what was added."""
        everybody = [*self.sessions, *self.gone]
        queues = {id_: tx.inputs.page(id_, ALL) for id_ in self.sessions}
        messages = {message.id: message for id_ in everybody for message in tx.exchanges.recent(id_, ALL)}
        newest = [turn.id for id_ in everybody if (turn := tx.turns.newest(id_)) is not None]
        turns = [tx.turns.get(id_) for id_ in dict.fromkeys([*self.now.turns, *newest])]
        now = Sight(
            tx.host,
            tx.journal.violations()[1],
            {id_: session for id_ in self.sessions if (session := tx.sessions.get(id_)) is not None},
            queues,
            messages=messages,
            turns={turn.id: turn for turn in turns if turn is not None},
            asked=tx.pairs.pending(ALL),
            granted=tx.pairs.grants(0, ALL),
        )
        for id_ in {one.chain_id for one in joined(now.waiting, messages.values(), now.turns.values())}:
            chain = tx.chains.get(id_)
            assert chain is not None, "what belongs to a chain names one that is there"
            now.chains[id_] = chain
        for id_ in self.sessions:
            self._listen(tx, id_, now)
        return now

    def _listen(self, tx: Tx, session: SessionId, now: Sight) -> None:
        heard = self._heard.setdefault(session, [])
        for one in tx.items.page(session, len(heard), ALL):
            heard.append(one)
            turn = now.turns[one.turn_id]
            if turn.session_id != session:
                continue  # A fork has it from another session.
            match one.item:
                case PersonText(text, unread):
                    self._spoken[session, text] += 1
                    assert turn.state in (UNREAD if unread else READ)
                case SessionText(origin):
                    self._spoken[session, origin.message_id] += 1
                case Reply(usage=usage) | Checkpoint(usage=usage):
                    self._used[turn.id].append(usage)
                case ToolResult() | Report():
                    pass

    def reread(self, tx: Tx) -> None:
        """What was once in a transcript is there from beginning to end."""
        for session in self.sessions:
            assert list(tx.items.page(session, 0, ALL)) == self._heard[session]

    def check(self, now: Sight) -> None:
        """Hold what is seen now against all that was seen before."""
        assert now.violations == ()
        assert list(now.sessions) == self.sessions
        self._what_has_ended_stays(now)
        self._what_is_over_was_answered_once(now)
        self._what_people_said_is_in_one_place(now)
        self._what_joined_was_shown_once(now)
        self._what_began_was_free_to_begin(now)
        _what_joined_a_running_turn_was_fit_to(now)
        _rights_and_depth_only_shrink(now)
        _a_chain_waits_exactly_if_it_is_spent(now)
        self._chains_pay_within_their_bounds(now)
        assert not [m for m in now.messages.values() if m.target_session_id in self.gone and m.state not in SETTLED]
        self.now = now

    def _what_has_ended_stays(self, now: Sight) -> None:
        assert self.now.messages.keys() <= now.messages.keys()
        assert self.now.turns.keys() <= now.turns.keys()
        for one in joined(now.messages.values(), now.turns.values()):
            if one.state in SETTLED or one.state in TURN_TABLE.terminal:
                assert self._ended.setdefault(one.id, one) == one

    def _what_is_over_was_answered_once(self, now: Sight) -> None:
        told = Counter(message.reply_to for message in now.messages.values() if message.reply_to is not None)
        sent = {message.id for message in now.messages.values() if message.kind is not Kind.COMPLETION}
        assert sent == set(self.accepted), "the ledger has what was accepted, and nothing that was not"
        for id_ in self.accepted:
            message = now.messages[id_]
            if message.state in SETTLED:
                self._owed.setdefault(id_, message.notify and message.source_session_id not in self.gone)
            assert told[id_] == self._owed.get(id_, False)

    def _what_people_said_is_in_one_place(self, now: Sight) -> None:
        waits = Counter((one.session_id, one.text) for one in now.waiting)
        for text, session in self.said.items():
            if session in now.sessions:
                expected = 0 if text in self.taken_back else 1
                assert waits[session, text] + self._spoken[session, text] == expected

    def _what_joined_was_shown_once(self, now: Sight) -> None:
        for message in now.messages.values():
            if message.target_session_id in now.sessions:
                shown = message.joined in {Joined.CLAIMED, Joined.ACCEPTED}
                assert self._spoken[message.target_session_id, message.id] == shown

    def _what_began_was_free_to_begin(self, now: Sight) -> None:
        waited = {one.id: one for one in self.now.waiting}
        for turn in (turn for id_, turn in now.turns.items() if id_ not in self.now.turns):
            session = now.sessions[turn.session_id]
            assert session.held is None
            assert turn.epoch == now.host.epoch
            assert covers(resolve(session.permission_mode, now.host.permission_default), turn.permission)
            if turn.input_id in waited:
                assert waited[turn.input_id].waiting is None
            if turn.message_id is not None:
                message = now.messages[turn.message_id]
                assert message.expires_at is None or turn.created_at < message.expires_at
                assert not is_spent(now.chains[turn.chain_id], now.host.spending)

    def _chains_pay_within_their_bounds(self, now: Sight) -> None:
        ended = [turn for turn in now.turns.values() if turn.state is not TurnState.RUNNING]
        ran = {turn.id for turn in self.now.running}
        for turn in ended:
            # Nobody has reported what these have used.
            if turn.state is TurnState.INTERRUPTED or (turn.session_id in self.gone and turn.id in ran):
                assert Usage(turn.input_tokens, turn.output_tokens, turn.cost) == total(self._used[turn.id])
        for message in now.messages.values():
            if message.id not in self.now.messages and message.kind is not Kind.COMPLETION:
                turn_id = message.source_turn_id
                self._charged.update(self.now.turns[turn_id].chains if turn_id is not None else [message.chain_id])
        for chain in now.chains.values():
            assert chain.messages == self._charged[chain.id] <= now.host.limits.chain_messages_max
            assert chain.sessions <= now.host.limits.chain_sessions_max
            charged = [turn for turn in ended if chain.id in turn.chains]
            assert chain.cost == sum(turn.cost or 0 for turn in charged)
            assert chain.tokens == sum(_tokens(turn) for turn in charged if turn.cost is None)


def _tokens(turn: Turn) -> int:
    return (turn.input_tokens or 0) + (turn.output_tokens or 0)


def _what_joined_a_running_turn_was_fit_to(now: Sight) -> None:
    accepted = [message for message in now.messages.values() if message.joined is Joined.ACCEPTED]
    for message in accepted:
        assert message.turn_id is not None
        assert message.kind is not Kind.TASK
        assert covers(Mode(message.ceiling), now.turns[message.turn_id].permission)
        if message.state not in SETTLED:
            assert message.expires_at is None or message.updated_at < message.expires_at
        else:
            assert now.turns[message.turn_id].state is not TurnState.RUNNING, "it ends with the turn that it has joined"
    taken_in = Counter(message.turn_id for message in accepted)
    assert max(taken_in.values(), default=0) <= now.host.limits.accepted_per_turn_max


def _rights_and_depth_only_shrink(now: Sight) -> None:
    for message in now.messages.values():
        if message.reply_to is not None:
            answered = now.messages[message.reply_to]
            assert (message.ceiling, message.chain_id) == (answered.ceiling, answered.chain_id)
        elif message.source_turn_id is not None:
            turn = now.turns[message.source_turn_id]
            assert message.chain_id == turn.chain_id
            assert covers(turn.permission, Mode(message.ceiling))
            cause = now.messages[turn.message_id] if turn.message_id is not None else None
            assert 0 < message.hops < (now.host.limits.hops_max + 1 if cause is None else cause.hops)
        elif message.retry_of is None:
            assert message.hops == now.host.limits.hops_max


def _a_chain_waits_exactly_if_it_is_spent(now: Sight) -> None:
    for one in now.waiting:
        if one.message_id is None:
            assert one.waiting is None, "a person's words wait for nobody"
        elif is_spent(now.chains[one.chain_id], now.host.spending):
            assert one.waiting is not None
        else:
            assert one.waiting is not Waiting.BUDGET
