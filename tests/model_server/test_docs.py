"""The documentation's scripts are files, and the files do what the documentation says."""

import json
import re
import textwrap
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from coterie.model_server import ModelServer, load_script
from coterie.model_server.condition import COUNTS, NAMES, TEXTS

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples/model_server"
PAGE = (DOCS / "model-server.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- (\S+) -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)


def user(text: str) -> ChatCompletionMessageParam:
    """Return a user message."""
    return {"role": "user", "content": text}


def results(tool: str, *contents: str) -> list[ChatCompletionMessageParam]:
    """Return calls of *tool* and their results."""
    called: ChatCompletionMessageParam = {
        "role": "assistant",
        "tool_calls": [
            {"id": str(at), "type": "function", "function": {"name": tool, "arguments": "{}"}}
            for at in range(len(contents))
        ],
    }
    answered: list[ChatCompletionMessageParam] = [
        {"role": "tool", "tool_call_id": str(at), "content": content} for at, content in enumerate(contents)
    ]
    return [called, *answered]


RUNS: list[tuple[str, list[ChatCompletionMessageParam], str | dict[str, object]]] = [
    ("minimal", [user("my name is Ada")], "Hello Ada, I am reader-1."),
    ("minimal", [user("hi")], "I have nothing else to say."),
    ("reader", [user("go")], {"pattern": "**/*.py", "sort": "size"}),
    ("reader", [user("go"), *results("glob", "b.txt\na/b.py\nc.py")], "The largest file is a/b.py."),
    ("lead", [user("go")], {"action": "spawn", "model": "reader-a", "task": "go"}),
    (
        "lead",
        [user("go"), *results("session_task", '{"messageId": "m1"}', '{"messageId":"m2"}')],
        {"action": "wait", "messageIds": ["m1", "m2"]},
    ),
    (
        "lead",
        [user("go"), *results("session_task", "{}"), *results("session_task", '{"text": "it is a.py"}')],
        "The readers agree on a.py.",
    ),
    (
        "json",
        [user("go"), *results("list_files", '{"files": ["a", "b"], "total": 2}')],
        {"files": ["a", "b"], "total": 2, "note": "for nobody, not ${owner}"},
    ),
    ("json", [user("go")], "I cannot review anything."),
    ("repair", [user("go")], {"command": "python -m pytest -q"}),
    (
        "repair",
        [user("go"), *results("bash", "E    +  where 3 = <function total at 0x7f>(1, 2)")],
        {"pattern": r"^def total\(", "glob": "*.py"},
    ),
    ("faults", [user("go")], "All is well."),
]


@pytest.mark.parametrize(("name", "messages", "expected"), RUNS)
async def test_an_example_answers_as_the_page_says(
    name: str, messages: list[ChatCompletionMessageParam], expected: str | dict[str, object]
) -> None:
    """Each example is run, so none can rot."""
    tools: list[ChatCompletionFunctionToolParam] = [{"type": "function", "function": {"name": "glob"}}]
    async with (
        ModelServer(load_script(EXAMPLES / f"{name}.yaml")) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="let-me-in", max_retries=0) as client,
    ):
        reply = await client.chat.completions.create(model="reader-1", messages=messages, tools=tools)
    message = reply.choices[0].message
    calls = [call for call in message.tool_calls or () if call.type == "function"]
    assert (json.loads(calls[0].function.arguments) if calls else message.content) == expected


async def test_the_server_is_used_in_python_as_the_page_shows() -> None:
    """The lines of the page are these, run where they find their file."""
    async with ModelServer(load_script(EXAMPLES / "minimal.yaml")) as server:
        client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
        reply = await client.chat.completions.create(model="reader-1", messages=[user("my name is Ada")])
        assert reply.choices[0].message.content == "Hello Ada, I am reader-1."
        assert server.requests[0]["model"] == "reader-1"
        await client.close()


def test_the_page_shows_the_lines_of_the_test_above() -> None:
    """Python on the page is run as well, if by another name."""
    shown = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    here = Path(__file__).read_text(encoding="utf-8")
    assert [textwrap.indent(block, "    ") in here for block in shown] == [True]


def test_the_page_shows_each_example_and_nothing_else() -> None:
    """A block that differs from its file is one that nobody has run."""
    files = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.yaml")}
    assert dict(BLOCKS) == files
    assert PAGE.count("```yaml") == len(files)
    assert {name for name, *_ in RUNS} == {name.removesuffix(".yaml") for name in files}


def test_the_page_names_every_condition() -> None:
    """The tables of the code are the truth, and the page's table is theirs."""
    section = PAGE.partition("## Conditions")[2].partition("## Values")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == {*TEXTS, *NAMES, *COUNTS}
