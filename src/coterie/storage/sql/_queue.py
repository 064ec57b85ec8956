"""Inputs and turns over a driver."""

from coterie.core.admission import Places
from coterie.core.ids import InputId, MessageId, SessionId, TurnId
from coterie.core.permission import Mode
from coterie.core.turn.states import TurnState
from coterie.core.turn.turn import Turn
from coterie.ports.store import HostFacts, Input
from coterie.storage.sql.driver import Driver, Row


def _turn(row: Row) -> Turn:
    values = list(row)
    values[5], values[8], values[11], values[15] = TurnState(row[5]), Mode(row[8]), bool(row[11]), bool(row[15])
    return Turn(*values)


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
            rank=waiting.rank,
            chain_id=waiting.chain_id,
            created_at=waiting.created_at,
            text=waiting.text,
            message_id=waiting.message_id,
        )

    def places(self, session_id: SessionId) -> Places:
        """See the port."""
        row = self._driver.one("places", id=session_id)
        assert row is not None
        return Places(row[0], row[1], row[2], running=bool(row[3]))

    def heads(self, session_id: SessionId) -> tuple[Input | None, Input | None]:
        """See the port."""
        found = [Input(*row) for row in self._driver.all("heads", id=session_id)]
        prompt = next((waiting for waiting in found if waiting.message_id is None), None)
        message = next((waiting for waiting in found if waiting.message_id is not None), None)
        return prompt, message

    def remove(self, input_id: InputId) -> bool:
        """See the port."""
        return self._driver.move("remove_input", id=input_id) == 1

    def remove_message(self, message_id: MessageId) -> bool:
        """See the port."""
        return self._driver.move("remove_input_of_message", message_id=message_id) == 1


class SqlTurns:
    """Implements `ports.store.Turns`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def add(self, turn: Turn) -> bool:
        """See the port."""
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

    def lower_hops(self, turn_id: TurnId, hops: int) -> None:
        """See the port."""
        self._driver.write("lower_hops", id=turn_id, hops=hops)

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

    def settle(self, turn: Turn, event: type) -> bool:
        """See the port."""
        moved = self._driver.move(
            f"settle_turn.{event.__name__}",
            id=turn.id,
            host_id=turn.host_id,
            epoch=turn.epoch,
            ended_at=turn.ended_at,
            result=turn.result,
            truncated=int(turn.truncated),
            error_code=turn.error_code,
            error=turn.error,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
        )
        return moved == 1

    def left_running(self, host: HostFacts) -> tuple[Turn, ...]:
        """See the port."""
        return tuple(_turn(row) for row in self._driver.all("left_running", host_id=host.id, epoch=host.epoch))

    def running_here(self, host: HostFacts) -> tuple[Turn, ...]:
        """See the port."""
        return tuple(_turn(row) for row in self._driver.all("running_here", host_id=host.id, epoch=host.epoch))
