"""The models of a host."""

from coterie.core.model_ref import Binding
from coterie.operations.views.view import View


class ModelView(View):
    """A model that sessions may have."""

    key: str
    provider: str
    model: str
    label: str
    aliases: list[str]
    default: bool
    available_for_subagents: bool
    reasoning: bool
    context_window: int | None
    origin: str

    @classmethod
    def of(cls, binding: Binding, *, default: bool) -> "ModelView":
        """Show a binding, without its secret."""
        return cls(
            key=binding.key,
            provider=binding.provider,
            model=binding.model,
            label=binding.label or binding.model,
            aliases=list(binding.aliases),
            default=default,
            available_for_subagents=binding.available_for_subagents,
            reasoning=binding.reasoning,
            context_window=binding.context_window,
            origin=binding.origin,
        )


class ModelList(View):
    """The catalogue, and what is taken when nothing is named."""

    models: list[ModelView]
    default_model: str | None
    automatic_candidates: list[str]
    """Keys that are open to spawned sessions."""


class ModelChoice(View):
    """The model that a name means."""

    model: ModelView
    selection: str
    """`explicit`, `delegation` or `default`."""
