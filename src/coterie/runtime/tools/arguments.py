"""Arguments: what a model wrote, checked once, and the JSON schema of the same definition."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from coterie.core.text import cut, flaw_of, mend

_ERRORS_SHOWN_MAX: Final = 5
_COMPLAINT_CHARS_MAX: Final = 2_000


class UnfitError(Exception):
    """What the model asked for cannot be done; the text tells it what would be right.

    It never leaves the tools: `NativeTool.run` makes an output of it, at one place instead of at each step.
    """


class Arguments(BaseModel):
    """The arguments of one tool.

    Strict, so that a guess is answered with what is right and never coerced to something else that happens to fit.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def _fit(text: str) -> str:
    flaw = flaw_of(text)
    if flaw:
        raise ValueError(f"the text contains {flaw}, which is not allowed")
    return text


Text = Annotated[str, AfterValidator(_fit)]
"""Text that a path, a file and a command line can carry."""


class _Untitled(GenerateJsonSchema):
    """Leaves out titles: they repeat the names, and every request pays for them."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the signature is pydantic's
        """Never."""
        return False


def schema_of(arguments_type: type[Arguments]) -> Mapping[str, object]:
    """The JSON schema of *arguments_type*, without titles and without the docstring of the class."""
    # pydantic types a JSON schema as dict[str, Any].
    schema: dict[str, Any] = arguments_type.model_json_schema(schema_generator=_Untitled)
    return {key: value for key, value in schema.items() if key not in {"title", "description"}}


def parse(arguments_type: type[ArgumentsT], arguments: Mapping[str, object]) -> ArgumentsT:
    """Return *arguments* as *arguments_type*.

    Raises:
        UnfitError: They do not fit the schema.
    """
    try:
        return arguments_type.model_validate(dict(arguments))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        flaws = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in found[:_ERRORS_SHOWN_MAX]]
        fields = arguments_type.model_fields.items()
        takes = ", ".join(name if field.is_required() else f"{name} (optional)" for name, field in fields)
        text, _ = cut(mend("; ".join(flaws)), _COMPLAINT_CHARS_MAX)
        raise UnfitError(f"The arguments do not fit: {text}. This tool takes one object with: {takes}.") from error
