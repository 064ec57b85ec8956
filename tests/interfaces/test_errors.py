"""The error table knows every code, and says the same at every door."""

from collections.abc import Iterator

import pytest

from coterie.core import errors
from coterie.core.codes import Code
from coterie.core.errors import HostError, NotFoundError, RefusedError, StorageUnknownError
from coterie.core.refusal import Refusal
from coterie.interfaces.wire.errors import ERRORS, error_body, fault_of


def _tree(root: type[HostError]) -> Iterator[type[HostError]]:
    yield root
    for branch in root.__subclasses__():
        yield from _tree(branch)


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_row(code: Code) -> None:
    """A code without a status would be a fault of the host at the worst moment."""
    row = ERRORS[code]
    assert 400 <= row.http < 600
    assert row.exit in {1, 2, 3}


def test_every_fault_of_the_tree_has_a_row() -> None:
    """The tree grows in another module than the table."""
    assert not [kind for kind in _tree(HostError) if kind.code not in ERRORS]


def test_every_number_of_json_rpc_means_one_code() -> None:
    """Clients that know numbers only can still tell the codes apart, and none is one of the protocol's own."""
    numbers = [row.rpc for row in ERRORS.values()]
    assert len(set(numbers)) == len(numbers)
    assert not {-32700, -32600, -32601} & set(numbers)
    assert all(-32099 <= number <= -32000 or number in {-32602, -32603} for number in numbers)


def test_the_terminal_tells_usage_and_a_second_host_apart() -> None:
    """Scripts look at the exit status only."""
    usage = {code for code, row in ERRORS.items() if row.exit == 2}
    assert usage == {Code.INVALID_ARGUMENT, Code.PUBLIC_BIND_REFUSED, Code.CONFIG_INVALID}
    assert {code for code, row in ERRORS.items() if row.exit == 3} == {Code.HOST_RUNNING}


def test_a_body_carries_what_the_rule_gave() -> None:
    """Clients act on limit, value, candidates and path."""
    refusal = Refusal(Code.LIMIT_EXCEEDED, "Too deep.", limit="hops_max", value=8, path=("ses_a", "ses_b"))
    shown = {"limit": "hops_max", "value": 8, "path": ["ses_a", "ses_b"]}
    assert error_body(RefusedError(refusal)) == {
        "code": ERRORS[Code.LIMIT_EXCEEDED].rpc,
        "message": "Too deep.",
        "data": {"errorCode": "LIMIT_EXCEEDED", "retryable": False, **shown},
    }
    assert error_body(NotFoundError("session", "ses_x", ("ses_y",)))["data"]["candidates"] == ["ses_y"]
    assert error_body(StorageUnknownError("Ask again."))["data"]["retryable"] is True


def test_a_foreign_fault_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Its text may hold paths or secrets."""
    shown = fault_of(ZeroDivisionError("/secret/place"))
    assert shown.code is Code.INTERNAL
    assert "secret" not in str(error_body(shown))
    assert "/secret/place" in caplog.text
    ours = errors.PermissionDeniedError("No.")
    assert fault_of(ours) is ours


def test_a_text_that_cannot_be_encoded_is_mended() -> None:
    """An error must not fail at being told."""
    assert error_body(errors.InvalidArgumentError("\ud800"))["message"] == "\ufffd"
