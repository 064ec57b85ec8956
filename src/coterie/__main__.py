"""Runs the program `coterie`."""

from coterie.bootstrap.terminal import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
