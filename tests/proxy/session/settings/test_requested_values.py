"""Lists in settings grow and shrink as in a broker's controller, whose Java code splits strings at commas."""

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import RequestedSetting
from sluicegate.protocol.change_responses import ChangeError
from sluicegate.proxy.session.settings.requested_values import After, Refusal, RequestedValues, requested_values
from tests.proxy.session.settings.scene import CLIENTS

APPEND, SUBTRACT = 2, 3
# The values of leader.replication.throttled.replicas in a broker of release 4.3.1 before and after an operation.
LISTS: list[tuple[str, int, str, str]] = [
    ("", APPEND, "1:1,1:2", "1:1,1:2"),
    ("1:1,1:2", APPEND, "1:2,,1:3", "1:1,1:2,,1:3"),
    ("1:1,1:2,,1:3", APPEND, "", "1:1,1:2,1:3,"),
    ("1:1,1:2,1:3,", SUBTRACT, "1:1", "1:2,1:3"),
    ("1:2,1:3", SUBTRACT, "9:9", "1:2,1:3"),
    ("1:2,1:3", SUBTRACT, "1:2,1:3", ""),
    ("", SUBTRACT, "1:1", ""),
]


@pytest.mark.parametrize(("current", "operation", "value", "expected"), LISTS)
def test_appending_and_subtracting_gives_the_same_list_as_a_broker(
    current: str, operation: int, value: str, expected: str
) -> None:
    asked = RequestedSetting(CLIENTS, operation, value, 0, 0)

    found = requested_values(ApiKey.INCREMENTAL_ALTER_CONFIGS, [asked], {CLIENTS: current})

    # sluicegate has no setting that is an empty list.
    assert found == (RequestedValues({CLIENTS: expected}) if expected else RequestedValues({}, frozenset({CLIENTS})))


def test_list_too_long_for_a_response_is_rejected() -> None:
    asked = RequestedSetting(CLIENTS, APPEND, "b" * 20_000, 0, 0)

    found = requested_values(ApiKey.INCREMENTAL_ALTER_CONFIGS, [asked], {CLIENTS: "a" * 20_000})

    error = ChangeError(40, f"The value of {CLIENTS} would have more than 32767 bytes.")
    assert found == Refusal(error, After.ALL_CHECKS)
