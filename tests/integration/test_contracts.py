"""With a data contract in front of a real broker, a real producer's good records are stored, and its bad records are
rejected."""

import json
from collections.abc import Iterator

import confluent_kafka
import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.config.contracts.written import ORDERS
from tests.integration.topics import UNVALIDATED, create_topic

GOOD = {"id": "1", "amount": 5, "currency": "EUR"}
INVALID_RECORD = 87


@pytest.fixture(scope="module")
def proxy_under_contract(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ProxyProcess]]:
    folder = tmp_path_factory.mktemp("contracts")
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    (folder / "orders.odcs.yaml").write_text(ORDERS.replace("orders.v1", topic))
    proxy = ProxyProcess(folder, kafka_bootstrap, {"contracts": "*.odcs.yaml"})
    try:
        proxy.start()
        yield topic, proxy
    finally:
        proxy.stop()


@pytest.mark.parametrize(
    ("value", "rules"),
    [
        (GOOD, []),
        ({"id": "1", "amount": 0.5}, []),
        ({"id": "1", "amount": -1}, ["contract.schema"]),
        ({"amount": 1}, ["contract.schema"]),
        (GOOD | {"currency": "DM"}, ["contract.known-currency"]),
        ([], ["contract.schema"]),
    ],
    ids=str,
)
def test_records_that_break_the_contract_are_rejected_by_rule_and_owner(
    value: object, rules: list[str], proxy_under_contract: tuple[str, ProxyProcess]
) -> None:
    topic, proxy = proxy_under_contract
    before = len(proxy.violations_of(topic))
    results: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap, "message.timeout.ms": 30_000})

    producer.produce(topic, json.dumps(value).encode(), on_delivery=lambda error, _message: results.append(error))
    producer.flush(30)

    assert [None if error is None else error.code() for error in results] == [INVALID_RECORD if rules else None]
    if rules:
        proxy.wait_for_violations(topic, before + 1)
        event = proxy.violations_of(topic)[-1]
        assert [broken["rule"] for broken in event["rules"]] == rules
        assert event["owner"] == {"team": "orders-team", "contact": "https://chat.example.com/orders"}
