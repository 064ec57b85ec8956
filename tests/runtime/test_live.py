"""What tools print live comes in pieces that a watcher can bear."""

import asyncio

from coterie.runtime.live import CHARS_MAX, live_text


async def test_what_comes_within_a_moment_is_one_piece() -> None:
    """The first piece is there at once; a program that prints a thousand lines is not a thousand events."""
    pieces, came = list[str](), asyncio.Event()

    def publish(text: str) -> None:
        pieces.append(text)
        if len(pieces) == 2:
            came.set()

    with live_text(publish) as show:
        for number in range(1000):
            show(f"{number}\n")
            if number == 0:
                assert pieces == ["0\n"]
        show("")
        async with asyncio.timeout(5):
            await came.wait()
    assert pieces == ["0\n", "".join(f"{number}\n" for number in range(1, 1000))]


async def test_the_rest_is_shown_when_the_call_ends_and_nothing_behind_it() -> None:
    """Live text that comes behind the result would be taken for the next call's."""
    pieces = list[str]()
    with live_text(pieces.append) as show:
        show("a")
        show("b\0")
    show("c")
    assert pieces == ["a", "b\ufffd"]


async def test_a_flood_is_shown_up_to_a_bound() -> None:
    """The result has more of it; whoever only looks needs no megabytes."""
    pieces = list[str]()
    with live_text(pieces.append) as show:
        show("x" * (CHARS_MAX - 1))
        show("yz")
        show("z")
    assert "".join(pieces) == "x" * (CHARS_MAX - 1) + "y\n… more is not shown live …\n"
