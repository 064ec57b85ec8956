"""One client of a host that may die at any moment, as a program of its own.

It performs a plan over a kept connection, one request after the other, and repeats whatever was not answered, with its
key and as it was. It knows the standard library only, so it starts in milliseconds; a bare socket costs the least.

It reads lines of JSON: first its plan, then a host for each time that there is one. It writes a line for each answer.
"""

import json
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

UNKNOWN = frozenset({"STORAGE_ERROR", "STORAGE_UNKNOWN", "HOST_UNAVAILABLE"})
"""Answers after which a request is to be repeated with its key."""
FULL = frozenset({"AGENT_BUSY", "QUEUE_FULL"})
BOUND_S = 60.0


class Line:
    """A connection to a host, with the requests of its person."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), BOUND_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = self._socket.makefile("rb")
        self._head = (
            f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Perform an operation.

        Raises:
            OSError, ValueError: The host is gone before it has answered.
        """
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        self._socket.sendall(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        length = 0
        while (line := self._read.readline()) != b"\r\n":
            if not line:
                raise ConnectionResetError("the answer ended in its head")
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self._read.read(length))

    def close(self) -> None:
        """Hang up."""
        self._read.close()
        self._socket.close()


class Client:
    """A plan, and how far it has come."""

    def __init__(self, plan: list[dict[str, Any]], pause_s: float) -> None:
        self._plan, self._pause_s = plan, pause_s
        self._next = 0
        self._pending = False
        self._accepted: dict[int, dict[str, Any]] = {}

    def talk_to(self, port: int, token: str, *, last: bool) -> None:
        """Go on with the plan until it ends or the host is gone; with the last host only until nothing is pending."""
        try:
            line = Line(port, token)
        except OSError:
            return
        try:
            while self._next < len(self._plan) and (self._pending or not last):
                self._perform(line)
        except (OSError, ValueError):
            return
        finally:
            line.close()

    def _perform(self, line: Line) -> None:
        entry = self._plan[self._next]
        request = self._request(entry)
        if request is not None:
            self._pending = True
            answer = line.ask(*request)
            code = answer["error"]["data"]["errorCode"] if "error" in answer else None
            if code in UNKNOWN:
                time.sleep(self._pause_s)
                return
            if code is None and "repeats" not in entry:
                self._accepted[self._next] = answer["result"]
            say(n=self._next, **({"result": answer["result"]} if code is None else {"refused": code}))
            if code in FULL:
                time.sleep(self._pause_s)
        self._pending = False
        self._next += 1

    def _request(self, entry: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """What to ask for; None if it is about a request that was refused."""
        about: int | None = entry.get("repeats", entry.get("cancels"))
        if about is None:
            return entry["method"], entry["params"]
        if about not in self._accepted:
            return None
        method, params = self._plan[about]["method"], self._plan[about]["params"]
        if "repeats" in entry:
            return method, params
        message_id = self._accepted[about]["messageId"]
        asked = {"sessionId": params["sessionId"], "messageId": message_id, "idempotencyKey": entry["key"]}
        return "collaboration.cancel", asked


def say(**what: Any) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def read() -> Iterator[dict[str, Any]]:
    """Read lines as they come."""
    while line := sys.stdin.readline():
        yield json.loads(line)


if __name__ == "__main__":
    lines = read()
    given = next(lines)
    client = Client(given["plan"], given["pauseS"])
    for host in lines:
        client.talk_to(host["port"], host["token"], last=host["last"])
        say(left=True)
