"""Whatever is typed, a command ends with a status of the table and one line that says why, never with a traceback."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, cast, get_args, get_origin

import httpx2
import pytest
import pytest_asyncio
from tests.interfaces.bad_input import EMPTY, FINE, NULS, Names
from tests.interfaces.cli.conftest import EPOCH, Line, Surroundings, write_host
from tests.interfaces.conftest import BEARER, BOUND_S, TOKEN, Door, Host, compose
from tests.interfaces.world import World, lived_in
from typer import Typer
from typer.models import ArgumentInfo, OptionInfo
from typer.testing import CliRunner, Result

from coterie.app.settle_turn import SettleTurn, settle_turn
from coterie.core.codes import Code
from coterie.core.ids import TurnId
from coterie.core.turn.items import Reply
from coterie.interfaces.cli.app import build
from coterie.interfaces.cli.command import Command
from coterie.interfaces.http import Server, bind, build_app, hosts_of
from coterie.interfaces.wire.errors import ERRORS
from coterie.testing.slots import IdleSlots

GOOD: Final[dict[str, tuple[str, ...]]] = {
    "after": ("0",),
    "cursor": ("0-0",),
    "data": ("$data",),
    "expires": ("2999-01-01T00:00:00Z",),
    "grant": ("$g",),
    "idle": ("$c",),
    "ids": ("$d",),
    "input": ("$i",),
    "key": ("key",),
    "lasts": ("1h",),
    "limit": ("1",),
    "message": ("$d",),
    "model": ("local/one",),
    "name": ("one",),
    "note": ("Good.",),
    "project": (".",),
    "request": ("$r", "$q"),
    "session": ("$c", "$b"),
    "source": ("$a",),
    "subject": ("$chain",),
    "svg": ("picture.svg",),
    "target": ("$c",),
    "text": ("Good day.",),
    "timeout_s": ("0",),
    "title": ("new",),
    "turn": ("$t",),
    "up_to": ("1",),
}
"""Words that are good, by the field that takes them; flags and choices need none."""

ENDLESS: Final = {("tail",)}
"""What ends only when the person ends it, or when the host knows them no more."""
PATIENCE: Final = "timeout_s"
"""Given where it is not what is tried, so that nothing waits."""
SHARED: Final = frozenset(Command.__dataclass_fields__)
"""Every command takes them in one way, so one command is enough to try them."""
ODD: Final[dict[str, str]] = {
    **FINE,
    **EMPTY,
    **NULS,
    "a byte that is no text": "caf\udce9",
    "an option": "--nonsense",
    "the end of options": "--",
    "a dash": "-",
    "a number": "-1",
    "an endless time": f"{'9' * 30}d",
    "no time": "0m",
    "too long": "x" * 70_000,
    "four bytes, too long": "😀" * 30_000,
    "an id of nothing": f"ses_{'0' * 32}",
    "no folder": "/nowhere/at/all",
    "a user's folder": "~nobody-at-all/x",
}
NUMBERS: Final = ("", "x", "-1", "0", "1.5", "1e3", "1e308", "9" * 30, "nan", "inf", "-inf", "٣", " 5", "0x10", "true")
_EXPECTED: Final = {code for code, row in ERRORS.items() if row.http < 500} | {Code.HOST_UNAVAILABLE}


@dataclass(frozen=True)
class Field:
    """One argument or option of a command."""

    name: str
    kind: Any
    option: str | None
    """As it is typed; None is an argument."""
    required: bool

    @property
    def is_flag(self) -> bool:
        """Whether it takes no word."""
        return self.kind is bool

    def good(self, names: Names) -> tuple[str, ...]:
        """Words that fit, best first."""
        if get_origin(self.kind) is Literal:
            return (str(get_args(self.kind)[0]),)
        return ("",) if self.is_flag else tuple(names.get(word, word) for word in GOOD.get(self.name, ("good",)))

    def typed(self, word: str) -> list[str]:
        """The words of a command line."""
        if self.option is None:
            return [word]
        return [self.option] if self.is_flag else [self.option, word]

    def odd_words(self, names: Names) -> Iterator[str]:
        """Words that do not fit, or look as if they did not."""
        if get_origin(self.kind) is Literal:
            yield from ("", "nonsense", str(get_args(self.kind)[0]).upper(), "\x00", "x" * 70_000)
        elif self.kind in {int, float}:
            yield from NUMBERS
        elif not self.is_flag:
            yield from ODD.values()
            yield from (names["$t"], names["$chain"], names["$g"])


def _commands(app: Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Field]]]:
    for command in app.registered_commands:
        assert command.callback is not None
        parameters = inspect.signature(command.callback).parameters.values()
        yield (*path, str(command.name)), [_field(parameter) for parameter in parameters]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from _commands(group.typer_instance, (*path, str(group.name)))


def _field(parameter: inspect.Parameter) -> Field:
    kind, info = get_args(parameter.annotation)
    kinds = [one for one in get_args(kind) if one is not NoneType] if NoneType in get_args(kind) else [kind]
    required = parameter.default is inspect.Parameter.empty
    if isinstance(info, ArgumentInfo):
        return Field(parameter.name, kinds[0], None, required)
    assert isinstance(info, OptionInfo)
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    return Field(parameter.name, kinds[0], names[0].partition("/")[0], required)


COMMANDS: Final = dict(_commands(build(Surroundings(Path(), Path()))))


@dataclass
class Models:
    """Answers every turn that starts."""

    host: Host
    _answered: int
    """How many of the turns that were started need no answer any more."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Answer until cancelled."""
        with self.host.feed.listen(None) as listener:
            while True:
                await self.catch_up()
                await listener.wait(BOUND_S)

    async def catch_up(self) -> None:
        """Answer what has started, and what starts by that."""
        async with self._lock:
            while self._answered < len(self.host.slots.handed_over):
                turn_id: TurnId | None = self.host.slots.handed_over[self._answered]
                while turn_id is not None:
                    ended = await self.host.parts.store.run(settle_turn, SettleTurn(turn_id, (Reply("Done."),)))
                    turn_id = ended.next.id if ended.next else None
                self._answered += 1


@dataclass(frozen=True)
class Desk:
    """One command of the program, and a host that answers it."""

    path: tuple[str, ...]
    program: Typer
    home: Path
    world: World
    models: Models

    @property
    def names(self) -> Names:
        """What there is."""
        return {**self.world.names, "$data": str(self.home)}

    async def type(self, words: Sequence[str]) -> Result:
        """Run the command to its end, and let what it has started end too."""
        found = await (self._dismissed(words) if self.path in ENDLESS else self._run(words))
        await self.models.catch_up()
        return found

    async def _run(self, words: Sequence[str]) -> Result:
        typed = [*self.path, *words]
        running = asyncio.to_thread(CliRunner().invoke, self.program, typed, prog_name="coterie")
        return await asyncio.wait_for(running, BOUND_S)

    async def sessions(self) -> list[tuple[str, int]]:
        """The sessions that a person sees, and where each is."""
        listed = (await self.world.host.ask("session.list"))["sessions"]
        return [(one["id"], one["revision"]) for one in listed]

    async def _dismissed(self, words: Sequence[str]) -> Result:
        """Let the host forget the person as soon as the command listens."""
        token, feed = self.home / "token", self.world.host.feed
        feed.listened.clear()
        async with asyncio.TaskGroup() as group:
            typed = group.create_task(self._run(words))
            listened = group.create_task(feed.listened.wait())
            await asyncio.wait({typed, listened}, return_when=asyncio.FIRST_COMPLETED)
            listened.cancel()
            token.write_text("another", "utf-8")
            self.world.host.stopping.set()
        token.write_text(TOKEN, "utf-8")
        self.world.host.stopping.clear()
        return typed.result()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def answered(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[World, Models, Path]]:
    """A host on a port, whose models answer at once, and its data directory."""
    home = tmp_path_factory.mktemp("data")
    host, store = await compose(home / "coterie.db", IdleSlots())
    listening = bind("127.0.0.1", 0)
    app = build_app(host.operations, token=TOKEN, hosts=lambda: hosts_of(listening), stopping=host.stopping)
    server = Server(app, listening, host.stopping, stop_s=1)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        await server.start()
        stack.push_async_callback(server.stop)
        client = await stack.enter_async_context(httpx2.AsyncClient(base_url=server.url, headers=BEARER))
        world = await stack.enter_async_context(lived_in(host, Door(client), home / "coterie.db"))
        _write_host(home, server.url)
        models, group = Models(host, len(host.slots.handed_over)), await stack.enter_async_context(asyncio.TaskGroup())
        answering = group.create_task(models.run())
        yield world, models, home
        answering.cancel()


def _write_host(home: Path, url: str) -> None:
    write_host(home, url)
    about = json.loads((home / "host.json").read_text("utf-8"))
    # Whoever asks to end this host would end the process of the tests.
    (home / "host.json").write_text(json.dumps({**about, "epoch": EPOCH + 1}), "utf-8")


@pytest.fixture
def desk(answered: tuple[World, Models, Path], path: tuple[str, ...], tmp_path: Path) -> Desk:
    """A command, and the host as it was at first."""
    world, models, home = answered
    world.restore()
    return Desk(path, _only(path, build(Surroundings(home, tmp_path))), home, world, models)


def _only(path: tuple[str, ...], program: Typer) -> Typer:
    """Leave out all other commands: to make them ready takes longer than to run the one."""
    part = program
    for name in path[:-1]:
        part.registered_commands = []
        part.registered_groups = [group for group in part.registered_groups if group.name == name]
        part = cast("Typer", part.registered_groups[0].typer_instance)
    part.registered_groups = []
    part.registered_commands = [command for command in part.registered_commands if command.name == path[-1]]
    return program


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, for a word may be the name of a file that is written."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def _code_of(result: Result, *, as_json: bool) -> Code | None:
    """What a command was refused with; None where it succeeded."""
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    out, err = result.stdout_bytes.decode("utf-8", "strict"), result.stderr_bytes.decode("utf-8", "strict")
    assert "\x1b" not in out + err
    if result.exit_code == 0:
        return None
    last = err.splitlines()[-1]
    if last.startswith("Error: "):
        assert result.exit_code == ERRORS[Code.INVALID_ARGUMENT].exit
        return Code.INVALID_ARGUMENT
    found = json.loads(last)["errorCode"] if as_json else last.partition(": ")[0]
    assert found in _EXPECTED, last
    assert result.exit_code == ERRORS[Code(found)].exit
    return Code(found)


async def _words(desk: Desk, tried: Field | None) -> dict[str, list[str]]:
    """The shortest command line with a field that succeeds; else any."""
    fields = COMMANDS[desk.path]
    needed = [one for one in fields if one.required or one == tried or (one.name == PATIENCE and tried is not None)]
    others = [one for one in fields if one not in needed and one.name not in SHARED]
    lines = [line for chosen in _sets(needed, others) for line in _lines(chosen, desk.names)]
    for line in lines if desk.path not in ENDLESS else []:
        before = desk.world.written()
        if (await desk.type(_flat(line))).exit_code == 0:
            _restore(desk, before)
            return line
    return lines[0]


def _sets(needed: list[Field], others: list[Field]) -> Iterator[list[Field]]:
    yield needed
    yield from ([*needed, one] for one in others)


def _lines(fields: list[Field], names: Names) -> Iterator[dict[str, list[str]]]:
    for words in product(*(one.good(names) for one in fields)):
        yield {one.name: one.typed(word) for one, word in zip(fields, words, strict=True)}


def _restore(desk: Desk, before: object) -> None:
    if desk.world.written() != before:
        desk.world.restore()


async def _odd_lines(desk: Desk) -> AsyncIterator[list[str]]:
    good = await _words(desk, None)
    for name, words in good.items():
        yield [word for other, typed in good.items() if other != name for word in typed]
        yield [*_flat(good), *words]
    for extra in (["extra"], ["--nonsense"], ["--nonsense=1"], ["-z"], [""], ["\x00"], ["\udce9"]):
        yield [*_flat(good), *extra]
    for tried in COMMANDS[desk.path]:
        if tried.name in SHARED:
            continue
        good = await _words(desk, tried)
        if tried.option is not None:
            yield [*_flat({**good, tried.name: []}), tried.option] + [f"{tried.option}=x"] * tried.is_flag
        for word in tried.odd_words(desk.names):
            yield _flat({**good, tried.name: tried.typed(word)})


def _flat(line: Mapping[str, Sequence[str]]) -> list[str]:
    return [word for words in line.values() for word in words]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
async def test_an_odd_command_line_ends_with_a_status_and_a_reason(desk: Desk) -> None:
    """For a person in one line, for a program in one JSON value; and nothing was done where it says no."""
    complaints, number, sessions = list[str](), 0, await desk.sessions()
    async for line in _odd_lines(desk):
        number += 1
        as_json = number % 2 == 0
        before = desk.world.written()
        result = await desk.type([*(["--json"] * as_json), *line])
        try:
            code = _code_of(result, as_json=as_json)
            assert code is None or desk.world.written() == before or await desk.sessions() == sessions, code
        except (AssertionError, ValueError) as error:
            complaints.append(f"{[word[:60] for word in line]}: {str(error)[:400]}")
        _restore(desk, before)
    assert not complaints, "\n" + "\n".join(complaints)
    assert not await desk.world.new_flaws()


@pytest.mark.parametrize("path", [("session", "list"), ("run", "Good day.")], ids=" ".join)
def test_an_odd_data_directory_has_no_host(line: Line, path: tuple[str, ...]) -> None:
    """Neither to find nor to start."""
    for number, word in enumerate((*ODD.values(), __file__)):
        as_json = number % 2 == 0
        result = line(*path, "--data", word, *(["--json"] * as_json))
        # What no file system takes is no path at all.
        expected = Code.INVALID_ARGUMENT if word in NULS.values() else Code.HOST_UNAVAILABLE
        assert _code_of(result, as_json=as_json) is expected, word


def test_every_word_has_an_example_that_is_good() -> None:
    """Without one its odd words would stand in commands that fail anyway."""
    taking = {one.name for fields in COMMANDS.values() for one in fields if not one.is_flag}
    choices = {one.name for fields in COMMANDS.values() for one in fields if get_origin(one.kind) is Literal}
    assert taking - choices == set(GOOD)
