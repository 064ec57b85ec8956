"""The gate: Host, Origin and token, on every route."""

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import pytest
from starlette.types import ASGIApp, Message
from tests.interfaces.conftest import BEARER, HOST, TOKEN, Door, Host, in_process

from coterie.interfaces.http import build_app
from coterie.operations.catalogue import OPERATIONS

ROUTES: Final[tuple[tuple[str, str], ...]] = (
    *((operation.verb, "/api/v1" + operation.path.replace("{sessionId}", "ses_x")) for operation in OPERATIONS),
    ("GET", "/"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/api/v1/events"),
    ("POST", "/rpc"),
    ("GET", "/docs"),
    ("GET", "/favicon.ico"),
    ("DELETE", "/nothing"),
    ("OPTIONS", "/rpc"),
)


@pytest.fixture
def app(host: Host) -> ASGIApp:
    """The app, which answers to `HOST` and to localhost."""
    names = frozenset({HOST, "localhost:7433", "[::1]:7433"})
    return build_app(host.operations, token=TOKEN, hosts=lambda: names, stopping=host.stopping)


@pytest.fixture
async def client(app: ASGIApp) -> AsyncIterator[httpx2.AsyncClient]:
    """A client whose every header a test gives itself."""
    async with in_process(app) as opened:
        del opened.headers["authorization"]
        yield opened


def _refused(answer: httpx2.Response, status: int, code: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "data"}
    assert error["data"] == {"errorCode": code, "retryable": False}
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:7433", "127.0.0.1", "127.0.0.1:7434", "127.0.0.1:7433.evil.example", ""]
)
async def test_a_foreign_host_is_refused_before_the_token_is_looked_at(client: httpx2.AsyncClient, name: str) -> None:
    """Case 178: a name of another's that points here must reach nothing, whatever it carries."""
    for verb, path in ROUTES:
        _refused(await client.request(verb, path, headers={**BEARER, "host": name}), 421, "FORBIDDEN_HOST")


@pytest.mark.parametrize("name", [HOST, "localhost:7433", "LOCALHOST:7433", "[::1]:7433"])
async def test_each_of_the_hosts_names_is_good(client: httpx2.AsyncClient, name: str) -> None:
    """Names have no case."""
    answer = await client.get("/api/v1/health", headers={**BEARER, "host": name})
    assert answer.status_code == 200


async def test_two_hosts_or_none_are_refused(app: ASGIApp) -> None:
    """Two readers of one request could each believe another of the two names."""
    for headers in ([], [(b"host", HOST.encode()), (b"host", b"evil.example")]):
        sent = await _raw(app, {"type": "http", "method": "GET", "path": "/", "headers": headers})
        assert sent[0]["status"] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:1", ""])
async def test_a_foreign_origin_changes_nothing(client: httpx2.AsyncClient, origin: str) -> None:
    """A page of another's that is open in a browser of this machine."""
    for verb, path in [route for route in ROUTES if route[0] not in {"GET", "OPTIONS"}]:
        _refused(await client.request(verb, path, headers={**BEARER, "origin": origin}), 403, "FORBIDDEN_ORIGIN")


@pytest.mark.parametrize("origin", [f"http://{HOST}", "http://localhost:7433", None])
async def test_an_own_origin_or_none_is_good(client: httpx2.AsyncClient, origin: str | None) -> None:
    """Programs send none."""
    headers = {**BEARER, **({"origin": origin} if origin else {})}
    answer = await client.post("/api/v1/sessions", headers=headers, json={})
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    "credential",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer  x {TOKEN}",
    ],
)
async def test_without_the_token_there_is_nothing(client: httpx2.AsyncClient, credential: str | None) -> None:
    """Not even whether a route is there."""
    headers = {} if credential is None else {"authorization": credential}
    for verb, path in [route for route in ROUTES if route != ("GET", "/")]:
        answer = await client.request(verb, path, headers=headers, params={"token": TOKEN, "access_token": TOKEN})
        _refused(answer, 401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_the_scheme_has_no_case(client: httpx2.AsyncClient) -> None:
    """As the standard has it."""
    assert (await client.get("/api/v1/health", headers={"authorization": f"bearer {TOKEN}"})).status_code == 200


async def test_the_page_without_a_token_tells_nothing_but_the_version(host: Host, client: httpx2.AsyncClient) -> None:
    """Anybody on this machine may see it."""
    session_id = await host.new_session("a secret title")
    answer = await client.get("/")
    assert answer.status_code == 200
    assert "Coterie is running" in answer.text
    assert host.parts.version in answer.text
    assert not [secret for secret in (TOKEN, session_id, "a secret title", "<script") if secret in answer.text]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_token_in_the_query_is_an_unknown_parameter(door: Door) -> None:
    """Case 179: queries stand in logs."""
    answer = await door.client.get("/api/v1/sessions", params={"token": TOKEN})
    assert answer.status_code == 400
    assert "token is unknown" in answer.json()["error"]["message"]
    assert TOKEN not in answer.text


async def _raw(app: ASGIApp, scope: dict[str, Any]) -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the gate reads nothing")

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


async def test_a_websocket_is_closed(app: ASGIApp) -> None:
    """What the gate does not know does not pass."""
    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    assert await _raw(app, {"type": "websocket", "path": "/rpc", "headers": headers}) == [
        {"type": "websocket.close", "code": 1008}
    ]
