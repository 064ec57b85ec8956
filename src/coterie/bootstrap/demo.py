"""`coterie demo`: a lead gives work to two readers on a real folder, and answers from what they found.

Everything is real but the model, which follows a script over the same wire as a vendor's: the host, the ledger in a
temporary data directory, the tools on the folder. `--provider` and `--model` put a real model in its place.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console

from coterie.bootstrap.engine import Engine, engine, locked
from coterie.bootstrap.world import world_of
from coterie.core.ledger.states import SETTLED
from coterie.core.model_ref import Binding
from coterie.interfaces.cli.sequence import Arrow, draw
from coterie.model_server import ModelServer, load_script
from coterie.operations import events
from coterie.operations.caller import Person
from coterie.ports.feed import Delta
from coterie.settings import load_settings

PROMPT: Final = (
    "Spawn two sessions with session_task. The title of the first is 'Largest file', its task: report the largest "
    "Python file of this project with its size in bytes, found with glob sorted by size. The title of the second is "
    "'TODOs', its task: report where the TODOs of this project are, found with grep. Wait for both with one wait, then "
    "answer in two sentences from what they report: name the largest Python file, and where the TODOs are."
)
_KEY: Final = "demo/script"
_BEAT_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to show."""

    folder: Path
    provider: str | None = None
    """Base URL of an OpenAI-compatible model server; None is the script."""
    model: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    data: Path | None = None
    """Data directory to keep the ledger in; None is a temporary one."""


@asynccontextmanager
async def _binding(options: DemoOptions) -> AsyncGenerator[Binding]:
    if options.provider is not None:
        key = options.environment.get("OPENAI_API_KEY") or None
        yield Binding(f"demo/{options.model}", "openai-chat", options.provider, options.model or "", key, default=True)
        return
    with as_file(files("coterie.bootstrap") / "demo.yaml") as path:
        script = load_script(path)
    async with ModelServer(script) as server:
        yield Binding(_KEY, "openai-chat", f"{server.url}/v1", "script", default=True)


async def run_demo(options: DemoOptions, console: Console) -> dict[str, Any]:
    """Run the demo, telling *console* what happens; returns what `--json` prints."""
    with TemporaryDirectory(prefix="coterie-demo-", ignore_cleanup_errors=True) as folder:
        async with _binding(options) as binding:
            settings = load_settings(options.data or Path(folder), options.environment)
            settings = replace(settings, models=(binding,))
            with locked(settings.data_dir):
                async with world_of(settings) as world, engine(settings, world=world) as host:
                    return await _Show(host, console).play(options.folder)


def _creation(session: dict[str, Any]) -> str:
    return session["id"]


class _Show:
    """One performance."""

    def __init__(self, host: Engine, console: Console) -> None:
        self._host, self._console = host, console
        self._titles: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._began = asyncio.get_running_loop().time()

    async def _ask(self, name: str, **params: object) -> dict[str, Any]:
        return (await self._host.operations.perform(Person(), name, params)).wire()

    async def play(self, folder: Path) -> dict[str, Any]:
        """Prompt the lead, watch until every message has settled, and tell the end."""
        created = await self._ask("session.create", title="Lead", projectPath=str(folder), permissionMode="ask")
        lead: str = created["session"]["id"]
        self._say(f"[bold]Lead[/] works on {folder}")
        await self._ask("session.prompt", sessionId=lead, text=PROMPT)
        await self._watch(lead)
        for message in (await self._messages(lead))[:1]:
            await self._tell_message(message["id"])
        return await self._told(lead)

    async def _watch(self, lead: str) -> None:
        stream = events.changes(self._host.operations.host, None, 0, beat_s=_BEAT_S)
        try:
            async for event in stream:
                if isinstance(event, Delta):
                    continue
                if event is not None and event.kind == "message":
                    await self._tell_message(event.ref)
                if await self._over(lead):
                    return
        finally:
            await stream.aclose()

    async def _over(self, lead: str) -> bool:
        found = await self._ask("collaboration.status", sessionId=lead)
        messages = await self._messages(lead)
        return found["status"] not in {"running", "queued"} and all(m["status"] in SETTLED for m in messages)

    async def _messages(self, lead: str) -> list[dict[str, Any]]:
        sent = (await self._ask("collaboration.status", sessionId=lead))["recentExchanges"]
        if not sent:
            return []
        return (await self._ask("collaboration.chain", messageId=sent[0]["messageId"]))["messages"]

    async def _tell_message(self, message_id: str) -> None:
        chain = await self._ask("collaboration.chain", messageId=message_id)
        for message in chain["messages"]:
            known = self._seen.get(message["id"])
            if message["status"] != known:
                self._seen[message["id"]] = message["status"]
                source, target = message["sourceTitle"], message["targetTitle"]
                self._say(f"[bold]{source}[/] → [bold]{target}[/]  {message['kind']}  {message['status']}")

    def _say(self, text: str) -> None:
        elapsed = asyncio.get_running_loop().time() - self._began
        self._console.print(f"[dim]{elapsed:5.1f} s[/]  {text}", highlight=False)

    async def _told(self, lead: str) -> dict[str, Any]:
        messages = await self._messages(lead)
        sessions: list[dict[str, Any]] = (await self._ask("session.list"))["sessions"]
        sessions.sort(key=_creation)
        items = (await self._ask("session.items", sessionId=lead, limit=512))["items"]
        answer = next((item["text"] for item in reversed(items) if item["kind"] == "reply" and item["text"]), "")
        verify = await self._ask("ledger.verify")
        status = await self._ask("collaboration.status", sessionId=lead)
        arrows = [Arrow(m["sourceSessionId"], m["targetSessionId"], m["kind"], m["status"]) for m in messages]
        self._console.print()
        picture = draw([(session["id"], session["title"]) for session in sessions], arrows)
        self._console.print(picture, markup=False, highlight=False)
        self._console.print()
        self._console.print(f"[bold]Lead answers:[/] {answer}", highlight=False)
        if status["status"] != "completed":
            self._console.print(f"The lead's turn {status['status']}: {status['lastTurn'].get('error')}", markup=False)
        self._console.print(
            f"verify: {'ok' if verify['ok'] else 'BROKEN'}, {verify['checked']} checks made", highlight=False
        )
        names = ("id", "kind", "status", "sourceSessionId", "targetSessionId", "turnId", "replyToMessageId")
        return {
            "sessions": [
                {
                    "id": session["id"],
                    "title": session["title"],
                    "createdBySessionId": session.get("createdBySessionId"),
                }
                for session in sessions
            ],
            "messages": [{name: message.get(name) for name in names} for message in messages],
            "answer": answer,
            "verify": {"ok": verify["ok"], "checked": verify["checked"]},
            "status": status["status"],
        }
