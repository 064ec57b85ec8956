"""The gate before everything that the server has: Host, Origin, then the token.

Another web page that a person has open can reach a loopback port. Its requests carry its own name in Host (after it has
pointed that name here) or in Origin, and can never carry the token.
"""

import hmac
from collections.abc import Callable, Iterable
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from coterie.core.errors import ForbiddenHostError, ForbiddenOriginError, HostError, UnauthenticatedError
from coterie.interfaces.http.answers import refusal
from coterie.interfaces.wire.errors import fault_of

_READS_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CHALLENGE: Final = {"www-authenticate": 'Bearer realm="coterie"'}
_POLICY_VIOLATION: Final = 1008


class Gate:
    """An ASGI app that lets pass what the host may answer.

    Args:
        app: What stands behind the gate.
        hosts: The names of this host, with port, as clients write them in `Host`; asked at each request.
        token: The owner's bearer token.
        open_paths: Paths that need no token.
    """

    def __init__(
        self, app: ASGIApp, hosts: Callable[[], frozenset[str]], token: str, *, open_paths: frozenset[str]
    ) -> None:
        self._app, self._hosts, self._open_paths = app, hosts, open_paths
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on; a fault behind the gate ends this request only."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        fault = self._fault(scope)
        if fault is not None:
            headers = _CHALLENGE if isinstance(fault, UnauthenticatedError) else None
            await refusal(fault, headers=headers)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - a server's edge: one bad request must not end the others
            fault_of(error)

    def _fault(self, scope: Scope) -> HostError | None:
        headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        hosts = self._hosts()
        named = _all(headers, b"host")
        if len(named) != 1 or named[0].decode("latin-1").lower() not in hosts:
            return ForbiddenHostError(f"This host answers to {', '.join(sorted(hosts))} only.")
        origins = {f"http://{host}" for host in hosts}
        if scope["method"] not in _READS_ONLY and any(
            origin.decode("latin-1").lower() not in origins for origin in _all(headers, b"origin")
        ):
            return ForbiddenOriginError("Pages of other origins may not change anything here.")
        if scope["path"] in self._open_paths or self._knows(_all(headers, b"authorization")):
            return None
        return UnauthenticatedError("Send the header `Authorization: Bearer …` with the token of the data directory.")

    def _knows(self, credentials: list[bytes]) -> bool:
        if len(credentials) != 1:
            return False
        scheme, _, token = credentials[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def _all(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]
