"""Writes the reference pages from the tables that the program runs on; `--check` compares instead of writing."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import proofs
import provider_faults
from pydantic.fields import FieldInfo
from typer.testing import CliRunner

from coterie.bootstrap.terminal import Machine, add_commands
from coterie.core import limits
from coterie.core.codes import Code
from coterie.core.ledger.states import MESSAGE_TABLE
from coterie.core.limits import RANGES, Limits
from coterie.core.turn.states import TURN_TABLE
from coterie.interfaces.cli.app import COMMANDS, GROUPS, build
from coterie.interfaces.http.events import BEAT_S, SUBSCRIBE
from coterie.interfaces.wire.errors import ERRORS
from coterie.operations.catalogue import OPERATIONS, Operation
from coterie.plugins.session_orchestrator.actions import ACTIONS, Action
from coterie.plugins.session_orchestrator.arguments import PARAMETERS

HERE: Final = Path(__file__).parent
_NOTE: Final = "<!-- Made by generate.py beside this file; `make docs` writes it again. -->"
_COLUMNS: Final = 78
_COMMANDS: Final = (
    "",
    "up",
    *(name for name, _ in COMMANDS),
    *(f"{group.name} {name}" for group in GROUPS for name, _ in group.commands),
    "demo",
    "verify",
    "model-server",
)

_CHANGES: Final = (
    ("session", "session", "it is new or its settings changed; a session that was spawned is told to its spawner too"),
    ("deleted", "session", "it is gone"),
    ("input", "input or turn", "something waits, has another place, or has become part of a turn"),
    ("turn", "turn", "it began, was asked to stop, or ended"),
    ("items", "number of the last item", "the transcript has grown"),
    ("message", "message", "a message to or from it was sent or has another state"),
    ("held", "session", "its queue waits for a person"),
    ("released", "session", "its queue goes on"),
    ("budget", "chain", "what waits here belongs to a chain that has spent what it may"),
    ("permission", "session or request", "a message from another project waits for an answer, or was answered"),
)
"""Of each kind of change in the stream: what its `ref` is the id of, and what happened to the session."""


def states() -> Iterator[str]:
    """The state machines as diagrams."""
    yield "# States"
    yield "Each diagram is the table that guards the moves in SQL. What is not drawn cannot happen."
    for title, table in (("A message", MESSAGE_TABLE), ("A turn", TURN_TABLE)):
        yield f"## {title}"
        yield f"```mermaid\n{table.diagram()}\n```"
        rows = [
            f"| `{source}` | {event.__name__} | `{target}` | {_first(event)} |" for source, event, target in table.rows
        ]
        yield "\n".join(["| from | event | to | when |", "|---|---|---|---|", *rows])


def operations() -> Iterator[str]:
    """The catalogue of operations."""
    yield "# Operations"
    yield (
        "Every operation has the same name, parameters, answer and errors at every door: `POST /rpc` (JSON-RPC 2.0), "
        "REST below `/api/v1` (OpenAPI at `/api/v1/openapi.json`), the terminal, plugins and the agents' own tools. "
        "*Agents* says whether a running turn may ask for it. Every operation that changes something takes "
        "`idempotencyKey`."
    )
    for operation in OPERATIONS:
        yield f"## `{operation.name}`"
        yield operation.summary
        agents = "people and agents" if operation.agents else "people"
        route = f"`{operation.verb} /api/v1{operation.path}`"
        yield f"{route} · {agents} · risk {operation.risk.value} · answers `{operation.result.__name__}`"
        rows = list(_params(operation))
        if rows:
            yield _parameters(rows)
    yield from _stream()


def _stream() -> Iterator[str]:
    yield f"## `{SUBSCRIBE.name}`"
    yield (
        f"{SUBSCRIBE.summary} Over HTTP only (`coterie tail` reads it): the answer is a `text/event-stream` that ends "
        "when the client leaves or the host stops."
    )
    yield f"`{SUBSCRIBE.verb} /api/v1{SUBSCRIBE.path}` · people · risk {SUBSCRIBE.risk.value}"
    yield _parameters(_params(SUBSCRIBE))
    yield (
        "A client that comes back sends the last id that it saw as the header `Last-Event-ID`, which counts before "
        f"`after`, and misses no change. After {BEAT_S:g} seconds of silence comes a comment."
    )
    yield "\n".join(
        [
            "| event | id | data | |",
            "|---|---|---|---|",
            "| `cursor` | position | `cursor` | First: where the stream goes on. |",
            "| `reset` | position | `cursor` | First, in place of it: `after` is of another ledger; read all anew. |",
            f"| `change` | position | {_names(SUBSCRIBE.result)} | Something happened; read it with its operation. |",
            "| `delta` | none | `sessionId`, `turnId`, `text`, `callId` | Live text; with `callId`, of a tool. |",
        ]
    )
    rows = [f"| `{kind}` | {ref} | {says} |" for kind, ref, says in _CHANGES]
    yield "\n".join(["| `kind` of a change | `ref` | what happened |", "|---|---|---|", *rows])


def _names(view: type[Any]) -> str:
    return ", ".join(f"`{field.alias or name}`" for name, field in view.model_fields.items())


def _parameters(rows: Iterable[str]) -> str:
    return "\n".join(["| parameter | type | default | |", "|---|---|---|---|", *rows])


def _params(operation: Operation) -> Iterator[str]:
    for name, field in operation.params.model_fields.items():
        default = "required" if field.is_required() else f"`{_default(field)}`"
        description = (field.description or "").replace("\n", " ")
        yield f"| `{field.alias or name}` | `{_type(field)}` | {default} | {description} |"


def _default(field: FieldInfo) -> str:
    value: object = field.get_default(call_default_factory=True, validated_data={})
    return str(getattr(value, "value", value))


def _type(field: FieldInfo) -> str:
    text = inspect.formatannotation(field.annotation)
    return text.replace("coterie.core.permission.", "").replace("typing.", "").replace(" | ", " or ").replace("|", "or")


def errors() -> Iterator[str]:
    """The error table."""
    yield "# Errors"
    yield (
        "A refusal looks alike at every door: `{code, message, data: {errorCode, retryable, limit?, value?, "
        "candidates?, path?}}`. Programs act on `errorCode`; the message is for people."
    )
    head = ["| code | HTTP | JSON-RPC | exit status |", "|---|---|---|---|"]
    rows = [f"| `{code}` | {ERRORS[code].http} | {ERRORS[code].rpc} | {ERRORS[code].exit} |" for code in Code]
    yield "\n".join([*head, *rows])


def settings() -> Iterator[str]:
    """The limits."""
    yield "# Limits"
    yield "Set in `[limits]` of `config.toml` in the data directory. A refusal names the limit that refused."
    told = _attribute_docs(limits, "Limits")
    rows: list[str] = []
    for limit in fields(Limits):
        least, most = RANGES[limit.name]
        rows.append(f"| `{limit.name}` | {limit.default} | {least} to {most} | {told[limit.name]} |")
    yield "\n".join(["| limit | default | range | |", "|---|---|---|---|", *rows])


def session_task() -> Iterator[str]:
    """The actions of the agents' tool."""
    yield "# The tool `session_task`"
    yield (
        "With it an agent works together with other sessions, for example "
        '`{"action": "send", "sessionId": "ses_…", "message": "List the risks.", "kind": "task"}`. Sessions are named '
        "by id (`list` and `status` show the ids), never by title. The answer is JSON; a refusal is "
        '`{"error": {"code", "message", …}}` with the codes of [errors](errors.md). A parameter that the action does '
        "not take is refused; an empty one counts as left out. Where an action takes `sessionIds`, one `sessionId` "
        "will do."
    )
    for name, action in ACTIONS.items():
        yield f"## `{name}`"
        yield f"{action.says[0].upper()}{action.says[1:]}."
        rows = list(_arguments(action))
        if rows:
            yield "\n".join(["| parameter | type | | |", "|---|---|---|---|", *rows])
        for refused, why in action.refuses.items():
            yield f"Not `{refused}`: {why}."


def _arguments(action: Action) -> Iterator[str]:
    form = action.form
    for name in form.takes:
        schema = PARAMETERS[name]
        needed = "required" if name in form.needs else "optional"
        yield f"| `{name}` | {_schema_type(schema)} | {needed} | {schema.get('description', '')} |"


def _schema_type(schema: dict[str, Any]) -> str:
    match schema:
        case {"enum": names}:
            return " or ".join(f"`{name}`" for name in names)
        case {"maxItems": most}:
            return f"list of at most {most} strings"
        case {"maxLength": most}:
            return f"string of at most {most} characters"
        case {"minimum": least, "maximum": most}:
            return f"{schema['type']} from {least} to {most}"
        case _:
            return str(schema["type"])


def terminal() -> Iterator[str]:
    """The help of every command."""
    yield "# Terminal"
    yield "Every command takes `--json`; the exit status follows the [error table](errors.md)."
    machine = Machine({})
    program = build(machine)
    add_commands(program, machine)
    for command in _COMMANDS:
        words = [*command.split(), "--help"]
        done = CliRunner().invoke(program, words, prog_name="coterie", catch_exceptions=False, terminal_width=_COLUMNS)
        assert done.exit_code == 0, done.output
        yield f"## `{f'coterie {command}'.strip()}`"
        yield "```text\n" + "\n".join(line.rstrip() for line in done.stdout.strip().splitlines()) + "\n```"


def _first(event: type) -> str:
    return (event.__doc__ or "").strip().splitlines()[0]


def _attribute_docs(module: object, name: str) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(module))  # pyright: ignore[reportArgumentType]  # any module will do
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = str(text.value.value)
    return found


PAGES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "states.md": states,
    "operations.md": operations,
    "errors.md": errors,
    "limits.md": settings,
    "session_task.md": session_task,
    "terminal.md": terminal,
    "proofs.md": proofs.page,
    "provider_faults.md": provider_faults.page,
}


def main() -> int:
    """Write the pages, or tell which of them are not what they should be."""
    stale = 0
    for name, page in PAGES.items():
        text = "\n\n".join([_NOTE, *page()]) + "\n"
        path = HERE / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale += 1
            print(f"{path.relative_to(HERE.parent.parent)} is stale; `make docs` writes it again")  # noqa: T201
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
