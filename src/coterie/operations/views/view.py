"""The base of every answer: camelCase names, absent values left out, times in ISO 8601 UTC."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class View(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True, frozen=True)

    def wire(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)


def iso(at_ms: int) -> str:
    """Epoch milliseconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
