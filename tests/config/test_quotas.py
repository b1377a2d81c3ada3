"""The section `quotas` is parsed, and each mistake is reported with its key and line."""

import pytest

from tests.config.reading import SMALLEST, load_text, problems_of_text

QUOTA = SMALLEST + "quotas:\n  - {name: q, %s}\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (QUOTA % "bytes_per_second: 1", 'quotas[0]: quota q: expected client_id: "etl-*" or principal'),
        (QUOTA % "client_id: a, topic: b, requests_per_second: 1", "quotas[0]: quota q: expected client_id"),
        (QUOTA % "client_id: a", "quota q sets no limit; add bytes_per_second, requests_per_second or conn"),
        (QUOTA % "topic: a, connections: 1", "quotas[0]: quota q: connections is only valid with client_id"),
        (QUOTA % "client_id: '/(/', connections: 1", "quotas[0].client_id: not a regular expression that RE2 accepts"),
        (QUOTA % "client_id: a, requests_per_second: 0", "quotas[0].requests_per_second: expected a whole number"),
        (QUOTA % "client_id: a, bytes_a_second: 5", "quotas[0].bytes_a_second: no such key"),
        (
            QUOTA % "topic: a, bytes_per_second: 1}\n  - {name: q, topic: b, bytes_per_second: 1",
            "quotas[1].name: two quotas are named q",
        ),
    ],
)
def test_quota_error_reports_key_and_line(text: str, wrong: str) -> None:
    (problem,) = problems_of_text(text)
    assert wrong in problem
    assert problem.startswith("c.yaml:")


def test_byte_rates_of_quotas_accept_units() -> None:
    (quota,) = load_text(QUOTA % "principal: 'User:*', client_id: etl, bytes_per_second: 5MiB").config.quotas
    assert quota.bytes_per_second == 5 * 1024 * 1024
