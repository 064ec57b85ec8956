"""The page on notices: its file is read, and its bounds are those of the code."""

import re
from pathlib import Path
from typing import Final

from coterie.core.notice import GAP_S, SENT_MAX, WINDOW_S, Sort
from coterie.runtime.notices.posting import TIMEOUT_S
from coterie.runtime.notices.watching import WAITING_MAX
from coterie.settings import CONFIG_FILE, load_settings

PAGE: Final = (Path(__file__).parents[2] / "docs/notices.md").read_text("utf-8")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_is_read(tmp_path: Path) -> None:
    """It is what a person copies."""
    (tmp_path / CONFIG_FILE).write_text(EXAMPLE, "utf-8")
    shows, posts = load_settings(tmp_path, {}).notify
    assert (shows.command[0], shows.url, shows.text) == ("notify-send", "", False)
    assert shows.sorts == {Sort.APPROVAL, Sort.BUDGET, Sort.HELD}
    assert (posts.command, posts.url, posts.text) == ((), "https://push.example.org/my-topic", True)
    assert posts.sorts == set(Sort)


def test_the_page_has_every_event_and_bound() -> None:
    """Whoever waits for a notice must know when there is none."""
    assert re.findall(r"^\| `(\w+)` \| (?!how)", PAGE, re.MULTILINE) == [sort.value for sort in Sort]
    assert f"in {GAP_S:g} seconds, {SENT_MAX} of all sessions in a minute, and {WAITING_MAX} that wait" in PAGE
    assert f"after {TIMEOUT_S:g} seconds" in PAGE
    assert WINDOW_S == 60
