"""`permissions.*`: what a person is asked, and what they have granted."""

from coterie.app import describe
from coterie.app.approve import AnswerCall, answer_call
from coterie.app.release import Answer, AnswerPair, Revoke, answer_pair
from coterie.app.release import revoke as revoking
from coterie.core.errors import InvalidArgumentError
from coterie.core.ids import GrantId, RequestId
from coterie.core.text import flaw_of
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.ports.rows import CallAnswer, CallRequest, Reference


async def pending(act: Act, given: params.NoParams) -> views.PendingView:
    """List what waits for a person's answer, oldest first."""
    del given
    calls = await act.host.store.read(describe.calls_asked, None)
    pairs = await act.host.store.read(describe.pending, None)
    requests = [
        _question(asked, session) if asked.is_question else _call(asked, session, ceiling)
        for asked, session, ceiling in calls
    ]
    requests += [
        views.PendingRequest(
            request_id=asked.id,
            kind="across_projects",
            session_id=source.id,
            session_title=source.title,
            target_session_id=target.id,
            target_title=target.title,
            messages=messages,
            created_at=views.iso(asked.created_at),
        )
        for asked, source, target, messages in pairs
    ]
    return views.PendingView(requests=requests)


def _question(asked: CallRequest, session: Reference) -> views.PendingRequest:
    return views.PendingRequest(
        request_id=asked.id,
        kind="question",
        session_id=session.id,
        session_title=session.title,
        turn_id=asked.turn_id,
        question=asked.subject,
        choices=list(asked.choices or ()) or None,
        created_at=views.iso(asked.created_at),
    )


def _call(asked: CallRequest, session: Reference, ceiling: Reference | None) -> views.PendingRequest:
    return views.PendingRequest(
        request_id=asked.id,
        kind="tool",
        session_id=session.id,
        session_title=session.title,
        turn_id=asked.turn_id,
        tool=asked.tool,
        risk=asked.risk.value,
        subject=asked.subject,
        shown=asked.shown,
        mode=asked.mode.value,
        ceiling_session_id=ceiling.id if ceiling else None,
        ceiling_title=ceiling.title if ceiling else None,
        created_at=views.iso(asked.created_at),
    )


async def answer(act: Act, given: params.Answer) -> views.AnsweredView:
    """Answer a question of an agent; `permissions.resolve` with `deny` declines it."""
    command = AnswerCall(RequestId(given.request_id), CallAnswer.SAID, given.answer, act.key)
    _, replayed = await act.run(answer_call, command)
    return views.AnsweredView(answered=True, replayed=replayed or None)


async def resolve(act: Act, given: params.Resolve) -> views.ResolvedView:
    """Answer a request: let through what waits, grant it for longer, or deny."""
    flaw = flaw_of(given.comment)
    if flaw is not None:
        raise InvalidArgumentError(f"comment has {flaw}, which cannot be stored; leave it out.")
    request_id = RequestId(given.request_id)
    if await act.host.store.read(describe.call_request, request_id, brief=True) is not None:
        return await _resolve_call(act, given, request_id)
    if given.decision == "session":
        raise InvalidArgumentError("decision 'session' answers a tool call; a pair of sessions takes 'grant'.")
    command = AnswerPair(request_id, Answer(given.decision), given.seconds, act.key, given.comment.strip())
    messages, replayed = await act.run(answer_pair, command)
    return views.ResolvedView(decision=given.decision, messages=messages, replayed=replayed or None)


async def _resolve_call(act: Act, given: params.Resolve, request_id: RequestId) -> views.ResolvedView:
    if given.decision == "grant":
        raise InvalidArgumentError("decision 'grant' answers a pair of sessions; a tool call takes 'session'.")
    command = AnswerCall(request_id, CallAnswer(given.decision), given.comment.strip(), act.key)
    asked, replayed = await act.run(answer_call, command)
    return views.ResolvedView(decision=given.decision, tool=asked.tool, replayed=replayed or None)


async def grants(act: Act, given: params.NoParams) -> views.GrantList:
    """List the grants that hold now, newest first."""
    del given
    pairs = await act.host.store.read(describe.grants, act.host.clock.now_ms())
    calls = await act.host.store.read(describe.call_grants, None)
    shown = [
        (
            grant.created_at,
            views.GrantView(
                grant_id=grant.id,
                kind="across_projects",
                session_id=source.id,
                session_title=source.title,
                target_session_id=target.id,
                target_title=target.title,
                created_at=views.iso(grant.created_at),
                expires_at=views.iso(grant.expires_at),
            ),
        )
        for grant, source, target in pairs
    ]
    shown += [
        (
            grant.created_at,
            views.GrantView(
                grant_id=grant.id,
                kind="tool",
                session_id=session.id,
                session_title=session.title,
                tool=grant.tool,
                subject=grant.subject,
                created_at=views.iso(grant.created_at),
            ),
        )
        for grant, session in calls
    ]
    return views.GrantList(grants=[view for _, view in sorted(shown, key=lambda one: one[0], reverse=True)])


async def revoke(act: Act, given: params.RevokeGrant) -> views.RevokedView:
    """End a grant; what it has let through stays."""
    replayed = await act.run(revoking, Revoke(GrantId(given.grant_id), act.key))
    return views.RevokedView(revoked=True, replayed=replayed or None)
