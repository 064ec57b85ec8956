"""Tries an installed `coterie` as a person does who has a key and nothing else: `python wheel.py PATH_OF_COTERIE`.

Not a test of pytest's: `make package` runs it on the wheel in an empty environment, with the standard library alone.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SCRIPT = 'api_key: the-key\nrules:\n  - reply: {text: "Hello from the wheel.", chunk_chars: 5}\n'
BOUND_S = 60


def main(program: Path) -> None:
    """Let `coterie run "hi"` answer from a scripted model server, with no file written by hand."""
    with TemporaryDirectory(prefix="coterie-wheel-") as folder:
        script, home = Path(folder, "script.yaml"), Path(folder, "home")
        script.write_text(SCRIPT, "utf-8")
        home.mkdir()
        bare = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
        serve = [str(program), "model-server", str(script), "--port", "0", "--json"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, env=bare, cwd=home) as models:
            try:
                assert models.stdout is not None
                url = json.loads(models.stdout.readline())["url"]
                person = {**bare, "OPENAI_API_KEY": "the-key", "OPENAI_BASE_URL": f"{url}/v1"}
                try:
                    said = run(program, home, person, "run", "hi")
                finally:
                    run(program, home, person, "down")
            finally:
                models.terminate()
        if said != "Hello from the wheel.\n":
            sys.exit(f"`coterie run hi` answered {said!r}")


def run(program: Path, home: Path, environment: dict[str, str], *words: str) -> str:
    """Run a command to its end and return what it printed; its error stream goes to ours where it fails."""
    ended = subprocess.run(
        [str(program), *words],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=environment,
        cwd=home,
        timeout=BOUND_S,
    )
    if ended.returncode:
        sys.exit(f"`coterie {' '.join(words)}` ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
