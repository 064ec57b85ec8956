"""How a command fails: one line `CODE: message` on the error stream, an exit status from the table, no traceback."""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import typer

from coterie.core.codes import Code
from coterie.core.errors import HostError, InternalError
from coterie.interfaces.cli.display import json_line, one_line, plain
from coterie.interfaces.wire.errors import ERRORS

SHOWN_MAX: Final = 8
"""Candidates of an ambiguous name that are shown."""
_SHOWN: Final = ("candidates", "path", "limit", "value")


class AnswerError(HostError):
    """The host answered with an error; its code, its text and its details are kept as they came."""

    def __init__(self, code: str, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.error_code = code
        # A newer host may know codes that this terminal does not.
        self.code = Code(code) if code in set(Code) else Code.INTERNAL
        self.data = dict(data)

    def detail(self) -> dict[str, object]:
        """What the host gave besides code and text."""
        return {key: value for key, value in self.data.items() if key in _SHOWN}


class AmbiguousNameError(HostError):
    """*subject* names several things of one kind."""

    code = Code.INVALID_ARGUMENT

    def __init__(self, subject: str, found: Sequence[str], noun: str = "sessions") -> None:
        self.candidates = tuple(found[:SHOWN_MAX])
        named = f"{subject!r} names {len(found)} {noun}"
        shown = f", {SHOWN_MAX} of which are shown" if len(found) > SHOWN_MAX else ""
        super().__init__(f"{named}{shown}; give more of one of the ids, best of its end.")

    def detail(self) -> dict[str, object]:
        """What it names."""
        return {"candidates": list(self.candidates)}


def code_of(error: HostError) -> str:
    """The code as the host wrote it."""
    return error.error_code if isinstance(error, AnswerError) else error.code.value


def line_of(error: HostError) -> str:
    """The error as a person reads it; what its text does not say already follows in brackets."""
    # What the person typed may be quoted with its line ends.
    text, detail = " ".join(plain(line).strip() for line in str(error).splitlines()), error.detail()
    more = [f"{key}: {_listed(detail[key])}" for key in ("candidates", "path") if _unsaid(detail.get(key), text)]
    limit = detail.get("limit")
    if limit is not None and str(limit) not in text:
        more.append(f"limit: {limit} = {detail.get('value')}")
    return f"{code_of(error)}: {text}" + (f" ({'; '.join(more)})" if more else "")


def _unsaid(found: object, text: str) -> bool:
    return bool(_items(found)) and not all(item in text for item in _items(found))


def _items(found: object) -> list[str]:
    return [one_line(str(item)) for item in found] if isinstance(found, list | tuple) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON has no types


def _listed(found: object) -> str:
    return ", ".join(_items(found))


def object_of(error: HostError) -> dict[str, Any]:
    """The error as a program reads it."""
    retryable = error.data.get("retryable", False) if isinstance(error, AnswerError) else error.retryable
    return {"errorCode": code_of(error), "message": str(error), "retryable": retryable, **error.detail()}


def fail(error: HostError, *, as_json: bool = False) -> NoReturn:
    """Print *error* on the error stream, as a line or as JSON, and end the command with its exit status.

    Raises:
        typer.Exit: Always.
    """
    text = json_line(object_of(error), unicode=False) if as_json else line_of(error)
    print(text, file=sys.stderr)  # noqa: T201 - the error stream is where a person looks
    raise typer.Exit(ERRORS[error.code].exit) from error


@contextmanager
def reporting(*, as_json: bool) -> Generator[None]:
    """Turn the faults of a command into one line and an exit status."""
    try:
        yield
    except HostError as error:
        fail(error, as_json=as_json)
    except BrokenPipeError:
        # The reader of our output has gone; typer ends the program quietly.
        raise
    except OSError as error:
        fail(InternalError(f"The system refused: {error}."), as_json=as_json)
