"""Outputs that are too long for a context: head and tail before the model, the whole in a file, read in pieces."""

import hashlib
import json
import stat
from pathlib import Path
from typing import Final

import pytest
from tests.runtime.engine.conftest import SetStage, Stage

from coterie.core.turn.states import TurnState
from coterie.runtime.tools.process import OUTPUT_BYTES_MAX

FLOOD: Final = "echo begin; head -c {size} /dev/zero | tr '\\0' x; echo; echo end"
DONE: Final = "- {reply: {text: done}}\n"
READS: Final = """
- when: {user: "read (?P<ref>[0-9a-f]{64}) from (?P<offset>[0-9]+)", last: user}
  reply:
    calls: [{tool: read_output, arguments_text: '{"ref": "${user.ref}", "offset": ${user.offset}}'}]
"""


def _floods(size: int) -> str:
    """A rule: on "go" the model runs a command that prints *size* characters."""
    call = json.dumps({"tool": "bash", "arguments": {"command": FLOOD.format(size=size)}})
    return f"- {{when: {{user: '^go', last: user}}, reply: {{calls: [{call}]}}}}\n"


async def _flooded(host: Stage) -> tuple[str, str, Path]:
    """Run the command in a session; returns it with the reference and the file that it leads to."""
    session = await host.session(mode="auto", folder=True)
    await host.prompt(session, "go")
    assert (await host.ended(session)).state is TurnState.COMPLETED
    (ref,) = [item["outputRef"] for item in await host.items(session) if item["kind"] == "tool_result"]
    return session, ref, host.settings.data_dir / "blobs" / ref


async def test_a_flood_from_a_tool_is_kept_by_reference(stage: SetStage) -> None:
    """Case 117: thirteen megabytes never reach a model or a row; both ends do, and the way to the rest."""
    host = await stage(_floods(13_000_000), DONE)
    session, ref, path = await _flooded(host)
    await host.prompt(session, "more")
    assert (await host.ended(session)).state is TurnState.COMPLETED

    (text,) = await host.results(session)
    largest = max(len(json.dumps(request)) for request in host.asked())
    told = f"output {path.stat().st_size} bytes, shown {len(text)} characters, largest request {largest} characters"
    print(told)  # noqa: T201 - figures of the proof
    assert len(text) <= host.settings.limits.tool_result_chars_max
    assert text.startswith("begin\nxxx")
    assert text.endswith("\nend\nexit status 0")
    assert f"13000024 characters in all; the middle is left out; read_output with ref {ref} shows it" in text
    assert largest < 100_000
    kept = path.read_bytes()
    assert kept == b"begin\n" + b"x" * 13_000_000 + b"\nend\nexit status 0"
    assert hashlib.sha256(kept).hexdigest() == ref
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


async def test_the_rest_is_read_in_pieces(stage: SetStage) -> None:
    """Each piece fits a context as it is, says where it stands, and the pieces are the whole."""
    host = await stage(READS, _floods(70_000), DONE, tool_result_chars_max=30_000)
    session, ref, path = await _flooded(host)
    whole, found, offset = path.read_text(), "", 0
    while len(found) < len(whole):
        await host.prompt(session, f"read {ref} from {offset}")
        await host.idle(session)
        head, _, piece = (await host.results(session))[-1].partition("\n")
        found, offset = found + piece, offset + len(piece)
        goes_on = f"read on with offset {offset}" if offset < len(whole) else "the end of the output"
        assert head == f"Characters {offset - len(piece) + 1}-{offset}; {goes_on}"

    assert (found, len(await host.results(session))) == (whole, 4)
    await host.prompt(session, f"read {ref} from {offset}")
    await host.idle(session)
    assert (await host.results(session))[-1] == f"The output has no character behind offset {offset}."
    assert [one.name for one in path.parent.iterdir()] == [ref]


async def test_only_the_session_that_was_told_of_an_output_reads_it(stage: SetStage) -> None:
    """A reference is no right: what one session printed is not the affair of another that guessed or was sent it."""
    host = await stage(READS, _floods(70_000), DONE)
    session, ref, path = await _flooded(host)
    other = await host.session()
    fork = (await host.ask("session.fork", sessionId=session))["session"]["id"]

    for reader in (other, fork):
        await host.prompt(reader, f"read {ref} from 69000")
        await host.idle(reader)
    path.unlink()
    await host.prompt(session, f"read {ref} from 0")
    await host.idle(session)

    assert (await host.results(other)) == [
        "No tool result of this session has that ref; copy it from one that was cut."
    ]
    assert (await host.results(fork))[-1].startswith("Characters 69001-70024; the end of the output\nxxx")
    assert (await host.results(session))[-1] == "The output cannot be read any more: No such file or directory."


async def test_other_tools_stay_out_of_what_is_kept(stage: SetStage, tmp_path: Path) -> None:
    """The data directory is closed to them, even where a project folder holds it."""
    host = await stage(
        """
        - when: {user: '^look at (?P<path>\\S+)', last: user}
          reply: {calls: [{tool: read, arguments: {path: "${user.path}"}}]}
        """,
        _floods(70_000),
        DONE,
    )
    _, ref, path = await _flooded(host)
    session = (await host.ask("session.create", title="above", projectPath=str(tmp_path)))["session"]["id"]
    await host.prompt(session, f"look at {path.relative_to(tmp_path)}")
    await host.idle(session)

    (text,) = await host.results(session)
    assert text.endswith("is closed to tools: it belongs to the host.")
    assert ref in text


async def test_an_output_that_cannot_be_kept_is_cut_all_the_same(stage: SetStage) -> None:
    """A full disk must not end the turn; the model is told that the middle is lost."""
    host = await stage(_floods(70_000), DONE)
    (host.settings.data_dir / "blobs").write_text("in the way")
    session = await host.session(mode="auto", folder=True)
    await host.prompt(session, "go")
    assert (await host.ended(session)).state is TurnState.COMPLETED

    (text,) = await host.results(session)
    assert "the middle is left out and could not be kept" in text


async def test_a_program_that_never_stops_printing_fills_no_memory(stage: SetStage) -> None:
    """What is held of an output has a bound of its own, and says how much is missing."""
    host = await stage(_floods(OUTPUT_BYTES_MAX * 2), DONE)
    _, _, path = await _flooded(host)

    kept = path.read_text()
    assert len(kept) < OUTPUT_BYTES_MAX + 200
    assert f"\n… {OUTPUT_BYTES_MAX + 11} bytes are left out …\n" in kept
    assert kept.endswith("x\nend\nexit status 0")


@pytest.mark.parametrize("ref", ["../../token", "a" * 63, "A" * 64, "a" * 64 + "\\n"])
async def test_a_reference_that_is_none_is_refused(stage: SetStage, ref: str) -> None:
    """It names a file, so nothing but the name of one may get through."""
    call = f'{{tool: read_output, arguments_text: \'{{"ref": "{ref}"}}\'}}'
    host = await stage(f"- {{when: {{last: user}}, reply: {{calls: [{call}]}}}}\n", DONE)
    session = await host.session()
    await host.prompt(session, "go")
    await host.idle(session)

    (text,) = await host.results(session)
    assert text.startswith("The arguments do not fit: ref: String should match pattern")


async def test_what_a_session_kept_goes_when_no_transcript_names_it_and_it_is_old(stage: SetStage) -> None:
    """Text that nobody can read any more must not lie about for ever; a young file may wait for its row."""
    host = await stage(_floods(40_000), DONE)
    session, _, path = await _flooded(host)
    fork = (await host.ask("session.fork", sessionId=session))["session"]["id"]
    found = [path.exists()]
    await host.ask("session.delete", sessionId=session)
    host.clock.advance(3_601)
    await host.restart()
    found.append(path.exists())
    await host.ask("session.delete", sessionId=fork)
    found.append(path.exists())
    assert found == [True, True, False]


async def test_an_output_of_now_stays_although_no_row_names_it_yet(stage: SetStage) -> None:
    """The file comes before the row, and another session may be deleted in between."""
    host = await stage(DONE)
    outputs = host.engine.operations.host.outputs
    assert outputs is not None
    ref = outputs.keep("long")
    other = await host.session()
    await host.ask("session.delete", sessionId=other)
    assert outputs.piece(ref, 0, 9) == ("long", False)
    host.clock.advance(3_601)
    assert outputs.keep("long") == ref
    assert outputs.old() == []
