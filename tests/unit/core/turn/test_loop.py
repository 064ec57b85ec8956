"""The agent loop, line by line of its rules."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.core.codes import Code
from coterie.core.turn.items import Reply, Report, ToolCall, ToolResult
from coterie.core.turn.loop import (
    BACKOFF_S,
    AppendItems,
    AskModel,
    AwaitReports,
    CancelAsked,
    Crowded,
    Finish,
    LoopTurn,
    ModelFailed,
    Outcome,
    Replied,
    Reported,
    RunTools,
    Started,
    Summarise,
    Summarised,
    ToolsFinished,
    advance,
    is_crowded,
    joined,
)
from coterie.core.turn.silence import INSTRUCTION

TURN = LoopTurn(requests_max=5)
EXCUSED = replace(TURN, may_be_silent=True)
CALL = ToolCall("1", "read", "{}")
RESULT = ToolResult("1", "read", "text")
TEXT, CALLS, MUTE = Reply("hello"), Reply("", (CALL,)), Reply(" \u200b\n", thinking="hm")
EMPTY = replace(MUTE, text="")
"""The silent reply as it is stored."""
BROKE = ModelFailed(Code.PROVIDER_ERROR, "broke", transient=True)


def test_a_turn_begins_with_a_request() -> None:
    """Without a word of its own."""
    assert advance(TURN, Started()) == (TURN, (AskModel(),))


def test_a_text_ends_the_turn_and_is_written_with_its_end() -> None:
    """One transaction, so a reply without an outcome cannot be seen."""
    turn, effects = advance(TURN, Replied(TEXT))
    assert effects == (Finish(items=(TEXT,)),)
    assert turn.requests == 1


def test_calls_are_written_before_they_run_and_their_results_before_the_next_request() -> None:
    """A crash between leaves a call without a result, never a result without a call."""
    turn, effects = advance(TURN, Replied(CALLS))
    after, follows = advance(turn, ToolsFinished((RESULT,)))
    assert effects == (AppendItems((CALLS,)), RunTools((CALL,)))
    assert follows == (AppendItems((RESULT,)), AskModel())
    assert after.requests == 1


def test_the_first_silence_is_asked_again_with_an_instruction_and_no_message() -> None:
    """The instruction is the request's, so the transcript holds nothing that nobody said."""
    turn, effects = advance(TURN, Replied(MUTE))
    assert effects == (AppendItems((EMPTY,)), AskModel(INSTRUCTION))
    assert turn.silent_once


def test_the_second_silence_fails_the_turn() -> None:
    """A model that says nothing twice has nothing to say, and the person must know."""
    turn, _ = advance(TURN, Replied(MUTE))
    _, (finish,) = advance(turn, Replied(MUTE))
    assert isinstance(finish, Finish)
    assert (finish.code, finish.items) == (Code.EMPTY_MODEL_RESPONSE, (EMPTY,))


@pytest.mark.parametrize("reply", [TEXT, CALLS])
def test_a_reply_after_a_silence_clears_it(reply: Reply) -> None:
    """The next silence is a first one again."""
    turn, _ = advance(replace(TURN, silent_once=True), Replied(reply))
    assert not turn.silent_once


@pytest.mark.parametrize(
    "reply",
    [
        MUTE,
        *map(Reply, ["", " \n\t", "\u00a0\u3000", "\u200b\u2060\ufeff"]),
        Reply("", thinking="hm"),
        Reply("", state="[]"),
    ],
)
def test_a_completion_may_be_met_with_silence(reply: Reply) -> None:
    """Completed, without a second request and without an error; what is stored has no text, whatever was not seen."""
    turn, effects = advance(EXCUSED, Replied(reply))
    assert effects == (Finish(items=(replace(reply, text=""),)),)
    assert not turn.may_be_silent


@pytest.mark.parametrize("reply", [TEXT, CALLS, MUTE])
def test_the_first_settled_reply_spends_the_excuse_whatever_it_is(reply: Reply) -> None:
    """Else a turn could work for an hour and then end without a word."""
    turn, _ = advance(EXCUSED, Replied(reply))
    assert not turn.may_be_silent


def test_silence_after_an_excused_turn_has_worked_is_asked_again() -> None:
    """The excuse was for the notice, not for what came of it."""
    turn, _ = advance(EXCUSED, Replied(CALLS))
    turn, _ = advance(turn, ToolsFinished((RESULT,)))
    _, effects = advance(turn, Replied(MUTE))
    assert effects == (AppendItems((EMPTY,)), AskModel(INSTRUCTION))


@pytest.mark.parametrize(("reply", "stored"), [(TEXT, TEXT), (MUTE, EMPTY)])
@pytest.mark.parametrize("turn", [TURN, EXCUSED, replace(TURN, silent_once=True)])
def test_a_turn_with_open_delegations_waits_for_them_whatever_it_says(
    turn: LoopTurn, reply: Reply, stored: Reply
) -> None:
    """Their reports may change the answer; a silence meanwhile is no empty answer."""
    after, effects = advance(replace(turn, delegations=2), Replied(reply))
    assert effects == (AppendItems((stored,)), AwaitReports())
    assert (after.requests, after.silent_once, after.may_be_silent) == (1, False, False)


def test_a_turn_with_open_delegations_runs_the_tools_it_calls() -> None:
    """It has something to do beside them."""
    assert advance(replace(TURN, delegations=1), Replied(CALLS))[1] == (AppendItems((CALLS,)), RunTools((CALL,)))


def test_reports_are_written_before_the_model_is_asked_again() -> None:
    """And count as no answer: the bound on requests holds for a turn that waits again and again."""
    report = Report("dlg_1", "general", "completed", "found", "n")
    assert advance(TURN, Reported((report,)))[1] == (AppendItems((report,)), AskModel())
    (end,) = advance(replace(TURN, requests=TURN.requests_max), Reported((report,)))[1]
    assert isinstance(end, Finish)
    assert (end.code, end.items) == (Code.LIMIT_EXCEEDED, (report,))


def test_what_joins_a_turn_ends_its_excuse() -> None:
    """A person who speaks into the turn waits for an answer, even before the first request and between two tries."""
    assert advance(joined(EXCUSED), Replied(MUTE))[1] == (AppendItems((EMPTY,)), AskModel(INSTRUCTION))
    broken, _ = advance(EXCUSED, BROKE)
    assert advance(joined(broken), Replied(MUTE))[1] == (AppendItems((EMPTY,)), AskModel(INSTRUCTION))


@pytest.mark.parametrize("turn", [TURN, replace(TURN, silent_once=True, requests=2), replace(TURN, faults=2)])
def test_what_joins_a_turn_changes_nothing_else(turn: LoopTurn) -> None:
    """Neither the count of requests nor of faults, and a silence before it still counts."""
    assert joined(turn) == turn
    assert joined(replace(turn, may_be_silent=True)) == turn


def test_a_provider_retry_keeps_the_excuse() -> None:
    """Nothing has settled, so it is the same attempt."""
    turn, _ = advance(EXCUSED, BROKE)
    assert turn.may_be_silent
    assert advance(turn, Replied(MUTE))[1] == (Finish(items=(EMPTY,)),)


def test_a_cancel_or_a_fault_of_an_excused_turn_is_no_silence() -> None:
    """The excuse is for a model that has settled on saying nothing."""
    assert advance(EXCUSED, CancelAsked())[1] == (Finish(cancelled=True),)
    assert advance(replace(EXCUSED, faults=3), BROKE)[1] == (Finish(Code.PROVIDER_ERROR, "broke"),)


def test_a_provider_retry_after_a_silence_carries_the_instruction_again() -> None:
    """It is the same request once more."""
    turn, _ = advance(TURN, Replied(MUTE))
    _, effects = advance(turn, BROKE)
    assert effects == (AskModel(INSTRUCTION, BACKOFF_S[0]),)


def test_transient_faults_are_retried_after_growing_waits_and_then_fail_with_what_came() -> None:
    """Half a second, one, two; then the person decides."""
    turn, waits = TURN, list[float]()
    for _ in range(3):
        turn, (ask,) = advance(turn, BROKE)
        assert isinstance(ask, AskModel)
        waits.append(ask.after_s)
    _, effects = advance(turn, replace(BROKE, partial="half an ans"))
    assert waits == [0.5, 1.0, 2.0]
    assert effects == (Finish(Code.PROVIDER_ERROR, "broke", (Reply("half an ans"),)),)
    assert turn.requests == 0


def test_a_settled_reply_renews_the_patience() -> None:
    """Faults are counted for one request."""
    turn, _ = advance(replace(TURN, faults=3), Replied(CALLS))
    _, effects = advance(turn, BROKE)
    assert effects == (AskModel(None, 0.5),)


@pytest.mark.parametrize(("retry_after_s", "waits"), [(0.1, 0.5), (7.0, 7.0), (60.0, 60.0), (60.1, None), (9e9, None)])
def test_a_vendor_may_ask_for_up_to_a_minute(retry_after_s: float, waits: float | None) -> None:
    """Longer than that a turn would hold its session for nothing."""
    _, (effect,) = advance(TURN, replace(BROKE, retry_after_s=retry_after_s))
    if waits is None:
        assert effect == Finish(Code.PROVIDER_ERROR, "broke")
    else:
        assert effect == AskModel(None, waits)


def test_a_lasting_fault_fails_at_once() -> None:
    """A wrong key does not become right."""
    fault = ModelFailed(Code.PROVIDER_AUTH, "no", transient=False)
    assert advance(EXCUSED, fault)[1] == (Finish(Code.PROVIDER_AUTH, "no"),)


def test_a_request_that_is_too_long_is_made_again_in_half_the_room_three_times() -> None:
    """An instruction that it carried goes with it, and a request of an eighth of a window is not the trouble."""
    fault = ModelFailed(Code.PROVIDER_ERROR, "400", transient=False, too_long=True)
    turn = LoopTurn(9, silent_once=True)
    for tight in (2, 4, 8):
        turn, effects = advance(turn, fault)
        assert (turn.tight, effects) == (tight, (AskModel(INSTRUCTION),))
    assert advance(turn, fault) == (turn, (Finish(Code.PROVIDER_ERROR, "400"),))
    assert advance(LoopTurn(9), fault) == (LoopTurn(9, tight=2), (AskModel(),))


def test_a_cancel_ends_the_turn_as_cancelled() -> None:
    """Wherever the loop is."""
    assert advance(TURN, CancelAsked())[1] == (Finish(cancelled=True),)


@pytest.mark.parametrize("outcome", [ToolsFinished((RESULT,)), Replied(MUTE)])
def test_the_bound_on_requests_ends_the_turn_with_its_name(outcome: Outcome) -> None:
    """What was produced is kept, and no request is made beyond the bound."""
    _, (finish,) = advance(replace(TURN, requests=5), outcome)
    assert isinstance(finish, Finish)
    assert finish.code is Code.LIMIT_EXCEEDED
    assert "model_requests_max (5)" in finish.message
    assert len(finish.items) == 1


outcomes = st.one_of(
    st.sampled_from([TEXT, CALLS, MUTE]).map(Replied),
    st.sampled_from([BROKE, replace(BROKE, transient=False), replace(BROKE, retry_after_s=61)]),
)


@given(script=st.lists(outcomes, max_size=60), requests_max=st.integers(1, 6), excused=st.booleans())
def test_every_turn_ends(script: list[Outcome], requests_max: int, *, excused: bool) -> None:
    """Whatever a model does: at most the bound of settled replies, and never a third silence in a row."""
    turn = LoopTurn(requests_max, excused)
    settled = silences = 0
    _, effects = advance(turn, Started())
    for outcome in script:
        if isinstance(outcome, Replied):
            settled += 1
            silences = silences + 1 if outcome.reply is MUTE else 0
        turn, effects = advance(turn, outcome)
        if any(isinstance(effect, RunTools) for effect in effects):
            turn, effects = advance(turn, ToolsFinished((RESULT,)))
        assert settled <= requests_max
        assert silences < 3
        assert effects
        if isinstance(effects[-1], Finish):
            return
        assert isinstance(effects[-1], AskModel)


@given(script=st.lists(st.one_of(outcomes, st.none()), max_size=12), excused=st.booleans())
def test_silence_ends_a_turn_well_only_as_its_first_settled_reply(
    script: list[Outcome | None], *, excused: bool
) -> None:
    """Whatever else happens: only to a completion, only once, and not after something (None here) has joined."""
    turn, excuse = LoopTurn(99, excused), excused
    for outcome in script:
        if outcome is None:
            turn, excuse = joined(turn), False
            continue
        turn, effects = advance(turn, outcome)
        finish = effects[-1] if isinstance(effects[-1], Finish) else None
        if isinstance(outcome, Replied):
            if outcome.reply is MUTE:
                assert (finish is not None and finish.code is None) is excuse
            excuse = False
        assert turn.may_be_silent is excuse
        if finish is not None:
            return


def test_a_request_near_the_window_waits_for_a_summary() -> None:
    """What waits goes out unchanged, a summary or none."""
    asking = AskModel("Answer now.")
    turn, effects = advance(LoopTurn(9, silent_once=True), Crowded(asking))
    assert effects == (Summarise(asking),)
    turn, effects = advance(turn, Summarised(asking))
    assert effects == (asking,)
    assert turn.silent_once


@pytest.mark.parametrize(("tokens", "crowded"), [(80, False), (81, True)])
def test_a_window_is_near_at_four_fifths(tokens: int, crowded: bool) -> None:  # noqa: FBT001 - a table
    """The rest is for the answer."""
    assert is_crowded(LoopTurn(9), tokens, 100) is crowded


def test_a_reply_comes_between_two_summaries() -> None:
    """Where even a summary leaves too much, the request goes out all the same and no model is asked for ever."""
    turn, _ = advance(LoopTurn(9), Crowded(AskModel()))
    turn, _ = advance(turn, Summarised(AskModel()))
    assert not is_crowded(turn, 99, 100)
    turn, _ = advance(turn, Replied(Reply("", (ToolCall("1", "read", "{}"),))))
    assert is_crowded(turn, 99, 100)


def test_after_a_summary_that_failed_a_turn_tries_no_more() -> None:
    """A vendor that cannot is not asked before each request."""
    turn, _ = advance(LoopTurn(9), Crowded(AskModel()))
    turn, effects = advance(turn, Summarised(AskModel(), failed=True))
    assert effects == (AskModel(),)
    turn, _ = advance(turn, Replied(Reply("", (ToolCall("1", "read", "{}"),))))
    assert not is_crowded(turn, 99, 100)
