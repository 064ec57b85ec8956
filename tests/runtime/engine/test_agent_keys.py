"""Keys of agents: each session has its own, and what a person has used is no agent's."""

from tests.guarantees import guarantee
from tests.runtime.engine.calls import HANG, running, told
from tests.runtime.engine.conftest import SetStage


@guarantee("I14")
async def test_one_key_in_the_hands_of_several_is_a_request_of_each(stage: SetStage) -> None:
    """Models count from one: a second session that asks with `1` must not be given the answer of the first."""
    host = await stage(HANG)
    turns, target = [await running(host), await running(host, "other")], await host.session("worker")
    key = {"idempotencyKey": "1"}

    by_person = await host.ask("session.prompt", sessionId=turns[0].session_id, text="go on", **key)
    sent: list[str] = []
    for turn in turns:
        with host.calling(turn) as invocation:
            answer = await told(host, invocation, action="send", sessionId=target, message="count", **key)
            assert not answer["replayed"]
            sent.append(answer["messageId"])

    assert by_person["status"] == "queued"
    sources = {(await host.chain(message_id))[0]["sourceSessionId"] for message_id in sent}
    assert sources == {turn.session_id for turn in turns}
