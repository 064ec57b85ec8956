"""The value that a rule returns when the answer is no.

Pure module. A refusal is an expected outcome, so it is a value; a use case turns it into `RefusedError` to leave its
transaction without a trace.
"""

from dataclasses import dataclass

from coterie.core.codes import Code


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something may not happen, and which limit says so."""

    code: Code
    message: str
    """A sentence for the person or model that asked; says what would be right."""
    limit: str | None = None
    """Name of the setting that bounds this, as in `[limits]`."""
    value: int | None = None
    """The bound in force."""
    candidates: tuple[str, ...] = ()
    """What could have been meant, best first."""
    path: tuple[str, ...] = ()
    """The sessions of a refused cycle, in order."""
