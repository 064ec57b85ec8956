"""Sessions, turns, transcripts, and what the verbs for them answer."""

from typing import Literal

from coterie.core.chain import MICRO
from coterie.core.session.session import Session
from coterie.core.turn.items import Checkpoint, PersonText, Reply, Report, SessionText, ToolResult
from coterie.core.turn.turn import Turn
from coterie.operations.views.view import View, iso
from coterie.ports.rows import Change, NumberedItem, Used


class Health(View):
    """The host answers."""

    ok: bool
    version: str
    epoch: int
    turns_running: int
    unconfined: bool | None = None
    """True where commands of tools can reach the data directory."""


class SessionView(View):
    """A session."""

    id: str
    title: str
    project_path: str | None
    model: str | None
    mode: Literal["agent"]
    permission_mode: str
    inbound: str
    current_turn_delivery: bool
    thinking: str | None
    """How much its model thinks before it answers: `off`, `low`, `medium` or `high`."""
    workspace: Literal["shared", "worktree"]
    workspace_path: str | None
    """Where it works."""
    branch: str | None
    base: str | None
    """The commit that its branch begins from."""
    held: str | None
    status: str | None
    """What it does, in lists: `running`, `queued`, else how its newest turn ended, else `idle`.

    `deleted` where it is gone: a request that has made or changed it is answered also when it is repeated later.
    """
    created_by_session_id: str | None
    revision: int
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, session: Session, status: str | None = None) -> "SessionView":
        """Show a session."""
        return cls(
            id=session.id,
            title=session.title,
            project_path=session.project_path,
            model=session.model,
            mode="agent",
            permission_mode=session.permission_mode.value,
            inbound=session.inbound.value,
            current_turn_delivery=session.current_turn,
            thinking=session.thinking.value if session.thinking else None,
            workspace="worktree" if session.worktree else "shared",
            workspace_path=session.folder,
            branch=session.worktree.branch if session.worktree else None,
            base=session.worktree.base if session.worktree else None,
            held=session.held.value if session.held else None,
            status="deleted" if session.deleted else status,
            created_by_session_id=session.created_by,
            revision=session.revision,
            created_at=iso(session.created_at),
            updated_at=iso(session.updated_at),
        )


class UsageView(View):
    """What the ended turns of a session have used, their delegations included; a figure that no turn knows is None."""

    turns: int
    input_tokens: int | None
    output_tokens: int | None
    turns_uncounted: int
    """Turns that the tokens lack, because their provider did not count."""
    cost_usd: float | None
    turns_unpriced: int
    """Turns that the cost lacks, because their price is not known."""

    @classmethod
    def of(cls, used: Used) -> "UsageView":
        """Show a sum; no turn has used nothing."""
        none = 0 if used.turns == 0 else None
        cost = used.cost if used.cost is not None else none
        return cls(
            turns=used.turns,
            input_tokens=used.input_tokens if used.input_tokens is not None else none,
            output_tokens=used.output_tokens if used.output_tokens is not None else none,
            turns_uncounted=used.uncounted,
            cost_usd=cost / MICRO if cost is not None else None,
            turns_unpriced=used.unpriced,
        )


class OneSession(View):
    """A session, and whether an earlier request had made it."""

    session: SessionView
    replayed: bool | None = None
    note: str | None = None
    """What has no effect as it is set."""
    unconfined: bool | None = None
    """True where commands that it runs can reach the data directory of the host."""
    usage: UsageView | None = None
    """Told by `session.get`."""


class TurnView(View):
    """One turn and how it ended."""

    turn_id: str
    session_id: str
    status: str
    kind: str
    """`prompt`, or the kind of the message that started it."""
    message_id: str | None
    permission: str
    """What it may do at most."""
    result: str | None
    truncated: bool | None
    error_code: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """None where the price is not known."""
    created_at: str
    ended_at: str | None

    @classmethod
    def of(cls, turn: Turn) -> "TurnView":
        """Show a turn."""
        return cls(
            turn_id=turn.id,
            session_id=turn.session_id,
            status=turn.state.value,
            kind=turn.kind,
            message_id=turn.message_id,
            permission=turn.permission.value,
            result=turn.result,
            truncated=turn.truncated or None,
            error_code=turn.error_code,
            error=turn.error,
            input_tokens=turn.input_tokens,
            output_tokens=turn.output_tokens,
            cost_usd=turn.cost / MICRO if turn.cost is not None else None,
            created_at=iso(turn.created_at),
            ended_at=iso(turn.ended_at) if turn.ended_at is not None else None,
        )


class SessionPage(View):
    """A page of sessions."""

    sessions: list[SessionView]
    cursor: str | None = None


class ItemView(View):
    """An item of a transcript."""

    number: int
    turn_id: str
    kind: Literal["person", "session", "reply", "tool_result", "report", "checkpoint"]
    created_at: str
    text: str
    calls: list[dict[str, str]] | None = None
    call_id: str | None = None
    tool: str | None = None
    error: bool | None = None
    diff: str | None = None
    """Of a tool result: what it has changed in a file, as a unified diff of at most 8,000 characters."""
    output_ref: str | None = None
    """Where the whole output is kept if `text` is only its head and tail: the file `blobs/<outputRef>`."""
    image_ref: str | None = None
    """Where the image is kept that the model was shown: the file `blobs/<imageRef>`."""
    unread: bool | None = None
    """The turn that it was meant for was stopped before its model was shown it; the next turn shows it as history."""
    origin: dict[str, str] | None = None
    delegation: dict[str, str] | None = None
    """Of a report: id and status of the delegation, and the agent that it ran as."""
    up_to: int | None = None
    """Of a checkpoint: number of the last item that it stands for in later contexts."""

    @classmethod
    def of(cls, numbered: NumberedItem) -> "ItemView":
        """Show an item: what is said, by whom, and nothing opaque."""
        number, turn_id, at = numbered.number, numbered.turn_id, iso(numbered.created_at)
        match numbered.item:
            case PersonText(text, unread):
                kind = "person"
                return cls(number=number, turn_id=turn_id, kind=kind, created_at=at, text=text, unread=unread or None)
            case SessionText(origin, content):
                shown = {
                    "messageId": origin.message_id,
                    "sourceSessionId": origin.source_session_id,
                    "sourceTitle": origin.source_title,
                    "kind": origin.kind,
                }
                if origin.reply_to_message_id:
                    shown["replyToMessageId"] = origin.reply_to_message_id
                return cls(number=number, turn_id=turn_id, kind="session", created_at=at, text=content, origin=shown)
            case Reply(text, calls):
                asked = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
                return cls(number=number, turn_id=turn_id, kind="reply", created_at=at, text=text, calls=asked or None)
            case Report(delegation_id, agent, status, text, ref=ref):
                return cls(
                    number=number,
                    turn_id=turn_id,
                    kind="report",
                    created_at=at,
                    text=text,
                    delegation={"id": delegation_id, "agent": agent, "status": status},
                    output_ref=ref,
                )
            case ToolResult(call_id, name, text, error, ref, diff, image):
                return cls(
                    number=number,
                    turn_id=turn_id,
                    kind="tool_result",
                    created_at=at,
                    text=text,
                    call_id=call_id,
                    tool=name,
                    error=error or None,
                    diff=diff,
                    output_ref=ref,
                    image_ref=image.ref if image is not None else None,
                )
            case Checkpoint(text, up_to):
                return cls(number=number, turn_id=turn_id, kind="checkpoint", created_at=at, text=text, up_to=up_to)


class ItemPage(View):
    """A page of a transcript; `cursor` is the `after` of the next one."""

    items: list[ItemView]
    cursor: int | None = None


class PromptReceipt(View):
    """What the sender of a prompt is told."""

    input_id: str
    status: str
    """`queued`, or the state of its turn."""
    turn_id: str | None
    position: int | None
    replayed: bool


class SteerReceipt(View):
    """Whether the running turn takes the words in; if not, they have become a prompt."""

    accepted: bool
    input_id: str
    turn_id: str | None
    status: str
    position: int | None
    replayed: bool


class Released(View):
    """How many sessions were freed."""

    released: int
    replayed: bool | None = None


class DeletedView(View):
    """What ended with a session."""

    deleted: Literal[True]
    message_ids: list[str]
    """Messages to it that were cancelled in its queue."""
    running_turn_ids: list[str]
    replayed: bool | None = None


class VerifyView(View):
    """The checks of the ledger."""

    ok: bool
    checked: int
    failures: list[dict[str, str]]


class ChangeView(View):
    """One event of the stream."""

    session_id: str
    revision: int
    kind: str
    ref: str
    at: str

    @classmethod
    def of(cls, change: Change) -> "ChangeView":
        """Show a change."""
        return cls(
            session_id=change.session_id,
            revision=change.revision,
            kind=change.kind,
            ref=change.ref,
            at=iso(change.at),
        )
