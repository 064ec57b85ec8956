"""Scripts that are wrong: the error names file, line and what would be right."""

from pathlib import Path

import pytest

from coterie.core.codes import Code
from coterie.model_server import ScriptError, load_script, parse_script

WRONG = {
    "": (1, "the script is empty; it needs `rules`"),
    "rules: [": (1, "this is not YAML: expected the node content, but found '<stream end>'"),
    "a: 1\n--- \nb: 2\n": (2, "this is not YAML: but found another document"),
    "\x01": (1, "this is not YAML"),
    "hello": (1, "`script` must be a mapping, but is a text"),
    "rules: []": (1, "`rules` is empty"),
    "models: [a]": (1, "the script needs `rules`"),
    "api_key: 5\nrules: [{reply: {text: a}}]": (1, "`api_key` must be a text (put it in quotes), but is a number"),
    "rules:\n- reply: {txt: a}": (2, "unknown key `txt` in `reply`; did you mean `text`?"),
    "rules:\n- when:\n    zzz: a\n  reply: {text: a}": (3, "unknown key `zzz` in `when`; known are: `model`,"),
    "rules:\n- reply: {text: a}\n  reply: {text: b}": (3, "`reply` stands twice in `rule`"),
    "rules:\n- {name: a, reply: {text: a}}\n- {name: a, reply: {text: b}}": (3, "two rules are named 'a'"),
    "- when: {}": (1, "the rule needs a `reply`"),
    "- [1]: a": (1, "the keys of `rule` must be texts"),
    "- reply: {}": (1, "the reply says nothing; give `text` or `calls`, or write `silence: true`"),
    "- reply: {text: yes}": (1, "`text` must be a text (put it in quotes), but is true or false"),
    "- reply: {text: a, silence: true}": (1, "a silent reply has neither `text` nor `calls`"),
    "- reply: {text: a, hang: true}": (1, "`hang` stands alone in a reply"),
    "- reply: {hang: false}": (1, "`hang` can only be true"),
    "- reply: {drop: false}": (1, "`drop` can only be true"),
    "- reply: {text: a, drop: true}": (1, "`drop` stands alone in a reply"),
    "- reply: {hang: maybe}": (1, "`hang` must be true or false, but is a text"),
    "- reply: {text: a, cut_after: 1, no_finish: true}": (1, "a reply has either `cut_after` or `no_finish`"),
    "- reply: {text: a, cut_after: -1}": (1, "`cut_after` must be a whole number of at least 0"),
    "- reply: {text: a, delay_ms: 1.5}": (1, "`delay_ms` must be a whole number of at least 0, but is a number"),
    "- reply: {text: a, finish: stopp}": (1, "`finish` is 'stopp'; did you mean `stop`?"),
    "- reply: {text: a}\n  times: 0": (2, "`times` must be a whole number of at least 1"),
    "- reply: {calls: a}": (1, "`calls` must be a list, but is a text"),
    "- reply: {calls: [{}]}": (1, "the call needs a `tool`"),
    "- reply: {calls: [{tool: a, arguments: [1]}]}": (1, "`arguments` must be a mapping, but is a list"),
    "- reply: {calls: [{tool: a, arguments: {}, arguments_text: a}]}": (1, "either `arguments` or `arguments_text`"),
    "- reply:\n    calls:\n    - tool: a\n      arguments: &a {b: *a}": (4, "`b` is nested too deep"),
    "- reply: {error: {}}": (1, "the error needs a `status`"),
    "- reply: {error: {status: 200}}": (1, "`status` must be a whole number of at least 400 and at most 599"),
    "- reply: {error: {status: 500, body: [1]}}": (1, "`body` must be a text or a mapping, but is a list"),
    "- reply: {text: '${'}": (1, "`${` must be followed by a name and `}`"),
    "- when: {user: '(?P<path>a)'}\n  reply: {text: '${user.pth}'}": (
        2,
        "unknown value `user.pth` in `text`; did you mean",
    ),
    "- reply:\n    calls:\n    - tool: a\n      arguments: {b: ['${x}']}": (4, "unknown value `x` in `arguments`"),
    "- when: {user: '('}\n  reply: {text: a}": (1, "`user` is not a regular expression: missing ), unterminated"),
    "- when: {user_turn: many}\n  reply: {text: a}": (1, '`user_turn` must be a whole number or a bound such as ">=2"'),
    "- when: {last: system}\n  reply: {text: a}": (1, "`last` is 'system'; known are: `user`, `tool`, `assistant`"),
    "- capture: {model: {pattern: a}}\n  reply: {text: a}": (1, "a capture cannot be named `model`"),
    "- capture: {a: {}}\n  reply: {text: a}": (1, "the capture `a` needs a `pattern`"),
    "- capture: {a: {pattern: a, nth: 0}}\n  reply: {text: a}": (1, "there is no match 0"),
    "- capture: {a: {pattern: a, tool: b}}\n  reply: {text: a}": (1, "`tool` goes with `from: tool_results` only"),
}


@pytest.mark.parametrize("script", WRONG)
def test_a_wrong_script_is_told_by_line_and_remedy(script: str) -> None:
    """A plugin author reads the first error only, so it must be enough."""
    line, problem = WRONG[script]
    with pytest.raises(ScriptError) as caught:
        parse_script(script, "my.yaml")
    assert str(caught.value).startswith(f"my.yaml:{line}: ")
    assert problem in str(caught.value)
    assert caught.value.code is Code.CONFIG_INVALID


def test_a_script_that_cannot_be_read_is_a_script_error(tmp_path: Path) -> None:
    """A missing file and one in another encoding are the author's to mend, as a wrong key is."""
    (tmp_path / "latin.yaml").write_bytes(b"rules: \xff")
    for name, problem in (("missing.yaml", "No such file"), ("latin.yaml", "'utf-8' codec")):
        with pytest.raises(ScriptError, match=problem):
            load_script(tmp_path / name)


def test_a_value_that_json_lacks_is_taken_as_written() -> None:
    """A date in tool arguments is what the author typed, not an error and not a Python object."""
    script = parse_script("- reply: {calls: [{tool: a, arguments: {day: 2024-01-02, n: [1, 2.5, true, null]}}]}")
    assert "2024-01-02" in repr(script.rules[0].reply)
