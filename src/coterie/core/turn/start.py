"""What a turn needs before it can begin.

Pure module.
"""

from collections.abc import Sequence

from coterie.core.codes import Code
from coterie.core.model_ref import Binding, default_binding
from coterie.core.refusal import Refusal
from coterie.core.session.session import Session


def binding_for(session: Session, catalogue: Sequence[Binding], hint: str) -> Binding | Refusal:
    """The model of *session*: the one it was created with, never another one in its place.

    Args:
        session: Whose turn it is.
        catalogue: The bindings of this host.
        hint: What to tell a person who has configured none.
    """
    if not catalogue:
        return Refusal(Code.MODEL_NOT_CONFIGURED, hint)
    if session.model is None:
        found = default_binding(catalogue)
        assert found is not None, "a catalogue that is not empty has a default"
        return found
    named = next((binding for binding in catalogue if binding.key == session.model), None)
    keys = tuple(binding.key for binding in catalogue)[:8]
    text = f"The session's model {session.model!r} is not configured on this host any more."
    return named or Refusal(Code.MODEL_NOT_FOUND, text, candidates=keys)
