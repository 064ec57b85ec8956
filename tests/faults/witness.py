"""A plugin of pytest: writes down how the tests of one run ended, and which code they ran.

`pytest -p tests.faults.witness --witness FILE` leaves an `Account` as JSON.
"""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

import coterie


@dataclass
class Failure:
    """What went wrong in one test, or before any."""

    test: str
    """Empty if it was not a test."""
    when: str
    """`collect`, or a part of a test: `setup`, `call`, `teardown`."""
    kinds: list[str]
    """The type of what was raised, and the types that this is one of."""
    says: str


@dataclass
class Account:
    """What a run of tests has shown."""

    code: str
    """The folder of the package that was imported."""
    passed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])


class Witness:
    """Looks on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = Account(str(Path(coterie.__file__).parent))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what went well, and what did not run."""
        if report.skipped:
            self._seen.skipped += 1
        elif report.when == "call" and report.passed:
            self._seen.passed += 1

    def pytest_exception_interact(
        self,
        call: "pytest.CallInfo[object]",
        report: pytest.CollectReport | pytest.TestReport,
    ) -> None:
        """Keep what was raised."""
        assert call.excinfo is not None, "something was raised"
        of_test = isinstance(report, pytest.TestReport)
        kinds = [kind.__name__ for kind in call.excinfo.type.__mro__]
        failure = Failure(report.nodeid if of_test else "", call.when, kinds, call.excinfo.exconly(tryshort=True))
        self._seen.failures.append(failure)

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        self._file.write_bytes(msgspec.json.encode(self._seen))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write."""
    parser.addoption("--witness", type=Path, metavar="FILE", help="write down how the tests of this run ended")


def pytest_configure(config: pytest.Config) -> None:
    """Look on, if somebody wants to know."""
    file: Path | None = config.getoption("witness")
    if file is not None:
        config.pluginmanager.register(Witness(file))
