"""`permissions.*`: what a person is asked, and what they have granted."""

from coterie.app import describe
from coterie.app.release import Answer, AnswerPair, Revoke, answer_pair
from coterie.app.release import revoke as revoking
from coterie.core.ids import GrantId, RequestId
from coterie.operations import params, views
from coterie.operations.act import Act


async def pending(act: Act, given: params.NoParams) -> views.PendingView:
    """List what waits for a person's answer, oldest first."""
    del given
    found = await act.host.store.read(describe.pending, None)
    requests = [
        views.PendingRequest(
            request_id=asked.id,
            kind="across_projects",
            source_session_id=source.id,
            source_title=source.title,
            target_session_id=target.id,
            target_title=target.title,
            messages=messages,
            created_at=views.iso(asked.created_at),
        )
        for asked, source, target, messages in found
    ]
    return views.PendingView(requests=requests)


async def resolve(act: Act, given: params.Resolve) -> views.ResolvedView:
    """Answer a request: let through what waits, grant the pair for a time, or deny."""
    command = AnswerPair(RequestId(given.request_id), Answer(given.decision), given.seconds, act.key)
    messages, replayed = await act.run(answer_pair, command)
    return views.ResolvedView(decision=given.decision, messages=messages, replayed=replayed or None)


async def grants(act: Act, given: params.NoParams) -> views.GrantList:
    """List the grants that hold now, newest first."""
    del given
    found = await act.host.store.read(describe.grants, act.host.clock.now_ms())
    shown = [
        views.GrantView(
            grant_id=grant.id,
            source_session_id=source.id,
            source_title=source.title,
            target_session_id=target.id,
            target_title=target.title,
            created_at=views.iso(grant.created_at),
            expires_at=views.iso(grant.expires_at),
        )
        for grant, source, target in found
    ]
    return views.GrantList(grants=shown)


async def revoke(act: Act, given: params.RevokeGrant) -> views.RevokedView:
    """End a grant; what it has let through stays."""
    replayed = await act.run(revoking, Revoke(GrantId(given.grant_id), act.key))
    return views.RevokedView(revoked=True, replayed=replayed or None)
