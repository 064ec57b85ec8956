"""The stream of changes: a snapshot of none, from a cursor, without gaps."""

from collections.abc import AsyncGenerator

from coterie.app import describe
from coterie.core.ids import SessionId
from coterie.operations.act import HostParts
from coterie.ports.feed import Delta
from coterie.ports.rows import Change

BATCH = 200


async def newest(host: HostParts, session_id: str | None) -> int:
    """The position after which only new changes come."""
    return await host.store.read(describe.newest_change, SessionId(session_id) if session_id else None, brief=True)


async def changes(
    host: HostParts, session_id: str | None, after: int, *, beat_s: float
) -> AsyncGenerator[Change | Delta | None]:
    """Yield changes after a position, and live text, as they come; None when nothing came for *beat_s*.

    Args:
        host: The parts of the host.
        session_id: One session's own stream, positions are its revisions; None is the stream over all.
        after: The last position that the reader has.
        beat_s: Seconds of silence after which None is yielded.

    Raises:
        NotFoundError: There is no such session.
    """
    one = SessionId(session_id) if session_id else None
    if one is not None:
        await host.store.read(describe.session, one)
    with host.feed.listen(None if one is None else [one]) as listener:
        while True:
            while found := await host.store.read(describe.changes, describe.Page(after, BATCH, one)):
                for change in found:
                    yield change
                after = found[-1].number if one is None else found[-1].revision
            for delta in listener.deltas():
                yield delta
            if not await listener.wait(beat_s):
                yield None
