"""What `read`, `glob`, `grep`, `write` and `edit` answer and do."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from coterie.core.ids import SessionId, TurnId
from coterie.ports.tool import Invocation, ToolOutput
from coterie.runtime.tools.catalogue import native_tools
from coterie.runtime.tools.finding import grep_tool

Call: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[ToolOutput]]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    tools = {tool.spec.name: tool for tool in native_tools(closed=(), environment={"PATH": os.defpath})}

    async def run(name: str, arguments: Mapping[str, object]) -> ToolOutput:
        return await tools[name].run(invocation(tmp_path), arguments)

    return run


def invocation(workspace: Path) -> Invocation:
    return Invocation("inv_1", SessionId("ses_1"), TurnId("turn_1"), "call_1", str(workspace))


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


async def test_read_shows_the_text_under_a_line_that_says_which(tmp_path: Path, call: Call) -> None:
    """The text follows as it is, so that edit can match it."""
    put(tmp_path, a_txt="one\n\ttwo\n")
    assert (await call("read", {"path": "a.txt"})).text == "a.txt, lines 1-2, the end of the file\none\n\ttwo\n"


async def test_read_goes_on_where_it_says(tmp_path: Path, call: Call) -> None:
    """A long file is read in parts."""
    put(tmp_path, a_txt="one\ntwo\nthree")
    part = await call("read", {"path": "a.txt", "offset": 2, "limit": 1})
    assert part.text == "a.txt, lines 2-2; the file goes on; read on with offset 3\ntwo\n"
    rest = await call("read", {"path": "a.txt", "offset": 3})
    assert rest.text == "a.txt, lines 3-3, the end of the file\nthree"


@pytest.mark.parametrize(("text", "lines"), [("one\ntwo\nthree", 3), ("one\n", 1), ("x" * 70_000 + "\ny", 2), ("", 0)])
async def test_read_behind_the_end_tells_how_long_the_file_is(
    tmp_path: Path, call: Call, text: str, lines: int
) -> None:
    """A wrong guess is answered with what would be right."""
    put(tmp_path, a_txt=text)
    for offset in (lines + 1, lines + 9):
        output = await call("read", {"path": "a.txt", "offset": offset})
        assert output.error == (offset > 1)
        assert output.text == (
            f"a.txt has {lines} lines; offset {offset} is behind its end." if offset > 1 else "a.txt is empty."
        )


async def test_read_replaces_bytes_that_are_no_text(tmp_path: Path, call: Call) -> None:
    """Stored text holds no half characters and no lone surrogates."""
    (tmp_path / "ä 日本.txt").write_bytes(b"caf\xe9 \xff \xed\xa0\x80")
    output = await call("read", {"path": "ä 日本.txt"})
    assert output.text == "ä 日本.txt, lines 1-1, the end of the file\ncaf\ufffd \ufffd \ufffd\ufffd\ufffd"


async def test_read_tells_that_a_file_is_binary(tmp_path: Path, call: Call) -> None:
    """Its bytes would fill the context and say nothing."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG\0\0")
    output = await call("read", {"path": "a.png"})
    assert output.error
    assert output.text == "a.png is a binary file of 6 bytes, which read does not show."


async def test_read_holds_no_more_than_a_million_characters(tmp_path: Path, call: Call) -> None:
    """One line may be as long as the disk."""
    put(tmp_path, a_txt="x" * 3_000_000)
    output = await call("read", {"path": "a.txt"})
    assert output.text.startswith("a.txt, lines 1-1; the file goes on; line 1 is cut; read on with offset 2\nxxx")
    assert len(output.text) < 1_001_000


async def test_glob_by_size_is_largest_first_and_ties_by_name(tmp_path: Path, call: Call) -> None:
    """The same question has the same answer on every file system."""
    put(tmp_path, b_txt="22", a_txt="22", sub__c_txt="4444", ä_txt="", d_txt="1")
    output = await call("glob", {"pattern": "**", "sort": "size"})
    assert output.text == "sub/c.txt\t4\na.txt\t2\nb.txt\t2\nd.txt\t1\nä.txt\t0"


async def test_glob_by_time_is_newest_first(tmp_path: Path, call: Call) -> None:
    """What was worked on last is what matters."""
    put(tmp_path, a_txt="", b_txt="", c_txt="")
    for name, at in (("a.txt", 1), ("b.txt", 3), ("c.txt", 1)):
        os.utime(tmp_path / name, (at, at))
    assert (await call("glob", {"pattern": "*", "sort": "modified"})).text == "b.txt\t0\na.txt\t0\nc.txt\t0"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", "a.py src/b.py src/deep/er/c.py"),
        ("./*.py", "a.py"),
        ("src/*.py", "src/b.py"),
        ("src/**/*.py", "src/b.py src/deep/er/c.py"),
        ("src/**", "src/b.py src/deep/er/c.py src/deep/x.md"),
        ("**/**/deep/**/*", "src/deep/er/c.py src/deep/x.md"),
        ("{a,src/?}.{py,md}", "a.py src/b.py"),
        ("[!a].py", "src/b.py src/deep/er/c.py"),
        ("src", ""),
    ],
)
async def test_glob_patterns(tmp_path: Path, call: Call, pattern: str, names: str) -> None:
    """The dialect is the one that editors and shells share."""
    put(tmp_path, a_py="", src__b_py="", src__deep__er__c_py="", src__deep__x_md="")
    output = await call("glob", {"pattern": pattern})
    assert output.text == ("".join(f"{name}\t0\n" for name in names.split())[:-1] or "No file fits the pattern.")


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"])
async def test_glob_patterns_that_lead_out_or_explode_are_refused(call: Call, pattern: str) -> None:
    """A pattern is a path, too."""
    assert (await call("glob", {"pattern": pattern})).error


async def test_a_pattern_of_many_stars_takes_no_time(tmp_path: Path, call: Call) -> None:
    """Such a pattern, written as one regular expression, would try its splits for years."""
    (tmp_path / ("a" * 200)).touch()
    async with asyncio.timeout(5):
        assert "No file" in (await call("glob", {"pattern": "*a" * 60 + "b"})).text
        assert "No file" in (await call("glob", {"pattern": "**/*a/" * 60 + "b"})).text


async def test_searches_leave_out_what_is_ignored(tmp_path: Path, call: Call) -> None:
    """Build products and libraries bury what the person wrote."""
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n!\n" + "*a" * 30 + "b\n.gitignore\n")
    for name in ("node_modules/x", ".git/x", ".venv/x", "a/__pycache__/x", "build/x", "x.log", "a/y.log", "a/keep.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("needle")
    (tmp_path / "a" / ".gitignore").write_text("!keep.log\n")
    assert (await call("grep", {"pattern": "needle"})).text == "a/keep.log:1: needle"
    assert "build/x\t6" in (await call("glob", {"pattern": "**", "path": "build"})).text, "asked for by name"


async def test_glob_tells_how_many_more_there_are(tmp_path: Path, call: Call) -> None:
    """An answer that is cut in silence reads like all there is."""
    for number in range(1_003):
        (tmp_path / f"{number:04}").touch()
    lines = (await call("glob", {"pattern": "*"})).text.split("\n")
    assert lines[-2:] == ["0999\t0", "… and 3 more."]


async def test_names_that_are_no_utf8_are_shown_mended(tmp_path: Path, call: Call) -> None:
    """Other programs name files in bytes."""
    try:
        put(tmp_path, **{os.fsdecode(b"\xff\n.txt"): "needle"})
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert (await call("glob", {"pattern": "*"})).text == "\ufffd\ufffd.txt\t6"
    assert (await call("grep", {"pattern": "needle"})).text == "\ufffd\ufffd.txt:1: needle"


async def test_grep_answers_path_line_and_text(tmp_path: Path, call: Call) -> None:
    """In the order of names and lines, so that the same question has the same answer."""
    put(tmp_path, b_py="x\r\nNeedle ä\r\n", a_py="needle\n\n", c_md="needle")
    (tmp_path / "d.py").write_bytes(b"\0needle")
    (tmp_path / "e.py").write_bytes(b"needle \xff")
    output = await call("grep", {"pattern": "^needle", "glob": "*.py", "ignore_case": True})
    assert output.text == "a.py:1: needle\nb.py:2: Needle ä\ne.py:1: needle \ufffd"
    assert (await call("grep", {"pattern": "^$", "path": "a.py"})).text == "a.py:2: "


async def test_grep_bounds_lines_and_matches(tmp_path: Path, call: Call) -> None:
    """Control characters are the worst case: each takes six in JSON."""
    put(tmp_path, a_txt=("\x01" * 2_000 + "needle" + "\x01" * 2_000 + "\n") * 600)
    lines = (await call("grep", {"pattern": "needle"})).text.split("\n")
    assert len(lines) == 501
    assert lines[-1] == "… there are more matches than 500; narrow the pattern, path or glob."
    assert all("needle" in line and len(line) < 330 for line in lines[:-1])


async def test_grep_tells_which_files_were_too_large(tmp_path: Path, call: Call) -> None:
    """Not found and not looked at are different answers."""
    put(tmp_path, a_txt="x" * 5_000_001)
    assert "1 files over 5000000 bytes were not searched" in (await call("grep", {"pattern": "x"})).text


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{99999999999}", "(?P<a>x)(?P<a>y)", "(" * 5_000])
async def test_grep_explains_a_wrong_expression(call: Call, pattern: str) -> None:
    """Whatever the compiler of expressions does with it."""
    output = await call("grep", {"pattern": pattern})
    assert output.error
    assert "pattern" in output.text


async def test_an_expression_that_never_ends_is_stopped_and_holds_nothing_up(tmp_path: Path) -> None:
    """In this process it would hold the interpreter lock, and with it every session of the host."""
    put(tmp_path, a_txt="a" * 60)
    grep = grep_tool((), {"PATH": os.defpath}, search_s=0.5)
    begin, ticks = time.monotonic(), 0
    async with asyncio.TaskGroup() as group:
        search = group.create_task(grep.run(invocation(tmp_path), {"pattern": "(a+)+b"}))
        while not search.done():
            await asyncio.wait([search], timeout=0.01)
            ticks += 1
    assert search.result().error
    assert "took longer" in search.result().text
    assert ticks > 5
    assert time.monotonic() - begin < 10


async def test_write_makes_folders_and_replaces_with_the_mode_kept(tmp_path: Path, call: Call) -> None:
    """A script stays a script."""
    assert (await call("write", {"path": "a/b/ä.sh", "content": "ü\n"})).text == "Made a/b/ä.sh, 3 bytes."
    path = tmp_path / "a" / "b" / "ä.sh"
    path.chmod(0o751)
    assert (await call("write", {"path": "a/b/ä.sh", "content": ""})).text == "Replaced a/b/ä.sh, 0 bytes."
    assert path.read_text() == ""
    assert path.stat().st_mode & 0o777 == 0o751
    assert [entry.name for entry in path.parent.iterdir()] == ["ä.sh"], "no draft is left"


async def test_write_goes_through_a_link_inside_the_project(tmp_path: Path, call: Call) -> None:
    """The link is how the person laid out the project; it stays."""
    put(tmp_path, a_txt="old")
    (tmp_path / "link").symlink_to("a.txt")
    assert not (await call("write", {"path": "link", "content": "new"})).error
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize("name", ["write", "edit"])
async def test_a_folder_and_a_pipe_are_not_replaced(tmp_path: Path, call: Call, name: str) -> None:
    """A file in their place would break what uses them."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in ("folder", "pipe", "."):
        change = {"content": "x"} if name == "write" else {"old": "a", "new": "b"}
        assert (await call(name, {"path": path, **change})).error
    assert names_in(tmp_path) == ["folder", "pipe"]


async def test_a_read_only_file_is_not_replaced(tmp_path: Path, call: Call) -> None:
    """The folder would allow it; the person who set the mode did not."""
    put(tmp_path, a_txt="a")
    (tmp_path / "a.txt").chmod(0o444)
    assert (await call("write", {"path": "a.txt", "content": "x"})).text == "a.txt is read-only."


async def test_edit_replaces_the_only_occurrence_and_leaves_other_bytes(tmp_path: Path, call: Call) -> None:
    """Bytes that are no UTF-8, and line ends, are not the model's to change."""
    (tmp_path / "a.txt").write_bytes(b"\xff one\r\ntwo \xed\xa0\x80")
    assert (await call("edit", {"path": "a.txt", "old": "two", "new": "2 ä"})).text == "Replaced 1 occurrence in a.txt."
    assert (tmp_path / "a.txt").read_bytes() == b"\xff one\r\n2 \xc3\xa4 \xed\xa0\x80"


@pytest.mark.parametrize(
    ("old", "complaint"),
    [
        ("three", "does not occur in a.txt. It must match exactly, white space included."),
        (
            "one\ntwo",
            "does not occur in a.txt. It must match exactly, white space included; the lines of this file end",
        ),
        ("o", "occurs 3 times in a.txt, at lines 1, 2, 3. Give more"),
        ("aa", "occurs 2 times in a.txt, at lines 4, 4. Give more"),
        ("same", "old and new are the same text"),
    ],
)
async def test_edit_explains_none_and_several(tmp_path: Path, call: Call, old: str, complaint: str) -> None:
    """The model has to know what to change in its next attempt; the file stays as it is."""
    text = "one\r\ntwo\r\no\r\naaa\r\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    output = await call("edit", {"path": "a.txt", "old": old, "new": "same"})
    assert output.error
    assert complaint in output.text
    assert (tmp_path / "a.txt").read_bytes() == text.encode()


async def test_edit_replaces_all_when_asked(tmp_path: Path, call: Call) -> None:
    """For a new name of something."""
    put(tmp_path, a_txt="o" * 30)
    assert "at lines 1, 1," in (await call("edit", {"path": "a.txt", "old": "o", "new": ""})).text
    output = await call("edit", {"path": "a.txt", "old": "o", "new": "", "all": True})
    assert output.text == "Replaced 30 occurrences in a.txt."
    assert (tmp_path / "a.txt").read_text() == ""


async def test_edit_refuses_what_would_grow_without_bound(tmp_path: Path, call: Call) -> None:
    """Two modest texts multiply to one that fills the memory."""
    put(tmp_path, a_txt="o" * 100_000, b_txt="x" * 10_000_001)
    (tmp_path / "c.txt").write_bytes(b"\0o")
    for name in ("a.txt", "b.txt", "c.txt"):
        assert (await call("edit", {"path": name, "old": "o", "new": "x" * 1_000, "all": True})).error


async def test_edits_of_one_file_at_a_time_lose_nothing(tmp_path: Path, call: Call) -> None:
    """A model calls several tools at once, and each edit reads before it writes."""
    put(tmp_path, a_txt="".join(f"<{number}>" for number in range(40)))
    (tmp_path / "link").symlink_to("a.txt")
    async with asyncio.TaskGroup() as group:
        for number in range(40):
            path = "link" if number % 2 else "a.txt"
            edit = call("edit", {"path": path, "old": f"<{number}>", "new": "."})
            group.create_task(asyncio.wait_for(edit, 5))
    assert (tmp_path / "a.txt").read_text() == "." * 40
