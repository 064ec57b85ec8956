"""Text: what is visible, what can be stored, and one way to cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.text import cut, flaw_of, head_and_tail, is_blank, mend, nearest

any_text = st.text()
with_surrogates = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\ud800\udfff😀é\u200b"))


@given(with_surrogates)
def test_mended_text_has_no_flaw_and_the_same_length(text: str) -> None:
    """What the world produced is kept as far as it can be, and can be written as UTF-8."""
    mended = mend(text)
    assert flaw_of(mended) is None
    assert len(mended) == len(text)
    mended.encode()


@given(any_text.filter(lambda text: "\x00" not in text))
def test_sound_text_is_left_as_it_is(text: str) -> None:
    """Emoji outside the first plane are sound."""
    assert flaw_of(text) is None
    assert mend(text) == text


@pytest.mark.parametrize(
    ("text", "flaw"),
    [("a\x00b", "the character U+0000"), ("\ud83d", "a lone surrogate"), ("\ud83d\ude00", "a lone surrogate")],
)
def test_a_flaw_has_a_name(text: str, flaw: str) -> None:
    """A client can mend what it is told; two halves of a pair are no character either."""
    assert flaw_of(text) == flaw


@given(any_text, st.integers(0, 20))
def test_a_cut_is_a_prefix_and_says_whether_it_cut(text: str, chars_max: int) -> None:
    """By code points, so the count in a refusal is the count of a cut."""
    kept, shortened = cut(text, chars_max)
    assert text.startswith(kept)
    assert len(kept) == min(len(text), chars_max)
    assert shortened is (len(text) > chars_max)


@given(any_text, st.integers(1, 200))
def test_head_and_tail_keep_both_ends_within_the_bound(text: str, chars_max: int) -> None:
    """The end of an answer often is its point."""
    kept, shortened = head_and_tail(text * 10, chars_max)
    assert len(kept) <= chars_max
    assert shortened is (len(text * 10) > chars_max)
    assert flaw_of(kept.replace("\x00", "")) is None
    if not shortened:
        assert kept == text * 10
    elif str(len(text * 10)) + " characters in all" in kept:
        head, _, tail = kept.partition("\n… ")
        assert (text * 10).startswith(head)
        assert (text * 10).endswith(tail.rpartition(" …\n")[2])


def test_an_emoji_at_the_cut_is_kept_or_left_out_whole() -> None:
    """Case 136: a half of one cannot be written to a file or a socket."""
    for chars_max in range(1, 120):
        head_and_tail("😀" * 500, chars_max)[0].encode()
        json.dumps(cut("😀" * 500, chars_max)[0]).encode()


@pytest.mark.parametrize(
    "text", ["", " \t\n", "\u200b\u200c\u200d\u2060\ufeff", "\u00a0\u2003\u3000", "\x1b\x07", "\u2028\u2029"]
)
def test_nothing_to_see_is_blank(text: str) -> None:
    """White space, zero-width and control characters say nothing."""
    assert is_blank(text)


@given(any_text, st.sampled_from(["a", ".", "😀", "字", "é", "👩🏽‍💻"]), any_text)
def test_one_visible_character_is_enough(before: str, visible: str, after: str) -> None:
    """An emoji is an answer."""
    assert not is_blank(before + visible + after)


def test_near_names_are_found_without_regard_to_case_and_best_first() -> None:
    """As a person or a model mistypes them."""
    names = ("Reviewer", "planner", "Review of the plan", "zebra")
    assert nearest("reviewr", names, 3)[0] == "Reviewer"
    assert nearest("PLANNER", names, 1) == ("planner",)
    assert nearest("xylophone", names, 3) == ()
    assert nearest("anything", (), 3) == ()
    assert len(nearest("name", [f"name{number}" for number in range(20)], 3)) == 3
