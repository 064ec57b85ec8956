"""What people may import is said in one place, and nothing else is promised."""

import importlib
from types import ModuleType

import pytest


@pytest.mark.parametrize("name", ["coterie", "coterie.plugins", "coterie.testing"])
def test_the_public_names_are_the_ones_that_are_there(name: str) -> None:
    """A name that slips in by an import would be a promise that nobody made."""
    module = importlib.import_module(name)
    there = {
        known
        for known, value in vars(module).items()
        if not known.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(getattr(module, "__all__", ())) == there
