"""Where answers have their error code, held to Kafka's own definitions of them."""

import pytest

from sluicegate.protocol.api import APIS
from sluicegate.protocol.messages import produce
from sluicegate.protocol.response_code import code_at, codes_in
from tests.oracle.definitions import definition, versions
from tests.oracle.kafka_java import KAFKA_NEW


def place_of_code(api: str, version: int) -> int | None:
    """By Kafka's definition of the answer: behind nothing but the throttle time."""
    fields = [
        field["name"]
        for field in definition(KAFKA_NEW, f"{api}Response")["fields"]
        if version in versions(field["versions"])
    ]
    places = {("ErrorCode",): 0, ("ThrottleTimeMs", "ErrorCode"): 4}
    return next((at for names, at in places.items() if tuple(fields[: len(names)]) == names), None)


@pytest.mark.parametrize("key", APIS)
def test_every_code_stands_where_kafka_writes_it(key: int) -> None:
    api = APIS[key]
    known = versions(definition(KAFKA_NEW, f"{api.name}Response")["validVersions"])

    for version in range(api.max_version + 1):
        if version in known:
            assert code_at(key, version) == place_of_code(api.name, version), f"v{version}"


@pytest.mark.parametrize(("key", "version"), [(3, 12), (1, 6), (10, 4), (24, 3), (999, 0)])
def test_others_have_none(key: int, version: int) -> None:
    assert code_at(key, version) is None
    assert codes_in(key, version, bytes(50), 4) == ()


def test_a_produce_answer_has_one_for_each_partition() -> None:
    partition = {"base_offset": 0, "log_append_time_ms": -1, "log_start_offset": -1}
    responses = [
        {
            "name": "t",
            "partition_responses": [partition | {"index": i, "error_code": code} for i, code in enumerate(codes)],
        }
        for codes in ((0, 32), (0, 87))
    ]
    body = produce.RESPONSE.build({"responses": responses, "throttle_time_ms": 0}, 7)

    assert codes_in(0, 7, b"\0\0\0\1" + body, 4) == (0, 32, 87)
    assert codes_in(0, 7, (b"\0\0\0\1" + body)[:-9], 4) == ()


def test_a_cut_answer_has_none() -> None:
    assert codes_in(12, 4, bytes(9), 5) == ()
