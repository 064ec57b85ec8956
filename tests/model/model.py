"""The ledger as one would keep it on paper: what the rules say, in dicts and lists.

Pure module. It knows no database, no ids and no clock: sessions, inputs, messages and turns go by names, a turn and a
chain by that of the input they began with. Each verb checks first and changes then, so a refusal leaves no trace.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

Answer: TypeAlias = Any
"""What a verb returns: plain values, so that they compare."""
View: TypeAlias = dict[str, Any]
"""All that is to be seen of a ledger, in plain values."""

MODES: Final = ("ask", "accept-edits", "auto")
"""Weakest first."""
OPEN: Final = ("queued", "running")
HOPS_MAX: Final = 3
INBOX_MAX: Final = 2
PROMPTS_MAX: Final = 3
CHAIN_MESSAGES_MAX: Final = 5
CHAIN_SESSIONS_MAX: Final = 2
CHAIN_COST_MAX: Final = 1_000_000
"""Millionths of a US dollar."""
WORKERS_MAX: Final = 1
STREAK_MAX: Final = 3


class RefusedError(Exception):
    """A rule says no, with this code."""


@dataclass(frozen=True)
class Letter:
    """How a message is sent."""

    kind: str
    notify: bool
    life: int | None
    """For how many milliseconds it is worth starting."""
    now: bool
    """It is for the turn that its target runs, if that takes it."""
    slot: bool


@dataclass
class Message:
    """One message, completions included."""

    name: str
    chain: str
    source: str
    target: str
    kind: str
    notify: bool
    hops: int
    ceiling: str
    sent_in: str | None = None
    """The turn that sent it; None is a person."""
    expires_at: int | None = None
    state: str = "queued"
    turn: str | None = None
    how: str | None = None
    """How it came into its turn."""

    def view(self) -> Answer:
        """What is to be seen of it."""
        result = "done" if self.state == "completed" and self.kind != "completion" else None
        rights = (self.notify, self.hops, self.ceiling, self.chain)
        return self.source, self.target, self.kind, self.state, self.turn, self.how, result, *rights


@dataclass
class Input:
    """Something in a queue."""

    name: str
    chain: str
    number: int
    kind: str
    """`prompt`, `steer` or `message`."""
    mark: str | None = None
    """Why it waits though its session is free."""
    place: int = 0
    """Its order among what is meant for one turn."""
    offered: bool = False
    """It is meant for the turn that its session runs."""
    promoted: bool = False


@dataclass
class Turn:
    """One execution of one input."""

    name: str
    session: str
    permission: str
    hops: int
    chains: list[str]
    """Its own first."""
    state: str = "running"
    fenced: bool = False


@dataclass
class Session:
    """One session; what was deleted stays, gone."""

    mode: str
    creator: str | None = None
    inbound: str = "accept"
    current_turn: bool = False
    """Its running turn takes in messages that are sent for it."""
    held: str | None = None
    streak: int = 0
    running: Turn | None = None
    queue: list[Input] = field(default_factory=list[Input])
    """In the order that a person is shown: promoted, people, messages."""
    heard: list[str] = field(default_factory=list[str])
    gone: bool = False

    def view(self) -> Answer:
        """What is to be seen of it."""
        queue = [(one.name, one.kind, one.promoted, one.mark, one.offered) for one in self.queue]
        return self.held, self.gone, self.running and self.running.name, queue, self.heard

    @property
    def may_start(self) -> list[Input]:
        """What waits for nothing but a slot."""
        idle = self.held is None and self.running is None
        return [one for one in self.queue if one.mark is None] if idle else []

    @property
    def takes(self) -> bool:
        """Whether what is sent now may join what runs."""
        return self.current_turn and self.running is not None and not self.running.fenced

    def count(self, *kinds: str) -> int:
        """How many of these wait."""
        return sum(one.kind in kinds for one in self.queue)

    def head(self) -> Input | None:
        """What starts next: the promoted, then people, but after three of them one message."""
        able = self.may_start
        promoted = [one for one in able if one.promoted]
        prompts = [one for one in able if one.kind == "prompt"]
        messages = [one for one in able if one.kind == "message"]
        order = messages + prompts if self.streak >= STREAK_MAX else prompts + messages
        return next(iter(promoted + order), None)

    def add(self, waiting: Input) -> None:
        """People before messages, each behind their like."""
        before = [one for one in self.queue if one.promoted or one.kind != "message" or waiting.kind == "message"]
        self.queue.insert(len(before), waiting)

    def promote(self, waiting: Input, at: int | None = None) -> None:
        """Put it behind what was promoted, or where it is said; steering becomes a prompt."""
        self.queue.remove(waiting)
        behind = sum(one.promoted for one in self.queue)
        waiting.promoted = True
        if waiting.kind == "steer":
            waiting.kind, waiting.offered = "prompt", False
        self.queue.insert(behind if at is None else at, waiting)


@dataclass
class Chain:
    """What one person's input has set in motion."""

    messages: int = 0
    sessions: int = 0
    cost: int = 0
    grants: int = 0

    @property
    def spent(self) -> bool:
        """Whether nothing more of it may start."""
        return self.cost >= CHAIN_COST_MAX * (1 + self.grants)


def refuse(code: str, *, when: bool) -> None:
    """Say no with *code*, when that is so."""
    if when:
        raise RefusedError(code)


class Paper:
    """The rules; `PaperLedger` has what may be asked."""

    def __init__(self) -> None:
        self.now: int = 0
        self.sessions: dict[str, Session] = {}
        self.messages: dict[str, Message] = {}
        self.turns: dict[str, Turn] = {}
        self.chains: dict[str, Chain] = {}
        self._inputs = 0

    def view(self) -> View:
        """Sessions with queue and transcript, messages, turns and chains; on paper nothing breaks."""
        return {
            "turns": {
                one.name: (one.session, one.state, one.fenced, one.permission, one.hops, one.chains)
                for one in self.turns.values()
            },
            "messages": {one.name: one.view() for one in self.messages.values()},
            "sessions": {name: one.view() for name, one in self.sessions.items()},
            "chains": {name: (one.messages, one.sessions, one.cost, one.grants) for name, one in self.chains.items()},
            "broken": [],
        }

    def there(self, name: str) -> Session:
        """The session, if it is there."""
        refuse("NOT_FOUND", when=self.sessions[name].gone)
        return self.sessions[name]

    def input(self, name: str, chain: str, kind: str, mark: str | None = None) -> Input:
        """A new input."""
        self._inputs += 1
        return Input(name, chain, self._inputs, kind, mark, self._inputs)

    def waiting(self, name: str) -> Input | None:
        """The input, if it waits."""
        return next((one for session in self.sessions.values() for one in session.queue if one.name == name), None)

    def ready(self) -> list[str]:
        """Sessions that could start something, the one with the oldest input first."""
        able = {name: session.may_start for name, session in self.sessions.items()}
        return sorted((name for name in able if able[name]), key=lambda name: min(one.number for one in able[name]))

    def arrive(self, name: str, waiting: Input, *, slot: bool) -> bool:
        """Start what has just come if its session is free for it, else let it wait; returns whether it runs."""
        session = self.sessions[name]
        free = slot and not session.held and not session.running and not session.queue and not waiting.mark
        if free:
            self.begin(name, waiting)
        else:
            session.add(waiting)
        return free

    def begin(self, name: str, waiting: Input) -> str:
        """The turn of an input, with no more rights and hops than its message has."""
        session, message = self.sessions[name], self.messages.get(waiting.name)
        modes = (session.mode, message.ceiling) if message else (session.mode,)
        hops = message.hops if message else HOPS_MAX + 1
        turn = Turn(waiting.name, name, min(modes, key=MODES.index), hops, [waiting.chain])
        self.turns[waiting.name] = session.running = turn
        session.streak = 0 if message else session.streak + 1
        session.heard.append(waiting.name)
        if message:
            message.state, message.turn, message.how = "running", turn.name, "claimed"
        return turn.name

    def claim_of(self, name: str) -> str | None:
        """Start the head of one queue; what is over by now ends instead, and the next one is looked at."""
        session = self.sessions[name]
        while (waiting := session.head()) is not None:
            session.queue.remove(waiting)
            message = self.messages.get(waiting.name)
            if message is None or not self.is_over(message):
                return self.begin(name, waiting)
            self.end_message(message, "cancelled")
        return None

    def is_over(self, message: Message) -> bool:
        """Whether it is no longer worth starting."""
        return message.expires_at is not None and message.expires_at <= self.now

    def deliver(self, message: Message, mark: str | None, *, offer: bool = False, slot: bool) -> bool:
        """Bring a message to its target; returns whether it runs."""
        self.messages[message.name] = message
        waiting = self.input(message.name, message.chain, "message", mark)
        waiting.offered = offer and mark is None and self.sessions[message.target].takes
        return self.arrive(message.target, waiting, slot=slot)

    def end_message(self, message: Message, state: str, *, slot: bool = False, into: Turn | None = None) -> bool:
        """Settle a message, and tell a sender that is there and wants to know; returns whether that started it.

        With *into*, the sender's turn is being cancelled: what it is told joins that turn, and starts nothing.
        """
        message.state = state
        if not message.notify or self.sessions[message.source].gone:
            return False
        told = replace(message, name=f"re {message.name}", source=message.target, target=message.source)
        told.kind, told.notify, told.hops, told.expires_at = "completion", False, max(0, message.hops - 1), None
        told.state, told.turn, told.how = ("queued", None, None) if into is None else ("running", into.name, "absorbed")
        if into is None:
            return self.deliver(told, "budget" if self.chains[told.chain].spent else None, offer=True, slot=slot)
        self.messages[told.name] = told
        return False

    def take_out(self, message: Message) -> None:
        """Its input leaves the queue."""
        queue = self.sessions[message.target].queue
        queue[:] = [one for one in queue if one.name != message.name]

    def read(self, turn: Turn, outcomes: list[str]) -> None:
        """A turn has read outcomes: what would tell it of them, and waits, joins it."""
        for name in outcomes:
            told = self.messages.get(f"re {name}")
            if told is not None and told.target == turn.session and told.state == "queued":
                self.join(turn, told, "absorbed")

    def may_join(self, turn: Turn, message: Message) -> bool:
        """Whether a running turn takes in a message: none that may do less than it does."""
        within = MODES.index(message.ceiling) >= MODES.index(turn.permission)
        return self.sessions[turn.session].current_turn and within

    def join(self, turn: Turn, message: Message, how: str) -> None:
        """A message becomes part of a running turn, which has no more hops than it from then on and pays for both."""
        self.take_out(message)
        message.state, message.turn, message.how = "running", turn.name, how
        turn.hops = min(turn.hops, message.hops)
        turn.chains += [message.chain] if message.chain not in turn.chains else []

    def end_turn(self, turn: Turn, state: str, *, slot: bool, cost: int = 0, hold: bool = False) -> str | None:
        """Settle a turn with all that is its own; returns the turn that has its slot by then."""
        session, others = self.sessions[turn.session], [name for name in self.ready() if name != turn.session]
        turn.state, session.running = state, None
        unread = [one for one in session.queue if one.kind == "steer"]
        for at, one in enumerate(unread):
            if state in ("completed", "failed"):
                session.promote(one, at)
            else:
                session.queue.remove(one)
                session.heard.append(f"unread {one.name}")
        for one in session.queue:
            one.offered = False
        for chain in turn.chains if cost else []:
            self.spend(chain, cost)
        started = None
        for message in [one for one in self.messages.values() if (one.turn, one.state) == (turn.name, "running")]:
            if hold and message.notify:
                self.hold(message.source)
            if self.end_message(message, state, slot=slot and not others and not started):
                started = f"re {message.name}"
        return started or (self.claim_of((others or [turn.session])[0]) if slot else None)

    def spend(self, name: str, cost: int) -> None:
        """Charge a chain; once it is spent, its messages wait for a person."""
        chain = self.chains[name]
        chain.cost += cost
        waiting = [one for session in self.sessions.values() for one in session.queue]
        for one in waiting if chain.spent else []:
            if one.kind == "message" and one.chain == name:
                one.mark = one.mark or "budget"

    def hold(self, name: str) -> None:
        """A restart lets nothing begin by itself."""
        session = self.sessions[name]
        session.held = session.held or (None if session.gone else "restart")

    def expire_due(self, *, hold: bool) -> int:
        """End what is no longer worth starting; returns how many."""
        due = [one for one in self.messages.values() if one.state == "queued" and self.is_over(one)]
        for message in sorted(due, key=lambda one: one.expires_at or 0):
            if hold and message.notify:
                self.hold(message.source)
            self.take_out(message)
            self.end_message(message, "cancelled")
        return len(due)

    def pay(self, sender: Session, message: Message, *, full: bool = False, sessions: int = 0) -> None:
        """What a turn sends has its chain and rights and one hop less; each chain that has joined it pays."""
        turn = sender.running
        chains = [self.chains[name] for name in turn.chains] if turn else [Chain()]
        refuse("LIMIT_EXCEEDED", when=turn is not None and turn.hops <= 1)
        refuse("LIMIT_EXCEEDED", when=any(one.messages >= CHAIN_MESSAGES_MAX for one in chains))
        refuse("LIMIT_EXCEEDED", when=sessions > 0 and any(one.sessions >= CHAIN_SESSIONS_MAX for one in chains))
        refuse("AGENT_BUSY", when=full)
        for one in chains:
            one.messages, one.sessions = one.messages + 1, one.sessions + sessions
        if turn is not None:
            message.chain, message.hops, message.sent_in = turn.chains[0], turn.hops - 1, turn.name
            message.ceiling = min(turn.permission, sender.mode, key=MODES.index)
        self.chains[message.chain] = chains[0]

    def full(self, name: str) -> bool:
        """Whether a session has its fill of messages; completions always find a place."""
        waiting = [self.messages[one.name] for one in self.sessions[name].queue if one.kind == "message"]
        return sum(one.kind != "completion" for one in waiting) >= INBOX_MAX

    def stop(self, message: Message, into: Turn | None, stopped: set[str], *, cascade: bool) -> None:
        """Cancel what waits, or fence the turn that a message has; what has joined another turn goes on."""
        turn = self.turns.get(message.name)
        if message.state == "queued":
            self.take_out(message)
        if message.state == "queued" or (message.state == "running" and turn):
            stopped.add(message.name)
            self.end_message(message, "cancelled", into=into)
            if turn:
                self.fence(turn, stopped, cascade=cascade)

    def fence(self, turn: Turn, stopped: set[str], *, cascade: bool) -> None:
        """A turn will end as cancelled; with it, what it has sent."""
        if not turn.fenced:
            stopped.add(f"turn {turn.name}")
        turn.fenced = True
        for message in list(self.messages.values()) if cascade else []:
            if message.sent_in == turn.name and message.kind != "completion" and message.state in OPEN:
                self.stop(message, turn, stopped, cascade=True)
