"""From YAML to a `Script`: every key, every check, one error with file and line."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from coterie.model_server.condition import ALWAYS, Capture, Condition, read_capture, read_conditions
from coterie.model_server.document import Entry, ScriptError, read_document
from coterie.model_server.script import (
    CallPlan,
    Drop,
    Ending,
    Failure,
    Finish,
    Hang,
    Reply,
    Rule,
    Script,
    Speech,
    Usage,
)
from coterie.model_server.template import Shape, Template, read_shape, read_template, shape_names

_SCRIPT_KEYS: Final = ("rules", "api_key", "models")
_RULE_KEYS: Final = ("name", "when", "unless", "capture", "times", "reply")
_SPEECH_KEYS: Final = (
    "text",
    "chunk_chars",
    "thinking",
    "calls",
    "silence",
    "first_delay_ms",
    "delay_ms",
    "finish",
    "cut_after",
    "no_finish",
    "usage",
)
_REPLY_KEYS: Final = (*_SPEECH_KEYS, "error", "hang", "drop")
_CALL_KEYS: Final = ("tool", "arguments", "arguments_text")
_ERROR_KEYS: Final = ("status", "message", "body", "retry_after", "delay_ms")


def load_script(path: Path) -> Script:
    """Return the script of the file *path*.

    Raises:
        ScriptError: The file cannot be read, or the script is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScriptError(str(path), 1, f"the script cannot be read: {reason}") from error
    return parse_script(text, str(path))


def parse_script(text: str, file: str = "script") -> Script:
    """Return the script that *text* holds.

    Args:
        text: YAML: a mapping with `rules`, or the list of rules alone.
        file: The name for error texts.

    Raises:
        ScriptError: The script is wrong.
    """
    top = read_document(text, file)
    if top.kind == "seq":
        return Script(_read_rules(top))
    fields = top.fields(_SCRIPT_KEYS)
    if "rules" not in fields:
        raise top.error("the script needs `rules`")
    models = tuple(item.text() for item in fields["models"].items()) if "models" in fields else ("scripted",)
    return Script(
        rules=_read_rules(fields["rules"]),
        api_key=fields["api_key"].text() if "api_key" in fields else None,
        models=models,
    )


def _read_rules(entry: Entry) -> tuple[Rule, ...]:
    rules: dict[str, Rule] = {}
    for number, item in enumerate(entry.items(), 1):
        rule = _read_rule(Entry(item.node, item.file, "rule"), f"rule {number}")
        if rule.name in rules:
            raise item.error(f"two rules are named {rule.name!r}")
        rules[rule.name] = rule
    if not rules:
        raise entry.error("`rules` is empty; nothing could be answered")
    return tuple(rules.values())


def _read_rule(entry: Entry, name: str) -> Rule:
    fields = entry.fields(_RULE_KEYS)
    if "reply" not in fields:
        raise entry.error("the rule needs a `reply`")
    conditions = read_conditions(fields["when"]) if "when" in fields else ()
    captures = _read_captures(fields.get("capture"))
    reply = _read_reply(fields["reply"], _known(conditions, captures))
    return Rule(
        name=fields["name"].text() if "name" in fields else name,
        reply=reply,
        conditions=conditions,
        exceptions=read_conditions(fields["unless"]) if "unless" in fields else (),
        captures=captures,
        times=fields["times"].integer(least=1) if "times" in fields else None,
    )


def _read_captures(entry: Entry | None) -> Mapping[str, Capture]:
    fields = {} if entry is None else entry.fields()
    for name, field in fields.items():
        if not name.isidentifier() or name in ALWAYS:
            raise field.error(
                f"a capture cannot be named `{name}`; take letters, digits and `_`, and none of {_list()}"
            )
    return {name: read_capture(field) for name, field in fields.items()}


def _list() -> str:
    return ", ".join(f"`{name}`" for name in sorted(ALWAYS))


def _known(conditions: Iterable[Condition], captures: Iterable[str]) -> frozenset[str]:
    return ALWAYS.union(captures, *(condition.names() for condition in conditions))


def _read_reply(entry: Entry, known: frozenset[str]) -> Reply:
    fields = entry.fields(_REPLY_KEYS)
    for alone in ("error", "hang", "drop"):
        if alone in fields and len(fields) > 1:
            raise entry.error(f"`{alone}` stands alone in a reply")
    if "error" in fields:
        return _read_error(fields["error"], known)
    for key, reply in (("hang", Hang()), ("drop", Drop())):
        if key in fields:
            if not fields[key].flag():
                raise fields[key].error(f"`{key}` can only be true; leave it out to answer")
            return reply
    return _read_speech(entry, fields, known)


def _read_speech(entry: Entry, fields: dict[str, Entry], known: frozenset[str]) -> Speech:
    silent = "silence" in fields and fields["silence"].flag()
    if silent and ("text" in fields or "calls" in fields):
        raise fields["silence"].error("a silent reply has neither `text` nor `calls`")
    if not (silent or "text" in fields or "calls" in fields):
        raise entry.error("the reply says nothing; give `text` or `calls`, or write `silence: true`")
    ending, chunks_max = _read_ending(fields)
    return Speech(
        chunks=_read_chunks(fields["text"], known) if "text" in fields else (),
        chunk_chars=fields["chunk_chars"].integer(least=1) if "chunk_chars" in fields else None,
        thinking=_checked(fields["thinking"], known) if "thinking" in fields else None,
        calls=tuple(_read_call(item, known) for item in fields["calls"].items()) if "calls" in fields else (),
        first_delay_ms=fields["first_delay_ms"].integer() if "first_delay_ms" in fields else 0,
        delay_ms=fields["delay_ms"].integer() if "delay_ms" in fields else 0,
        finish=Finish(fields["finish"].one_of([finish.value for finish in Finish])) if "finish" in fields else None,
        ending=ending,
        chunks_max=chunks_max,
        usage=_read_usage(fields["usage"]) if "usage" in fields else Usage(),
    )


def _read_ending(fields: Mapping[str, Entry]) -> tuple[Ending, int]:
    if "cut_after" in fields:
        if "no_finish" in fields:
            raise fields["no_finish"].error("a reply has either `cut_after` or `no_finish`")
        return Ending.CUT, fields["cut_after"].integer()
    unfinished = "no_finish" in fields and fields["no_finish"].flag()
    return (Ending.UNFINISHED if unfinished else Ending.FINISHED), 0


def _read_chunks(entry: Entry, known: frozenset[str]) -> tuple[Template, ...]:
    pieces = entry.items() if entry.kind == "seq" else (entry,)
    return tuple(_checked(piece, known) for piece in pieces)


def _read_call(item: Entry, known: frozenset[str]) -> CallPlan:
    entry = Entry(item.node, item.file, "call")
    fields = entry.fields(_CALL_KEYS)
    if "tool" not in fields:
        raise entry.error("the call needs a `tool`")
    if "arguments" in fields and "arguments_text" in fields:
        raise entry.error("a call has either `arguments` or `arguments_text`")
    if "arguments" in fields and fields["arguments"].kind != "map":
        raise fields["arguments"].wanted("a mapping")
    return CallPlan(
        tool=_checked(fields["tool"], known),
        arguments=_checked_shape(fields["arguments"], known) if "arguments" in fields else {},
        arguments_text=_checked(fields["arguments_text"], known) if "arguments_text" in fields else None,
    )


def _read_error(entry: Entry, known: frozenset[str]) -> Failure:
    fields = entry.fields(_ERROR_KEYS)
    if "status" not in fields:
        raise entry.error("the error needs a `status`")
    if "body" in fields and fields["body"].kind not in {"str", "map"}:
        raise fields["body"].wanted("a text or a mapping")
    return Failure(
        status=fields["status"].integer(least=400, most=599),
        body=_checked_shape(fields["body"], known) if "body" in fields else None,
        message=_checked(fields["message"], known) if "message" in fields else Template(("The script says so.",)),
        retry_after=_read_retry_after(fields["retry_after"]) if "retry_after" in fields else None,
        delay_ms=fields["delay_ms"].integer() if "delay_ms" in fields else 0,
    )


def _read_retry_after(entry: Entry) -> str:
    # Seconds, or an HTTP date as text.
    return str(entry.integer()) if entry.kind == "int" else entry.text()


def _read_usage(entry: Entry) -> Usage:
    fields = entry.fields(["input_tokens", "output_tokens"])
    return Usage(**{key: field.integer() for key, field in fields.items()})


def _checked(entry: Entry, known: frozenset[str]) -> Template:
    template = read_template(entry)
    _demand(template.names(), entry, known)
    return template


def _checked_shape(entry: Entry, known: frozenset[str]) -> Shape:
    shape = read_shape(entry)
    _demand(shape_names(shape), entry, known)
    return shape


def _demand(names: Iterable[str], entry: Entry, known: frozenset[str]) -> None:
    for name in names:
        if name not in known:
            raise entry.unknown("value", name, sorted(known))
