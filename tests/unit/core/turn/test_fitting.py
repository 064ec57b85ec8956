"""Whether a request fits its model, and what is shown where not everything can be."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.turn.test_context import ORIGIN, calls, names

from coterie.core.turn.context import Shown, UserPart, newest_checkpoint, shown
from coterie.core.turn.fitting import (
    IMAGE_TOKENS,
    allowance,
    fit,
    measure,
    older,
    shortened,
    spared,
    tokens_of,
    transcribed,
    weight,
)
from coterie.core.turn.items import (
    Checkpoint,
    Image,
    Item,
    PersonText,
    Reply,
    SessionText,
    ToolCall,
    ToolResult,
    Usage,
)
from coterie.core.turn.todo import TODO

texts = st.text(st.sampled_from("a é世😀\n"), max_size=3).flatmap(lambda text: st.integers(0, 400).map(text.__mul__))
items = st.lists(
    st.one_of(
        st.builds(PersonText, texts),
        st.builds(SessionText, st.just(ORIGIN), texts, st.just("n")),
        st.builds(Reply, texts, calls.map(tuple), texts, st.just("b"), st.sampled_from([None, "{}"])),
        st.builds(ToolResult, names, st.sampled_from(["tool", TODO]), texts, st.booleans()),
        st.builds(ToolResult, names, st.just("read"), texts, image=st.just(Image("ab", "image/png", 9))),
        st.builds(Checkpoint, texts, st.just(1), todo=st.none() | texts),
    ),
    max_size=20,
)
LINE = "earlier entries of this conversation are left out here"


def _step(number: int, size: int = 400) -> list[Item]:
    """A reply that calls a tool, and the result."""
    return [Reply("", (ToolCall(f"c{number}", "bash", "{}"),)), ToolResult(f"c{number}", "bash", f"{number}" * size)]


def _texts(parts: Sequence[Shown]) -> list[str]:
    return [part.text.partition("\n")[0][:40] for part in parts]


@given(items, st.integers(400, 3000), st.integers(0, 5))
def test_what_is_shown_fits_and_no_call_is_parted_from_its_result(
    transcript: list[Item], room: int, left_out: int
) -> None:
    """However a transcript looks: a request that is too long, or that tears a pair, is refused by the vendor."""
    found = fit(transcript, left_out, room)
    assert weight(found) <= room
    at = 0
    while at < len(found):
        part = found[at]
        assert not isinstance(part, ToolResult), "a result without a call"
        at += 1
        if isinstance(part, Reply):
            results = found[at : at + len(part.calls)]
            answered = {result.call_id for result in results if isinstance(result, ToolResult)}
            assert answered == {call.id for call in part.calls}
            at += len(results)


@given(items, st.integers(400, 3000))
def test_the_checkpoint_and_what_was_asked_last_stay(transcript: list[Item], room: int) -> None:
    """Cut at most: without them a model would not know what it is doing."""
    found, whole = fit(transcript, 0, room), shown(transcript)
    if newest_checkpoint(transcript) is not None:
        assert found[0] == whole[0] or weight(whole[:1]) > room // 4
        whole = whole[1:]
    heard = [part for part in whole if isinstance(part, UserPart)]
    if heard:
        last = [part for part in found if isinstance(part, UserPart)][-1]
        assert last == heard[-1] or weight(heard[-1:]) > room // 4


@given(items)
def test_what_has_room_is_shown_as_it_is(transcript: list[Item]) -> None:
    """Only a line tells of what was not read."""
    assert fit(transcript, 0, 1_000_000) == shown(transcript)
    with_line = fit(transcript, 3, 1_000_000)
    assert [part for part in with_line if LINE not in str(part)] == list(shown(transcript))
    assert sum(LINE in str(part) for part in with_line) == 1


def test_the_oldest_exchanges_are_dropped_whole_and_a_line_says_so() -> None:
    """A model that saw an answer without its question would make one up."""
    exchanges = [[PersonText(f"ask {number}"), *_step(number), Reply(f"said {number}")] for number in range(6)]
    found = fit([item for one in exchanges for item in one], 4, 420)
    assert _texts(found)[1:] == ["ask 4", "", "4" * 40, "said 4", "ask 5", "", "5" * 40, "said 5"]
    assert found[0] == UserPart(f"[The host: 20 {LINE}, because they do not fit.]")


def test_an_exchange_that_is_too_long_by_itself_loses_its_oldest_steps_and_keeps_its_question() -> None:
    """A turn of two hundred calls must not forget what it is for."""
    found = fit([PersonText("old"), Reply("x"), PersonText("do it"), *_step(1), *_step(2), *_step(3)], 0, 300)
    assert _texts(found) == ["[The host: 6 earlier entries of this con", "do it", "", "3" * 40]


def test_what_a_turn_was_asked_stays_beside_what_joined_it_later() -> None:
    """A word on the way, or the report of a delegation, is not what the turn is for."""
    task = PersonText("do it")
    items = [PersonText("old"), task, *_step(1), *_step(2), PersonText("and that"), *_step(3), *_step(4)]
    found = fit(items, 0, 300, task)
    assert _texts(found) == ["[The host: 7 earlier entries of this con", "do it", "and that", "", "4" * 40]
    long = PersonText("do it " * 2_000)
    found = fit([PersonText("old"), long, *_step(1), PersonText("x" * 9_000)], 0, 800, long)
    assert _texts(found) == ["old", "do it " * 6 + "do i", "", "1" * 40, "x" * 40]
    assert max(map(weight, zip(found))) < 110


def test_a_summary_leaves_less_where_the_provider_counts_more() -> None:
    """Else a dense text would be summarised bit by bit, before each request."""
    counted = Reply("x" * 4_000, usage=Usage(5_000, 0))
    assert spared([PersonText("x" * 4_000), counted], 0, 1_000) < spared([PersonText("x" * 4_000)], 0, 1_000) == 200
    assert spared([], 0, 1_000) == 200


def test_replies_that_nobody_asked_for_are_dropped_from_the_oldest_on() -> None:
    """What was heard may lie behind the end of what was read."""
    found = fit([*_step(1), *_step(2), *_step(3)], 0, 220)
    assert _texts(found) == ["[The host: 4 earlier entries of this con", "", "3" * 40]


def test_one_entry_that_is_larger_than_the_window_is_cut_to_head_and_tail() -> None:
    """By the one way to cut: both ends, and a line between them."""
    call = ToolCall("1", "write", "w" * 9_000)
    reply = Reply("r" * 9_000, (call,), "t" * 9_000, "b", "{}")
    found = fit([PersonText("q" * 9_000), reply, ToolResult("1", "write", "begin" + "x" * 9_000 + "end")], 0, 1_500)
    asked, said, result = found
    assert isinstance(said, Reply)
    assert (said.state, said.thinking) == (None, "")
    for text in (asked.text, said.text, said.calls[0].arguments, result.text):
        assert "9000 characters in all" in text or "9008 characters in all" in text
    assert result.text.endswith("end")
    assert weight(found) <= 1_500


def test_a_short_reply_beside_a_long_result_stays_as_it_is() -> None:
    """Its state too: what fits is not touched."""
    reply = Reply("hm", (ToolCall("1", "bash", "{}"),), state="{}", binding="b")
    found = fit([reply, ToolResult("1", "bash", "x" * 9_000)], 0, 800)
    assert found[0] == reply


def test_an_image_takes_its_room_and_goes_before_the_words_about_it() -> None:
    """It cannot be cut; and what only people see takes none."""
    image = Image("ab", "image/png", 9)
    reply, result = Reply("", (ToolCall("1", "read", "{}"),)), ToolResult("1", "read", "x" * 400, image=image)
    assert weight([result]) == weight([replace(result, image=None)]) + IMAGE_TOKENS
    assert weight([result]) == weight([replace(result, diff="+" * 8_000)])
    whole, scarce = (fit([reply, result], 0, room)[1] for room in (4_000, 1_000))
    assert whole == result
    assert scarce == replace(result, image=None)
    wide, narrow = (fit([Reply("r" * size, reply.calls), result], 0, 3_800)[1] for size in (8_000, 16_000))
    assert [isinstance(one, ToolResult) and one.image for one in (wide, narrow)] == [image, image]


@given(st.text(), st.integers(1, 50))
def test_a_shortened_text_has_room(text: str, tokens: int) -> None:
    """In every script, at every length."""
    assert tokens_of(shortened(text, tokens)) <= tokens


def test_four_bytes_are_a_token() -> None:
    """Said in the documentation; other scripts than Latin have more bytes a character, as they have more tokens."""
    assert [tokens_of(text) for text in ("", "a", "abcd", "abcde", "世世世世", "😀")] == [0, 1, 1, 2, 3, 1]


def test_what_the_provider_counted_is_believed_before_the_estimate() -> None:
    """The newest count, with what was written then and what came since; none from before the checkpoint."""
    counted, new = Reply("said", usage=Usage(5_000, 100)), PersonText("x" * 400)
    assert measure([PersonText("x"), counted, new], 700) == 5_000 + 100 + weight([new])
    assert measure([Reply("s", usage=Usage(9, 9)), counted], 700) == 5_100
    partly = Reply("said", usage=Usage(5_000))
    assert measure([partly], 700) == 5_000 + weight([partly])
    assert measure([PersonText("x" * 40_000), Reply("said", usage=Usage(50, 1))], 700) > 10_700
    assert measure([counted, Checkpoint("sum", 1), new], 700) == 700 + weight([counted, Checkpoint("sum", 1), new])
    assert measure([Reply("said"), new], 700) == 700 + weight([Reply("said"), new])


def test_the_room_is_smaller_where_the_provider_counts_more() -> None:
    """Dense text has more tokens than the estimate says; a count that makes no sense leaves a quarter."""
    text = PersonText("x" * 40_000)
    assert allowance([text], 1_000, 100_000) == 79_000
    twice = Reply("", usage=Usage(2 * (1_000 + weight([text])), 0))
    assert 38_000 < allowance([text, twice], 1_000, 100_000) < 39_100
    assert allowance([text, Reply("", usage=Usage(10_000_000, 0))], 1_000, 100_000) == 25_000
    assert allowance([], 0, 100_000) == 80_000


def test_a_summary_covers_what_is_older_than_the_newest_steps() -> None:
    """And parts no call from its result; the very newest step is left whatever its size."""
    transcript: list[Item] = [PersonText("go"), *_step(1), *_step(2), Reply(""), *_step(3)]
    one, two = weight(_step(3)), weight([*_step(2), Reply(""), *_step(3)])
    assert older(transcript, one) == 6
    assert older(transcript, one + weight([Reply("")])) == 5
    assert older(transcript, two) == 3
    assert older(transcript, 1) == 6
    assert older(transcript, 10_000) == 0
    assert older([], 10) == 0
    assert older([ToolResult("1", "bash", "x" * 400), Reply("y")], 10) == 1
    # The checkpoint stands where it was written, and is neither older nor newer than what is around it.
    assert older([PersonText("go"), *_step(1), Checkpoint("x", 1), *_step(2)], weight(_step(2))) == 4


def test_a_conversation_to_be_summarised_is_one_text() -> None:
    """With speakers, calls and results, cut to its room."""
    transcript = [Checkpoint("earlier", 3), PersonText("go"), *_step(1, 3), Reply("done")]
    told = transcribed(transcript, 1_000)
    assert told.endswith("[heard]\ngo\n\n[you said]\n\n[calls bash {}]\n\n[bash answered]\n111\n\n[you said]\ndone")
    assert "\nearlier\n" in told
    assert tokens_of(transcribed([PersonText("x" * 9_000)], 200)) <= 200


def test_what_another_session_wrote_is_weighed_with_its_frame() -> None:
    """The estimate is no smaller than what is shown."""
    framed = SessionText(ORIGIN, "x" * 400, "n" * 32)
    assert weight(shown([framed])) <= weight([framed]) < weight(shown([framed])) + 100
