"""The program in process, a real host behind a real port, and a stub of the wire for what no host does on purpose."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.interfaces.conftest import TOKEN, Door, Host
from typer.testing import CliRunner, Result

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import TurnId
from coterie.core.turn.items import Reply
from coterie.interfaces.cli.app import build
from coterie.ports.feed import Delta

BOUND_S: Final = 10
EPOCH: Final = 1
BREAK: Final = b"break"
"""What a stub answers to close the connection without an answer."""
SESSION: Final = f"ses_{'0' * 32}"
MESSAGE: Final = f"msg_{'0' * 32}"
PROGRAM: Final = """
import sys
from pathlib import Path
from coterie.interfaces.cli.app import build
class Here:
    working_directory, variables = Path.cwd(), {}
    def data_directory(self, explicit): return explicit
    def start_host(self, data): raise AssertionError
build(Here())()
"""


@dataclass
class Surroundings:
    """Implements `interfaces.cli.environment.Environment`."""

    home: Path
    working_directory: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    started: list[Path] = field(default_factory=list[Path])
    start: Callable[[Path], object] = lambda _: None
    fault: Exception | None = None

    def data_directory(self, explicit: Path | None) -> Path:
        """See the protocol."""
        if self.fault is not None:
            raise self.fault
        return explicit or self.home

    def start_host(self, data: Path) -> None:
        """See the protocol."""
        self.started.append(data)
        self.start(data)


@dataclass
class Line:
    """A command line."""

    surroundings: Surroundings

    def __call__(self, *words: str, stdin: str | None = None) -> Result:
        """Run a command and return its streams and status."""
        return CliRunner().invoke(build(self.surroundings), list(words), prog_name="coterie", input=stdin)

    async def beside(self, *words: str, stdin: str | None = None) -> Result:
        """Run a command while this loop serves the host."""
        return await asyncio.wait_for(asyncio.to_thread(self, *words, stdin=stdin), BOUND_S)

    async def json(self, *words: str) -> dict[str, Any]:
        """Run a command that has to succeed, and decode what it printed."""
        found = await self.beside(*words, "--json")
        assert (found.exit_code, found.stderr) == (0, ""), found.output
        return cast("dict[str, Any]", json.loads(found.stdout))


def write_host(data: Path, url: str, *, pid: int | None = None, token: str = TOKEN, interrupted: int = 0) -> None:
    """Write what a running host writes."""
    data.mkdir(exist_ok=True)
    about = {"url": url, "pid": os.getpid() if pid is None else pid, "hostId": "hst_one", "epoch": EPOCH}
    about |= {"interrupted": interrupted} if interrupted else {}
    (data / "host.json").write_text(json.dumps(about), "utf-8")
    (data / "token").write_text(f"{token}\n", "utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory."""
    made = tmp_path / "data"
    made.mkdir()
    return made


@pytest.fixture
def line(tmp_path: Path, data: Path) -> Line:
    """The program, with its own data directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Line(Surroundings(data, folder))


@dataclass
class Live:
    """A host that answers, and the hand that plays its models."""

    host: Host
    line: Line

    async def reply(self, turn_id: str, text: str, *, code: Code | None = None) -> None:
        """Write a reply piece by piece, then end its turn."""
        turn = await self.host.parts.store.read(lambda tx, id_: tx.turns.get(id_), TurnId(turn_id))
        assert turn is not None
        for word in text.split():
            self.host.feed.publish(Delta(turn.session_id, turn_id, f"{word} "))
        items = (Reply(f"{text} "),) if text else ()
        end = SettleTurn(TurnId(turn_id), items, code=code, message="The vendor refused the key." if code else "")
        await self.host.parts.store.run(settle_turn, end)

    async def answer_next(self, text: str, *, code: Code | None = None) -> None:
        """Wait for the next turn and answer it."""
        known = len(self.host.slots.handed_over)
        with self.host.feed.listen(None) as listener:
            while len(self.host.slots.handed_over) == known:
                assert await listener.wait(BOUND_S)
        await self.reply(self.host.slots.handed_over[-1], text, code=code)


@pytest.fixture
async def live(host: Host, served: Door, line: Line, data: Path) -> Live:
    """A host on the data directory of the program."""
    write_host(data, str(served.client.base_url))
    return Live(host, line)


@dataclass
class Stub:
    """A double of the wire: answers what a test says, and remembers what it was asked."""

    url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])
    streams: list[str] = field(default_factory=list[str])
    """The paths of the streams that were opened."""
    answers: list[bytes] = field(default_factory=list[bytes])
    """Bodies, or `BREAK`, in order; the last one repeats."""
    status: int = 200
    events: list[bytes] = field(default_factory=list[bytes])
    """What each stream sends before it ends."""
    lasting: threading.Event = field(default_factory=threading.Event)
    """Set when streams beyond `events` may end."""

    def says(self, *results: Mapping[str, Any] | bytes) -> None:
        """Answer with these results."""
        self.answers = [one if isinstance(one, bytes) else _result(one) for one in results]


def _result(result: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def failure(code: str, message: str, **data: Any) -> bytes:
    """An error of JSON-RPC."""
    error = {"code": -32000, "message": message, "data": {"errorCode": code, "retryable": False, **data}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()


def change(number: int) -> bytes:
    """An event as the host sends it."""
    data = {"sessionId": SESSION, "revision": number, "kind": "turn", "ref": f"turn_{number}", "at": "now"}
    return f"event: change\nid: {number}\ndata: {json.dumps(data)}\n\n".encode()


@contextmanager
def running_program(*words: str) -> Generator[subprocess.Popen[str]]:
    """The program in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        yield running


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the standard library's
            pass

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.calls.append((asked["method"], asked["params"]))
            body = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
            if body == BREAK:
                self.close_connection = True
                return
            self.send_response(stub.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            stub.streams.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if stub.events:
                self.wfile.write(stub.events.pop(0))
            else:
                stub.lasting.wait(BOUND_S)

    return Handler


@pytest.fixture
def stub(data: Path) -> Iterator[Stub]:
    """A stub on the data directory of the program."""
    made = Stub()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(made)) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        write_host(data, made.url)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.lasting.set()
        server.shutdown()
        thread.join(BOUND_S)
