"""How a model's name may be written, and what a description of one asks for."""

import pytest

from coterie.core.model_name import Wish, compact, folded, wish


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (" Claude\n", "claude"),
        ("\u3000\uff27\uff30\uff34\uff0d\uff15", "gpt-5"),
        ("\U0001d406\U0001d40f\U0001d413", "gpt"),
        ("STRASSE", "stra\u00dfe"),
    ],
)
def test_width_case_and_white_space_around_make_no_other_name(written: str, name: str) -> None:
    """Keyboards and documents write one name in many ways."""
    assert folded(written) == folded(name)


@pytest.mark.parametrize(
    ("written", "letters"),
    [
        ("Claude Sonnet-4.5!", "claudesonnet45"),
        ("\uff27\uff30\uff34_5", "gpt5"),
        ("克劳德 十四行诗", "claudesonnet"),
        ("奥普斯4.5", "opus45"),
        ("双子座", "gemini"),
        ("通义千问3", "qwen3"),
        ("千问3", "qwen3"),
        ("深度求索", "deepseek"),
        ("智谱", "glm"),
        ("模型", "模型"),
        ("*** \u200b", ""),
    ],
)
def test_letters_and_digits_are_what_stays_of_a_name(written: str, letters: str) -> None:
    """The families are known by two names; what says nothing is nothing."""
    assert compact(written) == letters


@pytest.mark.parametrize(
    ("text", "reasoning", "words"),
    [
        ("reasoning", True, ()),
        ("thinking model", True, ()),
        ("Deep Reasoning", True, ()),
        ("a reasoning-capable opus", True, ("opus",)),
        ("深度思考", True, ()),
        ("推理", True, ()),
        ("适合思考的模型", True, ()),
        ("reasoning模型", True, ()),
        ("non-reasoning", False, ()),
        ("non reasoning", False, ()),
        ("nonreasoning", False, ()),
        ("opus without thinking", False, ("opus",)),
        ("no reasoning", False, ()),
        ("no deep thinking", False, ()),
        ("不需要思考", False, ()),
        ("不用推理", False, ()),
        ("不需思考", False, ()),
        ("不要深度思考", False, ()),
        ("不思考", False, ()),
        ("无思考", False, ()),
        ("无需推理", False, ()),
        ("非推理", False, ()),
        ("关闭思考", False, ()),
        ("nano thinking", True, ("nano",)),
        ("unthinking", None, ("unthinking",)),
        ("use the gpt-5.4 model", None, ("gpt", "5", "4")),
        ("能够用于使用可以的", None, ()),
        ("theta", None, ("theta",)),
    ],
)
def test_a_description_is_read_in_two_languages(text: str, *, reasoning: bool | None, words: tuple[str, ...]) -> None:
    """What is not wanted holds the word for what is, and a filler inside a word is none."""
    found = wish(text)
    assert (found.reasoning, found.words) == (reasoning, words)


@pytest.mark.parametrize(
    ("text", "name", "fits"),
    [
        ("sonn", "claude-sonnet-4-5", True),
        ("sonnet4.5", "claude-sonnet-4-5", True),
        ("4.5 sonnet", "claude-sonnet-4-5", True),
        ("4 5", "claude-sonnet-4-5-20250929", True),
        ("20250929", "claude-sonnet-4-5-20250929", True),
        ("sonnet 5.4", "claude-sonnet-4-5", False),
        ("sonnet 4 20250929", "claude-sonnet-4-5-20250929", False),
        ("sonnet 4.5 6", "claude-sonnet-4-5", False),
        ("sonnet 45", "claude-sonnet-4-5", False),
        ("opus sonn", "claude-sonnet-opus", False),
        ("千问", "qwen3-max", True),
        ("qwen", "通义千问", True),
    ],
)
def test_a_description_fits_a_name_by_a_piece_or_by_its_words(text: str, name: str, *, fits: bool) -> None:
    """Words may come in any order, numbers may not."""
    assert wish(text).fits([name], reasoning=False) is fits
    assert wish(text).fits(["other", name], reasoning=True) is fits


@pytest.mark.parametrize(
    ("text", "reasoning", "plain"),
    [("reasoning", True, False), ("non-reasoning", False, True), ("model", False, False)],
)
def test_a_capability_alone_fits_whoever_has_it(text: str, *, reasoning: bool, plain: bool) -> None:
    """But what asks for nothing fits nothing: it would be a substitute for what somebody meant."""
    assert wish(text).fits(["any"], reasoning=True) is reasoning
    assert wish(text).fits(["any"], reasoning=False) is plain
    assert wish(text).is_empty is (wish(text) == Wish((), (), None))
