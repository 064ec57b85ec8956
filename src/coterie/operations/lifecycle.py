"""What a person does to sessions besides prompting them: from `session.rename` to `session.release`."""

import asyncio
from itertools import islice
from typing import Final

from coterie.app import find
from coterie.app import release as releasing
from coterie.app.cancel import Interrupt, interrupt
from coterie.app.configure_session import ArchiveSession, ConfigureSession, archive_session, configure_session
from coterie.app.delete_session import DeleteSession, delete_session, named_outputs, purge_deleted
from coterie.app.fork_session import ForkSession, fork_session
from coterie.app.prompt_session import PromptSession, steer_session
from coterie.app.retry_message import RetryMessage, retry_message
from coterie.core.ids import MessageId, SessionId
from coterie.core.session.session import Session
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.operations.collaboration import bound, stopped, told
from coterie.operations.sessions import one
from coterie.operations.workspaces import tidy
from coterie.ports.outputs import Outputs
from coterie.ports.store import Store

PURGE_BATCH: Final = 500
"""Items of a deleted session that one transaction removes: others write in between."""


async def _one(act: Act, found: tuple[Session, bool]) -> views.OneSession:
    """A session as it is after the act, with the revision that the act has given it; it may be deleted by then."""
    changed, replayed = found
    session = await act.host.store.read(find.known, changed.id)
    return one(act, session, replayed=replayed)


async def rename(act: Act, given: params.SessionRename) -> views.OneSession:
    """Give a session another title; its id stays."""
    command = ConfigureSession(SessionId(given.session_id), act.key, title=given.title)
    return await _one(act, await act.run(configure_session, command))


async def configure(act: Act, given: params.SessionConfigure) -> views.OneSession:
    """Change a session's model, permission mode, inbound policy, delivery or thinking."""
    named = given.model is not None and not await act.is_replay()
    command = ConfigureSession(
        SessionId(given.session_id),
        act.key,
        title=given.title,
        model=act.model_key(given.model) if named else None,
        permission_mode=given.permission_mode,
        inbound=given.inbound,
        current_turn=given.current_turn_delivery,
        thinking=given.thinking,
    )
    return await _one(act, await act.run(configure_session, command))


async def archive(act: Act, given: params.SessionKeyed) -> views.OneSession:
    """Put a session away: its queue is held and it takes no new messages, until it is released or prompted."""
    return await _one(act, await act.run(archive_session, ArchiveSession(SessionId(given.session_id), act.key)))


async def delete(act: Act, given: params.SessionKeyed) -> views.DeletedView:
    """Delete a session with its transcript; what runs or waits in it is cancelled, and senders are told."""
    gone = await act.run(delete_session, DeleteSession(SessionId(given.session_id), act.key))
    await purge(act.host.store, act.host.outputs)
    if gone.worktree is not None:
        await tidy(act, gone.worktree)
    return views.DeletedView(
        deleted=True,
        message_ids=list(gone.message_ids),
        running_turn_ids=list(gone.turn_ids),
        replayed=gone.replayed or None,
    )


async def purge(store: Store, outputs: Outputs | None) -> None:
    """Remove what nobody can read any more: transcripts of deleted sessions, and what no transcript names."""
    while await store.run(purge_deleted, PURGE_BATCH):
        pass
    if outputs is None:
        return
    old = iter(await asyncio.to_thread(outputs.old))
    while refs := list(islice(old, PURGE_BATCH)):
        named = await store.read(named_outputs, refs, brief=True)
        await asyncio.to_thread(outputs.forget, [ref for ref in refs if ref not in named])


async def fork(act: Act, given: params.SessionFork) -> views.OneSession:
    """Begin a new session with the transcript of another one; nothing that lives is taken over."""
    command = ForkSession(SessionId(given.session_id), given.title, given.up_to, act.key)
    return await _one(act, await act.run(fork_session, command))


async def steer(act: Act, given: params.SessionPrompt) -> views.SteerReceipt:
    """Say something that the running turn's next model request shows; without such a turn it becomes a prompt."""
    steered = await act.bind(
        steer_session,
        lambda slot: PromptSession(SessionId(given.session_id), given.text, act.key, slot),
        lambda found: found.turn_id if found.status == "running" and not found.replayed else None,
    )
    return views.SteerReceipt(
        accepted=steered.status == "accepted",
        input_id=steered.input_id,
        turn_id=steered.turn_id,
        status=steered.status,
        position=steered.position,
        replayed=steered.replayed,
    )


async def stop(act: Act, given: params.SessionInterrupt) -> views.CancelledView:
    """Stop the running turn of a session; its queue goes on."""
    return stopped(await act.run(interrupt, Interrupt(SessionId(given.session_id), given.cascade, act.key)))


async def retry(act: Act, given: params.SessionRetry) -> views.SendReceipt:
    """Let a task or message that has ended be tried once more, as a new message with the same rights."""
    message_id = MessageId(given.message_id)
    return told(await act.bind(retry_message, lambda slot: RetryMessage(message_id, act.key, slot), bound))


async def release(act: Act, given: params.SessionRelease) -> views.Released:
    """Let the held queue of one session, or of all, move again, and what else waits for a person."""
    session_id = SessionId(given.session_id) if given.session_id is not None else None
    freed, replayed = await act.run(releasing.release, releasing.Release(session_id, act.key))
    return views.Released(released=freed, replayed=replayed or None)
