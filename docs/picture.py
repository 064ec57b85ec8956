"""Draws `docs/demo.svg`, the picture in the README, from a real run of the demo on this repository's `src`."""

import asyncio
import os
import re
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console

from coterie.bootstrap.demo import DemoOptions, run_demo

ROOT: Final = Path(__file__).parent.parent
_FONTS: Final = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)
_FAMILY: Final = 'Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'


def main() -> None:
    """Run the demo and write the picture."""
    console = Console(record=True, width=104, file=StringIO(), force_terminal=True)
    options = DemoOptions(ROOT / "src", environment=dict(os.environ))  # noqa: TID251 - for the tools of the demo
    asyncio.run(run_demo(options, console))
    drawn = console.export_svg(title="coterie demo src")
    # The fonts of the reader's machine: a picture in a README must not load anything.
    drawn = _FONTS.sub("", drawn).replace("Fira Code, monospace", _FAMILY.replace('"', "'"))
    drawn = drawn.replace(str(ROOT) + "/", "")
    text = "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"
    (ROOT / "docs" / "demo.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
