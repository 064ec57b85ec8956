"""Real requests over real sockets: what goes out, what comes back, and every way in which a vendor fails."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.runtime.providers.vendor import (
    APIS,
    BOUND_S,
    SECRET,
    Answer,
    asked,
    binding_of,
    failing,
    gemini,
    gemini_call,
    needs_google,
    request,
    serving,
)
from tests.runtime.providers.wires import (
    CHAT_END,
    CREATED,
    HELLO,
    START,
    block,
    called,
    chat,
    chat_call,
    closing,
    event,
    reasoned,
    said,
    stop,
    text_block,
)

from coterie.core.codes import Code
from coterie.core.model_ref import Binding
from coterie.core.thinking import Thinking
from coterie.core.turn.context import UserPart
from coterie.core.turn.items import Reply, ToolCall, ToolResult, Usage
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.runtime.providers.direct import DirectProvider

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/script-1:streamGenerateContent",
}
HALF = {
    "openai-chat": (chat({"role": "assistant", "content": "Hel"}),),
    "openai-responses": (CREATED, said("Hel")),
    "anthropic": (START, text_block(0, "Hel")),
    "google": (gemini({"text": "Hel"}),),
}


def conversation(body: dict[str, Any]) -> object:
    """What a request tells of what was said before."""
    return body.get("messages") or body.get("contents") or body["input"]


@pytest.mark.parametrize("api", APIS)
async def test_a_reply_arrives_in_pieces_and_whole(provider: DirectProvider, api: str) -> None:
    """Both wires give the same reply, so that a session can change between them."""
    async with serving(HELLO[api]) as vendor:
        binding = binding_of(vendor, api)
        outcome, texts = await asked(provider, request(binding))
        assert isinstance(outcome, Replied)
        # Only responses give even a plain text an id of its own.
        assert (outcome.reply.state is not None) == (api == "openai-responses")
        assert replace(outcome.reply, state=None) == Reply("Hello", binding=binding.identity, usage=Usage(11, 7))
        assert texts == ["Hel", "lo"]
        (seen,) = vendor.asked
        assert seen.path.split("?")[0] == PATHS[api]
        assert seen.body.get("stream", "alt=sse" in seen.path) is True
        assert "script-1" in (seen.body.get("model"), seen.path.split("/")[-1].split(":")[0])
        assert "Be brief." in json.dumps(seen.body)
        assert '"read"' in json.dumps(seen.body["tools"])
        assert any(SECRET in seen.headers.get(name, "") for name in ("authorization", "x-api-key", "x-goog-api-key"))


async def test_tokens_that_the_vendor_did_not_count_are_unknown(provider: DirectProvider) -> None:
    """Unknown is not zero: a sum with it is a lower bound."""
    async with serving(Answer((chat({"content": "Hi"}, "stop"), "data: [DONE]\n\n"))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor)))
    assert isinstance(outcome, Replied)
    assert outcome.reply.usage == Usage(None, None)


async def test_what_a_turn_says_again_and_again_is_marked_for_the_cache_of_the_vendor(provider: DirectProvider) -> None:
    """Anthropic keeps what it is told to: tools, instructions and the conversation up to its newest message."""
    async with serving(HELLO["anthropic"]) as vendor:
        await asked(provider, request(binding_of(vendor, "anthropic")))
    body = vendor.asked[0].body
    marked = [body["tools"][-1], body["system"][-1], body["messages"][-1]["content"][-1]]
    assert [part["cache_control"]["type"] for part in marked] == ["ephemeral"] * 3
    assert "cache_control" not in body


def effort(body: dict[str, Any]) -> object:
    """What a request says of thinking, in the words of its wire."""
    thinking: dict[str, Any] = body.get("generationConfig", {}).get("thinkingConfig", {})
    own = body.get("thinking", {}).get("type"), body.get("reasoning", {}).get("effort"), body.get("reasoning_effort")
    return next((word for word in own if word), None) or thinking.get("thinking_level")


@pytest.mark.parametrize(
    ("api", "level", "said"),
    [
        ("openai-chat", Thinking.OFF, "none"),
        ("openai-chat", Thinking.LOW, "low"),
        ("openai-chat", Thinking.HIGH, "high"),
        ("openai-responses", Thinking.OFF, "none"),
        ("openai-responses", Thinking.MEDIUM, "medium"),
        ("anthropic", Thinking.OFF, None),
        ("anthropic", Thinking.LOW, "enabled"),
        pytest.param("google", Thinking.HIGH, "HIGH", marks=needs_google),
    ],
)
async def test_a_level_of_thinking_is_said_in_the_words_of_the_wire(
    provider: DirectProvider, api: str, level: Thinking, said: str | None
) -> None:
    """One setting of a session, whatever its model; without a level nothing is said, and the vendor decides."""
    async with serving(HELLO[api], HELLO[api]) as vendor:
        binding = replace(binding_of(vendor, api), reasoning=True)
        await asked(provider, replace(request(binding), thinking=level))
        await asked(provider, request(binding))
    assert [effort(seen.body) for seen in vendor.asked] == [said, None]


async def test_a_higher_level_lets_anthropic_think_longer(provider: DirectProvider) -> None:
    """Its parameter is a number of tokens, which must leave room for an answer."""
    async with serving(HELLO["anthropic"], HELLO["anthropic"]) as vendor:
        binding = replace(binding_of(vendor, "anthropic"), reasoning=True)
        for level in (Thinking.LOW, Thinking.HIGH):
            await asked(provider, replace(request(binding), thinking=level))
    first, second = (seen.body["thinking"]["budget_tokens"] for seen in vendor.asked)
    assert first < second < vendor.asked[1].body["max_tokens"]


async def test_a_binding_keeps_one_connection(provider: DirectProvider) -> None:
    """A client for each request leaks sockets."""
    async with serving(HELLO["openai-chat"], HELLO["openai-chat"]) as vendor:
        for _ in range(2):
            await asked(provider, request(binding_of(vendor)))
        assert (vendor.connections, len(vendor.asked)) == (1, 2)


async def test_another_key_is_another_client(provider: DirectProvider) -> None:
    """A key must not be sent for a binding that has another one."""
    async with serving(HELLO["openai-chat"], HELLO["openai-chat"]) as vendor:
        await asked(provider, request(binding_of(vendor)))
        await asked(provider, request(binding_of(vendor, key="other")))
        assert [seen.headers["authorization"] for seen in vendor.asked] == [f"Bearer {SECRET}", "Bearer other"]


@pytest.mark.parametrize("api", APIS)
async def test_a_key_of_the_environment_is_not_sent_to_a_server_without_one(
    provider: DirectProvider, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDKs look for keys by themselves; a local server has no claim to them."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    async with serving(HELLO[api]) as vendor:
        await asked(provider, request(binding_of(vendor, api, key=None)))
        assert SECRET not in str(vendor.asked[0].headers)


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_without_a_finish_reason_is_broken(provider: DirectProvider, api: str) -> None:
    """A short answer and half of a long one look alike; only the finish reason tells them apart."""
    async with serving(Answer(HALF[api])) as vendor:
        outcome, texts = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.STREAM_INTERRUPTED, True, "Hel")
    assert texts == ["Hel"]


@pytest.mark.parametrize("api", APIS)
async def test_a_cut_connection_is_a_broken_stream(provider: DirectProvider, api: str) -> None:
    """What was shown already is kept, and asking again can help."""
    async with serving(Answer(HALF[api], "cut")) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
        assert len(vendor.asked) == 1
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.STREAM_INTERRUPTED, True, "Hel")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pieces", [(), ("data: {broken\n\n",), ("<html></html>",)])
async def test_an_answer_that_is_no_stream_is_a_broken_one(
    provider: DirectProvider, api: str, pieces: tuple[str, ...]
) -> None:
    """Proxies answer with pages of their own."""
    async with serving(Answer(pieces)) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.STREAM_INTERRUPTED, True)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_a_refused_key_is_told_with_its_source(provider: DirectProvider, api: str, status: str) -> None:
    """The person must learn which variable to repair, and must not see the key."""
    async with serving(failing(status, text=f"Incorrect key {SECRET}")) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
        assert len(vendor.asked) == 1
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.PROVIDER_AUTH, False)
    assert outcome.message.startswith("test/script: ")
    assert "MY_VARIABLE" in outcome.message
    assert "set a valid key" in outcome.message
    assert SECRET not in outcome.message


async def test_a_missing_key_is_told_as_such(provider: DirectProvider) -> None:
    """Nothing is wrong with a key that is not there."""
    async with serving(failing("401 Unauthorized")) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, key=None)))
    assert isinstance(outcome, ModelFailed)
    assert "wants a key, and there is none" in outcome.message


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("key", [f"# mine\n{SECRET}", f"{SECRET} ", f"{SECRET}…"])
async def test_a_key_that_no_header_can_carry_is_told_without_it(provider: DirectProvider, api: str, key: str) -> None:
    """A file with a line too many is the person's to repair, and its words reach neither a transcript nor a log."""
    async with serving() as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api, key=key)))
        assert vendor.asked == []
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.PROVIDER_AUTH, False)
    assert "MY_VARIABLE cannot be sent" in outcome.message
    assert SECRET not in outcome.message


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", ["408 Timeout", "429 Busy", "500 Oops", "503 Later", "529 Overloaded"])
async def test_a_passing_fault_is_asked_once_and_told_as_passing(
    provider: DirectProvider, api: str, status: str
) -> None:
    """Retries are the loop's, so that they are counted, seen and cancelled."""
    async with serving(failing(status, "Retry-After: 7")) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
        assert len(vendor.asked) == 1
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.retry_after_s) == (Code.PROVIDER_ERROR, True, 7.0)
    assert status[:3] in outcome.message


async def test_patience_may_be_asked_until_a_date(provider: DirectProvider) -> None:
    """The header has two forms."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)  # noqa: TID251 - as a vendor would
    async with serving(failing("429 Busy", f"Retry-After: {date}")) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor)))
    assert isinstance(outcome, ModelFailed)
    assert outcome.retry_after_s is not None
    assert 30 < outcome.retry_after_s <= 40


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", ["400 Bad", "404 Missing", "413 Large", "422 Odd"])
async def test_a_lasting_fault_is_told_with_the_words_of_the_vendor(
    provider: DirectProvider, api: str, status: str
) -> None:
    """Asking the same again gives the same; the vendor's sentence is all that helps."""
    async with serving(failing(status, text=f"No such model for {SECRET}.")) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.retry_after_s) == (Code.PROVIDER_ERROR, False, None)
    assert outcome.message.endswith("No such model for ….")
    assert SECRET not in outcome.message


async def test_an_error_inside_a_stream_has_its_status(provider: DirectProvider) -> None:
    """A vendor that is overloaded after the first word says so in the stream."""
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    async with serving(Answer((*HALF["anthropic"], error))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "anthropic")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.PROVIDER_ERROR, True, "Hel")


@pytest.mark.parametrize("api", APIS)
async def test_an_address_where_nobody_listens_is_named(provider: DirectProvider, api: str) -> None:
    """The most common mistake with local models: the server is not running."""
    async with serving() as vendor:
        binding = binding_of(vendor, api)
    outcome, _ = await asked(provider, request(binding))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.PROVIDER_ERROR, True)
    assert f"{binding.base_url} cannot be reached" in outcome.message
    assert SECRET not in outcome.message


async def test_a_password_in_an_address_is_not_told(provider: DirectProvider) -> None:
    """Texts of faults reach transcripts and logs."""
    async with serving() as vendor:
        url = vendor.url.replace("//", f"//me:{SECRET}@")
    outcome, _ = await asked(provider, request(Binding("test/script", "openai-chat", url, "script-1")))
    assert isinstance(outcome, ModelFailed)
    assert vendor.url in outcome.message
    assert SECRET not in outcome.message


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pieces", [HALF, dict.fromkeys(HALF, ())])
async def test_a_vendor_that_falls_silent_is_given_up(api: str, pieces: dict[str, tuple[str, ...]]) -> None:
    """A connection can stay open for ever with nothing in it."""
    provider = DirectProvider(idle_timeout_s=0.2)
    async with serving(Answer(pieces[api], "hang")) as vendor:
        outcome, texts = await asked(provider, request(binding_of(vendor, api)))
        await provider.close()
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.PROVIDER_ERROR, True, "".join(texts))
    assert f"{vendor.url}" in outcome.message
    assert "does not answer" in outcome.message


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pieces", [HALF, dict.fromkeys(HALF, ())])
async def test_a_cancelled_request_closes_its_connection(
    provider: DirectProvider, api: str, pieces: dict[str, tuple[str, ...]]
) -> None:
    """Whoever cancels wants to stop paying: the vendor must notice."""
    async with serving(Answer(pieces[api], "hang")) as vendor, asyncio.timeout(BOUND_S):
        binding = binding_of(vendor, api)
        task = asyncio.ensure_future(provider.ask(request(binding), lambda _: None))
        await vendor.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await vendor.left.wait()


BROKEN = '{"path": "a'
CALL = {
    "openai-responses": Answer(
        (
            CREATED,
            said("Look"),
            called(1, "read", BROKEN),
            closing("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        )
    ),
    "openai-chat": Answer((chat({"content": "Look"}), chat_call("read", BROKEN), chat({}, "length"), CHAT_END)),
    "anthropic": Answer(
        (
            START,
            text_block(0, "Look"),
            block(
                1,
                {"type": "tool_use", "id": "call-1", "name": "read", "input": {}},
                {"type": "input_json_delta", "partial_json": BROKEN},
            ),
            stop("max_tokens"),
        )
    ),
}


@pytest.mark.parametrize("api", CALL)
async def test_broken_arguments_are_kept_as_written_and_sent_back_as_an_object(
    provider: DirectProvider, api: str
) -> None:
    """The model can only repair what it is shown, and the vendor accepts only objects."""
    async with serving(CALL[api], HELLO[api]) as vendor:
        binding = binding_of(vendor, api)
        outcome, _ = await asked(provider, request(binding))
        assert isinstance(outcome, Replied)
        assert outcome.reply.calls == (ToolCall("call-1", "read", BROKEN),)
        assert outcome.reply.text == "Look"
        result = ToolResult("call-1", "read", "The arguments are no JSON.", error=True)
        await asked(provider, request(binding, UserPart("Hello"), outcome.reply, result))
        sent: Any = conversation(vendor.asked[1].body)
    if api == "openai-responses":
        assert json.loads(sent[2]["arguments"]) == {"invalid": BROKEN}
        assert (sent[3]["type"], sent[3]["call_id"]) == ("function_call_output", "call-1")
        assert "The arguments are no JSON." in sent[3]["output"]
    elif api == "anthropic":
        assert sent[1]["content"][1]["input"] == {"invalid": BROKEN}
        assert sent[2]["content"][0]["tool_use_id"] == "call-1"
        assert sent[2]["content"][0]["is_error"] is True
    else:
        assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == {"invalid": BROKEN}
        assert (sent[3]["role"], sent[3]["tool_call_id"]) == ("tool", "call-1")
        assert "The arguments are no JSON." in sent[3]["content"]


@pytest.mark.parametrize("api", APIS)
async def test_a_call_without_arguments_has_an_empty_object(provider: DirectProvider, api: str) -> None:
    """A tool parses JSON, and nothing is not JSON."""
    start: dict[str, Any] = {"type": "tool_use", "id": "call-1", "name": "read", "input": {}}
    answers = {
        "openai-chat": Answer((chat_call("read", ""), chat({}, "tool_calls"), CHAT_END)),
        "openai-responses": Answer((CREATED, called(0, "read", ""), closing())),
        "anthropic": Answer((START, block(0, start), stop("tool_use"))),
        "google": Answer((gemini(gemini_call(None), finish="STOP"),)),
    }
    async with serving(answers[api]) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, Replied)
    assert outcome.reply.calls == (ToolCall("call-1", "read", "{}"),)


THOUGHTFUL = {
    "openai-responses": Answer(
        (
            CREATED,
            reasoned(0, "Hmm", "sealed"),
            said("Hi"),
            called(2, "read", "{}"),
            closing(),
        )
    ),
    "openai-chat": Answer(
        (chat({"reasoning_content": "Hmm"}), chat({"content": "Hi"}), chat_call("read", "{}"), chat({}, "tool_calls"))
    ),
    "anthropic": Answer(
        (
            START,
            block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "Hmm"},
                {"type": "signature_delta", "signature": "signed"},
            ),
            text_block(1, "Hi"),
            block(2, {"type": "tool_use", "id": "call-1", "name": "read", "input": {}}),
            stop("tool_use"),
        )
    ),
    "google": Answer(
        (
            gemini({"text": "Hmm", "thought": True}),
            gemini({"text": "Hi"}),
            gemini(gemini_call({}, thoughtSignature="c2lnbmVk"), finish="STOP"),
        )
    ),
}


SIGNS = {"openai-chat": "Hmm", "openai-responses": "sealed", "anthropic": "signed", "google": "c2lnbmVk"}


@pytest.mark.parametrize("other", APIS)
@pytest.mark.parametrize("api", APIS)
async def test_reasoning_goes_back_only_to_the_binding_that_made_it(
    provider: DirectProvider, api: str, other: str
) -> None:
    """The maker demands it back unchanged; shown to anyone else it is foreign text, or a request that is refused."""
    async with serving(THOUGHTFUL[api], HELLO[api], HELLO[other]) as vendor:
        binding = replace(binding_of(vendor, api), reasoning=True)
        outcome, texts = await asked(provider, request(binding))
        assert isinstance(outcome, Replied)
        assert (outcome.reply.thinking, outcome.reply.text, texts) == ("Hmm", "Hi", ["Hi"])
        assert outcome.reply.state is not None
        assert SECRET not in outcome.reply.state
        context = (UserPart("Hello"), outcome.reply, ToolResult("call-1", "read", "text"))
        await asked(provider, request(binding, *context))
        stranger = binding_of(vendor, other)
        moved = Binding("test/other", other, stranger.base_url, "script-2", api_key=SECRET)
        await asked(provider, request(moved, *context))
        home, away = (json.dumps(conversation(seen.body)) for seen in vendor.asked[1:])
    assert "Hmm" in home
    assert SIGNS[api] in home
    assert not [sign for sign in SIGNS.values() if sign in away]
    assert all('"Hi"' in sent and "call-1" in sent for sent in (home, away))


async def test_a_state_that_cannot_be_read_is_passed_over(provider: DirectProvider) -> None:
    """Another version may have written it; text and tool calls are enough to go on."""
    async with serving(HELLO["openai-chat"], HELLO["openai-chat"]) as vendor:
        binding = binding_of(vendor)
        for state in ("{", "[]"):
            reply = Reply("Hi", binding=binding.identity, state=state)
            await asked(provider, request(binding, reply, UserPart("More")))
        sent = [[message["content"] for message in seen.body["messages"][1:]] for seen in vendor.asked]
    assert sent == [["Hi", "More"]] * 2


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
async def test_blank_text_beside_a_call_is_not_sent_back(provider: DirectProvider, api: str) -> None:
    """Some vendors refuse a block of white space, and with it every later request of the session."""
    async with serving(HELLO[api]) as vendor:
        binding = binding_of(vendor, api)
        said = Reply(" \n\u200b", (ToolCall("call-1", "look", "{}"),), binding=binding.identity)
        await asked(provider, request(binding, said, ToolResult("call-1", "look", "seen")))
    (spoken,) = [one for one in vendor.asked[0].body["messages"] if one["role"] == "assistant"]
    assert "\\n" not in json.dumps(spoken)
    assert "call-1" in json.dumps(spoken)


async def test_reasoning_in_tags_is_neither_shown_nor_sent_back(provider: DirectProvider) -> None:
    """Local models write it into their text; it is no field that their server would want again."""
    pieces = (chat({"content": "<think>"}), chat({"content": "Hmm"}), chat({"content": "</think>"}))
    async with serving(Answer((*pieces, chat({"content": "Hi"}, "stop"), CHAT_END))) as vendor:
        outcome, texts = await asked(provider, request(binding_of(vendor)))
    assert isinstance(outcome, Replied)
    assert (outcome.reply.text, outcome.reply.thinking, outcome.reply.state) == ("Hi", "Hmm", None)
    assert texts == ["Hi"]


async def test_blocks_of_text_are_paragraphs(provider: DirectProvider) -> None:
    """Without a break the end of one and the start of the next would be one word."""
    async with serving(Answer((START, text_block(0, "One."), text_block(1, "Two."), stop("end_turn")))) as vendor:
        outcome, texts = await asked(provider, request(binding_of(vendor, "anthropic")))
    assert isinstance(outcome, Replied)
    assert outcome.reply.text == "One.\n\nTwo." == "".join(texts)


REFUSING = {
    "openai-chat": (chat({"refusal": "I will "}), chat({"refusal": "not."}), chat({}, "stop") + CHAT_END),
    "openai-responses": (CREATED, said("I will ", "not.", kind="refusal"), closing()),
}


@pytest.mark.parametrize("api", REFUSING)
async def test_a_refusal_in_words_is_a_reply(provider: DirectProvider, api: str) -> None:
    """The person reads why, as with any other answer."""
    async with serving(Answer(REFUSING[api])) as vendor:
        outcome, texts = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, Replied)
    assert (outcome.reply.text, texts) == ("I will not.", ["I will not."])


@pytest.mark.parametrize("api", REFUSING)
async def test_a_refusal_that_breaks_off_is_a_broken_stream(provider: DirectProvider, api: str) -> None:
    """A refusal without end is no answer either."""
    async with serving(Answer(REFUSING[api][:-1])) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, ModelFailed)
    assert outcome.code is Code.STREAM_INTERRUPTED


@pytest.mark.parametrize("api", APIS)
async def test_an_answer_that_was_withheld_whole_is_a_fault(provider: DirectProvider, api: str) -> None:
    """As silence it would be asked again, which costs the same and brings the same."""
    answers = {
        "openai-chat": Answer((chat({"role": "assistant"}), chat({}, "content_filter"), CHAT_END)),
        "openai-responses": Answer(
            (CREATED, closing("incomplete", incomplete_details={"reason": "content_filter"})),
        ),
        "anthropic": Answer((START, stop("refusal"))),
        "google": Answer((gemini(finish="SAFETY"),)),
    }
    async with serving(answers[api]) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, api)))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.PROVIDER_ERROR, False)
    assert "withheld" in outcome.message


async def test_a_silent_reply_is_left_to_the_loop(provider: DirectProvider) -> None:
    """Whether silence is allowed is a rule, not a fault of the vendor."""
    async with serving(Answer((chat({"role": "assistant"}), chat({}, "stop"), CHAT_END))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor)))
    assert isinstance(outcome, Replied)
    assert (outcome.reply.text, outcome.reply.calls) == ("", ())


async def test_text_of_the_world_is_mended(provider: DirectProvider) -> None:
    """Storage takes no lone surrogate and no NUL."""
    pieces = (chat({"reasoning_content": "\x00"}), chat({"content": "a\ud800"}), chat_call("read", "\x00"))
    async with serving(Answer((*pieces, chat({}, "tool_calls"), CHAT_END))) as vendor:
        outcome, texts = await asked(provider, request(binding_of(vendor)))
    assert isinstance(outcome, Replied)
    reply = outcome.reply
    assert (reply.text, texts, reply.thinking) == ("a\ufffd", ["a\ufffd"], "\ufffd")
    assert reply.calls[0].arguments == "\ufffd"
    assert reply.state is None
