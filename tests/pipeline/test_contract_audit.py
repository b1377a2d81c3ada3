"""A data contract on the wire and at rest, over the same orders in JSON, Avro and Protobuf.

A proxy that rejects, a proxy that observes and an audit have the same counts for each rule. An audit also evaluates
the checks of all stored records. The figures are counted in the orders here, not by our code; fastavro and Google's
protobuf write the values.
"""

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import confluent_kafka
import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import SparkSession

from sluicegate.pipeline.api import audit
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from tests.broker.proxy_process import ProxyProcess
from tests.config.contracts.written import ORDERS
from tests.integration.topics import UNVALIDATED, create_topic
from tests.registry.stand_in import StandIn, said

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Order = dict[str, Any]
CURRENCIES = ["EUR", "EUR", "EUR", "USD", "USD", "DM", "", None]
NUMBERS = [1, 1.0, 2, 5, 5.0, 0.1, 7.25, 1e16]
PROPERTIES = """          - {metric: missingValues, mustBeBetween: [2, 100], arguments: {missingValues: [null, '']}}
          - {metric: invalidValues, mustBeLessThan: 25, unit: percent, arguments: {pattern: '^[A-Z]{3}$'}}
      - name: price
        logicalType: number
        quality: [{metric: invalidValues, mustBeLessThan: 10, arguments: {validValues: [1, 2.0, 5]}}]
      - name: buyer
        logicalType: object
        properties: [{name: nick, logicalType: string, quality: [
          {id: nicknames, metric: duplicateValues, mustBeLessThan: 1, unit: percent}]}]
    quality:
      - {id: pairs, metric: duplicateValues, mustBe: 0, arguments: {properties: [id, price]}}
"""
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": ["null", "double"], "default": None},
        {"name": "price", "type": ["null", "float"], "default": None},
        {"name": "currency", "type": ["null", "string"], "default": None},
        {"name": "buyer", "type": {"type": "record", "name": "Buyer", "fields": [
            {"name": "nick", "type": ["null", "string"], "default": None}]}},
    ],
}  # fmt: skip
PROTO = """syntax = "proto3";
message Order {
  string id = 1;
  optional double amount = 2;
  optional float price = 3;
  optional string currency = 4;
  message Buyer { optional string nick = 1; }
  Buyer buyer = 5;
}
"""
ID = b"\0\0\0\0\1"
PASSED = {"enough", "some-currency", "currency.missingValues"}
"""The checks that the orders pass."""


def orders() -> list[Order]:
    """Return orders with seeded duplicates, nulls and invalid values; a field that is absent counts as null."""
    random = Random(46)

    def order(number: int) -> Order:
        amount = {"amount": random.choice([*NUMBERS, -2])} if random.random() < 0.9 else {}
        nick = {"nick": f"n{random.randrange(200)}"} if random.random() < 0.8 else {}
        price, currency = random.choice([*NUMBERS, None]), random.choice(CURRENCIES)
        return {"id": f"o{number}", "price": price, "currency": currency, "buyer": nick, **amount}

    return [order(random.randrange(250)) for _ in range(300)]


def counted_by_rule(all_orders: list[Order]) -> Counter[str]:
    found = Counter[str]()
    for order in all_orders:
        found["contract.schema"] += order.get("amount", -1) < 0
        found["contract.known-currency"] += order["currency"] not in ("EUR", "USD", None)
    return found


def is_rejected(order: Order) -> bool:
    return counted_by_rule([order]).total() > 0


def counted_over_all(all_orders: list[Order]) -> dict[str, float]:
    """Return what each check of all stored records finds."""

    def duplicates(values: list[Any]) -> int:
        return sum(count > 1 for count in Counter(values).values())

    count = len(all_orders)
    currencies = [order["currency"] for order in all_orders]
    prices = [order["price"] for order in all_orders]
    nicks = [order["buyer"]["nick"] for order in all_orders if "nick" in order["buyer"]]
    strange = [each for each in currencies if each is not None and not re.fullmatch("[A-Z]{3}", each)]
    return {
        "enough": count,
        "id.unique": duplicates([order["id"] for order in all_orders]),
        "some-currency": 100 * currencies.count(None) / count,
        "currency.missingValues": currencies.count(None) + currencies.count(""),
        "currency.invalidValues": 100 * len(strange) / count,
        "price.invalidValues": sum(price not in (None, 1, 2, 5) for price in prices),
        "nicknames": 100 * duplicates(nicks) / count,
        "pairs": duplicates([(order["id"], order["price"]) for order in all_orders if order["price"] is not None]),
    }


def in_json(order: Order) -> bytes:
    return json.dumps(order).encode()


def in_avro(order: Order) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), order)
    return ID + out.getvalue()


def in_protobuf() -> Callable[[Order], bytes]:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set_of("order.proto", PROTO, {})).file:
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))
    first = b"\0"  # the index of the message in its file
    return lambda order: ID + first + bytes(message(**order).SerializeToString())


@contextmanager
def registry_of(schema: dict[str, str] | None, topics: list[str]) -> Iterator[dict[str, Any]]:
    """A registry with one schema, under the subjects of `topics`; yields the section of the configuration.

    None: there is no registry.
    """
    if schema is None:
        yield {}
        return

    def answer(client: socket.socket, head: bytes) -> bool:
        is_about_subjects = b"/versions" in head.split(b"\r", 1)[0]
        found: Any = [{"subject": f"{topic}-value", "version": 1} for topic in topics] if is_about_subjects else schema
        client.sendall(said("200 OK", json.dumps(found).encode()))
        return True

    with StandIn(answer) as registry:
        yield {"registries": {"main": {"url": registry.url}}}


FORMS: dict[str, tuple[Callable[[], Callable[[Order], bytes]], dict[str, str] | None]] = {
    "json": (lambda: in_json, None),
    "avro": (lambda: in_avro, {"schema": json.dumps(AVRO)}),
    "protobuf": (in_protobuf, {"schemaType": "PROTOBUF", "schema": PROTO}),
}


@pytest.mark.parametrize("form", FORMS)
def test_proxies_and_audits_have_the_figures_counted_in_the_orders(
    form: str, spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    observed, rejected = (create_topic(kafka_bootstrap, UNVALIDATED) for _ in range(2))
    written, schema = FORMS[form][0](), FORMS[form][1]
    contract = re.sub(
        r"    quality:\n(?=      - {id: enough)", PROPERTIES, ORDERS.replace("format: json", f"format: {form}")
    )
    registry = {} if schema is None else {"registry": "main"}
    for topic, name in ((observed, "observed"), (rejected, "rejected")):
        (tmp_path / f"{name}.odcs.yaml").write_text(contract.replace("orders.v1", topic))
    items = [{"path": "observed.odcs.yaml", "mode": "observe", **registry}, {"path": "rejected.odcs.yaml", **registry}]
    made = orders()
    bad = sum(map(is_rejected, made))
    with registry_of(schema, [observed, rejected]) as registries:
        proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"contracts": items, **registries})
        errors: list[int] = []
        try:
            proxy.start()
            # A batch for each record, because a batch is rejected as a whole.
            producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap, "batch.num.messages": 1})
            for topic in (observed, rejected):
                for value in [*map(written, made), None]:
                    producer.produce(
                        topic, value, b"key", 0, on_delivery=lambda error, _: error and errors.append(error.code())
                    )
            assert producer.flush(60) == 0
            events = [event for topic in (observed, rejected) for event in proxy.wait_for_violations(topic, bad)]
        finally:
            proxy.stop()
        found = audit(spark, kafka_bootstrap, [observed, rejected], tmp_path / "out", tmp_path / "sluicegate.yaml")

    by_rule = counted_by_rule(made)
    for topic in (observed, rejected):
        of_topic = Counter[str]()
        for event in events:
            if event["topic"] == topic:
                of_topic.update({broken["rule"]: broken["bad_records"] for broken in event["rules"]})
        assert of_topic == by_rule
    assert errors == [87] * bad
    stored = {observed: made, rejected: [order for order in made if not is_rejected(order)]}
    for topic, its in stored.items():
        summary = found.summary["topics"][topic]
        assert {row["rule"]: row["bad_records"] for row in summary["findings"]} == (
            by_rule if topic == observed else {}
        )
        checks = {check["check"].partition(":")[0]: check for check in summary["contract"]["checks"]}
        latency = checks.pop("latency")
        assert latency["passed"] and 0 <= latency["found"] < time.time() * 1000
        assert {name: check["found"] for name, check in checks.items()} == pytest.approx(counted_over_all(its))
        assert summary["contract"]["not_checked"] == [
            "sql: its type is sql",
            "service level availability: stored records do not show it",
        ]
        if topic == observed:
            assert {name for name, check in checks.items() if check["passed"]} == PASSED
    warning = f"id.unique: duplicateValues of id mustBe 0, found {counted_over_all(made)['id.unique']}"
    assert any(warning in each for each in found.warnings)
