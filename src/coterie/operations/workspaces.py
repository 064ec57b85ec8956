"""`session.diff|apply|drop`: what a person does with the worktree of a session."""

import logging
from typing import Final

from coterie.app.change_workspace import ChangeWorkspace, find_worktree, idle_worktree, note_change
from coterie.core.codes import Code
from coterie.core.errors import HostError, RefusedError
from coterie.core.ids import SessionId
from coterie.core.refusal import Refusal
from coterie.core.session.worktree import Worktree
from coterie.core.text import head_and_tail
from coterie.operations import params, views
from coterie.operations.act import Act
from coterie.ports.workspaces import Workspaces

_LOG: Final = logging.getLogger(__name__)
DIFF_CHARS_MAX: Final = 100_000
"""Code points of a difference that one answer shows."""


def _workspaces(act: Act) -> Workspaces:
    if act.host.workspaces is None:
        raise RefusedError(Refusal(Code.WORKER_NOT_READY, "This host makes no worktrees."))
    return act.host.workspaces


async def _recorded(act: Act, session_id: SessionId) -> Worktree:
    """The worktree of a session; what a turn left there that ended with its host is on the branch from now on."""
    workspaces, found = _workspaces(act), await act.host.store.read(find_worktree, session_id, brief=True)
    if not found.runs:
        await workspaces.record(found.worktree, found.session.title)
    return found.worktree


async def diff(act: Act, given: params.SessionRef) -> views.DiffView:
    """Show what a session has changed on its branch."""
    tree = await _recorded(act, SessionId(given.session_id))
    whole, change = await _workspaces(act).diff(tree)
    text, truncated = head_and_tail(whole, DIFF_CHARS_MAX)
    summary = views.ChangeSummary.of(change)
    return views.DiffView(branch=tree.branch, base=tree.base, summary=summary, text=text, truncated=truncated)


async def apply(act: Act, given: params.SessionKeyed) -> views.AppliedView:
    """Put what a session has changed into the files of the project, without a commit: all of it or nothing."""
    session_id, summary = SessionId(given.session_id), None
    if not await act.is_replay():
        tree = await _recorded(act, session_id)
        summary = views.ChangeSummary.of(await _workspaces(act).apply(tree))
    replayed = await act.run(note_change, ChangeWorkspace(session_id, "apply", act.key))
    return views.AppliedView(applied=True, summary=summary, replayed=replayed or None)


async def drop(act: Act, given: params.SessionDrop) -> views.DroppedView:
    """Remove the worktree of a session and its branch; a session that goes on begins at the base again."""
    session_id = SessionId(given.session_id)
    if not await act.is_replay():
        found = await act.host.store.read(idle_worktree, session_id, brief=True)
        await _workspaces(act).drop(
            found.worktree,
            force=given.force,
            branch=True,
            # A turn may have begun meanwhile.
            may=lambda: act.host.store.read(idle_worktree, session_id, brief=True),
        )
    replayed = await act.run(note_change, ChangeWorkspace(session_id, "drop", act.key))
    return views.DroppedView(dropped=True, replayed=replayed or None)


async def tidy(act: Act, tree: Worktree) -> None:
    """Remove the worktree of a session that was deleted, if all in it is committed; its branch stays."""
    if act.host.workspaces is None:
        return
    try:
        await act.host.workspaces.drop(tree, force=False, branch=False)
    except HostError as error:
        _LOG.warning("the worktree %s of a deleted session stays: %s", tree.path, error)
