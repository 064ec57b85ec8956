"""Inputs and turns over a driver."""

from collections.abc import Sequence
from typing import Final

from coterie.core.admission import Places
from coterie.core.ids import ChainId, InputId, MessageId, SessionId, TurnId
from coterie.core.inbound import Waiting
from coterie.core.permission import Mode
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.rows import HostFacts, Input
from coterie.storage.sql.driver import Driver, Row

_STATES: Final = {state.value: state for state in TurnState}
MODES: Final = {mode.value: mode for mode in Mode}


def _turn(row: Row) -> Turn:
    values = list(row)
    values[21], values[22] = bool(row[21]), tuple(map(ChainId, row[22].split()))
    values[5], values[8], values[11], values[15] = _STATES[row[5]], MODES[row[8]], bool(row[11]), bool(row[15])
    return Turn(*values)


def input_of(row: Row) -> Input:
    """The input that a row of `{inputs}` holds."""
    return Input(*row[:7], promoted=bool(row[7]), waiting=Waiting(row[8]) if row[8] else None, turn_id=row[9])


def inputs_of(rows: Sequence[Row]) -> tuple[Input, ...]:
    """The same for many rows."""
    return tuple(map(input_of, rows))


def places_of(row: Row) -> Places:
    """What is taken of a queue, by a row of four counts."""
    return Places(row[0], row[1], row[2], running=bool(row[3]))


class SqlInputs:
    """Implements `ports.store.Inputs`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def add(self, waiting: Input) -> None:
        """See the port."""
        self._driver.write(
            "add_input",
            id=waiting.id,
            session_id=waiting.session_id,
            kind=waiting.kind,
            chain_id=waiting.chain_id,
            created_at=waiting.created_at,
            text=waiting.text,
            message_id=waiting.message_id,
            promoted=int(waiting.promoted),
            waiting=waiting.waiting.value if waiting.waiting else None,
            turn_id=waiting.turn_id,
        )

    def places(self, session_id: SessionId) -> Places:
        """See the port."""
        row = self._driver.one("places", id=session_id)
        assert row is not None
        return places_of(row)

    def page(self, session_id: SessionId, limit: int) -> tuple[Input, ...]:
        """See the port."""
        return inputs_of(self._driver.all("page_inputs", id=session_id, limit=limit))

    def get(self, input_id: InputId) -> Input | None:
        """See the port."""
        row = self._driver.one("get_input", id=input_id)
        return input_of(row) if row else None

    def remove(self, input_id: InputId) -> bool:
        """See the port."""
        return self._driver.move("remove_input", id=input_id) == 1

    def remove_message(self, message_id: MessageId) -> bool:
        """See the port."""
        return self._driver.move("remove_input_of_message", message_id=message_id) == 1

    def promote(self, input_id: InputId, *, first: bool = False) -> None:
        """See the port."""
        self._driver.write("put_first" if first else "promote_input", id=input_id)

    def swap(self, one: InputId, other: InputId) -> None:
        """See the port."""
        self._driver.write("swap_inputs", one=one, other=other)


class SqlMarks:
    """Implements `ports.store.Marks`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def mark(self, input_id: InputId, waiting: Waiting | None) -> None:
        """See the port."""
        self._driver.write("mark_input", id=input_id, waiting=waiting.value if waiting else None)

    def mark_chain(self, chain_id: ChainId) -> tuple[SessionId, ...]:
        """See the port."""
        return tuple(sorted({SessionId(row[0]) for row in self._of_chain("mark_chain", chain_id)}))

    def free_chain(self, chain_id: ChainId) -> tuple[SessionId, ...]:
        """See the port."""
        return tuple(sorted({SessionId(row[0]) for row in self._of_chain("free_chain", chain_id)}))

    def _of_chain(self, name: str, chain_id: ChainId) -> Sequence[Row]:
        """Change inputs of a chain when the sessions that they wait in are locked."""
        found = [row[0] for row in self._driver.all("sessions_of_chain", chain_id=chain_id)]
        if not found:
            return ()
        self._driver.lock_sessions(found)
        return self._driver.all(name, chain_id=chain_id)

    def marked(self, session_id: SessionId | None) -> tuple[Input, ...]:
        """See the port."""
        if session_id is None:
            return inputs_of(self._driver.all("marked_inputs"))
        return inputs_of(self._driver.all("marked_inputs_of", session_id=session_id))

    def meant_for(self, turn_id: TurnId) -> tuple[Input, ...]:
        """See the port."""
        return inputs_of(self._driver.all("meant_for_turn", turn_id=turn_id))

    def withdraw(self, turn_id: TurnId, input_id: InputId | None = None) -> None:
        """See the port."""
        if input_id is None:
            self._driver.write("withdraw_offers", turn_id=turn_id)
        else:
            self._driver.write("withdraw_offer", id=input_id, turn_id=turn_id)


class SqlTurns:
    """Implements `ports.store.Turns`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def add(self, turn: Turn) -> bool:
        """See the port."""
        self._driver.lock("lock_host", id=turn.host_id, epoch=turn.epoch)
        added = self._driver.move(
            "add_turn",
            id=turn.id,
            session_id=turn.session_id,
            input_id=turn.input_id,
            kind=turn.kind,
            message_id=turn.message_id,
            host_id=turn.host_id,
            epoch=turn.epoch,
            permission=turn.permission.value,
            chain_id=turn.chain_id,
            hops=turn.hops,
            created_at=turn.created_at,
        )
        return added == 1

    def join(self, turn: Turn) -> None:
        """See the port."""
        self._driver.write("join_turn", id=turn.id, hops=turn.hops, more_chains=" ".join(turn.more_chains))

    def set_news(self, turn_id: TurnId, *, news: bool) -> None:
        """See the port."""
        self._driver.write("set_news", id=turn_id, news=int(news))

    def _one(self, name: str, **params: object) -> Turn | None:
        row = self._driver.one(name, **params)
        return _turn(row) if row else None

    def get(self, turn_id: TurnId) -> Turn | None:
        """See the port."""
        return self._one("get_turn", id=turn_id)

    def running(self, session_id: SessionId) -> Turn | None:
        """See the port."""
        return self._one("running_turn", session_id=session_id)

    def newest(self, session_id: SessionId) -> Turn | None:
        """See the port."""
        return self._one("newest_turn", session_id=session_id)

    def of_input(self, input_id: InputId) -> Turn | None:
        """See the port."""
        return self._one("turn_of_input", input_id=input_id)

    def fence(self, turn_id: TurnId) -> bool:
        """See the port."""
        return self._driver.move("fence_turn", id=turn_id) == 1

    def settle(self, turn: Turn, event: type, now: int) -> bool:
        """See the port."""
        moved = self._driver.move(
            f"settle_turn.{event.__name__}",
            id=turn.id,
            host_id=turn.host_id,
            epoch=turn.epoch,
            ended_at=now,
            result=turn.result,
            truncated=int(turn.truncated),
            error_code=turn.error_code,
            error=turn.error,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            cost=turn.cost,
        )
        return moved == 1

    def left_running(self, host: HostFacts) -> tuple[Turn, ...]:
        """See the port."""
        return tuple(_turn(row) for row in self._driver.all("left_running", host_id=host.id, epoch=host.epoch))

    def running_here(self, host: HostFacts) -> tuple[Turn, ...]:
        """See the port."""
        return tuple(_turn(row) for row in self._driver.all("running_here", host_id=host.id, epoch=host.epoch))
