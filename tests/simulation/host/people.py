"""People: what they come to ask, whenever they like and whatever the host is doing."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from tests.simulation.host.chance import Chance
from tests.simulation.host.chronicle import Chronicle
from tests.simulation.host.minds import SESSIONS_MAX
from tests.simulation.host.requests import MADE, Request
from tests.simulation.host.witness import HostWitness

from coterie.core.ids import MessageId
from coterie.core.ledger.states import SETTLED
from coterie.ports.rows import Input

F = TypeVar("F", bound=Callable[[Any], Request])

FOLDER: Final = "/"
"""A project folder that each machine has."""
KEYLESS: Final = 0.2
"""The share of requests that nobody can repeat safely."""


def comes(often: int = 1, when: Callable[[Any], object] = bool) -> Callable[[F], F]:
    """Let a method be one of the things people come for: so *often* among the others, and *when* it is possible."""

    def mark(act: F) -> F:
        vars(act)["often"], vars(act)["when"] = often, when
        return act

    return mark


def has_room(people: "People") -> bool:
    """Whether there may be a session more."""
    return len(people.witness.sessions) < SESSIONS_MAX


def has_messages(people: "People") -> bool:
    """Whether anything was ever sent."""
    return bool(people.witness.accepted)


def has_outcomes(people: "People") -> bool:
    """Whether anything that was sent is over."""
    return bool(people.witness.settled())


class People:
    """What people come to ask; each act makes one request."""

    def __init__(self, chance: Chance, chronicle: Chronicle, witness: HostWitness) -> None:
        self.chance, self.chronicle, self.witness = chance, chronicle, witness
        self.waiting: Sequence[Input] = ()
        """What waits in queues, as somebody has seen lately."""
        self.questions: Sequence[str] = ()
        acts = (getattr(type(self), name) for name in sorted(dir(type(self))))
        self._acts: list[Callable[[People], Request]] = [act for act in acts if hasattr(act, "often")]

    def act(self) -> Request:
        """Come with something that is possible now."""
        possible = [act for act in self._acts if vars(act)["when"](self)]
        return self.chance.weighted(possible, [vars(act)["often"] for act in possible])(self)

    def request(self, operation: str, **params: Any) -> Request:
        """A request with its key, mostly."""
        given = {name: value for name, value in params.items() if value is not None}
        if operation in MADE and not self.chance.happens(KEYLESS):
            given["idempotencyKey"] = self.chronicle.fresh("request")
        made = Request(len(self.witness.requests), operation, given)
        self.witness.requests.append(made)
        return made

    def session(self, rather: Sequence[str] = ()) -> str:
        """Some session; there is one."""
        return self.chance.rather(self.witness.sessions, rather)

    def message(self, rather: Sequence[str] = ()) -> str:
        """Some message; there is one."""
        return self.chance.rather(self.witness.accepted, rather)

    @comes(2, when=has_room)
    def opens(self) -> Request:
        """A session more."""
        mode = self.chance.one_of((None, "ask", "auto"))
        folder = self.chance.one_of((None, FOLDER))
        title = self.chronicle.fresh("session")
        return self.request("session.create", title=title, permissionMode=mode, projectPath=folder)

    @comes(when=has_room)
    def forks(self) -> Request:
        """A session with another one's memory."""
        return self.request("session.fork", sessionId=self.session())

    @comes(14)
    def prompts(self) -> Request:
        """It starts, or waits."""
        return self.request("session.prompt", sessionId=self.session(), text=self.chronicle.fresh("prompt"))

    @comes(5)
    def steers(self) -> Request:
        """Mostly what runs."""
        session = self.session(self.witness.busy())
        return self.request("session.steer", sessionId=session, text=self.chronicle.fresh("steering"))

    @comes(8)
    def sends(self) -> Request:
        """For a session, to another."""
        one, other = self.session(), self.session()
        if one == other:
            return self.prompts()
        kind, notify = self.chance.one_of(("task", "message")), self.chance.one_of((None, True, False))
        said = {"content": self.chronicle.fresh("words"), "kind": kind, "notifyOnCompletion": notify}
        return self.request("collaboration.send", asSessionId=one, sessionId=other, **said)

    @comes(2, when=has_room)
    def spawns(self) -> Request:
        """For a session, which gets a worker."""
        words = self.chronicle.fresh("work")
        return self.request("collaboration.spawn", asSessionId=self.session(), content=words)

    @comes(6, when=has_messages)
    def waits(self) -> Request:
        """Until something is over."""
        live = [id_ for id_ in self.witness.accepted if self.witness.messages[id_].state not in SETTLED]
        ids = list(dict.fromkeys([self.message(live), self.message(live)]))
        mode, timeout = self.chance.one_of(("all", "any")), self.chance.one_of((0, 400, 5000, 30_000, 30_000))
        return self.request("collaboration.wait", messageIds=ids, mode=mode, timeoutMs=timeout)

    @comes(2)
    def waits_for_rest(self) -> Request:
        """Until a session does nothing."""
        timeout = self.chance.one_of((400, 5000, 30_000))
        return self.request("collaboration.wait", sessionId=self.session(), until="idle", timeoutMs=timeout)

    @comes(5)
    def interrupts(self) -> Request:
        """What runs."""
        cascade = self.chance.happens(0.7)
        return self.request("session.interrupt", sessionId=self.session(self.witness.busy()), cascade=cascade)

    @comes(3, when=has_messages)
    def cancels(self) -> Request:
        """One message, or all of a session."""
        live = [id_ for id_ in self.witness.accepted if self.witness.messages[id_].state not in SETTLED]
        id_ = self.message(live)
        named = id_ if self.chance.happens(0.7) else None
        return self.request("collaboration.cancel", sessionId=self.witness.target_of(id_), messageId=named)

    @comes(2, when=has_outcomes)
    def retries(self) -> Request:
        """What has ended."""
        return self.request("session.retry", messageId=self.message(self.witness.settled()))

    @comes(4)
    def releases(self) -> Request:
        """All, or one."""
        return self.request("session.release", sessionId=self.chance.one_of((None, self.session())))

    @comes(2)
    def configures(self) -> Request:
        """What a session takes in."""
        inbound = self.chance.one_of(("accept", "accept", "hold", "refuse"))
        return self.request(
            "session.configure",
            sessionId=self.session(),
            inbound=inbound,
            currentTurnDelivery=self.chance.happens(0.7),
            permissionMode=self.chance.one_of((None, "inherit", "ask", "auto")),
        )

    @comes()
    def archives(self) -> Request:
        """A session is put away."""
        return self.request("session.archive", sessionId=self.session())

    @comes(when=lambda people: len(people.witness.sessions) > 2)
    def deletes(self) -> Request:
        """A session is gone."""
        return self.request("session.delete", sessionId=self.session())

    @comes(4, when=lambda people: people.waiting)
    def arranges(self) -> Request:
        """A queue."""
        one = self.chance.one_of(self.waiting)
        verb = self.chance.one_of(("remove", "promote", "move"))
        way = self.chance.one_of(("up", "down")) if verb == "move" else None
        return self.request(f"queue.{verb}", sessionId=one.session_id, inputId=one.id, direction=way)

    @comes(4, when=lambda people: people.questions)
    def answers(self) -> Request:
        """Whether a session may write to another across projects."""
        decision = self.chance.one_of(("once", "grant", "deny"))
        return self.request("permissions.resolve", requestId=self.chance.one_of(self.questions), decision=decision)

    @comes(2, when=has_outcomes)
    def accepts(self) -> Request:
        """For a session, a result."""
        id_ = MessageId(self.chance.one_of(self.witness.settled()))
        source = self.witness.messages[id_].source_session_id
        return self.request("collaboration.accept", messageId=id_, asSessionId=source)

    @comes(2)
    def looks(self) -> Request:
        """At something."""
        operation = self.chance.one_of(("collaboration.status", "queue.list", "session.get"))
        return self.request(operation, sessionId=self.session())

    @comes(6, when=lambda people: any(one.keyed for one in people.witness.requests))
    def asks_again(self) -> Request:
        """Whoever has not heard the answer, or has lost it."""
        keyed = [one for one in self.witness.requests if one.keyed]
        return self.chance.rather(keyed, [one for one in keyed if not one.answers])
