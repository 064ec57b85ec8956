"""The program as a person has it: commands in processes of their own, with no environment but what a test gives."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any, Final, cast
from urllib.parse import urlsplit

from anyio.from_thread import BlockingPortal, start_blocking_portal

from coterie.model_server import ModelServer, parse_script

_BESIDE: Final = 3
BOUND_S: Final = 20.0
"""No wait of a test is longer; a first request to a model imports the vendors' SDKs, which takes seconds."""


class RpcError(Exception):
    """The host answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: str = error["data"]["errorCode"]
        self.data: dict[str, Any] = error["data"]


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON value that it printed."""
        assert self.status == 0, self
        return cast("dict[str, Any]", json.loads(self.out))

    def fault(self, code: str, status: int = 1) -> str:
        """The text of its one line on the error stream; nothing else may have been said."""
        assert self.status == status, self
        assert not self.out, self
        (line,) = self.err.splitlines()
        said, _, text = line.partition(": ")
        assert said == code, self
        return text


@dataclass
class Seat:
    """Where a person sits: a home, a folder to work in, variables."""

    home: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: Path | None = None

    @property
    def data(self) -> Path:
        """The data directory of the commands that name none, on Linux."""
        return self.home / ".local" / "share" / "coterie"

    def environment(self) -> dict[str, str]:
        """All variables of a command: none of the person's who runs the tests, but what measures coverage."""
        around = os.environ  # noqa: TID251 - a process needs its path
        kept = {name: value for name, value in around.items() if name == "PATH" or name.startswith("COVERAGE_")}
        return {**kept, "HOME": str(self.home), **self.variables}

    def run(self, *words: str | Path, stdin: str = "") -> Ended:
        """Run a command to its end."""
        command = [sys.executable, "-m", "coterie", *map(str, words)]
        ended = subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            input=stdin,
            env=self.environment(),
            cwd=self.folder or self.home,
            timeout=2 * BOUND_S,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def run_all(self, *commands: Sequence[str | Path]) -> list[Ended]:
        """Run commands beside each other, which do not touch one another; their ends in the same order."""

        def run(words: Sequence[str | Path]) -> Ended:
            return self.run(*words)

        with ThreadPoolExecutor(_BESIDE) as running:
            return list(running.map(run, commands))

    @contextmanager
    def start(self, *words: str | Path) -> Generator["Process"]:
        """Run a command inside of the block; it is killed behind it if it has not ended."""
        command = [sys.executable, "-m", "coterie", *map(str, words)]
        log = self.home / f"process-{len(list(self.home.glob('process-*')))}.log"
        with (
            log.open("wb") as errors,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.environment(),
                cwd=self.folder or self.home,
            ) as popen,
        ):
            assert popen.stdout is not None
            process = Process(popen, popen.stdout, log)
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def host(self, data: Path, *words: str) -> Generator["Host"]:
        """Run a host on *data* inside of the block, on a port of the system's choice."""
        with self.start("up", "--data", data, "--port", "0", "--no-open", "--json", *words) as process:
            yield Host(process, data, process.said())


@dataclass
class Process:
    """A command that runs."""

    popen: subprocess.Popen[bytes]
    out: IO[bytes]
    log: Path
    _said: bytes = b""

    @property
    def err(self) -> str:
        """What it has said on its error stream."""
        return self.log.read_text("utf-8")

    def line(self) -> str:
        """The next line of its output."""
        while b"\n" not in self._said:
            ready, _, _ = select.select([self.out], [], [], BOUND_S)
            assert ready, f"nothing was said within {BOUND_S} s; on the error stream: {self.err}"
            more = os.read(self.out.fileno(), 65_536)
            assert more, f"it ended; on the error stream: {self.err}"
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    def said(self) -> dict[str, Any]:
        """The next line of its output, as JSON."""
        return cast("dict[str, Any]", json.loads(self.line()))

    def kill(self) -> None:
        """End it as a power cut would."""
        self.popen.kill()
        self.popen.wait(BOUND_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and return its exit status."""
        self.popen.send_signal(number)
        return self.popen.wait(BOUND_S)


@dataclass
class Host:
    """A host that runs."""

    process: Process
    data: Path
    about: dict[str, Any]
    """What it said when it began to answer."""

    @property
    def url(self) -> str:
        """Where it answers."""
        return cast("str", self.about["url"])

    @property
    def token(self) -> str:
        """The person's token."""
        return (self.data / "token").read_text("utf-8")

    def connect(self) -> HTTPConnection:
        """Open a connection."""
        return HTTPConnection(urlsplit(self.url).netloc, timeout=3 * BOUND_S)

    def headers(self) -> dict[str, str]:
        """The headers of a person's request."""
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def ask(self, operation: str, **params: Any) -> dict[str, Any]:
        """Perform an operation through `POST /rpc`.

        Raises:
            RpcError: The host refused.
            OSError, HTTPException: It is gone.
        """
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": operation, "params": params})
        connection = self.connect()
        try:
            connection.request("POST", "/rpc", body, self.headers())
            answer = cast("dict[str, Any]", json.loads(connection.getresponse().read()))
        finally:
            connection.close()
        if "error" in answer:
            raise RpcError(cast("dict[str, Any]", answer["error"]))
        return cast("dict[str, Any]", answer["result"])

    def session(self, title: str) -> str:
        """Create a session and return its id."""
        return cast("str", self.ask("session.create", title=title)["session"]["id"])

    def send(self, source: str, target: str, content: str, **params: Any) -> dict[str, Any]:
        """Send a task, unless *params* say otherwise, and return the receipt."""
        given = {"kind": "task", "asSessionId": source, "sessionId": target, "content": content, **params}
        return self.ask("collaboration.send", **given)

    def settled(self, message_ids: list[str]) -> list[dict[str, Any]]:
        """Wait until all of them have settled, and return their states."""
        found = list[dict[str, Any]]()
        for first in range(0, len(message_ids), 64):
            some = message_ids[first : first + 64]
            waited = self.ask("collaboration.wait", messageIds=some, timeoutMs=int(BOUND_S * 1000))
            assert not waited["timedOut"], waited
            found += waited["messages"]
        return found

    def states(self, message_ids: list[str]) -> list[str]:
        """The states of messages as they are now."""
        found = list[str]()
        for first in range(0, len(message_ids), 64):
            some = message_ids[first : first + 64]
            waited = self.ask("collaboration.wait", messageIds=some, timeoutMs=0)
            found += [one["status"] for one in waited["messages"]]
        return found

    def idle(self, *session_ids: str) -> None:
        """Wait until none of them runs or has anything in its queue."""
        for session_id in session_ids:
            waited = self.ask("collaboration.wait", sessionId=session_id, until="idle", timeoutMs=int(BOUND_S * 1000))
            assert not waited["timedOut"], self.ask("collaboration.status", sessionId=session_id)

    def chain(self, message_id: str) -> list[dict[str, Any]]:
        """The messages of a chain."""
        return cast("list[dict[str, Any]]", self.ask("collaboration.chain", messageId=message_id)["messages"])

    def completion(self, message_id: str) -> dict[str, Any]:
        """The one completion of a message."""
        (found,) = [one for one in self.chain(message_id) if one.get("replyToMessageId") == message_id]
        return found

    def delivered(self, session_id: str) -> list[tuple[str, str]]:
        """Content and message of all that has come to a session from others, in its order."""
        items = self.ask("session.items", sessionId=session_id, limit=512)["items"]
        return [(one["text"], one["origin"]["messageId"]) for one in items if one["kind"] == "session"]


@dataclass
class Models:
    """A scripted model server in this process, so that its requests can be counted."""

    server: ModelServer
    portal: BlockingPortal

    @property
    def asked(self) -> int:
        """How many requests there were."""
        return len(self.server.requests)

    def until(self, holds: Callable[[ModelServer], bool]) -> None:
        """Wait until it holds of the server."""
        ended = self.portal.start_task_soon(self.server.until, holds)
        ended.result(BOUND_S)

    def configure(self, data: Path, more: str = "") -> None:
        """Make it the model of a data directory, by a hand-written file."""
        data.mkdir(parents=True, exist_ok=True)
        model = f'[[models]]\nkey = "local/script"\napi = "openai-chat"\nbase_url = "{self.server.url}/v1"\n'
        (data / "config.toml").write_text(more + model, "utf-8")


@contextmanager
def scripted(rules: str) -> Generator[Models]:
    """Serve a script on a thread of this process."""
    with start_blocking_portal() as portal:
        server = portal.call(_server, rules)
        with portal.wrap_async_context_manager(server):
            yield Models(server, portal)


async def _server(rules: str) -> ModelServer:
    return ModelServer(parse_script(rules))
