"""One host to a ledger: a lock that the server keeps for as long as the connection lives.

It keeps a second host from starting by mistake. What keeps a host from writing that was taken for dead is its epoch:
each turn that it begins or ends names it (`lock_host`, `settle_turn`).
"""

from collections.abc import Generator
from contextlib import contextmanager

from coterie.core.errors import HostRunningError
from coterie.storage.postgres.database import connect, explained, shown


@contextmanager
def host_lock(url: str) -> Generator[None]:
    """Own the ledger inside the block.

    Raises:
        HostRunningError: Another host has it.
        StorageError: The server cannot be reached.
    """
    connection = connect(url)
    try:
        with explained(url):
            row = connection.execute(
                "SELECT pg_try_advisory_lock(hashtextextended('coterie host ' || COALESCE(current_schema(), ''), 0))"
            ).fetchone()
        if row is None or not row[0]:
            raise HostRunningError(
                f"Another host has the ledger at {shown(url)}. "
                "Use it, stop it with `coterie down`, or name another database in [store] url."
            )
        yield
    finally:
        connection.close()
