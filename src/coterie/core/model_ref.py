"""Which model a name means, by a given catalogue of bindings.

Pure module. Nothing is substituted silently: a name that is not known or not unique is refused with candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from coterie.core.codes import Code
from coterie.core.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Binding:
    """One model as this host may use it."""

    key: str
    """`provider/model`, the only exact name."""
    api: str
    """Wire protocol: `openai-chat` or `anthropic`."""
    base_url: str | None
    """None is the vendor's own address."""
    model: str
    """The vendor's id."""
    api_key: str | None = None
    """The secret itself; never stored, logged or shown."""
    aliases: tuple[str, ...] = ()
    default: bool = False
    available_for_subagents: bool = False
    context_window: int | None = None
    """Tokens; None is unknown."""
    origin: str = ""
    """Where the binding comes from, for people: a file and line, or an environment variable."""

    def __repr__(self) -> str:
        return f"Binding({self.key!r}, api={self.api!r}, address={self.address!r})"

    @property
    def identity(self) -> str:
        """What decides whether a provider's opaque state may be sent back: api, address and model.

        It is stored, so what may be a secret in an address (user, password, query) is left out.
        """
        return f"{self.api} {self.address} {self.model}"

    @property
    def address(self) -> str:
        """The base URL as it may be shown and stored."""
        parts = urlsplit(self.base_url or "")
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def default_binding(catalogue: Sequence[Binding]) -> Binding | None:
    """The binding of a session that names none: the marked one, else the first."""
    return next((binding for binding in catalogue if binding.default), catalogue[0] if catalogue else None)


def delegated_binding(catalogue: Sequence[Binding]) -> Binding | None:
    """The binding of a spawned session that names none: of those open to delegation the default, else the first.

    If none is open to delegation, the default of the host (ADR 0239).
    """
    return default_binding([b for b in catalogue if b.available_for_subagents]) or default_binding(catalogue)


def resolve(catalogue: Sequence[Binding], name: str) -> Binding | Refusal:
    """Return the one binding that *name* means: its key, else its alias or model id without regard to case."""
    folded = name.strip().casefold()
    exact = [binding for binding in catalogue if binding.key == name.strip()]
    near = [
        b for b in catalogue if folded in {b.key.casefold(), b.model.casefold(), *(a.casefold() for a in b.aliases)}
    ]
    match exact or near:
        case [binding]:
            return binding
        case []:
            known = tuple(binding.key for binding in catalogue)[:8]
            text = f"No configured model is called {name!r}."
            return Refusal(Code.MODEL_NOT_FOUND, text, candidates=known)
        case several:
            keys = tuple(binding.key for binding in several)[:8]
            return Refusal(Code.MODEL_AMBIGUOUS, f"Several models are called {name!r}; use a key.", candidates=keys)
