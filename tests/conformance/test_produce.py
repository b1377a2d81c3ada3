"""Every case is sent twice: directly to a broker with limits, and through sluicegate with the same limits to a broker
without limits. The two responses and the two logs must be equal in every field.
"""

import time
from itertools import groupby

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.cases import CASES, Case
from tests.conformance.differences import LOG_START, is_old_log_start
from tests.conformance.pair import Pair, Request, versions_of
from tests.conformance.results import RESULTS
from tests.oracle.kafka_java import KAFKA_OLD

_FAMILIES = {name: list(cases) for name, cases in groupby(CASES, key=lambda case: case.name.split(":")[0])}
# The versions with changes in the format.
_TURNS = (3, 8, 13)
_ALWAYS_IN_EVERY_VERSION = ("request", "legacy")


@pytest.mark.parametrize("family", _FAMILIES)
def test_responses_and_logs_equal_the_brokers(
    family: str,
    kafka_version: str,
    validating_broker: Kafka,
    trusting_broker: Kafka,
    proxy: ProxyProcess,
    is_thorough: bool,
) -> None:
    cases = [(case, versions_to_try(case, versions_of(kafka_version), is_thorough)) for case in _FAMILIES[family]]
    assert any(versions for _, versions in cases) or (family == "legacy" and kafka_version != KAFKA_OLD)
    key = kafka_version, family
    differences = []

    with Pair(family, validating_broker, trusting_broker, proxy) as pair:
        for case, version in ((case, version) for case, versions in cases for version in versions):
            now = time.time_ns() // 1_000_000
            request = Request(version, case.topics(now), case.acks, case.transactional_id)
            expected, found = pair.compare(request)
            difference = LOG_START if is_old_log_start(expected, found) else case.difference
            RESULTS.count(key, found == expected, difference)
            if found != expected and difference is None:
                differences.append(f"{case.name} [{case.kind}] v{version}:\n  broker {expected}\n  proxy  {found}")
        differences += pair.differing_logs()

    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences[:40])
    assert proxy.log().count("internal error") == 0


def versions_to_try(case: Case, known: range, thorough: bool) -> list[int]:
    """Return the case's versions that the broker supports; short runs use the first, the last and format changes."""
    both = [version for version in case.versions if version in known]
    if thorough or case.name.startswith(_ALWAYS_IN_EVERY_VERSION):
        return both
    return [version for version in both if version in (both[0], both[-1], *_TURNS)]
