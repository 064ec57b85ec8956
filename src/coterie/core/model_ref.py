"""Which model a name means, by a given catalogue of bindings.

Pure module. Nothing is substituted silently: a name that is not known or not unique is refused with candidates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from coterie.core.codes import Code
from coterie.core.model_name import compact, folded, wish
from coterie.core.refusal import Refusal

NAME_CHARS_MAX: Final = 512
"""Characters of a model's name, as somebody asks for it."""
_CANDIDATES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Binding:
    """One model as this host may use it."""

    key: str
    """`provider/model`, the only exact name."""
    api: str
    """Wire protocol: `openai-chat`, `openai-responses`, `anthropic` or `google`."""
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
    label: str = ""
    """What people call it; empty is the vendor's id."""
    reasoning: bool = False
    images: bool = False
    """Whether it takes pictures."""
    input_price: float | None = None
    """US dollars for a million tokens that the model reads; None is what the price table says."""
    output_price: float | None = None
    """The same for tokens that it writes."""

    def __repr__(self) -> str:
        return f"Binding({self.key!r}, api={self.api!r}, address={self.address!r})"

    @property
    def provider(self) -> str:
        """What stands before the slash of the key."""
        return self.key.partition("/")[0]

    @property
    def has_prices(self) -> bool:
        """Whether its own prices are set, which count before those of any table."""
        return self.input_price is not None or self.output_price is not None

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it may be called; without an alias its provider alone is one of its names."""
        plain = (self.model, *self.aliases, *((self.label,) if self.label else ()))
        with_provider = (f"{self.provider} {name}" for name in plain)
        return (self.key, *plain, *with_provider, *(() if self.aliases else (self.provider,)))

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


class Selection(StrEnum):
    """How a model was chosen."""

    EXPLICIT = "explicit"
    """By its name."""
    DELEGATION = "delegation"
    """As the first choice of those that are open to spawned sessions."""
    DEFAULT = "default"
    """As the default of the host."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model, and what it was chosen by."""

    binding: Binding
    selection: Selection


def choose(catalogue: Sequence[Binding], name: str | None, *, delegated: bool) -> Chosen | Refusal:
    """Return the model that somebody asked for, or the one of a session that asks for none.

    A session that an agent spawns gets what its person has opened to such sessions. The default of the host is always
    open, because a session that names nothing may get it too.

    Args:
        catalogue: The bindings of this host.
        name: What was asked for; None and blank text ask for none.
        delegated: Whether the model is for a spawned session.
    """
    default = default_binding(catalogue)
    if default is None:
        return Refusal(Code.MODEL_NOT_CONFIGURED, "No model is configured; `coterie up` tells the ways.")
    opened = [binding for binding in catalogue if binding.available_for_subagents] if delegated else []
    if name is None or not name.strip():
        first = default_binding(opened)
        return Chosen(first, Selection.DELEGATION) if first else Chosen(default, Selection.DEFAULT)
    found = resolve(catalogue, name)
    if isinstance(found, Refusal):
        return found
    if delegated and found not in (*opened, default):
        text = f"The model {found.key!r} is not open to spawned sessions; name one that is, or none."
        allowed = [binding for binding in catalogue if binding in opened or binding is default]
        return Refusal(Code.PERMISSION_DENIED, text, candidates=_keys(allowed))
    return Chosen(found, Selection.EXPLICIT)


def resolve(catalogue: Sequence[Binding], name: str) -> Binding | Refusal:
    """Return the one binding that *name* means.

    Its key is exact; else what is written like one of its names means it; else what has the same letters and digits;
    else what describes it. The first of these readings that any model answers to decides.
    """
    wanted = name.strip()
    if len(wanted) > NAME_CHARS_MAX:
        text = f"A model's name has at most {NAME_CHARS_MAX} characters, not {len(wanted)}; use a key."
        return Refusal(Code.LIMIT_EXCEEDED, text, candidates=_keys(catalogue))
    for found in _readings(catalogue, wanted):
        match found:
            case []:
                continue
            case [binding]:
                return binding
            case several:
                text = f"Several models are called {wanted!r}; use the key of one."
                return Refusal(Code.MODEL_AMBIGUOUS, text, candidates=_keys(several))
    text = f"No configured model is called {wanted!r}; use the key of one that is."
    return Refusal(Code.MODEL_NOT_FOUND, text, candidates=_keys(catalogue))


def called(catalogue: Sequence[Binding], name: str) -> list[Binding]:
    """Return the bindings that have *name* among their names, whatever its width and case."""
    written = folded(name)
    return [binding for binding in catalogue if written in map(folded, binding.names)]


def _readings(catalogue: Sequence[Binding], wanted: str) -> Iterable[list[Binding]]:
    """Yield the bindings that *wanted* means, from the strictest way to read it to the widest."""
    yield [binding for binding in catalogue if binding.key == wanted]
    letters = compact(wanted)
    if not letters:
        return
    yield called(catalogue, wanted)
    yield [binding for binding in catalogue if letters in map(compact, binding.names)]
    described = wish(wanted)
    yield [binding for binding in catalogue if described.fits(binding.names, reasoning=binding.reasoning)]


def _keys(bindings: Sequence[Binding]) -> tuple[str, ...]:
    return tuple(binding.key for binding in bindings[:_CANDIDATES_MAX])
