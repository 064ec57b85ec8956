"""What tools have changed in files: people see it, no model does."""

import json

from tests.runtime.engine.conftest import SetStage, Stage

WRITES = """
- when: {user: '^write (?P<text>.*)', last: user}
  reply: {calls: [{tool: write, arguments: {path: a.txt, content: "${user.text}\\n"}}]}
- when: {user: '^edit', last: user}
  reply: {calls: [{tool: edit, arguments: {path: a.txt, old: uno, new: dos}}]}
- {reply: {text: done}}
"""


async def _said(host: Stage, session: str, text: str) -> None:
    await host.prompt(session, text)
    await host.idle(session)


async def _results(host: Stage, session: str) -> list[dict[str, object]]:
    return [item for item in await host.items(session) if item["kind"] == "tool_result"]


async def test_people_see_what_was_changed_and_the_model_is_told_in_short(stage: SetStage) -> None:
    """A difference in each later request would be paid for again and again, and the model wrote it itself."""
    host = await stage(WRITES)
    session = await host.session(mode="auto", folder=True)
    for text in ("write uno", "edit", "write uno", "what now"):
        await _said(host, session, text)

    made, edited, replaced = await _results(host, session)
    assert made["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+uno\n"
    assert edited["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-uno\n+dos\n"
    assert replaced["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-dos\n+uno\n"
    answers = [one["content"] for one in host.asked()[-1]["messages"] if one["role"] == "tool"]
    assert answers == ["Made a.txt, 4 bytes.", "Replaced 1 occurrence in a.txt.", "Replaced a.txt, 4 bytes."]
    assert "@@" not in json.dumps(host.asked())


async def test_a_difference_outlives_the_host_and_goes_into_a_fork(stage: SetStage) -> None:
    """It is part of the transcript, for whoever looks later."""
    host = await stage(WRITES)
    session = await host.session(mode="auto", folder=True)
    await _said(host, session, "write uno")
    await host.restart()
    fork = (await host.ask("session.fork", sessionId=session))["session"]["id"]

    (kept,), (copied,) = await _results(host, session), await _results(host, fork)
    assert kept["diff"] == copied["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+uno\n"


async def test_a_large_difference_is_cut_in_its_middle(stage: SetStage) -> None:
    """A row stays small, and says what is missing."""
    host = await stage(WRITES)
    (host.project / "a.txt").write_text("".join(f"line {number}\n" for number in range(2_000)))
    session = await host.session(mode="auto", folder=True)
    await _said(host, session, "write uno")

    (result,) = await _results(host, session)
    diff = str(result["diff"])
    assert len(diff) == 8_000
    assert diff.startswith("--- a/a.txt\n+++ b/a.txt\n@@ -1,2000 +1 @@\n-line 0\n")
    assert "the middle is left out" in diff
    assert diff.endswith("-line 1999\n+uno\n")


async def test_what_fails_or_only_looks_has_no_difference(stage: SetStage) -> None:
    """Nothing was changed, so nothing is shown."""
    host = await stage(WRITES)
    session = await host.session(mode="auto", folder=True)
    await _said(host, session, "edit")

    (result,) = await _results(host, session)
    assert result["error"]
    assert "diff" not in result
