"""Error names agree with kio's table of Kafka's codes."""

from kio.schema.errors import ErrorCode

from sluicegate.protocol.errors import error_name


def test_error_names_equal_those_of_kafka() -> None:
    assert {error_name(code.value) for code in ErrorCode} == {
        f"{code.name.upper()} ({code.value})" for code in ErrorCode
    }


def test_an_unknown_error_code_is_named_by_its_number() -> None:
    assert error_name(30_000) == "error 30000"
    assert error_name(-7) == "error -7"
