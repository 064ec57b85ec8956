"""`send`, `wait`, `result`, `cancel`, `interrupt` and `retry`: work between sessions."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import typer

from coterie.core.errors import InvalidArgumentError
from coterie.interfaces.cli import queues, tables
from coterie.interfaces.cli.command import Command
from coterie.interfaces.cli.dial import Answer, Dial
from coterie.interfaces.cli.duration import end_of
from coterie.interfaces.cli.naming import message_id_of, whole_message_id
from coterie.interfaces.cli.talk import SessionArgument, TextArgument, words
from coterie.interfaces.cli.terminal import Terminal

NAP_MS: Final = 20_000
"""How long the host sleeps in one call of a long wait."""
CascadeOption: TypeAlias = Annotated[
    bool, typer.Option("--cascade/--no-cascade", help="Stop also what the stopped turns have sent.")
]
_PART: Final = "of the newest ones a part of the id is enough"
_UNSETTLED: Final = frozenset({"queued", "running"})
_NEXT_TURN: Final = (
    "It waits for a turn of its own: a running turn takes in no task, and a message only where its session allows that "
    "(`coterie session configure {id} --current-turn`)."
)


@dataclass(frozen=True, kw_only=True)
class Send(Command):
    """Send a message or a task from session to session.

    An idle target starts at once, else the message waits in its queue. A task is answered with a completion.
    """

    example: ClassVar[str] = 'coterie send --from lead --to reader --kind task "Count the Python files."'

    text: TextArgument
    source: Annotated[str, typer.Option("--from", metavar="SESSION", help="The session that you speak for.")]
    target: Annotated[str, typer.Option("--to", metavar="SESSION", help="The session that gets it.")]
    kind: Annotated[Literal["message", "task"], typer.Option("--kind", help="A task is answered.")] = "message"
    notify: Annotated[
        bool | None,
        typer.Option("--notify/--no-notify", help="Whether a completion comes back; else for tasks only."),
    ] = None
    deliver: Annotated[
        Literal["next-turn", "current-turn"],
        typer.Option("--deliver", help="Whether a running turn takes the message in, where its session allows that."),
    ] = "next-turn"
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="DURATION",
            help="Cancel it if it has not started by then: 30m, 1h30m, 2d; with --key give a time: 2031-05-01T12:00.",
        ),
    ] = None
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same request again with it does nothing.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Send it."""
        dial, target = terminal.dial(), terminal.session(self.target)
        given = {
            "sessionId": target,
            "content": words(self.text),
            "kind": self.kind,
            "notifyOnCompletion": self.notify,
            "deliver": self.deliver.replace("-", "_"),
            "expiresAt": self._end(dial, target),
            "asSessionId": terminal.session(self.source),
        }
        receipt = dial.act("collaboration.send", given, self.key)
        if terminal.as_json:
            terminal.json(receipt)
        else:
            show_receipt(terminal, receipt)

    def _end(self, dial: Dial, target: str) -> str | None:
        if self.expires is None:
            return None
        # The host judges by its own clock, so a duration begins there.
        return end_of(self.expires, dial.call("collaboration.status", {"sessionId": target})["observedAt"])


def show_receipt(terminal: Terminal, receipt: Answer) -> None:
    """Show what became of a message that was sent, what it waits for, and how to go on."""
    waiting, held, target = receipt.get("waiting"), receipt.get("held"), receipt["sessionId"]
    taken = receipt.get("deliver")
    terminal.show(
        tables.facts(
            [
                ("message", receipt["messageId"]),
                ("to", target),
                ("state", tables.state(receipt["status"], "restart" if held else None)),
                ("waits for", queues.reason(waiting) if waiting else None),
                ("position", receipt.get("position")),
                ("turn", receipt.get("turnId")),
                ("reaches", "the running turn, with its next model request" if taken == "current_turn" else None),
                ("hops left", receipt["remainingHops"]),
                ("replayed", "yes: nothing new was done" if receipt["replayed"] else None),
            ]
        )
    )
    for way in queues.remedies([waiting] if waiting else [], target):
        terminal.remark(way)
    if held and not waiting:
        terminal.remark(f"`coterie release {target}` lets its queue go on.")
    if taken == "next_turn" and receipt["status"] == "queued":
        terminal.remark(_NEXT_TURN.format(id=target))
    terminal.remark(f"`coterie wait {receipt['messageId']}` waits for its outcome.")


@dataclass(frozen=True, kw_only=True)
class Retry(Command):
    """Send a task or message that has ended once more.

    It is a new message with the same words and rights; the old one and its outcome stay.
    """

    example: ClassVar[str] = "coterie retry msg_0198f3a07c5e7d10b2a46e5f9c41d2e8"

    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="Its whole id, as the receipt has it.")]

    def run(self, terminal: Terminal) -> None:
        """Send it."""
        receipt = terminal.dial().act("session.retry", {"messageId": whole_message_id(self.message)})
        if terminal.as_json:
            terminal.json(receipt)
        else:
            show_receipt(terminal, receipt)


@dataclass(frozen=True, kw_only=True)
class Wait(Command):
    """Wait until messages settle or a session is idle.

    Ends with 0 when that has come, however the work went, and with 1 when the time ran out before.
    """

    example: ClassVar[str] = "coterie wait msg_0198f3a07c5e7d10b2a46e5f9c41d2e8 --timeout 60"

    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Whole ids of messages.")] = None
    some: Annotated[bool, typer.Option("--any", help="One of them is enough.")] = False
    idle: Annotated[
        str | None, typer.Option("--idle", metavar="SESSION", help="Wait for this session instead of messages.")
    ] = None
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Give up after that; else never.")
    ] = None

    def run(self, terminal: Terminal) -> None:
        """Wait in naps, so that no connection has to last."""
        answer = self._wait(terminal, self._parameters(terminal))
        if terminal.as_json:
            terminal.json(answer)
        else:
            self._show(terminal, answer)
        if answer["timedOut"]:
            raise typer.Exit(1)

    def _parameters(self, terminal: Terminal) -> Mapping[str, Any]:
        if bool(self.ids) == (self.idle is not None):
            raise InvalidArgumentError("Name messages by their ids, or a session by --idle, one of the two.")
        if self.idle is not None:
            return {"sessionId": terminal.session(self.idle), "until": "idle"}
        return {"messageIds": [whole_message_id(one) for one in self.ids or ()], "mode": "any" if self.some else "all"}

    def _wait(self, terminal: Terminal, parameters: Mapping[str, Any]) -> Answer:
        end_s = None if self.timeout_s is None else time.monotonic() + self.timeout_s
        what = f"waiting for {self.idle or f'{len(self.ids or ())} messages'}"
        with terminal.busy(what):
            while True:
                left_ms = NAP_MS if end_s is None else max(0.0, (end_s - time.monotonic()) * 1000)
                nap = {"timeoutMs": int(min(NAP_MS, left_ms))}
                answer = terminal.dial().call("collaboration.wait", {**parameters, **nap})
                if not answer["timedOut"] or (left_ms <= NAP_MS and end_s is not None):
                    return answer

    def _show(self, terminal: Terminal, answer: Answer) -> None:
        if answer["messages"]:
            rows = [
                (one["id"], tables.state(one["status"]), tables.preview(one.get("error") or one.get("result")))
                for one in answer["messages"]
            ]
            terminal.show(tables.table(("ID", "STATE", "OUTCOME"), rows))
        if answer.get("status"):
            terminal.show(tables.state(answer["status"]))
        if answer["timedOut"]:
            terminal.remark("The time ran out; the work goes on.", "yellow")


@dataclass(frozen=True, kw_only=True)
class Result(Command):
    """Show the outcome of a message to a session.

    Without an id it is the newest message.
    """

    example: ClassVar[str] = "coterie result reader"

    session: SessionArgument
    message: Annotated[str | None, typer.Option("--message", metavar="ID", help=f"This message to it; {_PART}.")] = None
    turn: Annotated[str | None, typer.Option("--turn", metavar="ID", help="The message of this turn of it.")] = None

    def run(self, terminal: Terminal) -> None:
        """Read it."""
        dial, session_id = terminal.dial(), terminal.session(self.session)
        message_id = self.message and message_id_of(dial, self.message, session_id)
        given = {"sessionId": session_id, "messageId": message_id, "turnId": self.turn}
        answer = dial.call("collaboration.result", given)
        if terminal.as_json:
            terminal.json(answer)
            return
        message = answer.get("message")
        if message is None:
            terminal.show("The session has got no message.")
            return
        terminal.show(tables.message_facts(message))
        if message["status"] in _UNSETTLED:
            terminal.remark(f"No outcome yet; `coterie wait {message['id']}` waits for it.")


@dataclass(frozen=True, kw_only=True)
class Cancel(Command):
    """Stop one message to a session, or all that is there.

    What the stopped turns have sent is stopped too. Sessions and histories stay.
    """

    example: ClassVar[str] = "coterie cancel reader --no-cascade"

    session: SessionArgument
    message: Annotated[str | None, typer.Option("--message", metavar="ID", help=f"This message only; {_PART}.")] = None
    cascade: CascadeOption = True

    def run(self, terminal: Terminal) -> None:
        """Stop it."""
        dial, session_id = terminal.dial(), terminal.session(self.session)
        message_id = self.message and message_id_of(dial, self.message, session_id)
        given = {"sessionId": session_id, "messageId": message_id, "cascade": self.cascade}
        answer = dial.act("collaboration.cancel", given)
        if terminal.as_json:
            terminal.json(answer)
            return
        if show_stopped(terminal, answer):
            return
        terminal.show("Nothing was left to stop.")
        if message_id and _has_settled(dial, message_id):
            terminal.remark(f"It has ended, but what it had sent may go on; `coterie map {message_id}` shows that.")


def _has_settled(dial: Dial, message_id: str) -> bool:
    message = dial.call("collaboration.message", {"messageId": message_id})["message"]
    return message["status"] not in _UNSETTLED


@dataclass(frozen=True, kw_only=True)
class Interrupt(Command):
    """Stop the running turn of a session.

    What it has sent is stopped too. What waits in the queue goes on; `coterie cancel` stops that as well.
    """

    example: ClassVar[str] = "coterie interrupt reader --no-cascade"

    session: SessionArgument
    cascade: CascadeOption = True

    def run(self, terminal: Terminal) -> None:
        """Stop it."""
        given = {"sessionId": terminal.session(self.session), "cascade": self.cascade}
        answer = terminal.dial().act("session.interrupt", given)
        if terminal.as_json:
            terminal.json(answer)
        elif not show_stopped(terminal, answer):
            terminal.show("No turn runs.")


def show_stopped(terminal: Terminal, answer: Answer) -> bool:
    """Show which messages and turns an act has stopped; returns whether there were any."""
    messages, turns = answer["messageIds"], answer["runningTurnIds"]
    for message_id in messages:
        terminal.show(f"Cancelled {message_id}.")
    for turn_id in turns:
        terminal.show(f"Stopping {turn_id}; it ends at its next step.")
    return bool(messages or turns)
