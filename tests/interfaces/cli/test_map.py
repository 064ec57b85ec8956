"""The map of a chain: what it reads, and how it draws that as text and as SVG."""

import json
import re
import unicodedata
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.interfaces.cli.conftest import SESSION, Line, Live, Stub

from coterie.core.codes import Code
from coterie.core.ledger.states import MessageState
from coterie.interfaces.cli.chains import Bar, Chain, chain_of
from coterie.interfaces.cli.drawing import draw_svg
from coterie.interfaces.cli.sequence import Arrow, draw, rows

CHAIN: Final = f"chn_{'0' * 32}"
SVG: Final = "{http://www.w3.org/2000/svg}"
HOSTILE: Final = "]]><script>alert('1')</script>&\"\x00\x1b[31m\u202e\ufffe\ud800"
ANY: Final = st.text(st.characters(exclude_categories=()), max_size=30)
STATES: Final = st.sampled_from([*MessageState, "a state of a newer host"])


def message(number: int, source: str, target: str, **more: Any) -> dict[str, Any]:
    """A message as the host shows it, sent in the second of its number and completed within it."""
    return {
        "id": f"msg_{number}",
        "kind": "task",
        "status": "completed",
        "sourceSessionId": source,
        "sourceTitle": source,
        "targetSessionId": target,
        "targetTitle": target,
        "turnId": f"turn_{number}",
        "content": f"Task {number}.",
        "createdAt": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z",
        "updatedAt": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.500Z",
        **more,
    }


def completion(number: int, answered: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What tells the sender of a message how it ended."""
    source, target = answered["targetSessionId"], answered["sourceSessionId"]
    return message(number, source, target, kind="completion", replyToMessageId=answered["id"], **more)


def chain(*messages: dict[str, Any]) -> Chain:
    """A chain of these messages."""
    return chain_of({"chainId": CHAIN, "messages": list(messages)})


def parsed(picture: str) -> ET.Element:
    """The picture as any reader of XML has it."""
    return ET.fromstring(picture.encode("utf-8"))


def texts(picture: str) -> list[str]:
    """What is written in the picture."""
    return ["".join(one.itertext()) for one in parsed(picture).iter(f"{SVG}text")]


@st.composite
def chains(drawn: st.DrawFn) -> Chain:
    """Chains of sessions and messages with any text in them."""
    titles = drawn(st.lists(ANY, min_size=2, max_size=12))
    ids = [str(number) for number in range(len(titles))]
    arrows, bars = list[Arrow](), list[Bar]()
    for _ in range(drawn(st.integers(0, 6))):
        source, target = drawn(st.permutations(ids))[:2]
        answers = drawn(st.none() | STATES)
        arrows.append(Arrow(source, target, drawn(ANY), drawn(STATES), drawn(ANY), answers, drawn(ANY)))
        bars.append(Bar(target, len(arrows) - 1, len(arrows) - 1, drawn(STATES), drawn(st.booleans()), follows=False))
    return Chain(CHAIN, tuple(zip(ids, titles, strict=True)), tuple(arrows), tuple(bars))


async def work(live: Live) -> str:
    """Let the lead give one task to the reader, who answers it; returns its message."""
    for title in ("lead", "reader"):
        await live.host.new_session(title)
    sent = await live.line.json("send", "--from", "lead", "--to", "reader", "--kind", "task", "Count the files.")
    await live.reply(live.host.slots.handed_over[0], "seven")
    return str(sent["messageId"])


async def test_the_map_of_a_session_is_that_of_its_newest_chain(live: Live) -> None:
    """A person knows sessions; which chain their work belongs to is looked up."""
    await work(live)
    told = await live.line.beside("map", "lead")
    assert told.exit_code == 0
    head, _, *picture = told.stdout.splitlines()
    assert re.fullmatch(r"chn_[0-9a-f]{32}: 1 of 128 messages sent, 0 of 64 sessions spawned", head)
    assert picture == [
        "lead                                     reader",
        "  │                                         │",
        "  │─── task by a person: Count the files. ─▶│   completed",
        "  │◀╌╌╌╌╌╌╌╌ task completed: seven ╌╌╌╌╌╌╌╌╌│   running",
        "  │                                         │",
    ]


async def test_a_chain_is_named_by_its_id_or_by_a_message_of_it(live: Live) -> None:
    """Each receipt has the id of a message, and each map that of its chain."""
    message_id = await work(live)
    by_session = await live.line.json("map", "reader")
    assert await live.line.json("map", by_session["chainId"]) == by_session
    assert await live.line.json("map", message_id) == by_session
    assert [one["kind"] for one in by_session["messages"]] == ["task", "completion"]
    unknown = await live.line.beside("map", CHAIN)
    assert (unknown.exit_code, unknown.stderr.partition(":")[0]) == (1, Code.NOT_FOUND)


async def test_a_session_without_messages_says_what_makes_one(live: Live) -> None:
    """There is nothing to draw, and no file is written that looks like a drawing."""
    session_id = await live.host.new_session("lead")
    found = await live.line.beside("map", "lead")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith("NOT_FOUND: The session 'lead' has neither sent nor got a message")
    assert f"coterie send --from {session_id} --to SESSION TEXT" in found.stderr


async def test_a_picture_goes_to_a_file_or_to_the_output_stream(live: Live, tmp_path: Path) -> None:
    """Both are the same bytes, whatever encoding the stream has."""
    await work(live)
    path = tmp_path / "chain.svg"
    to_file = await live.line.beside("map", "lead", "--svg", str(path))
    assert (to_file.exit_code, to_file.stdout, to_file.stderr) == (0, "", f"Wrote {path}.\n")
    to_stream = await live.line.beside("map", "lead", "--svg", "-")
    assert to_stream.stdout == path.read_text("ascii")
    assert "Count the files." in "".join(texts(to_stream.stdout))
    nowhere = await live.line.beside("map", "lead", "--svg", str(tmp_path / "no" / "folder.svg"))
    assert nowhere.exit_code == 2
    assert nowhere.stderr.startswith("INVALID_ARGUMENT: The picture cannot be written to ")
    with_json = await live.line.json("map", "lead", "--svg", str(tmp_path / "again.svg"))
    assert with_json["chainId"] in (tmp_path / "again.svg").read_text("ascii")


def test_two_results_on_one_stream_are_refused(line: Line) -> None:
    """A reader could take neither apart."""
    found = line("map", "lead", "--svg", "-", "--json")
    assert found.exit_code == 2
    assert found.stderr.startswith('{"errorCode": "INVALID_ARGUMENT"')


def test_a_chain_of_several_pages_is_read_to_its_end(line: Line, stub: Stub) -> None:
    """The last pages have what happened last, and the newest budget."""
    first, second = message(1, "a", "b"), message(2, "b", "c")
    stub.says(
        {"chainId": CHAIN, "messages": [first], "budget": {"messages": 1}, "cursor": "1"},
        {"chainId": CHAIN, "messages": [second], "budget": {"messages": 2}},
    )
    told = json.loads(line("map", CHAIN, "--json").stdout)
    assert told == {"chainId": CHAIN, "messages": [first, second], "budget": {"messages": 2}}
    assert [params for _, params in stub.calls] == [{"chainId": CHAIN}, {"chainId": CHAIN, "cursor": "1"}]


def test_a_session_is_asked_for_its_newest_message(line: Line, stub: Stub) -> None:
    """Its summary has it first."""
    exchanges = [{"messageId": "msg_2"}, {"messageId": "msg_1"}]
    budget = {"messages": 1, "messagesMax": 9, "sessions": 2, "sessionsMax": 8, "costUsd": 0.5, "costMaxUsd": 5.0}
    stub.says(
        {"title": "lead", "sessionId": SESSION, "recentExchanges": exchanges},
        {"chainId": CHAIN, "messages": [message(1, "a", "b")], "budget": budget},
    )
    told = line("map", SESSION).stdout
    assert told.startswith(f"{CHAIN}: 1 of 9 messages sent, 2 of 8 sessions spawned, 0.50 of 5.00 US dollars spent\n")
    assert [params for _, params in stub.calls] == [{"sessionId": SESSION}, {"messageId": "msg_2"}]


@pytest.mark.parametrize(
    ("used", "most", "told"),
    [
        (0.01234567, 0.01, "0.01235 of 0.01"),
        (0.000001, 5.0, "0.000001 of 5.00"),
        (0.99999, 1.0, "1.00 of 1.00"),
        (1.239, 0.5, "1.24 of 0.50"),
    ],
)
def test_small_sums_have_digits_enough_to_tell_them_apart(
    line: Line, stub: Stub, *, used: float, most: float, told: str
) -> None:
    """`0.01 of 0.01` does not say that the chain has gone too far."""
    budget = {"messages": 1, "messagesMax": 9, "sessions": 2, "sessionsMax": 8, "costUsd": used, "costMaxUsd": most}
    stub.says({"chainId": CHAIN, "messages": [], "budget": budget})
    assert f", {told} US dollars spent\n" in line("map", CHAIN).stdout


def test_a_completion_says_how_what_it_answers_ended() -> None:
    """Its own state tells only whether the sender has read it."""
    done = message(1, "lead", "reader", result="seven\nfiles")
    failed = message(2, "lead", "writer", status="failed", error="No model.", result="half of it")
    arrows = chain(
        done,
        failed,
        completion(3, done, status="queued", turnId=None),
        completion(4, failed),
        completion(5, message(9, "lead", "elsewhere")),
    ).arrows
    assert [(arrow.label, arrow.text, arrow.state, arrow.answers) for arrow in arrows] == [
        ("task", "Task 1.", "completed", None),
        ("task", "Task 2.", "failed", None),
        ("task completed", "seven files", "queued", "completed"),
        ("task failed", "No model.", "completed", "failed"),
        ("completion", "", "completed", ""),
    ]


def test_what_a_person_sent_for_a_session_is_said_so() -> None:
    """Nobody should take it for a decision of the session."""
    sent = chain(message(1, "a", "b", via="person", kind="message"))
    assert sent.arrows[0].label == "message by a person"


def test_times_are_counted_from_the_first_message() -> None:
    """What matters is how long things took."""
    late = [message(number, "a", "b") for number in (1, 3, 64)]
    late.append(message(65, "a", "b", createdAt="2026-01-01T02:03:05.000Z"))
    assert [arrow.at for arrow in chain(*late).arrows] == ["0.0 s", "2.0 s", "1:03 min", "2:03:04 h"]


def test_sessions_of_one_title_are_told_apart() -> None:
    """By what another command takes for an id; a session that was renamed has its newest title."""
    same = {"sourceTitle": "reader", "targetTitle": "reader"}
    found = chain(
        message(1, "ses_00001111", "ses_00002222", **same),
        message(2, "ses_00001111", "ses_00003333", **same | {"targetTitle": "\u200b"}),
        message(3, "ses_00001111", "ses_00002222", **same),
    )
    assert [title for _, title in found.people] == ["reader 1111", "reader 2222", "3333"]
    renamed = chain(message(1, "a", "b"), message(2, "b", "a", targetTitle="new"))
    assert renamed.people == (("a", "new"), ("b", "b"))


def test_a_bar_lasts_from_a_message_to_its_completion() -> None:
    """What waits behind another turn begins where that has ended, for a session runs one at a time."""
    first, second = message(1, "lead", "reader"), message(2, "lead", "reader")
    bars = chain(first, second, completion(3, first, turnId=None), completion(4, second, turnId=None)).bars
    assert bars == (
        Bar("reader", 0, 2, "completed", runs=False, follows=False),
        Bar("reader", 2, 3, "completed", runs=False, follows=True),
    )


def test_the_bar_of_a_turn_without_a_completion_ends_with_its_message() -> None:
    """Its state changed for the last time when the turn ended; a running one lasts to the end of the picture."""
    ended = message(1, "a", "b", kind="message", updatedAt="2026-01-01T00:00:02.500Z")
    bars = chain(ended, message(2, "b", "c"), message(3, "a", "d", status="running"), message(4, "a", "c", turnId=None))
    assert [(bar.session, bar.first, bar.last, bar.runs) for bar in bars.bars] == [
        ("b", 0, 1, False),
        ("c", 1, 1, False),
        ("d", 2, 3, True),
    ]


def test_turns_that_end_in_one_row_follow_each_other_in_time() -> None:
    """A completion may wait for the end of the turn that reads a later one."""
    one, two = message(1, "lead", "x"), message(2, "lead", "y")
    waited = completion(3, one, updatedAt="2026-01-01T00:00:09.000Z")
    read = completion(4, two, status="failed", updatedAt="2026-01-01T00:00:05.000Z")
    bars = [bar for bar in chain(one, two, waited, read).bars if bar.session == "lead"]
    assert bars == [
        Bar("lead", 3, 3, "failed", runs=False, follows=False),
        Bar("lead", 3, 3, "completed", runs=False, follows=True),
    ]


def test_messages_of_one_turn_share_its_bar() -> None:
    """A turn that has read two completions, or has taken a message in while it ran, is one turn."""
    one, two = message(1, "lead", "x"), message(2, "lead", "y")
    read = {"turnId": "turn_of_lead", "updatedAt": "2026-01-01T00:00:05.000Z"}
    bars = chain(one, two, completion(3, one, **read), completion(4, two, **read)).bars
    assert [bar for bar in bars if bar.session == "lead"] == [Bar("lead", 2, 3, "completed", runs=False, follows=False)]

    begun = message(1, "lead", "reader", turnId="turn_of_reader")
    taken_in = message(2, "lead", "reader", turnId="turn_of_reader")
    bars = chain(begun, taken_in, completion(3, taken_in, turnId=None), completion(4, begun, turnId=None)).bars
    assert bars == (Bar("reader", 0, 3, "completed", runs=False, follows=False),)


def test_labels_take_the_room_that_there_is() -> None:
    """In the arrows while titles fit above the lifelines; a narrow terminal shortens them."""
    people = [("a", "Lead"), ("b", "Reader"), ("c", "Writer")]
    arrows = [
        Arrow("a", "b", "task", "completed", "Count the files of this folder and of those below it."),
        Arrow("c", "a", "task failed", "queued", "No model.", "failed"),
    ]
    assert draw(people, arrows, 60) == (
        "Lead                 Reader                Writer\n"
        "  │                     │                     │\n"
        "  │── task: Count th… ─▶│                     │   completed\n"
        "  │◀╌╌╌╌╌╌╌╌╌ task failed: No model. ╌╌╌╌╌╌╌╌╌│   queued\n"
        "  │                     │                     │"
    )


def test_many_sessions_are_numbered() -> None:
    """With a legend above and the labels beside; where not even lines fit, the numbers say who sent to whom."""
    people = [(str(number), f"session {number}") for number in range(1, 8)]
    arrows = [
        Arrow("1", "7", "task", "completed", "Count."),
        Arrow("7", "1", "task completed", "running", "Seven of them, and not one more.", "completed"),
    ]
    drawn = draw(people, arrows, 70).splitlines()
    assert drawn[:2] == ["  1  session 1", "  2  session 2"]
    assert drawn[8:] == [
        " 1   2   3   4   5   6   7",
        " │   │   │   │   │   │   │",
        " │──────────────────────▶│   task: Count.                    completed",
        " │◀╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│   task completed: Seven of the…   running",
        " │   │   │   │   │   │   │",
    ]
    assert draw(people, arrows, 50).splitlines()[8:] == [
        "  1 ─▶ 7   task: Count.                  completed",
        "  7 ╌▶ 1   task completed: Seven of t…   running",
    ]


def test_what_terminals_give_different_widths_is_taken_apart() -> None:
    """A joined emoji is one or three, by terminal; its parts are two cells each everywhere."""
    people = [("a", "\U0001f468\u200d\U0001f469\u200d\U0001f467"), ("b", "\u2764\ufe0f"), ("c", "\U0001f44d\U0001f3fd")]
    assert draw(people, []).splitlines()[0].split() == ["\U0001f468\U0001f469\U0001f467", "\u2764", "\U0001f44d"]


def test_a_long_picture_repeats_its_heads() -> None:
    """The first ones have left the screen by then."""
    people, arrow = [("a", "Lead"), ("b", "Reader")], Arrow("a", "b", "task", "completed")
    assert "Lead" not in draw(people, [arrow] * 20).splitlines()[-1]
    assert draw(people, [arrow] * 21).splitlines()[-1] == draw(people, [arrow]).splitlines()[0]


@given(chains(), st.integers(30, 220))
def test_any_text_keeps_the_lifelines_straight(found: Chain, width: int) -> None:
    """Titles and contents are others' words: nothing in them moves, widens, turns or colours a line."""
    drawn = rows(found.people, found.arrows, width)
    states = max((cell_len(arrow.state) for arrow in found.arrows), default=0)
    pictures = [line for line, state in drawn if state]
    assert len(pictures) == len(found.arrows)
    assert len({cell_len(line) for line in pictures}) <= 1
    assert all(cell_len(line) + states <= width for line in pictures)
    shown = "".join(line for line, _ in drawn)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(chains())
def test_the_picture_is_well_formed_whatever_is_in_it(found: Chain) -> None:
    """One character that XML forbids, or one that is markup, and nobody could open the file."""
    picture = draw_svg(found)
    root = parsed(picture)
    assert root.tag == f"{SVG}svg"
    allowed = {"svg", "title", "desc", "style", "g", "rect", "path", "text", "tspan"}
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= allowed
    names = {name for one in root.iter() for name in one.attrib}
    assert not {name for name in names if name.startswith("on") or "href" in name}
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg\")", picture.partition("</style>")[0])
    assert draw_svg(found) == picture


def test_hostile_words_are_words() -> None:
    """They are read as they were written, without what no file can hold."""
    people = (("a", HOSTILE), ("b", "Reader"))
    picture = draw_svg(Chain(CHAIN, people, (Arrow("a", "b", HOSTILE, HOSTILE, HOSTILE),), ()))
    desc = parsed(picture).findtext(f"{SVG}desc")
    assert desc is not None
    assert "]]><script>alert('1')</script>&\"\ufffd\ufffd[31m" in desc
    assert "<script" not in picture


def test_the_picture_says_everything_without_colour() -> None:
    """States are words, who does not see the picture reads it, and both schemes have every colour."""
    done = message(1, "lead", "reader", result="seven")
    picture = draw_svg(chain(done, completion(2, done, status="queued", turnId=None)))
    root = parsed(picture)
    assert root.findtext(f"{SVG}title") == "Messages between lead and reader"
    assert root.findtext(f"{SVG}desc") == (
        "1. lead to reader, task, completed: Task 1.\n2. reader to lead, task completed, queued: seven"
    )
    assert root.attrib["aria-labelledby"].split() == [one.attrib["id"] for one in root if "id" in one.attrib]
    assert texts(picture)[2:-2] == [
        *("1", "0.0 s", "taskTask 1.", "completed"),
        *("2", "1.0 s", "task completedseven", "queued"),
    ]
    light, _, dark = (root.findtext(f"{SVG}style") or "").partition("@media (prefers-color-scheme:dark)")
    selectors = re.findall(r"[^{}]+(?=\{(?:fill|stroke):)", dark)
    assert len(selectors) > 20
    assert all(f"{selector}{{" in light for selector in selectors)


@pytest.mark.parametrize("count", [1, 3, 13])
def test_everything_is_inside_the_picture(count: int) -> None:
    """The view box fits: nothing is cut off at its edges."""
    sent = [message(number, "lead", f"s{number % 14}", status="running") for number in range(1, count + 1)]
    root = parsed(draw_svg(chain(*sent)))
    _, _, width, height = (int(edge) for edge in root.attrib["viewBox"].split())
    for one in root.iter(f"{SVG}rect"):
        x, y, wide, high = (int(one.attrib.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height
        assert high > 0
    heads = [text for text in texts(draw_svg(chain(*sent))) if text == "lead"]
    assert len(heads) == (1 if count <= 12 else 2)


def test_long_words_are_shortened_with_an_ellipsis() -> None:
    """By code point, to what has room; the whole start of the text is in the description."""
    long = message(1, "lead", "reader", content="x" * 1000, targetTitle="Å" * 200)
    picture = draw_svg(chain(long))
    shown = [text for text in texts(picture) if "…" in text]
    assert all(re.fullmatch("Å+…|lead and Å+…|taskx+…", text) for text in shown)
    assert len(shown) == 3
    assert (parsed(picture).findtext(f"{SVG}desc") or "").endswith(f": {'x' * 240}")
