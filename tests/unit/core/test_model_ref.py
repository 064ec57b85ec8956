"""What a model's name means: one binding, or a refusal with candidates."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.codes import Code
from coterie.core.model_ref import (
    Binding,
    Chosen,
    Selection,
    called,
    choose,
    default_binding,
    delegated_binding,
    resolve,
)
from coterie.core.refusal import Refusal


def _binding(key: str, *aliases: str, default: bool = False, model: str = "m") -> Binding:
    return Binding(key, "openai-chat", None, model, "secret", aliases, default)


def _listed(key: str, *aliases: str, label: str = "", reasoning: bool = False, opened: bool = False) -> Binding:
    binding = Binding(key, "openai-chat", None, key.partition("/")[2], aliases=aliases, label=label)
    return replace(binding, reasoning=reasoning, available_for_subagents=opened)


def _wide(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) for char in text)


CATALOGUE = (
    _binding("local/small", "Fast", model="llama"),
    _binding("cloud/large", "fast", "best", model="gpt"),
    _binding("Cloud/Large", model="other"),
    _binding("cloud/twin", model="llama"),
)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("local/small", "local/small"),
        (" local/small\n", "local/small"),
        ("LOCAL/SMALL", "local/small"),
        ("cloud/large", "cloud/large"),
        ("Cloud/Large", "Cloud/Large"),
        ("BEST", "cloud/large"),
        ("gpt", "cloud/large"),
    ],
)
def test_a_name_finds_its_binding(name: str, key: str) -> None:
    """An exact key wins over everything else; alias and model id have no case."""
    found = resolve(CATALOGUE, name)
    assert isinstance(found, Binding)
    assert found.key == key


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("fast", ("local/small", "cloud/large")),
        ("llama", ("local/small", "cloud/twin")),
        ("CLOUD/LARGE", ("cloud/large", "Cloud/Large")),
    ],
)
def test_a_name_of_several_is_refused_with_their_keys(name: str, keys: tuple[str, ...]) -> None:
    """A silent choice would be a wrong bill for somebody."""
    found = resolve(CATALOGUE, name)
    assert isinstance(found, Refusal)
    assert (found.code, found.candidates) == (Code.MODEL_AMBIGUOUS, keys)


def test_a_name_of_none_is_refused_with_what_there_is() -> None:
    """At most eight, in the order of the catalogue; never a substitute."""
    many = [_binding(f"p/{number}", model=f"{number}") for number in range(20)]
    found, twins = resolve(many, "nobody"), resolve([_binding(f"p/{n}", "x") for n in range(20)], "x")
    assert isinstance(found, Refusal)
    assert isinstance(twins, Refusal)
    assert (found.code, found.candidates) == (Code.MODEL_NOT_FOUND, tuple(f"p/{number}" for number in range(8)))
    assert len(twins.candidates) == 8
    text = "No configured model is called 'nobody'; use the key of one that is."
    assert resolve((), " nobody ") == Refusal(Code.MODEL_NOT_FOUND, text)


WORLD = (
    _listed("anthropic/claude-opus-4-5", "opus", reasoning=True, opened=True),
    _listed("anthropic/claude-sonnet-4-5-20250929", reasoning=True),
    _listed("openai/gpt-5.4-mini", "mini", label="GPT 5.4 (small)", opened=True),
    _listed("openai/gpt-4o"),
    _listed("router/gpt-4o", "4o-routed"),
    _listed("alibaba/qwen3-max", "千问大"),
    _listed("zai/glm-4.6", reasoning=True),
    _listed("deepseek/deepseek-chat"),
)


def _found(name: str, catalogue: Sequence[Binding] = WORLD) -> str | tuple[Code, tuple[str, ...]]:
    found = resolve(catalogue, name)
    return (found.code, found.candidates) if isinstance(found, Refusal) else found.key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("gpt 5.4 (SMALL)", "openai/gpt-5.4-mini"),
        ("openai gpt-5.4-mini", "openai/gpt-5.4-mini"),
        ("OpenAI  mini", "openai/gpt-5.4-mini"),
        ("openai gpt 5.4 (small)", "openai/gpt-5.4-mini"),
        ("openai gpt-4o", "openai/gpt-4o"),
        ("alibaba/QWEN3-max", "alibaba/qwen3-max"),
        ("zai", "zai/glm-4.6"),
        (_wide("4O-routed"), "router/gpt-4o"),
        ("Claude Opus 4.5", "anthropic/claude-opus-4-5"),
        ("克劳德奥普斯4.5", "anthropic/claude-opus-4-5"),
        ("Anthropic Claude Sonnet 4.5", "anthropic/claude-sonnet-4-5-20250929"),
        ("sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929"),
        ("4.5 sonnet", "anthropic/claude-sonnet-4-5-20250929"),
        ("克劳德 十四行诗", "anthropic/claude-sonnet-4-5-20250929"),
        (f"use the {_wide('GPT')} 5.4 model", "openai/gpt-5.4-mini"),
        ("qwen大", "alibaba/qwen3-max"),
        ("通义千问", "alibaba/qwen3-max"),
        ("智谱4.6", "zai/glm-4.6"),
        ("深度求索", "deepseek/deepseek-chat"),
        ("zai with deep reasoning", "zai/glm-4.6"),
        ("使用可以深度思考的智谱模型", "zai/glm-4.6"),
    ],
)
def test_a_model_is_found_by_what_people_call_it(name: str, key: str) -> None:
    """Width, case, white space, order and language are how a name is written, not which model is meant."""
    assert _found(name) == key


@pytest.mark.parametrize(
    "name",
    [
        "",
        "***",
        "opus 5.4",
        "sonnet 5 4",
        "gpt-4.5",
        "gpt-5.4-maxi",
        "best cheapest",
        "fastest",
        "use the model",
        "的",
        "non-reasoning glm",
        "gpt-5.4 thinking",
        "不需要思考的奥普斯",
        "local/claude-opus-4-5",
    ],
)
def test_what_no_model_answers_to_is_not_found(name: str) -> None:
    """5.4 is not 4.5, and a wish for quality or price is no name: another model in its place would be a guess."""
    assert _found(name) == (Code.MODEL_NOT_FOUND, tuple(binding.key for binding in WORLD))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("gpt-4o", ("openai/gpt-4o", "router/gpt-4o")),
        ("openai", ("openai/gpt-4o",)),
        ("anthropic", ("anthropic/claude-sonnet-4-5-20250929",)),
        ("anthropic opus", ("anthropic/claude-opus-4-5",)),
        ("claude", ("anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-5-20250929")),
        ("thinking claude", ("anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-5-20250929")),
        (
            "a reasoning-capable model",
            ("anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-5-20250929", "zai/glm-4.6"),
        ),
        ("推理模型", ("anthropic/claude-opus-4-5", "anthropic/claude-sonnet-4-5-20250929", "zai/glm-4.6")),
        (
            "非推理",
            (
                "openai/gpt-5.4-mini",
                "openai/gpt-4o",
                "router/gpt-4o",
                "alibaba/qwen3-max",
                "deepseek/deepseek-chat",
            ),
        ),
        ("gpt without thinking", ("openai/gpt-5.4-mini", "openai/gpt-4o", "router/gpt-4o")),
    ],
)
def test_one_answer_is_it_and_several_are_told(name: str, keys: tuple[str, ...]) -> None:
    """Which of several is meant only the one who asks can say."""
    assert _found(name) == (keys[0] if len(keys) == 1 else (Code.MODEL_AMBIGUOUS, keys))


def test_the_strictest_reading_that_any_model_answers_to_decides() -> None:
    """Otherwise the name of a model could not be said while a longer one of the same beginning is there."""
    catalogue = tuple(_listed(key) for key in ("a/gpt-5", "a/gpt5", "a/gpt-5-mini"))
    assert _found("GPT-5", catalogue) == "a/gpt-5"
    assert _found("gpt5", catalogue) == "a/gpt5"
    assert _found("gpt 5", catalogue) == (Code.MODEL_AMBIGUOUS, ("a/gpt-5", "a/gpt5"))
    assert _found("gpt 5", catalogue[1:]) == "a/gpt5"
    assert _found("the gpt 5", catalogue[1:]) == (Code.MODEL_AMBIGUOUS, ("a/gpt5", "a/gpt-5-mini"))


def test_a_key_of_signs_alone_is_a_key() -> None:
    """It is the only exact name; as a description the same signs say nothing."""
    odd = _listed("-/-", "***")
    assert _found("-/-", [odd]) == "-/-"
    assert _found("***", [odd]) == (Code.MODEL_NOT_FOUND, ("-/-",))


def test_a_name_has_a_bound() -> None:
    """White space around it does not count, and what is longer is not echoed."""
    longest = "m" * 512
    assert _found(f" {longest}\n", [_listed(f"p/{longest}")]) == f"p/{longest}"
    found = resolve(WORLD, longest + "m")
    assert isinstance(found, Refusal)
    assert found.code is Code.LIMIT_EXCEEDED
    assert found.message == "A model's name has at most 512 characters, not 513; use a key."
    assert found.candidates == tuple(binding.key for binding in WORLD)


names = st.text(st.sampled_from("ab4.5-/ 不用思考克劳德Ａ") | st.characters(), max_size=30)
keys = st.from_regex(r"[^\s/]{1,8}/\S{1,8}", fullmatch=True)
bindings = st.builds(_listed, keys, names, label=names, reasoning=st.booleans(), opened=st.booleans())
catalogues = st.lists(bindings, max_size=6, unique_by=lambda binding: binding.key)


@given(catalogues)
def test_every_key_means_itself(catalogue: list[Binding]) -> None:
    """Whatever the other models are called: there must be one name that never fails."""
    for binding in catalogue:
        assert resolve(catalogue, binding.key) is binding


@given(catalogues, st.text(st.characters(exclude_categories=()) | st.sampled_from("no thinkingab4.5"), max_size=600))
def test_any_text_has_an_answer(catalogue: list[Binding], name: str) -> None:
    """A model writes it, so it may be anything; an answer is of the catalogue, and so are at most eight candidates."""
    found = resolve(catalogue, name)
    answers = found.candidates if isinstance(found, Refusal) else (found.key,)
    assert set(answers) <= {binding.key for binding in catalogue}
    assert len(answers) <= 8


@given(st.data(), catalogues)
def test_the_order_of_the_catalogue_decides_nothing(data: st.DataObject, catalogue: list[Binding]) -> None:
    """An answer that hangs on it would change with a line in a file that names another model."""
    known = [name for binding in catalogue for name in binding.names]
    name = data.draw(st.sampled_from(known) | names if known else names)
    found, moved = resolve(catalogue, name), resolve(data.draw(st.permutations(catalogue)), name)
    if isinstance(found, Refusal):
        assert isinstance(moved, Refusal)
        assert found.code == moved.code
    else:
        assert moved is found


def test_what_is_written_like_a_name_is_called_so() -> None:
    """The narrow reading alone, for whoever must not guess."""
    assert [binding.key for binding in called(WORLD, f"{_wide('GPT-4')}o ")] == ["openai/gpt-4o", "router/gpt-4o"]
    assert called(WORLD, "gpt") == []


def test_a_choice_tells_how_it_was_made() -> None:
    """By name, as the default, or as the first that is open to spawned sessions; blank text is no name."""
    default = replace(WORLD[5], default=True)
    catalogue = (*WORLD[:5], default, *WORLD[6:])
    assert choose(catalogue, "opus", delegated=False) == Chosen(WORLD[0], Selection.EXPLICIT)
    assert choose(catalogue, None, delegated=False) == Chosen(default, Selection.DEFAULT)
    assert choose(catalogue, " ", delegated=True) == Chosen(WORLD[0], Selection.DELEGATION)
    assert choose(catalogue, "mini", delegated=True) == Chosen(WORLD[2], Selection.EXPLICIT)
    assert choose(WORLD[5:], "", delegated=True) == Chosen(WORLD[5], Selection.DEFAULT)
    both = replace(WORLD[2], default=True)
    assert choose((WORLD[0], both), None, delegated=True) == Chosen(both, Selection.DELEGATION)
    assert [*Selection] == ["explicit", "delegation", "default"]


def test_a_model_that_is_closed_to_spawned_sessions_is_refused_by_name() -> None:
    """A person opens a model to agents; the default alone is open as it is, because naming none may give it too."""
    default = replace(WORLD[5], default=True)
    catalogue = (*WORLD[:5], default, *WORLD[6:])
    refused = choose(catalogue, "glm", delegated=True)
    assert isinstance(refused, Refusal)
    assert refused.code is Code.PERMISSION_DENIED
    assert refused.message == "The model 'zai/glm-4.6' is not open to spawned sessions; name one that is, or none."
    assert refused.candidates == ("anthropic/claude-opus-4-5", "openai/gpt-5.4-mini", "alibaba/qwen3-max")
    assert choose(catalogue, "qwen", delegated=True) == Chosen(default, Selection.EXPLICIT)
    assert choose(catalogue, "glm", delegated=False) == Chosen(WORLD[6], Selection.EXPLICIT)
    closed = choose(WORLD[5:], "glm", delegated=True)
    assert isinstance(closed, Refusal)
    assert (closed.code, closed.candidates) == (Code.PERMISSION_DENIED, ("alibaba/qwen3-max",))


def test_a_choice_of_nothing_is_refused() -> None:
    """As is a name that says nothing certain; without any model no name is looked at."""
    for name in (None, "gpt"):
        nothing = choose((), name, delegated=True)
        assert isinstance(nothing, Refusal)
        assert nothing.code is Code.MODEL_NOT_CONFIGURED
    several = choose(WORLD, "claude", delegated=True)
    assert isinstance(several, Refusal)
    assert several.code is Code.MODEL_AMBIGUOUS


def test_the_default_is_the_marked_one_else_the_first() -> None:
    """Without any there is none."""
    marked = _binding("b/b", default=True)
    assert default_binding([*CATALOGUE, marked]) is marked
    assert default_binding(CATALOGUE) is CATALOGUE[0]
    assert default_binding([]) is None


def test_a_worker_gets_a_binding_that_is_open_to_workers() -> None:
    """Of those the default, else the first; without one, what any session gets."""
    first, other = replace(CATALOGUE[0], available_for_subagents=True), replace(CATALOGUE[1], default=True)
    both = replace(other, available_for_subagents=True)
    assert delegated_binding([other, first]) == first
    assert delegated_binding([first, both]) == both
    assert delegated_binding([CATALOGUE[2], other]) == other
    assert delegated_binding([]) is None


def test_a_binding_shows_no_secret() -> None:
    """It may stand in any log or traceback."""
    assert "secret" not in repr(CATALOGUE[0])
    assert "secret" not in CATALOGUE[0].identity


def test_state_belongs_to_api_address_and_model() -> None:
    """Another name for the same model is the same place; another address is not."""
    one = Binding("a/a", "anthropic", "http://x", "m")
    assert one.identity == Binding("b/b", "anthropic", "http://x", "m").identity
    others = [
        Binding("a/a", "openai-chat", "http://x", "m"),
        Binding("a/a", "anthropic", None, "m"),
        Binding("a/a", "anthropic", "http://x", "n"),
    ]
    assert one.identity not in {other.identity for other in others}
