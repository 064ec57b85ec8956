"""The models of a host."""

from coterie.core.chain import MICRO
from coterie.core.model_ref import Binding
from coterie.core.turn.loop import ModelFailed
from coterie.operations.views.view import View
from coterie.ports.model_probe import Probed


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
    images: bool
    """Whether it takes pictures."""
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
            images=binding.images,
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


class ModelTested(View):
    """What came of asking a model for a word."""

    model: str
    """Its key."""
    ok: bool
    """Whether it answered."""
    latency_ms: int
    text: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    """None where the price is not known."""
    error_code: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, binding: Binding, probed: Probed) -> "ModelTested":
        """Show what a probe came to."""
        key, latency, outcome = binding.key, probed.latency_ms, probed.outcome
        if isinstance(outcome, ModelFailed):
            code = outcome.code.value
            return cls(model=key, ok=False, latency_ms=latency, error_code=code, error=outcome.message)
        used = outcome.reply.usage
        return cls(
            model=key,
            ok=True,
            latency_ms=latency,
            text=outcome.reply.text,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_usd=used.cost / MICRO if used.cost is not None else None,
        )
