"""Who is asked to think."""

from dataclasses import replace

import pytest

from coterie.core.model_ref import Binding
from coterie.core.thinking import Thinking, applied

PLAIN = Binding("local/one", "openai-chat", None, "one")


@pytest.mark.parametrize("level", [None, *Thinking])
def test_only_a_model_that_reasons_is_given_a_level(level: Thinking | None) -> None:
    """Another one refuses the parameter, and with it every request."""
    assert applied(level, PLAIN) is None
    assert applied(level, replace(PLAIN, reasoning=True)) is level
