"""The blocking function that a command calls."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coterie.model_server import ScriptError, serve

EXAMPLES = Path(__file__).parents[2] / "docs/examples/model_server"
PROGRAM = (
    "import sys; from functools import partial; from pathlib import Path; from coterie.model_server import serve; "
    "serve(Path(sys.argv[1]), '127.0.0.1', 0, partial(print, flush=True)); print('stopped')"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serving_ends_in_order_at_a_signal(number: signal.Signals) -> None:
    """Control-C is how a person ends it, and it is no crash."""
    announced: list[str] = []

    def announce(url: str) -> None:
        announced.append(url)
        signal.raise_signal(number)

    serve(EXAMPLES / "minimal.yaml", "127.0.0.1", 0, announce)
    assert [url.rpartition(":")[0] for url in announced] == ["http://127.0.0.1"]


def test_a_served_process_exits_with_success_when_it_is_terminated() -> None:
    """A signal that was obeyed is not raised again, so what supervises the process sees no failure."""
    command = [sys.executable, "-c", PROGRAM, str(EXAMPLES / "minimal.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()
    assert url.startswith("http://127.0.0.1:")
    assert rest == "stopped\n"
    assert process.returncode == 0


def test_a_wrong_script_is_not_served(tmp_path: Path) -> None:
    """The error comes before the port is taken."""
    path = tmp_path / "wrong.yaml"
    path.write_text("rulez: []", encoding="utf-8")
    with pytest.raises(ScriptError, match=r"wrong\.yaml:1: unknown key `rulez` in `script`; did you mean `rules`\?"):
        serve(path, "127.0.0.1", 0, print)
