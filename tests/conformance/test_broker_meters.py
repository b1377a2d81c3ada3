"""The proxy counts the same as a broker's meters (KIP-467), under the same names.

The same bytes go to a broker with limits and Prometheus's JMX exporter, and through sluicegate. Then both are scraped.
"""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.meters import JmxExporter, Meters, meter_increases, meters_in
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.cases import CASES, Case
from tests.conformance.pair import Pair, Request, proxy_settings, versions_of
from tests.oracle.kafka_java import KAFKA_NEW

# One codec is enough, and so is one of the versions in which all fields are validated.
_CODECS = ("none", "lz4", "codec 0")
_CODEC = re.compile(r", (none|gzip|snappy|xerial|lz4|zstd|codec \d)$")
_FAMILIES = ("times", "keys", "header", "payload", "short", "request")


def newest_cases() -> list[tuple[Case, int]]:
    """Return each kind of case once, in the newest version that it and the broker support."""
    chosen: dict[tuple[str, str], Case] = {}
    for case in CASES:
        codec = _CODEC.search(case.name)
        is_meant = case.name.startswith(_FAMILIES) and case.difference is None
        if is_meant and (codec is None or codec[1] in _CODECS):
            chosen.setdefault((_CODEC.sub("", case.name), case.kind), case)
    known = versions_of(KAFKA_NEW)
    newest = [(case, max((v for v in case.versions if v in known), default=-1)) for case in chosen.values()]
    return [(case, version) for case, version in newest if version >= 0]


def is_error_before_batch(answer: Any) -> bool:
    """Return whether the broker reported an error before it read a batch, which the proxy does not know when it counts:
    an unknown partition (3), or bytes that fail the whole request (-1).
    """
    if isinstance(answer, str):
        return False
    codes = [entry["error_code"] for topic in answer["responses"] for entry in topic["partition_responses"]]
    return 3 in codes or (len(codes) > 1 and set(codes) == {-1})


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> JmxExporter:
    return JmxExporter(tmp_path_factory.mktemp("exporter"))


@pytest.fixture(scope="module")
def metered_broker(exporter: JmxExporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a broker with limits on its topics and readable meters."""
    yield from run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("metered"), options=exporter.options))


@pytest.fixture(scope="module")
def broker_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from run_kafka(Kafka(KAFKA_NEW, tmp_path_factory.mktemp("behind")))


@pytest.fixture(scope="module")
def metered_proxy(broker_behind: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), broker_behind.bootstrap, proxy_settings())
    try:
        yield process.start()
    finally:
        process.stop()


@pytest.mark.long
def test_each_rejection_is_counted_as_a_broker_counts_it(
    exporter: JmxExporter, metered_broker: Kafka, broker_behind: Kafka, metered_proxy: ProxyProcess
) -> None:
    differences = []
    marked: Meters = {}

    with Pair("meters", metered_broker, broker_behind, metered_proxy) as pair:
        at_broker, at_proxy = meters_in(exporter.scrape()), meters_in(metered_proxy.get("/metrics")[1])
        for case, version in newest_cases():
            now = time.time_ns() // 1_000_000
            answer, _ = pair.compare(Request(version, case.topics(now), case.acks, case.transactional_id))
            then_broker, then_proxy = meters_in(exporter.scrape()), meters_in(metered_proxy.get("/metrics")[1])
            expected, found = meter_increases(at_broker, then_broker), meter_increases(at_proxy, then_proxy)
            if expected != found and not is_error_before_batch(answer):
                differences.append(f"{case.name} [{case.kind}] v{version}:\n  broker {expected}\n  proxy  {found}")
            marked |= expected
            at_broker, at_proxy = then_broker, then_proxy

    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences[:40])
    # Proves that the test compared something. Meters of old formats are not expected.
    assert {meter for meter, _ in marked} == {
        "failedproducerequests_total",
        "invalidmessagecrcrecords_total",
        "invalidoffsetorsequencerecords_total",
        "nokeycompactedtopicrecords_total",
    }
