"""The comparison behind the kills, tried on ledgers that are broken on purpose: it tells each kind of break."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.kills.books import Answer, Asked, Message, Rows, Turn
from tests.kills.comparing import Kind, compare, restarted

TASK = Message("msg_1", "ses_a", "ses_b", "task", "plain 1", "completed", 1, "turn_1", "claimed", None)
COMPLETION = Message("msg_2", "ses_b", "ses_a", "completion", "done", "completed", 0, "turn_2", "claimed", "msg_1")
TURN = Turn("turn_1", "ses_b", "inp_1", "msg_1", "completed", 1, 0)
COMPLETED = Turn("turn_2", "ses_a", "inp_2", "msg_2", "completed", 2, 0)
PROMPTED = Turn("turn_3", "ses_a", "inp_3", None, "completed", 2, 0)
ROWS = Rows([TASK, COMPLETION], [TURN, COMPLETED, PROMPTED], [], ["msg_1", "msg_2"], ["plain 2"])
SENT = Answer(
    {
        "method": "collaboration.send",
        "params": {
            "asSessionId": "ses_a",
            "sessionId": "ses_b",
            "kind": "task",
            "content": "plain 1",
            "idempotencyKey": "1",
        },
    },
    {"messageId": "msg_1"},
    None,
)
PROMPT = Answer(
    {"method": "session.prompt", "params": {"sessionId": "ses_a", "text": "plain 2", "idempotencyKey": "2"}},
    {"inputId": "inp_3"},
    None,
)
CANCEL = Answer({"cancels": 0, "key": "3"}, {"messageIds": ["msg_1"]}, None)
SEEN = [Asked(1, "msg_1", 0), Asked(2, "msg_2", 0), Asked(2, "plain 2", 0)]


def messages(*changed: Message) -> Rows:
    return replace(ROWS, messages=list(changed))


BROKEN: dict[str, tuple[Kind, Rows]] = {
    "an accepted message is gone": (Kind.LOST, messages()),
    "an accepted message says something else": (Kind.LOST, messages(replace(TASK, content="2"), COMPLETION)),
    "a message waits for ever": (Kind.LOST, messages(replace(TASK, state="queued"), COMPLETION)),
    "a completion is missing": (Kind.LOST, messages(TASK)),
    "a completion went elsewhere": (Kind.LOST, messages(TASK, replace(COMPLETION, target="ses_c"))),
    "a completion answers nothing": (Kind.LOST, messages(TASK, COMPLETION, replace(COMPLETION, reply_to="msg_9"))),
    "a prompt had no turn": (Kind.LOST, replace(ROWS, turns=[TURN, COMPLETED])),
    "a turn runs for ever": (Kind.LOST, replace(ROWS, turns=[replace(TURN, state="running"), COMPLETED, PROMPTED])),
    "an input waits for ever": (Kind.LOST, replace(ROWS, inputs=["inp_9"])),
    "a message was not delivered": (Kind.LOST, replace(ROWS, delivered=["msg_2"])),
    "a message was delivered twice": (Kind.DOUBLED, replace(ROWS, delivered=["msg_1", "msg_1", "msg_2"])),
    "a prompt stands there twice": (Kind.DOUBLED, replace(ROWS, prompts=["plain 2", "plain 2"])),
    "one content is two messages": (Kind.DOUBLED, messages(TASK, COMPLETION, replace(TASK, id="msg_3", notify=0))),
    "there are two completions": (Kind.DOUBLED, messages(TASK, COMPLETION, replace(COMPLETION, id="msg_3"))),
    "a completion was not asked for": (Kind.DOUBLED, messages(replace(TASK, notify=0), COMPLETION)),
    "an input had two turns": (Kind.DOUBLED, replace(ROWS, turns=[*ROWS.turns, replace(PROMPTED, id="turn_4")])),
    "a message had two turns": (Kind.DOUBLED, replace(ROWS, turns=[*ROWS.turns, replace(TURN, input_id="inp_4")])),
}
TOLD: dict[str, tuple[Kind, list[Answer]]] = {
    "a key was answered with two ids": (Kind.DOUBLED, [SENT, replace(SENT, result={"messageId": "msg_2"})]),
    "something was refused": (Kind.UNSOUND, [SENT, replace(SENT, result=None, refused="NOT_FOUND")]),
    "a cancel is forgotten": (Kind.LOST, [SENT, CANCEL]),
}
ASKED: dict[str, tuple[Kind, list[Asked]]] = {
    "a turn was run by the next host again": (Kind.REPLAYED, [*SEEN, Asked(2, "msg_1", 0)]),
    "a prompt was run by the next host again": (Kind.REPLAYED, [*SEEN, Asked(3, "plain 2", 0)]),
    "one step of a turn came twice": (Kind.DOUBLED, [*SEEN, Asked(1, "msg_1", 0)]),
    "a turn completed unseen": (Kind.LOST, SEEN[1:]),
}
RESTARTED: dict[str, tuple[Kind, Callable[[Rows], Rows]]] = {
    "a turn began by itself": (Kind.BEGUN, lambda rows: replace(rows, turns=[*rows.turns, PROMPTED])),
    "a turn goes on": (Kind.REPLAYED, lambda rows: replace(rows, turns=[replace(TURN, state="running"), COMPLETED])),
    "a turn is gone": (Kind.REPLAYED, lambda rows: replace(rows, turns=[COMPLETED])),
    "a message is gone": (Kind.LOST, lambda rows: replace(rows, messages=[COMPLETION])),
    "an end was changed": (Kind.LOST, lambda rows: replace(rows, messages=[replace(TASK, state="failed"), COMPLETION])),
}


def test_a_sound_ledger_has_no_faults() -> None:
    """A comparison that finds something always says nothing."""
    assert not compare(ROWS, [SENT, PROMPT, replace(SENT, repeats=True)], SEEN)


@pytest.mark.parametrize(("kind", "rows"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_ledger_is_told(kind: Kind, rows: Rows) -> None:
    """Each promise of the ledger is broken once."""
    assert kind in {one.kind for one in compare(rows, [SENT, PROMPT], SEEN)}


@pytest.mark.parametrize(("kind", "answers"), TOLD.values(), ids=TOLD.keys())
def test_a_broken_answer_is_told(kind: Kind, answers: list[Answer]) -> None:
    """Each promise to a client is broken once."""
    assert kind in {one.kind for one in compare(ROWS, [*answers, PROMPT], SEEN)}


@pytest.mark.parametrize(("kind", "seen"), ASKED.values(), ids=ASKED.keys())
def test_work_that_is_done_again_is_told(kind: Kind, seen: list[Asked]) -> None:
    """The model's own record shows what no row does."""
    assert kind in {one.kind for one in compare(ROWS, [SENT, PROMPT], seen)}


@pytest.mark.parametrize(("kind", "broken"), RESTARTED.values(), ids=RESTARTED.keys())
def test_a_broken_restart_is_told(kind: Kind, broken: Callable[[Rows], Rows]) -> None:
    """A restart interrupts what ran and does nothing else."""
    dead = replace(ROWS, turns=[replace(TURN, state="running"), COMPLETED])
    alive = replace(ROWS, turns=[replace(TURN, state="interrupted"), COMPLETED])
    assert not list(restarted(dead, alive, "ses_probe"))
    assert [one.kind for one in restarted(dead, broken(alive), "ses_probe")] == [kind]


def test_a_turn_that_was_cancelled_when_its_host_died_is_cancelled() -> None:
    """The person was told so; a crash does not make it an interruption."""
    dead = replace(ROWS, turns=[replace(TURN, state="running", fenced=1)])
    assert not list(restarted(dead, replace(ROWS, turns=[replace(TURN, state="cancelled")]), "ses_probe"))
    assert list(restarted(dead, replace(ROWS, turns=[replace(TURN, state="interrupted")]), "ses_probe"))
