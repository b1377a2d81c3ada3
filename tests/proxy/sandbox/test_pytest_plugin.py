"""With the pytest plugin, a violation fails the test that sent the record, and the failure shows the record and our
text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import time
import pytest
from confluent_kafka import KafkaError, Producer


def send(bootstrap, key, **more):
    errors = []
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "checkout", "log_level": 0})
    producer.produce("payments", "a value", key, on_delivery=lambda error, _: errors.append(error), **more)
    assert producer.flush(60) == 0
    return errors[0]


def test_valid(sluicegate_bootstrap):
    assert send(sluicegate_bootstrap, "key") is None


def test_without_key(sluicegate_bootstrap):
    send(sluicegate_bootstrap, None)


def test_without_fixture():
    pass


def test_in_nanoseconds(sluicegate_bootstrap):
    assert send(sluicegate_bootstrap, "key", timestamp=time.time_ns()) is None


@pytest.mark.sluicegate_allow("payments=null_key")
def test_error_handling(sluicegate_bootstrap):
    assert send(sluicegate_bootstrap, None).code() == KafkaError.INVALID_RECORD


def test_valid_again(sluicegate_bootstrap):
    assert send(sluicegate_bootstrap, "key") is None
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "sluicegate.yaml").write_text(
        "defaults: {message.timestamp.after.max.ms: 1h}\ntopics: [{match: payments, cleanup.policy: compact}]\n"
    )
    (tmp_path / "test_producer.py").write_text(TESTS)
    return tmp_path


def run_pytest(folder: Path, settings: str, *arguments: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers -rA\n{settings}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_violation_fails_the_test_that_sent_it(project: Path) -> None:
    status, output = run_pytest(project, "sluicegate_config = sluicegate.yaml\n")

    assert status == 1, output
    outcomes = {
        line.split()[1].rpartition("::")[2]: line.split()[0]
        for line in output.splitlines()
        if line.startswith(("PASSED", "FAILED", "ERROR"))
    }
    assert outcomes == {
        "test_valid": "PASSED",
        "test_without_key": "FAILED",
        "test_without_fixture": "PASSED",
        "test_in_nanoseconds": "FAILED",
        "test_error_handling": "PASSED",
        "test_valid_again": "PASSED",
    }, output
    assert "sluicegate rejected records of this test:\npayments: null_key (rejected: 1 batch, 1 bad record)" in output
    assert 'key null, value "a value": null_key' in output
    assert "looks like nanoseconds" in output  # in addition to the failed assertion


def test_options_of_the_command_line_allow_violations(project: Path) -> None:
    allowed = [f"--sluicegate-allow=payments={code}" for code in ("null_key", "timestamp_in_future")]

    status, output = run_pytest(project, "", "--sluicegate-config=sluicegate.yaml", *allowed, "-k", "without_key")

    assert status == 0, output


def test_without_a_configuration_the_test_explains_what_to_set(project: Path) -> None:
    status, output = run_pytest(project, "", "-k", "test_valid_again")

    assert status == 1
    assert "set sluicegate_config in the configuration of pytest, or give --sluicegate-config" in output


def test_a_project_without_the_fixture_starts_nothing(project: Path) -> None:
    status, output = run_pytest(project, "", "-k", "without_fixture")
    assert status == 0, output
