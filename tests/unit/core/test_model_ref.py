"""What a model's name means: one binding, or a refusal with candidates."""

from dataclasses import replace

import pytest

from coterie.core.codes import Code
from coterie.core.model_ref import Binding, default_binding, delegated_binding, resolve
from coterie.core.refusal import Refusal


def _binding(key: str, *aliases: str, default: bool = False, model: str = "m") -> Binding:
    return Binding(key, "openai-chat", None, model, "secret", aliases, default)


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
    assert resolve((), "nobody") == Refusal(Code.MODEL_NOT_FOUND, "No configured model is called 'nobody'.")


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
