"""`models.*`: which models a host has, which one a name means, and whether it answers."""

from coterie.core.errors import ModelNotConfiguredError
from coterie.core.model_ref import Chosen, default_binding
from coterie.operations import params, views
from coterie.operations.act import Act


async def listing(act: Act, given: params.NoParams) -> views.ModelList:
    """List the models of the host, and what is taken when nothing is named."""
    del given
    models, default = act.host.models, default_binding(act.host.models)
    return views.ModelList(
        models=[views.ModelView.of(one, default=one is default) for one in models],
        default_model=default.key if default else None,
        automatic_candidates=[one.key for one in models if one.available_for_subagents],
    )


async def resolve(act: Act, given: params.ModelName) -> views.ModelChoice:
    """Tell which model a name means, without using it."""
    chosen = _chosen(act, given.name, delegated=given.delegated)
    default = default_binding(act.host.models)
    return views.ModelChoice(
        model=views.ModelView.of(chosen.binding, default=chosen.binding is default), selection=chosen.selection.value
    )


async def test(act: Act, given: params.ModelTest) -> views.ModelTested:
    """Ask a model for one word, outside of any session: whether it answers, how fast, and what that used."""
    binding = _chosen(act, given.name).binding
    return views.ModelTested.of(binding, await act.host.probe.probe(binding))


def _chosen(act: Act, name: str | None, *, delegated: bool = False) -> Chosen:
    chosen = act.model(name, delegated=delegated)
    if chosen is None:
        raise ModelNotConfiguredError("No model is configured; `coterie up` tells the ways.")
    return chosen
