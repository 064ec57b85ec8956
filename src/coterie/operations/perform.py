"""The one way to an operation: decode, authorise, run."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from coterie.app import find
from coterie.app.idempotency import Key
from coterie.core.codes import Code
from coterie.core.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError, RefusedError
from coterie.core.refusal import Refusal
from coterie.core.text import flaw_of, nearest
from coterie.operations.act import Act, HostParts
from coterie.operations.caller import Agent, Caller
from coterie.operations.catalogue import BY_NAME, Operation
from coterie.operations.params import Keyed, Params
from coterie.operations.views import View

_TOLD_MAX: Final = 5
"""Faults that one answer tells."""
_NAME_CHARS_MAX: Final = 80


class Operations:
    """Performs operations for callers."""

    def __init__(self, host: HostParts) -> None:
        self.host = host

    async def perform(self, caller: Caller, name: str, given: Mapping[str, Any]) -> View:
        """Perform the operation *name* for *caller*.

        Args:
            caller: From the credential.
            name: As in the catalogue.
            given: Parameters by their wire names, as JSON values.

        Raises:
            HostError: What was wrong; nothing is half done.
        """
        operation = BY_NAME.get(name)
        if operation is None:
            known = name[:_NAME_CHARS_MAX]
            raise NotFoundError("operation", known, nearest(known, list(BY_NAME), 3))
        if isinstance(caller, Agent):
            self.host.invocations.check(caller.invocation)
            if not operation.agents:
                raise PermissionDeniedError(f"{name} is for people; an agent may not call it.")
        decoded = decode(operation, given)
        act = Act(self.host, caller, self._key(caller, operation, decoded))
        try:
            return await operation.run(act, decoded)
        except NotFoundError as error:
            if error.kind != "session" or error.candidates:
                raise
            subject = error.subject[:_NAME_CHARS_MAX]
            near = await self.host.store.read(find.near_sessions, subject)
            raise NotFoundError("session", subject, near) from None

    def _key(self, caller: Caller, operation: Operation, decoded: Params) -> Key | None:
        if not isinstance(decoded, Keyed) or decoded.idempotency_key is None:
            return None
        key, most = decoded.idempotency_key, self.host.limits.idempotency_key_chars_max
        flaw = flaw_of(key)
        if flaw is not None:
            raise InvalidArgumentError(f"idempotencyKey has {flaw}; use plain text.")
        if len(key) > most:
            text = f"idempotencyKey has {len(key)} characters; idempotency_key_chars_max allows {most}."
            raise RefusedError(Refusal(Code.LIMIT_EXCEEDED, text, limit="idempotency_key_chars_max", value=most))
        body = decoded.model_dump(mode="json", by_alias=True, exclude={"idempotency_key"})
        text = json.dumps([operation.name, body], sort_keys=True)
        return Key(caller.scope, key, hashlib.sha256(text.encode()).hexdigest())


def decode(operation: Operation, given: Mapping[str, Any]) -> Params:
    """Check the parameters of an operation.

    Raises:
        InvalidArgumentError: Names each wrong parameter and what would be right.
    """
    try:
        return operation.params.model_validate(dict(given))
    except ValidationError as error:
        found = error.errors(include_input=False)
        told = [_told(operation, one) for one in found[:_TOLD_MAX]]
        more = f"; and {len(found) - _TOLD_MAX} more" if len(found) > _TOLD_MAX else ""
        raise InvalidArgumentError("; ".join(told) + more + ".") from None


def _told(operation: Operation, one: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in one["loc"])[:_NAME_CHARS_MAX] or "parameters"
    if one["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in operation.params.model_fields.items()]
        near = nearest(where, known, 1)
        return f"{where} is unknown to {operation.name}" + (f" (did you mean {near[0]}?)" if near else "")
    if one["type"] == "missing":
        return f"{where} is missing"
    said = str(one["msg"])
    return f"{where}: {said[:1].lower()}{said[1:]}"
