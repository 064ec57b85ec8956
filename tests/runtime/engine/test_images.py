"""Images that a model reads: in its vendor's own form where it takes them, an error where it does not."""

import base64
import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import pytest
from tests.runtime.engine.conftest import SetStage, Stage, system_text
from tests.runtime.engine.wire import WIRES

from coterie.core.model_ref import Binding
from coterie.core.turn.items import Image, ToolResult
from coterie.core.turn.states import TurnState
from coterie.interfaces.cli.tables import item_lines
from coterie.runtime.pictures import REQUEST_BYTES_MAX, fetched, without
from coterie.runtime.tools.reading import IMAGE_BYTES_MAX
from coterie.storage.blobs import FileOutputs
from coterie.testing.clock import FakeClock

PIXEL: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CODED: Final = base64.b64encode(PIXEL).decode()
URL: Final = f"data:image/png;base64,{CODED}"
READS: Final = """
- when: {user: '^look at (?P<path>\\S+)$', last: user}
  reply: {calls: [{tool: read, arguments: {path: "${user.path}"}}]}
- {reply: {text: done}}
"""
FORMS: Final[dict[str, dict[str, Any]]] = {
    "openai-chat": {"type": "image_url", "image_url": {"url": URL}},
    "openai-responses": {"type": "input_image", "image_url": URL, "detail": "auto"},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": CODED}},
}
"""An image as each wire has it."""


async def _take(host: Stage, api: str = "openai-chat", **more: Any) -> None:
    """Have all models take images, over a wire; but for the one that is called `other`."""
    await host.stop()
    url = f"{host.server.url}{WIRES[api]}"
    models = [replace(one, api=api, base_url=url, **more) for one in host.settings.models if one.base_url]
    host.settings = replace(host.settings, models=tuple(replace(one, images=one.model != "other") for one in models))
    await host.start()


async def _look(host: Stage, session: str, *paths: str) -> None:
    for path in paths:
        await host.prompt(session, f"look at {path}")
        assert (await host.ended(session)).state is TurnState.COMPLETED


def _blocks(value: object) -> Iterator[dict[str, Any]]:
    """The images of a request."""
    if isinstance(value, Mapping):
        found = cast("dict[str, Any]", value)
        if found.get("type") in {"image_url", "input_image", "image"}:
            yield found
            return
        for one in found.values():
            yield from _blocks(one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _blocks(one)


@pytest.mark.parametrize("api", WIRES)
async def test_a_model_that_takes_images_is_shown_what_it_reads(stage: SetStage, api: str) -> None:
    """Also in later requests and after a restart; the transcript has where it is, and not the bytes."""
    host = await stage(READS)
    await _take(host, api)
    (host.project / "a.txt").write_bytes(PIXEL)
    session = await host.session(folder=True)
    await _look(host, session, "a.txt")
    await host.restart()
    await _look(host, session, "b.txt")

    shown = [list(_blocks(request)) for request in host.asked()]
    assert [[_plain(block) for block in blocks] for blocks in shown] == [[], *[[FORMS[api]]] * 3]
    first = (await host.items(session))[2]
    assert (first["text"], "error" in first) == (f"a.txt, an image (image/png, {len(PIXEL)} bytes).", False)
    kept = host.settings.data_dir / "blobs" / first["imageRef"]
    assert (kept.read_bytes(), stat.S_IMODE(kept.stat().st_mode)) == (PIXEL, 0o600)
    assert CODED not in json.dumps(await host.items(session))
    assert f"(the image: blobs/{first['imageRef']} in the data directory)" in item_lines(first)


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    """Without what is said about caches."""
    return {name: value for name, value in block.items() if name != "cache_control"}


async def test_a_model_that_takes_no_images_is_told_so(stage: SetStage) -> None:
    """Its vendor would refuse the request, and every later one of the session."""
    host = await stage(READS)
    (host.project / "a.png").write_bytes(PIXEL)
    session = await host.session(folder=True)
    await _look(host, session, "a.png")

    (result,) = [item for item in await host.items(session) if item["kind"] == "tool_result"]
    assert result["error"]
    assert result["text"] == (
        f"a.png, an image (image/png, {len(PIXEL)} bytes). It is not shown: the model local/one takes no images. "
        "(Those that do have `images = true`.)"
    )
    assert "imageRef" not in result
    assert not list(_blocks(host.asked()))


async def test_another_model_and_a_lost_file_get_a_word_in_place_of_the_image(stage: SetStage) -> None:
    """A session outlives its model, and what is kept may be removed; neither may end the session."""
    host = await stage(READS)
    await _take(host)
    (host.project / "a.png").write_bytes(PIXEL)
    session, second = await host.session(folder=True), await host.session(folder=True)
    for one in (session, second):
        await _look(host, one, "a.png")
    await host.ask("session.configure", sessionId=session, model="other")
    await _look(host, session, "nothing")
    (host.settings.data_dir / "blobs" / (await host.items(second))[2]["imageRef"]).unlink()
    await _look(host, second, "nothing")

    blind, bereft = host.asked("other")[-1], host.asked("one")[-1]
    for request in (blind, bereft):
        assert not list(_blocks(request))
        assert json.dumps(request).count("[The host: the image itself is not in this request.]") == 1


async def test_a_checkpoint_ends_an_image(stage: SetStage) -> None:
    """What was seen is in the summary; the request for that is of words alone."""
    host = await stage("- {when: {system: 'older part of a conversation'}, reply: {text: I saw it.}}\n", READS)
    await _take(host, context_window=20_000)
    (host.project / "a.png").write_bytes(PIXEL)
    session = await host.session(folder=True)
    await _look(host, session, "a.png")
    for _ in range(2):
        await host.prompt(session, "word " * 7_000)
        await host.idle(session)

    assert [len(list(_blocks(request))) for request in host.asked()] == [0, 1, 1, 0, 0]
    assert ["older part" in system_text(request) for request in host.asked()] == [False, False, False, True, False]
    assert "an image (image/png" in json.dumps(host.asked()[3])


async def test_a_subagent_sees_images_too(stage: SetStage) -> None:
    """It reads for its session; the bytes are kept for as long as it may ask again."""
    give = "- {when: {user: '^give', last: user}, reply: {calls: [{tool: task, arguments: {prompt: look at a.png}}]}}\n"
    host = await stage(give, READS)
    await _take(host)
    (host.project / "a.png").write_bytes(PIXEL)
    session = await host.session(folder=True)
    await host.prompt(session, "give it away")
    await host.idle(session)

    assert [list(_blocks(request)) for request in host.asked() if list(_blocks(request))] == [[FORMS["openai-chat"]]]


@pytest.mark.parametrize(
    ("start", "media_type"),
    [
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF87a\0", "image/gif"),
        (b"GIF89a\0", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"\x89PNG\0", None),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
    ],
)
async def test_an_image_is_one_by_what_stands_in_it(stage: SetStage, start: bytes, media_type: str | None) -> None:
    """A wrong type is refused by the vendor, and a name may be wrong."""
    host = await stage(READS)
    await _take(host)
    (host.project / "a.png").write_bytes(start)
    session = await host.session(folder=True)
    await _look(host, session, "a.png")

    (text,) = await host.results(session)
    assert text == (
        f"a.png, an image ({media_type}, {len(start)} bytes)."
        if media_type
        else f"a.png is a binary file of {len(start)} bytes, which read does not show."
    )


async def test_an_image_that_no_vendor_takes_is_refused(stage: SetStage) -> None:
    """The error names the bound, so that the model can make it smaller."""
    host = await stage(READS)
    await _take(host)
    for name, size in (("fits.png", IMAGE_BYTES_MAX), ("large.png", IMAGE_BYTES_MAX + 1)):
        (host.project / name).write_bytes(PIXEL + b"\0" * (size - len(PIXEL)))
    session = await host.session(folder=True)
    await _look(host, session, "fits.png", "large.png")

    fits, large = await host.results(session)
    assert fits == "fits.png, an image (image/png, 3750000 bytes)."
    assert large == "large.png is an image of 3750001 bytes; read takes images of at most 3750000. Make it smaller."


async def test_an_image_that_cannot_be_kept_is_not_shown(stage: SetStage) -> None:
    """A later request could not show it again, and the two would tell different stories."""
    host = await stage(READS)
    await _take(host)
    (host.settings.data_dir / "blobs").write_text("in the way")
    (host.project / "a.png").write_bytes(PIXEL)
    session = await host.session(folder=True)
    await _look(host, session, "a.png")

    (text,) = await host.results(session)
    assert "It is not shown, because it could not be kept: " in text
    assert not list(_blocks(host.asked()))


def test_a_request_carries_the_newest_images_that_have_room(tmp_path: Path) -> None:
    """The same one twice is sent twice and held once; older ones become a word."""
    kept = FileOutputs(tmp_path / "blobs", FakeClock())
    size = REQUEST_BYTES_MAX // 2
    images = [Image(kept.keep_image(bytes([n])), "image/png", size) for n in range(3)]
    seen = tuple(ToolResult(f"{n}", "read", "x", image=images[which]) for n, which in enumerate((0, 1, 2, 2)))
    takes = Binding("local/one", "openai-chat", None, "one", images=True)

    found = fetched(kept, takes, seen)
    assert dict(found) == {images[2].ref: b"\2", images[1].ref: b"\1"}
    assert without(seen, found) == (
        ToolResult("0", "read", "x\n[The host: the image itself is not in this request.]"),
        *seen[1:],
    )
    assert fetched(kept, replace(takes, images=False), seen) == fetched(None, takes, seen) == {}
