"""Validates batches with Kafka's own LogValidator, many in one process."""

from collections.abc import Iterable
from pathlib import Path

from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder
from tests.oracle.validator_cases import Case

ACCEPTED = "0\t"
LEFT_TO_THE_BROKER = "renumber\t"  # see sluicegate.validation.validator


def validators_responses(cases: Iterable[Case]) -> list[str]:
    """Return code, message and record errors for each case, as printed by KafkaValidator.java."""
    program = Path(__file__).with_name("KafkaValidator.java")
    return run_java(
        java_command(kafka_folder(KAFKA_NEW), str(program)), "".join(case.case_line() for case in cases)
    ).splitlines()
