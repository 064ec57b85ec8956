"""The OpenAPI document is true: what fits it, and what does not, is answered as it says."""

# The package leaves its type parameters open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.openapi import from_dict
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema
from tests.interfaces.bad_input import shapes
from tests.interfaces.conftest import BOUND_S, HOST
from tests.interfaces.world import World, world_at

from coterie.interfaces.http.events import SUBSCRIBE
from coterie.operations.catalogue import OPERATIONS, Operation

EXAMPLES: Final = 10
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@dataclass(frozen=True)
class Documented:
    """A host, its document, and the loop that it lives on."""

    runner: asyncio.Runner
    world: World
    schema: OpenApiSchema

    def good(self, operation: Operation) -> dict[str, Any]:
        """A request that succeeds."""
        if operation is SUBSCRIBE:
            return {"sessionId": self.world.names["$a"], "after": 0}
        given, succeeds = self.runner.run(self.world.request_with(operation, None))
        assert succeeds
        return given

    def ask(self, case: Case[Any]) -> httpx2.Response:
        """Send a request as it would go over the wire."""
        request = requests.Request(**case.as_transport_kwargs(base_url=f"http://{HOST}")).prepare()
        headers = [(name.encode("latin-1"), _bytes(value)) for name, value in request.headers.items()]
        # A stream ends with its host.
        streams = case.path.endswith(SUBSCRIBE.path)
        (self.world.host.stopping.set if streams else self.world.host.stopping.clear)()
        answer = self.runner.run(self._answer(str(request.method), str(request.url), headers, request.body))
        self.world.restore()
        return answer

    async def _answer(self, method: str, url: str, headers: list[tuple[bytes, bytes]], body: Any) -> httpx2.Response:
        async with asyncio.timeout(BOUND_S):
            return await self.world.door.client.request(method, url, headers=headers, content=body)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    """One host for all examples."""
    with asyncio.Runner() as runner:
        opened = world_at(tmp_path_factory.mktemp("fuzz") / "coterie.db")
        world = runner.run(opened.__aenter__())
        document = runner.run(world.door.client.get("/api/v1/openapi.json")).json()
        # The client has the token; requests with another one are the gate's business.
        config = SchemathesisConfig()
        config.projects.default.generation.with_security_parameters = False
        yield Documented(runner, world, from_dict(document, config=config))
        runner.run(opened.__aexit__(None, None, None))


def _may_be_wrong(operation: Operation) -> bool:
    # What stands in a URL is a text, so where any text may stand nothing can be wrong.
    return operation.verb == "POST" or not all(shape.is_text for shape in shapes(operation).values())


ROUTES: Final = (*OPERATIONS, SUBSCRIBE)
FITTING: Final = [(operation, GenerationMode.POSITIVE) for operation in ROUTES]
WRONG: Final = [(operation, GenerationMode.NEGATIVE) for operation in ROUTES if _may_be_wrong(operation)]


@pytest.mark.parametrize(("operation", "mode"), FITTING + WRONG, ids=lambda one: getattr(one, "name", str(one)))
def test_every_answer_is_one_that_the_document_names(
    documented: Documented, operation: Operation, mode: GenerationMode
) -> None:
    """Status, content type and shape, for requests that fit the document and for such that do not."""
    route = documented.schema.find_operation_by_id(operation.name)
    good = documented.good(operation)

    # How long it takes depends on what else the machine does; which examples there are must not.
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(case=route.as_strategy(generation_mode=mode), known=st.booleans())
    def conforms(case: Case[Any], *, known: bool) -> None:
        if known:
            _name_what_is_there(case, good)
        case.validate_response(documented.ask(case), checks=CHECKS)

    conforms()


@pytest.mark.parametrize("operation", ROUTES, ids=lambda operation: operation.name)
def test_what_succeeds_is_answered_in_the_shape_of_the_document(documented: Documented, operation: Operation) -> None:
    """Chance alone rarely makes a request that succeeds."""
    case = documented.schema.find_operation_by_id(operation.name).Case(media_type="application/json", body={})
    _name_what_is_there(case, documented.good(operation))
    answer = documented.ask(case)
    assert answer.is_success
    case.validate_response(answer, checks=CHECKS)


def _name_what_is_there(case: Case[Any], good: Mapping[str, Any]) -> None:
    """Put what succeeds into a request, each parameter where it belongs."""
    path = {name: value for name, value in good.items() if f"{{{name}}}" in case.path}
    rest = {name: value for name, value in good.items() if name not in path}
    case.path_parameters = {**case.path_parameters, **path}
    if case.method == "GET":
        case.query = {**case.query, **rest}
    elif isinstance(case.body, dict):
        case.body = {**cast("dict[str, Any]", case.body), **rest}
