"""Permission as a truth table."""

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coterie.core.permission import (
    Decision,
    Mode,
    Risk,
    Rule,
    StoredMode,
    covers,
    decide,
    idle_rule,
    least,
    refusing,
    resolve,
    rule_of,
)

ORDER = (Mode.ASK, Mode.ACCEPT_EDITS, Mode.AUTO)
FREE = {
    (Mode.ASK, Risk.LOW),
    (Mode.ACCEPT_EDITS, Risk.LOW),
    (Mode.ACCEPT_EDITS, Risk.EDIT),
    (Mode.AUTO, Risk.LOW),
    (Mode.AUTO, Risk.EDIT),
    (Mode.AUTO, Risk.HIGH),
}


@pytest.mark.parametrize(("mode", "risk"), list(product(Mode, Risk)))
def test_a_mode_allows_what_it_allows_and_asks_for_the_rest(mode: Mode, risk: Risk) -> None:
    """All nine cells; there is no third answer."""
    assert decide(mode, risk) is (Decision.ALLOW if (mode, risk) in FREE else Decision.ASK)


@pytest.mark.parametrize(("one", "other", "third"), list(product(Mode, repeat=3)))
def test_the_least_is_the_weakest_in_any_order(one: Mode, other: Mode, third: Mode) -> None:
    """Modes are text, and text has another order."""
    assert least([one, other, third]) is ORDER[min(map(ORDER.index, (one, other, third)))]


@pytest.mark.parametrize(("ceiling", "mode"), list(product(Mode, repeat=2)))
def test_a_ceiling_covers_itself_and_what_is_weaker(ceiling: Mode, mode: Mode) -> None:
    """All nine cells: what joins a turn must allow at least what the turn may do."""
    assert covers(ceiling, mode) is (ORDER.index(mode) <= ORDER.index(ceiling))


@pytest.mark.parametrize(("stored", "default"), list(product(StoredMode, Mode)))
def test_inherit_is_the_default_of_the_moment_and_the_others_are_themselves(stored: StoredMode, default: Mode) -> None:
    """A changed default reaches those who inherit, and nobody else."""
    assert resolve(stored, default).value == (default.value if stored is StoredMode.INHERIT else stored.value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("bash", Rule("bash")),
        (" bash ", Rule("bash")),
        ("bash(git push*)", Rule("bash", "git push*")),
        ("*(secrets/*)", Rule("*", "secrets/*")),
        ("bash(f(x))", Rule("bash", "f(x)")),
        ("bash(a\nb)", Rule("bash", "a\nb")),
        ("", None),
        ("bash()", None),
        ("bash(", None),
        ("git push", None),
        ("(x)", None),
    ],
)
def test_a_rule_is_a_tool_alone_or_with_a_pattern(text: str, rule: Rule | None) -> None:
    """What is neither is refused where it is written, not taken for something near."""
    assert rule_of(text) == rule
    if rule is not None:
        assert rule_of(str(rule)) == rule


@pytest.mark.parametrize(
    ("rule", "tool", "subject", "named"),
    [
        (Rule("bash"), "bash", "anything", True),
        (Rule("bash"), "write", "bash", False),
        (Rule("write", "secrets/*"), "write", "secrets/deep/key", True),
        (Rule("write", "secrets/*"), "write", "Secrets/key", True),
        (Rule("write", "SECRETS/*"), "write", "secrets/key", True),
        (Rule("write", "caf\u00e9/*"), "write", "cafe\u0301/key", True),
        (Rule("write", "cafe\u0301/*"), "write", "Caf\u00c9/key", True),
        (Rule("write", "app/[id]/*"), "write", "app/[id]/page", True),
        (Rule("write", "app/[id]/*"), "write", "app/i/page", False),
        (Rule("write", "what?"), "write", "whats", False),
        (Rule("write", "a*b*c"), "write", "abbbc", True),
        (Rule("write", "ab*bc"), "write", "abc", False),
        (Rule("write", "*a*a"), "write", "a", False),
        (Rule("write", "*a*a"), "write", "aa", True),
        (Rule("write", "**"), "write", "", True),
        (Rule("bash", "git *push*"), "bash", "git -c x\npush", True),
        (Rule("write", "secret"), "write", "secrets", False),
        (Rule("write", "secrets/*"), "edit", "secrets/key", False),
        (Rule("*", "*.pem"), "read", "a/b.pem", True),
    ],
)
def test_a_rule_names_calls_by_tool_and_subject(rule: Rule, tool: str, subject: str, named: bool) -> None:  # noqa: FBT001 - a table
    """A star crosses folders and lines, nothing else is special, and another spelling is no way around a rule."""
    assert rule.names(tool, subject) is named
    assert (refusing([Rule("other"), rule], tool, subject) is rule) is named


def _matches(text: str, pattern: str) -> bool:
    """The meaning of a pattern, letter by letter."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return _matches(text, pattern[1:]) or (bool(text) and _matches(text[1:], pattern))
    return bool(text) and text[0] == pattern[0] and _matches(text[1:], pattern[1:])


@given(st.text("ab[", max_size=8), st.text("ab[*", max_size=6))
@example("abc", "a*x*c")
def test_a_pattern_names_what_its_letters_and_stars_spell(text: str, pattern: str) -> None:
    """Pieces between stars are looked for in their order, without overlap."""
    assert Rule("write", pattern).names("write", text) is _matches(text, pattern)


@pytest.mark.parametrize(
    ("tools", "idle"),
    [(["bash", "write"], None), (["BASH", "write"], None), (["bash"], Rule("write", "a")), ([], Rule("bash"))],
)
def test_a_rule_for_a_tool_that_is_not_there_is_found(tools: list[str], idle: Rule | None) -> None:
    """One with a star may be about tools to come."""
    assert idle_rule([Rule("*", "secrets/*"), Rule("mcp*"), Rule("bash"), Rule("write", "a")], tools) == idle
