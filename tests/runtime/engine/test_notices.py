"""A person who is not looking is told what happens: by a real command, and over real HTTP."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from tests.runtime.engine.conftest import BOUND_S, SetStage, Stage
from tests.runtime.engine.test_approvals import WRITE, answer, script
from tests.runtime.engine.test_chains import SPEND

from coterie.core.notice import GAP_S, Notify, Sort
from coterie.core.turn.states import TurnState
from coterie.runtime.notices.posting import CommandPost, Surroundings, UndeliveredError, UrlPost
from coterie.runtime.notices.watching import WAITING_MAX, Notices

DONE: Final = "- {reply: {text: the secret answer}}\n"
PATH: Final = {"PATH": os.defpath}


@dataclass
class Receiver:
    """A server that notes what is posted to it."""

    url: str = ""
    status: str = "204 No Content"
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """It answers while this is set."""
    heads: list[str] = field(default_factory=list[str])
    posted: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue[dict[str, Any]])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take requests until the client leaves."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(line for line in head.lower().splitlines() if line.startswith("content-length:"))
                self.heads.append(head)
                self.posted.put_nowait(json.loads(await reader.readexactly(int(length.partition(":")[2]))))
                await self.open.wait()
                writer.write(
                    f"HTTP/1.1 {self.status}\r\nLocation: {self.url}/else\r\nContent-Length: 0\r\n\r\n".encode()
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def next(self) -> dict[str, Any]:
        """The next notice."""
        async with asyncio.timeout(BOUND_S):
            return await self.posted.get()


@asynccontextmanager
async def receiving() -> AsyncGenerator[Receiver]:
    """A receiver on a real port."""
    receiver = Receiver()
    receiver.open.set()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a-secret-path"
    try:
        yield receiver
    finally:
        server.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A server that takes notices."""
    async with receiving() as made:
        yield made


async def _tells(host: Stage, *whom: Notify, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Have a host that tells *whom*."""
    shell = {**host.settings.shell_environment, **environment}
    host.settings = replace(host.settings, notify=whom, shell_environment=shell)
    await host.restart()


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


async def _read(pipe: Path) -> str:
    """What one command writes, once it has ended."""
    async with asyncio.timeout(BOUND_S):
        return await asyncio.to_thread(pipe.read_text)


async def test_a_command_is_told_on_its_input_and_sees_no_secret(stage: SetStage) -> None:
    """What happened, and no word of it; no shell reads its arguments, and its environment is that of tools."""
    host = await stage(DONE)
    pipe = _pipe(host.settings.data_dir)
    line = ("sh", "-c", 'cat; echo; echo "$1"; pwd; env; exec 1>&-', "sh", "$(a) 'b' *")
    writing = ("sh", "-c", '"$@" > pipe', "sh", *line)
    secrets = {"OPENAI_API_KEY": "hidden", "COTERIE_TOKEN": "hidden", "DISPLAY": ":7"}
    await _tells(host, Notify(command=writing), environment=secrets)
    session = await host.session()
    turn_id = await host.prompt(session, "a secret question")

    told, argument, folder, *environment = (await _read(pipe)).splitlines()
    notice = json.loads(told)
    at = notice.pop("at")
    assert at.startswith("2023-11-14T")
    assert notice == {
        "event": "finished",
        "sessionId": session,
        "turnId": turn_id,
        "kind": "prompt",
        "status": "completed",
    }
    assert argument == "$(a) 'b' *"
    assert folder == str(host.settings.data_dir)
    assert "DISPLAY=:7" in environment
    assert "hidden" not in str(environment)


async def test_an_address_is_told_of_each_sort_that_it_wants(stage: SetStage, receiver: Receiver) -> None:
    """With words where the person asked for them; the path of an address is part of no log."""
    host = await stage("- {when: {user: bad}, reply: {error: {status: 400, message: bad luck}}}\n", script(WRITE))
    async with receiving() as other:
        await _tells(host, Notify(url=receiver.url, text=True), Notify(url=other.url, sorts=frozenset({Sort.FAILED})))
        session = await host.session(folder=True)
        await host.ask("session.rename", sessionId=session, title="mine")
        await host.prompt(session, "go")
        asked = await receiver.next()
        await answer(host, "once")
        finished = await receiver.next()
        await host.prompt(session, "bad")
        failed, plain = await receiver.next(), await other.next()

    assert asked["event"] == "approval"
    assert (asked["tool"], asked["risk"], asked["title"], asked["subject"]) == ("write", "edit", "mine", "a.txt")
    assert "+new" in asked["shown"]
    assert (finished["event"], finished["result"]) == ("finished", "Made a.txt, 3 bytes.")
    assert (failed["event"], failed["status"], failed["errorCode"]) == ("failed", "failed", "PROVIDER_ERROR")
    assert "answered HTTP 400: bad luck" in failed["error"]
    assert plain == {name: failed[name] for name in plain}
    assert set(failed) - set(plain) == {"title", "error"}
    assert "content-type: application/json" in receiver.heads[0].lower()
    assert receiver.heads[0].startswith("POST /a-secret-path HTTP/1.1")


async def test_work_that_waits_for_its_budget_is_told(stage: SetStage, receiver: Receiver) -> None:
    """It would wait for ever; the other task of the chain may have run before that."""
    host = await stage(SPEND, chain_tokens_max=900_000)
    await _tells(host, Notify(url=receiver.url, sorts=frozenset({Sort.BUDGET})))
    lead, worker = await host.session("lead"), await host.session("worker")
    await host.prompt(lead, f"go to {worker}")

    notice = await receiver.next()
    message = (await host.ask("collaboration.message", messageId=notice["messageId"]))["message"]
    assert (notice["event"], notice["sessionId"]) == ("budget", message["targetSessionId"])
    assert "title" not in notice


async def test_what_a_session_holds_back_and_what_a_restart_holds_is_told(stage: SetStage, receiver: Receiver) -> None:
    """Both wait for a release; a turn that the stop has ended is told too, though it was before the start."""
    send = "{tool: session_task, arguments: {action: send, sessionId: '${worker}', message: more, kind: task}}"
    host = await stage(
        f"""
        - when: {{model: lead, last: user}}
          capture: {{worker: {{from: user, pattern: 'with (ses_\\w+)'}}}}
          reply: {{calls: [{send}]}}
        - {{when: {{user: hang}}, reply: {{hang: true}}}}
        """,
        DONE,
    )
    await _tells(host, Notify(url=receiver.url, sorts=frozenset({Sort.HELD, Sort.FAILED})))
    lead, worker = await host.session("lead"), await host.session("worker")
    await host.ask("session.configure", sessionId=worker, inbound="hold")
    await host.prompt(lead, f"work with {worker}")
    held_back = await receiver.next()
    await host.idle(lead)
    busy = await host.session("other")
    await host.prompt(busy, "hang")
    await host.prompt_later(busy, "later")
    await host.restart()
    found = [await receiver.next() for _ in range(3)]

    assert (held_back["event"], held_back["sessionId"]) == ("held", worker)
    assert held_back["messageId"] == (await host.exchanges(worker))[0]["messageId"]
    assert sorted((one["event"], one["sessionId"]) for one in found) == sorted(
        [("held", busy), ("held", worker), ("failed", busy)]
    )


async def test_a_message_across_projects_asks_where_the_person_is(stage: SetStage, receiver: Receiver) -> None:
    """Nothing of it starts before they have answered."""
    host = await stage(
        """
        - when: {model: lead, last: user}
          capture: {worker: {from: user, pattern: 'with (ses_\\w+)'}}
          reply: {calls: [{tool: session_task, arguments: {action: send, sessionId: "${worker}", message: more}}]}
        """,
        DONE,
    )
    await _tells(host, Notify(url=receiver.url, sorts=frozenset({Sort.APPROVAL})))
    lead, worker = await host.session("lead", mode="auto", folder=True), await host.session("worker")
    await host.prompt(lead, f"work with {worker}")

    notice = await receiver.next()
    (asked,) = (await host.ask("permissions.pending"))["requests"]
    assert notice.pop("at")
    assert notice == {
        "event": "approval",
        "sessionId": worker,
        "requestId": asked["requestId"],
        "sourceSessionId": lead,
    }


async def test_more_than_one_in_a_few_seconds_is_counted_in_the_next(stage: SetStage, receiver: Receiver) -> None:
    """A session that goes round and round must not ring a telephone at each turn; another one is told of."""
    host = await stage(DONE)
    await _tells(host, Notify(url=receiver.url))
    session, other = await host.session(), await host.session()
    for one in (session, session, session, other):
        await host.prompt(one, "go")
        await host.idle(one)
    first, second = await receiver.next(), await receiver.next()
    host.clock.advance(GAP_S)
    await host.prompt(session, "go")
    third = await receiver.next()

    assert (first["sessionId"], "dropped" in first) == (session, False)
    assert (second["sessionId"], second["dropped"]) == (other, 2)
    assert (third["sessionId"], "dropped" in third) == (session, False)
    assert receiver.posted.empty()


@dataclass
class Way:
    """A way out that notes what it is given."""

    given: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue[dict[str, Any]])
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """It takes its time until this is set."""

    async def deliver(self, body: bytes) -> None:
        """Take one."""
        self.given.put_nowait(json.loads(body))
        await self.open.wait()

    async def close(self) -> None:
        """Nothing is held."""

    async def next(self) -> dict[str, Any]:
        """The next notice."""
        async with asyncio.timeout(BOUND_S):
            return await self.given.get()


async def test_a_way_out_that_does_not_answer_holds_up_nobody(stage: SetStage) -> None:
    """Turns end as ever, another way out is told, and what had no room is counted."""
    host = await stage(DONE)
    slow, other = Way(), Way()
    other.open.set()
    ways = [(Notify(), slow), (Notify(), other)]
    engine = host.engine

    async def ended() -> str:
        session = await host.session()
        await host.prompt(session, "go")
        assert (await host.ended(session)).state is TurnState.COMPLETED
        assert (await other.next())["sessionId"] == session
        return session

    async with Notices(engine.store, engine.operations.host.feed, host.clock, ways).running(0):
        first = await ended()
        assert (await slow.next())["sessionId"] == first
        waiting = [await ended() for _ in range(WAITING_MAX + 2)][:WAITING_MAX]
        slow.open.set()
        waited = [await slow.next() for _ in waiting]
        last = await ended()
        following = await slow.next()

    assert [(one["sessionId"], one.get("dropped")) for one in waited] == [(one, None) for one in waiting]
    assert (following["sessionId"], following["dropped"]) == (last, 2)


async def test_what_is_broken_is_logged_once_until_it_works_again(
    stage: SetStage, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that fills with it would hide the rest; and nothing of it reaches a turn."""
    host = await stage("- {reply: {text: '${user}'}}\n")
    pipe = _pipe(host.settings.data_dir)
    told = 'read -r it; echo "$it" > pipe; echo too bad; case "$it" in *works*) exit 0;; *) exit 1;; esac'
    await _tells(host, Notify(command=("sh", "-c", told), text=True))
    session, counts = await host.session(), list[int | None]()
    with caplog.at_level(logging.WARNING, "coterie.runtime.notices"):
        for text in ("no", "no", "it works", "no", "no"):
            await host.prompt(session, text)
            counts.append(json.loads(await _read(pipe)).get("dropped"))
            assert (await host.ended(session)).state is TurnState.COMPLETED
            host.clock.advance(GAP_S)

    assert counts == [None, 1, 2, None, 1]
    told = "a notice was not delivered: sh ended with status 1: too bad; further ones are lost in silence"
    assert [one.getMessage() for one in caplog.records] == [told, told]


async def test_a_host_that_tells_nobody_reads_nothing_for_it(stage: SetStage) -> None:
    """Who has not asked for notices pays nothing."""
    host = await stage(DONE)
    session = await host.session()
    await host.prompt(session, "go")
    await host.idle(session)
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    assert not [name for name in names if "Notices" in name]


async def test_a_command_that_hangs_or_is_not_there_is_told(tmp_path: Path) -> None:
    """With its whole group, so that nothing of it is left."""
    surroundings = Surroundings(tmp_path, PATH, tmp_path / "commands", timeout_s=0.2)
    for line, why in (
        (("sh", "-c", "sleep 60 & sleep 60"), "sh was ended, for it took more than 0.2 s"),
        (("no-such-program",), "no-such-program could not be run: No such file or directory"),
    ):
        with pytest.raises(UndeliveredError, match=why):
            await CommandPost(line, surroundings).deliver(b"{}")
    assert list((tmp_path / "commands").glob("*")) == []


async def test_an_address_that_hangs_refuses_or_is_gone_is_told_without_its_path(receiver: Receiver) -> None:
    """Whoever reads the log must not be able to write to the person; and nobody is followed elsewhere."""
    post = UrlPost(receiver.url, timeout_s=0.2)
    for status, why in (("500 Broken", "127.0.0.1 answered HTTP 500"), ("302 Found", "127.0.0.1 answered HTTP 302")):
        receiver.status = status
        with pytest.raises(UndeliveredError, match=f"^{why}$"):
            await post.deliver(b"{}")
    receiver.open.clear()
    with pytest.raises(UndeliveredError, match=r"^127.0.0.1 cannot be reached \(\w+\)$"):
        await post.deliver(b"{}")
    await post.close()
    gone = UrlPost("http://127.0.0.1:9/a-secret-path", timeout_s=0.2)
    with pytest.raises(UndeliveredError, match=r"^127.0.0.1 cannot be reached \(ConnectError\)$"):
        await gone.deliver(b"{}")
    await gone.close()
    assert len(receiver.heads) == 3
