"""Random requests get the same responses on both paths. Each run uses the same requests, and each thorough run uses new
ones.

A difference that this test finds becomes a named case in cases.py.
"""

import os

import pytest
from hypothesis import Phase, given, note, settings

from tests.broker.fixtures import EVERY_RELEASE_IF_THOROUGH
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.differences import LOG_START, is_old_log_start
from tests.conformance.generated import random_requests
from tests.conformance.pair import Pair, Request, describe_request, versions_of
from tests.conformance.results import RESULTS

_FEW, _MORE, _THOROUGH = 60, 250, 5000
_EXAMPLES = (
    [_THOROUGH] if os.environ.get("SLUICEGATE_THOROUGH") else [_FEW, pytest.param(_MORE, marks=pytest.mark.long)]
)


@EVERY_RELEASE_IF_THOROUGH
@pytest.mark.parametrize("wanted", _EXAMPLES)
def test_responses_to_random_requests_and_logs_equal_the_brokers(
    kafka_version: str, validating_broker: Kafka, trusting_broker: Kafka, proxy: ProxyProcess, wanted: int
) -> None:
    key = kafka_version, "generated"
    before = RESULTS.compared[key]

    with Pair(f"generated-{wanted}", validating_broker, trusting_broker, proxy) as pair:

        @settings(
            max_examples=wanted, derandomize=wanted < _THOROUGH, phases=(Phase.generate, Phase.shrink), database=None
        )
        @given(random_requests(versions_of(kafka_version)))
        def compare_responses(request: Request) -> None:
            note(describe_request(request))
            expected, found = pair.compare(request)
            difference = LOG_START if is_old_log_start(expected, found) else None
            RESULTS.count(key, found == expected, difference)
            assert found == expected or difference is not None

        compare_responses()
        differing = pair.differing_logs()

    assert RESULTS.compared[key] - before >= wanted
    assert not differing
    assert proxy.log().count("internal error") == 0
