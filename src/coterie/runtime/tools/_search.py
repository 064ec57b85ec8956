"""A program of its own: search files for a regular expression, line by line.

Python's `re` holds the interpreter lock while it matches and cannot be stopped, so an unlucky expression in a thread
would stop the whole host. Run by path with the standard library alone; a request and an answer are one JSON object each
on stdin and stdout.
"""

import json
import os
import re
import resource
import stat
import sys
from typing import TypedDict


class Request(TypedDict):
    """What to search for, and where."""

    pattern: str
    ignore_case: bool
    paths: list[str]
    matches_max: int
    line_chars_max: int
    file_bytes_max: int
    cpu_s_max: int


class Answer(TypedDict):
    """What was found; *matches* are index of the path, number of the line, and its text."""

    flaw: str | None
    matches: list[tuple[int, int, str]]
    goes_on: bool
    too_large: int


def search(request: Request) -> Answer:
    """Search, in the order of the paths."""
    answer = Answer(flaw=None, matches=[], goes_on=False, too_large=0)
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError) as error:
        answer["flaw"] = str(error)
        return answer
    for index, path in enumerate(request["paths"]):
        content = _content(path, request["file_bytes_max"])
        if content is None:
            answer["too_large"] += 1
            continue
        for number, raw in enumerate(_lines_of(content), start=1):
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            match = pattern.search(line)
            if match is None:
                continue
            if len(answer["matches"]) >= request["matches_max"]:
                answer["goes_on"] = True
                return answer
            answer["matches"].append((index, number, _window(line, match.start(), request["line_chars_max"])))
    return answer


def _lines_of(content: bytes) -> list[bytes]:
    """The lines; the end of the last line does not start another."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _content(path: str, bytes_max: int) -> bytes | None:
    """The text in *path*, nothing for what is no text, or None where it is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        content = file.read(bytes_max + 1)
    if b"\0" in content[:8192]:
        return b""
    return None if len(content) > bytes_max else content


def _window(line: str, start: int, chars_max: int) -> str:
    """The part of a long *line* in which the match starts."""
    if len(line) <= chars_max:
        return line
    begin = 0 if start < chars_max // 2 else start - chars_max // 4
    end = begin + chars_max
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")


def main() -> None:
    """Answer the request on stdin."""
    request: Request = json.load(sys.stdin)
    # The host stops a search that takes too long; the kernel does where the host died first.
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s_max"], request["cpu_s_max"]))
    # Written as bytes: the encoding of stdout depends on the locale.
    sys.stdout.buffer.write(json.dumps(search(request), ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
