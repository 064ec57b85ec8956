"""Clients, each a process of its own, and what they were told."""

import json
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from tests.host.program import BOUND_S, Host
from tests.kills.books import Answer
from tests.kills.plan import Entry

PAUSE_S: Final = 0.02
"""How long a client waits that was told that a session is busy."""


class Crew:
    """Clients that outlive hosts. Each has one request under way while it is with a host."""

    def __init__(self, plans: list[list[Entry]], processes: list[subprocess.Popen[str]]) -> None:
        self.answers: list[Answer] = []
        """All that they were told, in the order in which that was read."""
        self._plans, self._processes = plans, processes
        self._busy = 0
        self._changed = threading.Condition()

    def meet(self, host: Host, *, last: bool = False) -> None:
        """Send all of them to a host; to the *last* one only with what they have not been answered yet."""
        port = int(host.url.rpartition(":")[2])
        with self._changed:
            self._busy = len(self._processes)
        for process in self._processes:
            _write(process, {"port": port, "token": host.token, "last": last})

    def until_accepted(self, count: int) -> None:
        """Wait until so many requests more have been accepted, or all clients have left."""
        with self._changed:
            wanted = self._accepted() + count
            came = self._changed.wait_for(lambda: not self._busy or self._accepted() >= wanted, BOUND_S)
            assert came, f"the host accepts nothing more; the last answers: {self.answers[-9:]}"

    def left(self) -> None:
        """Wait until all of them have left the host."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._busy, 3 * BOUND_S), "a client does not come to its end"

    def listen(self, number: int) -> None:
        """Take in what one of them says, to its end."""
        out = self._processes[number].stdout
        assert out is not None
        for line in out:
            said: dict[str, Any] = json.loads(line)
            with self._changed:
                if "left" in said:
                    self._busy -= 1
                else:
                    self.answers.append(self._answer(number, said))
                self._changed.notify_all()

    def _answer(self, number: int, said: dict[str, Any]) -> Answer:
        plan, asked = self._plans[number], cast("int", said["n"])
        about = cast("int", plan[asked].get("repeats", asked))
        return Answer(plan[about], said.get("result"), said.get("refused"), repeats=about != asked)

    def _accepted(self) -> int:
        return sum(one.result is not None for one in self.answers)


@contextmanager
def crew(plans: list[list[Entry]]) -> Generator[Crew]:
    """Start a client for each plan; they end with the block."""
    program = Path(__file__).with_name("client.py")
    # Without site-packages a process starts in a third of the time.
    command = [sys.executable, "-I", "-S", str(program)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") for _ in plans
    ]
    clients = Crew(plans, processes)
    with ThreadPoolExecutor(len(plans)) as listeners:
        ears = [listeners.submit(clients.listen, number) for number in range(len(plans))]
        try:
            for process, plan in zip(processes, plans, strict=True):
                _write(process, {"plan": plan, "pauseS": PAUSE_S})
            yield clients
        finally:
            for process in processes:
                process.kill()
        for one in ears:
            one.result()
    for process in processes:
        with process:
            pass


def _write(process: subprocess.Popen[str], what: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(what) + "\n")
    process.stdin.flush()
