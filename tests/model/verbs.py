"""What may be asked of the ledger on paper, by the names under which the real one is asked too."""

from tests.model.model import (
    CHAIN_COST_MAX,
    CHAIN_MESSAGES_MAX,
    HOPS_MAX,
    OPEN,
    PROMPTS_MAX,
    WORKERS_MAX,
    Answer,
    Chain,
    Input,
    Letter,
    Message,
    Paper,
    Session,
    refuse,
)


class PaperLedger(Paper):
    """Each verb answers what the real one answers."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, tuple[str, str, Answer]] = {}

    def ask(self, what: str, key: str | None, body: str, **said: Answer) -> Answer:
        """Do it once: a key that is known answers as before, a refusal leaves the key free."""
        known, name, first = self._keys.get(key or "", (body, "", None))
        refuse("IDEMPOTENCY_CONFLICT", when=known != body)
        if key is None or key not in self._keys:
            first = getattr(self, what)(**said)
            if key is not None:
                self._keys[key] = (body, said.get("name", ""), first)
            return (*first, False)
        if what in ("prompt", "steer"):
            return self._now_of(name, first[0]), None, True
        if what in ("send", "spawn", "retry"):
            return self.messages[name].state, None, False, None, True
        return (*first, True)

    def _now_of(self, name: str, first: str) -> str:
        """Where a person's input is by now; what a turn took in stays with it."""
        waiting = self.waiting(name)
        if name in self.turns:
            return self.turns[name].state
        if first == "accepted" and (waiting is None or waiting.kind == "steer"):
            return first
        return "queued" if waiting else "removed"

    def open(self, name: str, mode: str) -> None:
        """A person opens a session."""
        self.sessions[name] = Session(mode)

    def fork(self, session: str, name: str) -> None:
        """It knows what the other has heard, and has nothing that lives."""
        old = self.there(session)
        self.sessions[name] = Session(old.mode, heard=[*old.heard])

    def configure(self, session: str, mode: str, inbound: str, *, current_turn: bool) -> None:
        """What it may do, and what it takes in."""
        found = self.there(session)
        found.mode, found.inbound, found.current_turn = mode, inbound, current_turn

    def prompt(self, session: str, name: str, *, slot: bool) -> Answer:
        """A person's words start, or wait; a held queue is freed and they go first."""
        found = self.there(session)
        people = found.count("prompt", "steer")
        refuse("QUEUE_FULL", when=people >= PROMPTS_MAX)
        freed, found.held = found.held is not None, None
        found.streak = 0 if freed else found.streak
        self.chains[name] = Chain()
        waiting = self.input(name, name, "prompt")
        if self.arrive(session, waiting, slot=slot):
            return "running", None
        if freed:
            found.promote(waiting, 0)
        return "queued", 1 if freed else people + 1

    def steer(self, session: str, name: str, *, slot: bool) -> Answer:
        """A running turn takes it in; else it is a prompt."""
        found = self.there(session)
        if found.running is None or found.running.fenced:
            return self.prompt(session, name, slot=slot)
        refuse("QUEUE_FULL", when=found.count("prompt", "steer") >= PROMPTS_MAX)
        self.chains[name] = Chain()
        waiting = self.input(name, name, "steer")
        waiting.offered = True
        found.add(waiting)
        return "accepted", None

    def send(self, source: str, target: str, name: str, letter: Letter) -> Answer:
        """What a session runs speaks; for an idle one a person does, and begins a chain."""
        refuse("INVALID_ARGUMENT", when=source == target)
        there = self.there(target)
        refuse("CONFLICT", when=there.held == "archived")
        sender = self.there(source)
        refuse("CONFLICT", when=sender.running is not None and sender.running.fenced)
        refuse("PERMISSION_DENIED", when=sender.running is not None and there.inbound == "refuse")
        message = Message(name, name, source, target, letter.kind, letter.notify, HOPS_MAX, sender.mode)
        message.expires_at = None if letter.life is None else self.now + letter.life
        self.pay(sender, message, full=self.full(target))
        mark = "policy" if sender.running and there.inbound == "hold" else None
        return self._sent(message, mark, offer=letter.now and letter.kind == "message", slot=letter.slot)

    def spawn(self, source: str, session: str, name: str, *, slot: bool) -> Answer:
        """A new session with its first task; workers spawn nothing."""
        sender = self.there(source)
        refuse("CONFLICT", when=sender.running is not None and sender.running.fenced)
        refuse("PERMISSION_DENIED", when=sender.creator is not None)
        active = sum(one.creator == source and bool(one.running or one.queue) for one in self.sessions.values())
        refuse("LIMIT_EXCEEDED", when=sender.running is not None and active >= WORKERS_MAX)
        message = Message(name, name, source, session, "task", notify=True, hops=HOPS_MAX, ceiling=sender.mode)
        self.pay(sender, message, sessions=1)
        self.sessions[session] = Session(sender.mode, source)
        return self._sent(message, None, slot=slot)

    def _sent(self, message: Message, mark: str | None, *, offer: bool = False, slot: bool) -> Answer:
        target = self.sessions[message.target]
        mark = mark or ("budget" if self.chains[message.chain].spent else None)
        if self.deliver(message, mark, offer=offer, slot=slot):
            return "running", None, False, None
        return "queued", target.count("message"), target.held is not None, mark

    def retry(self, message: str, name: str, *, slot: bool) -> Answer:
        """A person lets what has settled be tried once more, with what it was allowed."""
        old = self.messages[message]
        refuse("INVALID_ARGUMENT", when=old.kind == "completion")
        refuse("CONFLICT", when=old.state in OPEN)
        target, chain = self.there(old.target), self.chains[old.chain]
        refuse("CONFLICT", when=target.held == "archived")
        refuse("LIMIT_EXCEEDED", when=chain.messages >= CHAIN_MESSAGES_MAX)
        refuse("AGENT_BUSY", when=self.full(old.target))
        chain.messages += 1
        again = Message(name, old.chain, old.source, old.target, old.kind, old.notify, old.hops, old.ceiling)
        return self._sent(again, None, slot=slot)

    def _of(self, session: str, waiting: str) -> Input:
        found = [one for one in self.there(session).queue if one.name == waiting]
        refuse("NOT_FOUND", when=not found)
        return found[0]

    def remove(self, session: str, waiting: str) -> Answer:
        """A person takes it out; a message is cancelled by that."""
        one = self._of(session, waiting)
        self.sessions[session].queue.remove(one)
        if one.kind != "message":
            return (None,)
        self.end_message(self.messages[waiting], "cancelled")
        return (waiting,)

    def promote_input(self, session: str, waiting: str) -> Answer:
        """It goes behind what was promoted before, and before all else."""
        one = self._of(session, waiting)
        refuse("CONFLICT", when=one.promoted)
        self.sessions[session].promote(one)
        return ()

    def move(self, session: str, waiting: str, *, up: bool) -> Answer:
        """It changes places with the next of its kind; what is promoted stays."""
        one, queue = self._of(session, waiting), self.sessions[session].queue
        peers = [at for at, other in enumerate(queue) if not other.promoted and other.kind == one.kind]
        here = queue.index(one)
        beside = [at for at in peers if (at < here if up else at > here)]
        if one.promoted or not beside:
            return (False,)
        there = beside[-1 if up else 0]
        queue[here], queue[there] = queue[there], queue[here]
        one.place, queue[here].place = queue[here].place, one.place
        return (True,)

    def interrupt(self, session: str, *, cascade: bool) -> Answer:
        """A person stops what a session runs."""
        turn, stopped = self.there(session).running, set[str]()
        if turn is not None:
            if turn.name in self.messages:
                self.stop(self.messages[turn.name], None, stopped, cascade=cascade)
            if f"turn {turn.name}" not in stopped:
                self.fence(turn, stopped, cascade=cascade)
        return (stopped,)

    def cancel(self, session: str, message: str | None, by: str | None, *, cascade: bool) -> Answer:
        """A person stops anything, a session what it has sent."""
        found, stopped = self.there(session), set[str]()
        if message is None:
            all_ = [one for one in self.messages.values() if one.target == session and one.state in OPEN]
            those = [one for one in all_ if one.kind != "completion" and by in (None, one.source)]
        else:
            one = self.messages[message]
            refuse("PERMISSION_DENIED", when=one.target != session)
            refuse("PERMISSION_DENIED", when=by is not None and (by != one.source or one.kind == "completion"))
            refuse("CONFLICT", when=one.state == "running" and one.how != "claimed")
            those = [one]
        for one in those:
            self.stop(one, None, stopped, cascade=cascade)
        if message is None and by is None and found.running and f"turn {found.running.name}" not in stopped:
            self.fence(found.running, stopped, cascade=cascade)
        return stopped

    def release(self, session: str | None) -> int:
        """A person lets queues move: what was held, and what is marked; a spent chain may spend as much again."""
        those = {session: self.there(session)} if session else self.sessions
        freed = {name for name, one in those.items() if one.held == "restart" or (session and one.held)}
        for name in freed:
            self.sessions[name].held = None
        marked = [(name, waiting) for name, one in those.items() for waiting in one.queue if waiting.mark]
        spent = {waiting.chain for _, waiting in marked if self.chains[waiting.chain].spent}
        for chain in map(self.chains.__getitem__, spent):
            chain.grants = max(chain.grants + 1, chain.cost // CHAIN_COST_MAX)
        everywhere = [(name, waiting) for name, one in self.sessions.items() for waiting in one.queue]
        for name, waiting in [
            *marked,
            *(one for one in everywhere if one[1].mark == "budget" and one[1].chain in spent),
        ]:
            waiting.mark = None
            freed.add(name)
        return len(freed)

    def archive(self, session: str) -> None:
        """Put it away: its queue is held, and it takes nothing new."""
        refuse("CONFLICT", when=self.there(session).running is not None)
        self.sessions[session].held = "archived"

    def delete(self, session: str) -> Answer:
        """What it runs and what waits for it is cancelled; what it has sent runs on."""
        found, stopped = self.there(session), set[str]()
        if found.running is not None:
            found.running.fenced = True
            stopped.add(f"turn {found.running.name}")
            self.end_turn(found.running, "cancelled", slot=False)
        queue, found.queue = found.queue, []
        for message in [self.messages[one.name] for one in queue if one.kind == "message"]:
            stopped.add(message.name)
            self.end_message(message, "cancelled")
        found.gone, found.held = True, None
        return stopped

    def claim(self) -> str | None:
        """A free slot takes the oldest; if all of that session was over by now, the next one."""
        for name in self.ready()[:2]:
            started = self.claim_of(name)
            if started:
                return started
        return None

    def settle(self, turn: str, how: str, cost: int, outcomes: list[str], *, slot: bool) -> Answer:
        """A worker reports the end; what is fenced ends as cancelled, and what has ended stays so."""
        found = self.turns[turn]
        if found.state != "running":
            return None, None
        self.sessions[found.session].heard.append("done")
        self.read(found, outcomes)
        state = "cancelled" if found.fenced else how
        return state, self.end_turn(found, state, slot=slot, cost=cost)

    def append(self, turn: str, outcomes: list[str]) -> bool:
        """A turn writes what a tool has shown it."""
        found = self.turns[turn]
        if found.state == "running":
            self.sessions[found.session].heard.append("read")
            self.read(found, outcomes)
        return found.state == "running"

    def take_news(self, turn: str) -> bool:
        """A turn is about to ask its model: it takes in all steering, and of messages what does not narrow it."""
        found, session = self.turns[turn], self.sessions[self.turns[turn].session]
        heard = len(session.heard)
        meant = [one for one in session.queue if one.offered] if session.running is found and not found.fenced else []
        for one in sorted(meant, key=lambda one: one.place):
            message = self.messages.get(one.name)
            if message is None:
                session.queue.remove(one)
            elif self.is_over(message):
                self.take_out(message)
                self.end_message(message, "cancelled")
                continue
            elif self.may_join(found, message) and not one.mark:
                self.join(found, message, "accepted")
            else:
                one.offered = False
                continue
            session.heard.append(one.name)
        return len(session.heard) > heard

    def tick(self, ms: int) -> None:
        """Time passes."""
        self.now += ms

    def expire(self) -> int:
        """The audit ends what is no longer worth starting."""
        return self.expire_due(hold=False)

    def restart(self, *, resume: bool) -> None:
        """The host dies and starts: what waits is held, what ran is interrupted, and nothing begins."""
        for session in self.sessions.values():
            if resume and session.held == "restart":
                session.held = None
            elif not resume and session.count("prompt", "message"):
                session.held = session.held or "restart"
        for session in self.sessions.values():
            if session.running:
                state = "cancelled" if session.running.fenced else "interrupted"
                self.end_turn(session.running, state, slot=False, hold=not resume)
        self.expire_due(hold=not resume)
