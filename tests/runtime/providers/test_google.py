"""What only Gemini does over its own wire protocol; what it shares with the others stands beside them."""

import asyncio
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.runtime.providers.vendor import (
    BOUND_S,
    SECRET,
    Answer,
    asked,
    binding_of,
    gemini,
    gemini_call,
    needs_google,
    request,
    serving,
)
from tests.runtime.providers.wires import HELLO

from coterie.core.codes import Code
from coterie.core.model_ref import Binding
from coterie.core.turn.context import UserPart
from coterie.core.turn.items import Image, Reply, ToolCall, ToolResult
from coterie.core.turn.loop import ModelFailed, Replied
from coterie.runtime.providers.direct import DirectProvider

HALF = gemini({"text": "Hel"})


def refusing(code: int, status: str, message: str, **detail: Any) -> Answer:
    error = {"code": code, "message": message, "status": status, "details": [detail]}
    return Answer(
        (json.dumps({"error": error}),), status=f"{code} {status}", headers=("Content-Type: application/json",)
    )


def test_the_sdk_is_not_loaded_with_the_other_vendors() -> None:
    """Without the extra it is not there, and whoever does not use it must not wait for it."""
    code = "import sys, coterie.runtime.providers.direct; print('google.genai' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert told.stdout.strip() == "False"


@needs_google
async def test_a_key_that_is_refused_as_a_bad_argument_is_a_refused_key(provider: DirectProvider) -> None:
    """Google answers 400; as any other 400 it would send the person to look at the wrong thing."""
    answer = refusing(400, "INVALID_ARGUMENT", f"API key not valid: {SECRET}.", reason="API_KEY_INVALID")
    async with serving(answer) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
        assert len(vendor.asked) == 1
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.PROVIDER_AUTH, False)
    assert "refused the key (HTTP 400). The key comes from MY_VARIABLE" in outcome.message
    assert SECRET not in outcome.message


@needs_google
async def test_the_wait_that_stands_in_the_body_is_kept(provider: DirectProvider) -> None:
    """Google sends no header for it."""
    answer = refusing(429, "RESOURCE_EXHAUSTED", "Too much.", retryDelay="14s")
    async with serving(answer) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.retry_after_s) == (Code.PROVIDER_ERROR, True, 14.0)


@needs_google
@pytest.mark.parametrize("then", ["cut", "end"])
async def test_a_broken_stream_is_not_taken_up_again(provider: DirectProvider, then: Any) -> None:
    """The SDK would, with up to three requests that nobody counts, sees or cancels."""
    answer = Answer((gemini({"text": "Hel"}, continuationToken="YWJj"),), then)
    async with serving(answer) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
        assert len(vendor.asked) == 1
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.STREAM_INTERRUPTED, True, "Hel")


@needs_google
async def test_a_prompt_that_is_blocked_is_told_with_the_reason(provider: DirectProvider) -> None:
    """There is no candidate then, so no finish reason either; asking again would bring the same."""
    blocked = f"data: {json.dumps({'promptFeedback': {'blockReason': 'PROHIBITED_CONTENT'}})}\r\n\r\n"
    async with serving(Answer((blocked,))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient) == (Code.PROVIDER_ERROR, False)
    assert "withheld the answer (PROHIBITED_CONTENT)" in outcome.message


@needs_google
async def test_an_answer_that_the_vendor_gave_up_is_a_broken_one(provider: DirectProvider) -> None:
    """A call that it could not write comes as a finish reason and nothing else, which is not silence."""
    async with serving(Answer((HALF, gemini(finish="MALFORMED_FUNCTION_CALL")))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.STREAM_INTERRUPTED, True, "Hel")
    assert "MALFORMED_FUNCTION_CALL" in outcome.message


@needs_google
@pytest.mark.filterwarnings("ignore:NEW_REASON is not a valid FinishReason:UserWarning")
async def test_a_finish_reason_that_is_not_known_yet_ends_an_answer(provider: DirectProvider) -> None:
    """Vendors add reasons faster than SDKs learn them."""
    async with serving(Answer((gemini({"text": "Hello"}, finish="NEW_REASON"),))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
    assert isinstance(outcome, Replied)
    assert outcome.reply.text == "Hello"


@needs_google
async def test_a_fault_inside_a_stream_closes_its_connection(provider: DirectProvider) -> None:
    """The SDK leaves it to the garbage collection, and an overloaded vendor would fill the pool."""
    fault = f"data: {json.dumps({'error': {'code': 503, 'message': 'Overloaded', 'status': 'UNAVAILABLE'}})}\r\n\r\n"
    async with serving(Answer((HALF, fault), "hang")) as vendor, asyncio.timeout(BOUND_S):
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
        await vendor.left.wait()
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.PROVIDER_ERROR, True, "Hel")
    assert "answered HTTP 503: Overloaded" in outcome.message


@needs_google
async def test_an_answer_of_another_form_is_a_broken_one(provider: DirectProvider) -> None:
    """A proxy may answer with JSON of its own."""
    async with serving(Answer((HALF, gemini({"text": 5})))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.code, outcome.transient, outcome.partial) == (Code.STREAM_INTERRUPTED, True, "Hel")


@needs_google
async def test_arguments_are_text_and_a_call_without_id_gets_one(provider: DirectProvider) -> None:
    """This wire has objects for arguments, and may leave out the id that ties a result to its call."""
    call = gemini_call({"path": "ä"})
    del call["functionCall"]["id"]
    async with serving(Answer((gemini(call, finish="STOP"),))) as vendor:
        outcome, _ = await asked(provider, request(binding_of(vendor, "google")))
    assert isinstance(outcome, Replied)
    (made,) = outcome.reply.calls
    assert (made.name, made.arguments) == ("read", '{"path": "ä"}')
    assert made.id


@needs_google
async def test_the_environment_has_no_say_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key must go where the binding says, or to the vendor."""
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://elsewhere")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    google = importlib.import_module("coterie.runtime.providers._google")
    line = google.open_line(Binding("a/b", "google", None, "b", api_key=SECRET), httpx2.Timeout(BOUND_S))
    assert line.model.base_url.rstrip("/") == google.GOOGLE_URL
    await line.close()


@needs_google
async def test_an_image_goes_with_the_answer_of_its_tool(provider: DirectProvider) -> None:
    """This wire has a place for it inside the function's response; the others are proven with a whole host."""
    call, result = (
        ToolCall("call-1", "read", "{}"),
        ToolResult("call-1", "read", "a.png", image=Image("ab", "image/png", 3)),
    )
    async with serving(HELLO["google"]) as vendor:
        wanted = request(binding_of(vendor, "google"), UserPart("Look"), Reply("", (call,)), result)
        await asked(provider, replace(wanted, images={"ab": b"PNG"}))
        sent: Any = vendor.asked[0].body["contents"][-1]["parts"]
    (part,) = (one["functionResponse"] for one in sent)
    assert part["response"] == {"return_value": "a.png"}
    assert part["parts"] == [{"inline_data": {"mime_type": "image/png", "data": "UE5H"}}]
