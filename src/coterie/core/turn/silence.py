"""When a reply counts as silence.

Pure module.
"""

from coterie.core.text import is_blank
from coterie.core.turn.items import Reply

INSTRUCTION = "Your last reply had no visible text and no tool call. Answer now, or call a tool."
"""Added to the system instructions of the one request that follows a silent reply."""


def is_silent(reply: Reply) -> bool:
    """Whether *reply* says and does nothing; reasoning, white space and zero-width characters say nothing."""
    return not reply.calls and is_blank(reply.text)
