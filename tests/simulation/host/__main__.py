"""Tells the life of one simulated host again: `python -m tests.simulation.host SEED`."""

import sys

from tests.simulation.host.test_host import led


def main() -> None:
    """Print the story of the seed; what was wrong with it ends the story."""
    sys.stdout.write(f"{led(int(sys.argv[1])).story}\n")


main()
