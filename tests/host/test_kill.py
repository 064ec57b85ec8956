"""A host that is killed where it stands, and what the next start makes of what it finds."""

import random
import signal
import threading
from collections import Counter
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.guarantees import guarantee
from tests.host.program import Host, Models, RpcError, Seat, scripted

HANG: Final = "never answer this"
SCRIPT: Final = f"""
rules:
  - when: {{user: "(?s){HANG}"}}
    reply: {{hang: true}}
  - reply: {{text: "All is well.", first_delay_ms: 20}}
"""
TURNS_MAX: Final = 8
"""The default of the limit."""
ROUNDS: Final = 3
SEED: Final = 20261


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory, not made yet."""
    return tmp_path / "data"


@pytest.fixture
def models(data: Path) -> Generator[Models]:
    """A model that answers, or never does; it outlives the hosts of a test."""
    with scripted(SCRIPT) as models:
        models.configure(data)
        yield models


def sound(seat: Seat, data: Path) -> None:
    """What the rows of the ledger can show, they show, beside a host and without one."""
    told = seat.run("verify", "--data", data, "--json").json
    assert told["ok"], told
    assert told["checked"] > 10


def released(seat: Seat, data: Path) -> int:
    """Release all that is held, as a person does."""
    return cast("int", seat.run("release", "--data", data, "--json").json["released"])


@guarantee("I7")
@guarantee("I9")
@guarantee("I14")
def test_a_killed_host_starts_again_with_all_held_and_goes_on_when_a_person_says_so(
    seat: Seat, models: Models, data: Path
) -> None:
    """One turn is cut off, two messages wait: the first is told as interrupted, the others run once, later."""
    with seat.host(data) as host:
        lead, worker, other = (host.session(title) for title in ("lead", "worker", "other"))
        sent = [
            host.send(lead, worker, content, idempotencyKey=content) for content in (HANG, "the second", "the third")
        ]
        assert [one["status"] for one in sent] == ["running", "queued", "queued"]
        models.until(lambda server: server.answering == 1)
        host.process.kill()
    first, *waiting = ids = [cast("str", one["messageId"]) for one in sent]

    with seat.host(data) as host:
        assert (host.about["interrupted"], host.about["held"]) == (1, 2)
        # A turn that somebody asks for shows that this host does run turns, and so could have run the others.
        host.ask("session.prompt", sessionId=other, text="Do you hear me?")
        host.idle(other)
        assert models.asked == 2
        assert host.states(ids) == ["interrupted", "queued", "queued"]
        completion = host.completion(first)
        assert (completion["targetSessionId"], completion["status"]) == (lead, "queued")
        held = {one["id"]: one.get("held") for one in host.ask("session.list")["sessions"]}
        assert held == {lead: "restart", worker: "restart", other: None}
        again = host.send(lead, worker, "the second", idempotencyKey="the second")
        assert (again["messageId"], again["status"], again["replayed"]) == (waiting[0], "queued", True)
        sound(seat, data)

        assert released(seat, data) == 2
        assert {one["status"] for one in host.settled(waiting)} == {"completed"}
        host.idle(lead, worker)
        assert host.delivered(worker) == list(zip((HANG, "the second", "the third"), ids, strict=True))
        completions = [host.completion(one) for one in ids]
        assert {one["status"] for one in completions} == {"completed"}
        assert Counter(host.delivered(lead)) == Counter((one["content"], one["id"]) for one in completions)
        assert host.ask("session.release")["released"] == 0
        assert host.process.stop(signal.SIGINT) == 0
        assert not host.process.err
    sound(seat, data)


@guarantee("I9")
def test_of_a_hundred_messages_a_crash_interrupts_what_ran_and_holds_the_rest(
    seat: Seat, models: Models, data: Path
) -> None:
    """A message that got no slot is not bound to a turn, so a crash has nothing of it to interrupt."""
    with seat.host(data) as host:
        source = host.session("source")
        with ThreadPoolExecutor(TURNS_MAX) as clients:
            targets = list(clients.map(host.session, (f"target {number}" for number in range(100))))
            receipts = list(clients.map(partial(host.send, source, content=HANG, kind="message"), targets))
        models.until(lambda server: server.answering == TURNS_MAX)
        host.process.kill()
    ids = [one["messageId"] for one in receipts]

    with seat.host(data) as host:
        states = dict(zip(targets, host.states(ids), strict=True))
        counted = Counter(states.values())
        assert set(counted) == {"interrupted", "queued"}
        assert 1 <= counted["interrupted"] <= TURNS_MAX
        assert host.about["interrupted"] == counted["interrupted"]
        listed = cast("list[dict[str, Any]]", host.ask("session.list", limit=100)["sessions"])
        held = {one["id"] for one in listed if one.get("held") == "restart"}
        assert held == {one["id"] for one in listed if states.get(one["id"]) == "queued"}
        assert host.about["held"] == counted["queued"]
        assert models.asked == TURNS_MAX
        sound(seat, data)


@guarantee("I9")
def test_a_host_that_is_asked_to_end_leaves_nothing_behind(seat: Seat, models: Models, data: Path) -> None:
    """A stop is in order even while a turn runs; that turn is told as interrupted, and the directory is free."""
    with seat.host(data) as host:
        lead, worker = host.session("lead"), host.session("worker")
        sent = host.send(lead, worker, HANG)
        models.until(lambda server: server.answering == 1)
        assert host.process.stop(signal.SIGTERM) == 0
        assert not host.process.err
    assert not (data / "host.json").exists()
    assert not (data / "coterie.db-wal").exists()
    sound(seat, data)
    with seat.host(data) as host:
        assert host.states([sent["messageId"]]) == ["interrupted"]
        assert host.completion(sent["messageId"])["status"] == "queued"


@dataclass
class Load:
    """Clients that send tasks, each with its key, until the host is gone."""

    sources: list[str]
    targets: list[str]
    name: str
    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    """Message by content, which is the key too."""
    unanswered: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Source and target by content, of what was sent and not answered."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def send(self, host: Host, client: int) -> None:
        """Send until the host is gone; a refusal leaves nothing, so its key is not used again."""
        choose = random.Random(f"{self.name} {client}")
        for number in range(10_000):
            content = f"{self.name}-{client}-{number}"
            source, target = choose.choice(self.sources), choose.choice(self.targets)
            try:
                receipt = host.send(source, target, content, idempotencyKey=content)
            except RpcError as refused:
                assert refused.code == "AGENT_BUSY", refused  # noqa: PT017 - in a thread of many, all others are faults
                continue
            except (OSError, HTTPException, ValueError):
                self.unanswered[content] = source, target
                return
            with self._changed:
                self.acknowledged[content] = receipt["messageId"]
                self._changed.notify_all()

    def until(self, count: int) -> None:
        """Wait until so many messages have been acknowledged."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.acknowledged) >= count, 20)

    def repeat(self, host: Host) -> None:
        """Ask again, with its key, for what nobody knows."""
        for content, (source, target) in self.unanswered.items():
            try:
                self.acknowledged[content] = host.send(source, target, content, idempotencyKey=content)["messageId"]
            except RpcError as refused:
                assert refused.code == "AGENT_BUSY", refused  # noqa: PT017


@contextmanager
def under_load(host: Host, load: Load) -> Generator[None]:
    """Send from four clients, which end when the host does."""
    with ThreadPoolExecutor(4) as clients:
        running = [clients.submit(load.send, host, client) for client in range(4)]
        try:
            yield
        finally:
            host.process.kill()
        for one in running:
            one.result()


def once_each(contents: Iterable[str]) -> set[str]:
    """What is there, and nothing of it twice."""
    counted = Counter(contents)
    assert set(counted.values()) <= {1}, counted
    return set(counted)


@guarantee("I2")
@guarantee("I4")
@guarantee("I7")
@guarantee("I9")
@guarantee("I14")
def test_whatever_was_acknowledged_before_a_crash_is_done_once_and_answered_once(
    seat: Seat, models: Models, data: Path
) -> None:
    """Killed three times under load, at moments that no step of the host knows."""
    moments = random.Random(SEED)
    load: Load | None = None
    for round_number in range(ROUNDS + 1):
        with seat.host(data) as host:
            if load is None:
                # The first turn waits for the vendors' SDKs; a crash is worth more while turns begin and end.
                host.ask("session.prompt", sessionId=host.session("first"), text="Do you hear me?")
                models.until(lambda server: len(server.requests) == 1)
            else:
                settle(host, load)
            if round_number < ROUNDS:
                sources, targets = (
                    [host.session(f"{what} {one}") for one in range(4)] for what in ("source", "target")
                )
                load = Load(sources, targets, f"seed-{SEED}-round-{round_number}")
                with under_load(host, load):
                    load.until(moments.randrange(10, 60))
    sound(seat, data)


def settle(host: Host, load: Load) -> None:
    """Hold the ledger against what clients were told, before the release and after."""
    load.repeat(host)
    ids = list(load.acknowledged.values())
    assert len(set(ids)) == len(ids)
    before = dict(zip(ids, host.states(ids), strict=True))
    assert host.ask("ledger.verify")["ok"]
    host.ask("session.release")
    after = {one["id"]: one["status"] for one in host.settled(ids)}
    assert {after[one] for one in ids if before[one] == "queued"} <= {"completed"}
    assert all(after[one] == before[one] for one in ids if before[one] in {"completed", "interrupted"})
    host.idle(*load.sources, *load.targets)

    delivered = [one for target in load.targets for one in host.delivered(target)]
    assert once_each(message_id for _, message_id in delivered) == set(ids)
    assert once_each(content for content, _ in delivered) == set(load.acknowledged)
    completions = {one: host.completion(one) for one in ids}
    assert {one["status"] for one in completions.values()} <= {"completed", "interrupted"}
    answered = [message_id for source in load.sources for _, message_id in host.delivered(source)]
    assert once_each(answered) == {one["id"] for one in completions.values()}
    assert host.ask("ledger.verify")["ok"]
