"""Every limit has an exported counter, a test at its edge, and a row in docs/limits.md."""

import ast
from dataclasses import fields

import pytest

from sluicegate.config.limits import Limits
from sluicegate.proxy.reporting.metrics.families import FAMILIES
from sluicegate.proxy.reporting.metrics.limits_reference import AT_LIMIT, page
from tests.oracle.kafka_java import ROOT

KEYS = [f"limits.{field.name}" for field in fields(Limits)]
_MET = "tests/proxy/session/test_limit_names.py"
_RULES = "tests/proxy/rules_process/test_rules_process.py"
_DEADLINES = "tests/proxy/session/test_deadlines.py"
_DOOR = "tests/proxy/network/test_accepting.py"
_DECOMPRESSED = f"{_MET}::test_a_payload_at_the_decompression_limit_is_forwarded_and_a_larger_one_rejected"
AT_THE_EDGE = {
    "limits.max_frame_bytes": f"{_MET}::test_frame_at_the_size_limit_is_accepted_and_a_larger_one_closes_connection",
    "limits.max_buffered_bytes": (f"{_MET}::test_large_requests_beyond_their_memory_share_are_paused_and_counted"),
    "limits.max_decompressed_bytes": _DECOMPRESSED,
    "limits.max_decompression_ratio": _DECOMPRESSED,
    "limits.max_decompression_window_bytes": _DECOMPRESSED,
    "limits.max_request_partitions": (
        f"{_MET}::test_partitions_at_the_limit_are_accepted_and_one_more_closes_connection"
    ),
    "limits.max_request_records": f"{_MET}::test_records_at_the_limit_are_accepted_and_one_more_closes_connection",
    "limits.max_request_headers": f"{_MET}::test_headers_at_the_limit_are_accepted_and_one_more_is_rejected",
    "limits.max_record_errors": f"{_MET}::test_record_errors_beyond_the_response_limit_are_counted",
    "limits.max_quarantined_bytes": (
        "tests/proxy/session/produce/test_quarantining.py::test_bad_records_that_just_fit_the_memory_are_stored"
    ),
    "limits.rule_cpu_seconds": f"{_RULES}::test_records_of_a_request_share_one_cpu_time_budget",
    "limits.rule_memory_bytes": f"{_RULES}::test_evaluation_exceeding_memory_limit_is_too_costly",
    "limits.max_in_flight": f"{_MET}::test_client_at_the_in_flight_limit_is_paused",
    "limits.max_in_flight_total": (f"{_MET}::test_clients_at_the_total_in_flight_limit_resume_in_order"),
    "limits.max_connections": (
        "tests/proxy/session/handlers/test_session.py::test_a_connection_above_the_limit_is_aborted_and_counted"
    ),
    "limits.max_connections_per_address": (
        "tests/proxy/session/opening/test_admission.py::test_connections_per_address_are_limited"
    ),
    "limits.max_new_connections_per_second": (
        "tests/proxy/session/quotas/test_token_bucket.py::test_full_bucket_allows_a_burst_of_one_second"
    ),
    "limits.max_new_connections_per_second_per_address": (
        "tests/proxy/network/test_accept_filter.py::test_connections_above_the_rate_of_an_address_are_rejected"
    ),
    "limits.max_handshakes": f"{_DOOR}::test_unfinished_tls_handshakes_are_closed_for_new_ones",
    "limits.handshake_timeout_seconds": (
        f"{_DOOR}::test_a_tls_handshake_beyond_its_timeout_is_closed_logged_and_counted"
    ),
    "limits.frame_timeout_seconds": f"{_DEADLINES}::test_an_incomplete_request_is_overdue_after_its_timeout",
    "limits.max_connection_age_seconds": (
        "tests/proxy/session/test_connection_age.py::test_an_old_connection_closes_after_the_requests_in_flight"
    ),
    "limits.idle_timeout_seconds": f"{_DEADLINES}::test_a_connection_idle_on_both_sides_is_overdue",
}


def test_each_limit_of_the_model_has_a_counter_and_a_test() -> None:
    assert set(AT_LIMIT) == set(KEYS)
    assert set(AT_THE_EDGE) == set(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_a_counter_shows_the_limit_before_it_is_ever_reached(key: str) -> None:
    (family,) = (family for family in FAMILIES if family.shown_name == AT_LIMIT[key].counter)

    assert family.labels == ("limit",)
    assert key in family.always


@pytest.mark.parametrize("key", KEYS)
def test_the_listed_test_of_each_limit_exists(key: str) -> None:
    path, _, name = AT_THE_EDGE[key].partition("::")
    text = (ROOT / path).read_text()
    functions = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]

    assert name in {each.name for each in functions}
    assert name.startswith("test_")


def test_the_page_matches_the_declarations() -> None:
    assert (ROOT / "docs" / "limits.md").read_text() == page(), (
        "regenerate the page: .venv/bin/python -m sluicegate.proxy.reporting.metrics.limits_reference > docs/limits.md"
    )
