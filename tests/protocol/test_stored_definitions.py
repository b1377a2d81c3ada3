"""The stored definitions of Kafka's messages equal those in its jars."""

import pytest

from tests.oracle.definitions import STORED, definitions_of_jar, message_definitions


@pytest.mark.parametrize("release", STORED)
def test_stored_message_definitions_equal_those_of_the_kafka_jar(release: str) -> None:
    assert message_definitions(release) == definitions_of_jar(release), (
        "regenerate them: .venv/bin/python -m tests.oracle.definitions"
    )
