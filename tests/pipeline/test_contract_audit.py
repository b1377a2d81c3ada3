"""Applies a data contract to the same orders in JSON, Avro and Protobuf, when they are produced and when they are
stored.

A proxy that rejects, a proxy that observes and an audit report the same counts for each rule. An audit also evaluates
the checks of all stored records. The test itself counts the expected figures. fastavro and Google's protobuf write the
values.
"""

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from io import BytesIO
from random import Random
from typing import Any

import confluent_kafka
import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import SparkSession

from sluicegate.pipeline.api import audit
from sluicegate.pipeline.jobs.audit.job import Audit
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from tests.broker.proxy_process import ProxyProcess
from tests.config.contracts.written import ORDERS
from tests.integration.topics import UNVALIDATED, create_topic
from tests.registry.stand_in import StandIn, http_response

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Order = dict[str, Any]
CURRENCIES = ["EUR", "EUR", "EUR", "USD", "USD", "DM", "", None]
SMALL = 1e-7
NUMBERS = [1, 1.0, 2, 5, 5.0, 0.1, 7.25, 1e16, SMALL]
PROPERTIES = """          - {metric: missingValues, mustBeBetween: [2, 100], arguments: {missingValues: [null, '']}}
          - {metric: invalidValues, mustBeLessThan: 25, unit: percent, arguments: {pattern: '^[A-Z]{3}$'}}
      - name: price
        logicalType: number
        quality: [{metric: invalidValues, mustBeLessThan: 10, arguments: {validValues: [1, 2.0, 5, 0.0000001]}}]
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
SCHEMAS = {1: {"schema": json.dumps(AVRO)}, 2: {"schemaType": "PROTOBUF", "schema": PROTO}}
UNREAD: Order = {"id": None, "price": None, "currency": None, "buyer": {}}
"""The fields of an unreadable value, which are all null."""
PASSED = {"enough", "some-currency", "currency.missingValues"}
"""The checks that the orders pass."""


def orders_with_violations() -> list[Order]:
    """Return orders with seeded duplicates, nulls and invalid values; a field that is absent counts as null."""
    random = Random(46)

    def order_of_number(number: int) -> Order:
        amount = {"amount": random.choice([*NUMBERS, -2])} if random.random() < 0.9 else {}
        nick = {"nick": f"n{random.randrange(200)}"} if random.random() < 0.8 else {}
        price, currency = random.choice([*NUMBERS, None]), random.choice(CURRENCIES)
        return {"id": f"o{number}", "price": price, "currency": currency, "buyer": nick, **amount}

    return [order_of_number(random.randrange(250)) for _ in range(300)]


def expected_counts_by_rule(all_orders: list[Order]) -> Counter[str]:
    found = Counter[str]()
    for order in all_orders:
        found["contract.schema"] += order.get("amount", -1) < 0
        found["contract.known-currency"] += order is UNREAD or order["currency"] not in ("EUR", "USD", None)
    return found


def is_rejected(order: Order) -> bool:
    return expected_counts_by_rule([order]).total() > 0


def counted_over_all(all_orders: list[Order]) -> dict[str, float]:
    """Return what each check of all stored records finds."""

    def count_duplicates(values: list[Any]) -> int:
        return sum(count > 1 for count in Counter(values).values())

    count = len(all_orders)
    currencies = [order["currency"] for order in all_orders]
    prices = [order["price"] for order in all_orders]
    nicks = [order["buyer"]["nick"] for order in all_orders if "nick" in order["buyer"]]
    strange = [each for each in currencies if each is not None and not re.fullmatch("[A-Z]{3}", each)]
    return {
        "enough": count,
        "id.unique": count_duplicates([order["id"] for order in all_orders if order is not UNREAD]),
        "some-currency": 100 * currencies.count(None) / count,
        "currency.missingValues": currencies.count(None) + currencies.count(""),
        "currency.invalidValues": 100 * len(strange) / count,
        "price.invalidValues": sum(price not in (None, 1, 2, 5, SMALL) for price in prices),
        "nicknames": 100 * count_duplicates(nicks) / count,
        "pairs": count_duplicates(
            [(order["id"], order["price"]) for order in all_orders if order["price"] is not None]
        ),
    }


def encode_json(order: Order) -> bytes:
    """Return an order in JSON; every second one has a small number without an exponent."""
    text = json.dumps(order)
    return (text if int(order["id"][1:]) % 2 else text.replace(str(SMALL), f"{SMALL:.7f}")).encode()


def encode_avro(order: Order) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), order)
    return b"\0\0\0\0\1" + out.getvalue()


def protobuf_encoder() -> Callable[[Order], bytes]:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set_of("order.proto", PROTO, {})).file:
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))
    # The schema's id, followed by the index of the message in its file.
    return lambda order: b"\0\0\0\0\2" + b"\0" + bytes(message(**order).SerializeToString())


def registry_with_schemas(topics: Collection[str]) -> StandIn:
    """Return a registry with a schema for each id, under the subjects of all topics."""
    asked = re.compile(rb"GET /schemas/ids/(\d)(/versions)?")

    def respond_with_schema(client: socket.socket, head: bytes) -> bool:
        about = asked.match(head)
        found: Any = [{"subject": f"{topic}-value", "version": 1} for topic in topics]
        if about is None:  # the proxy's survey of subjects
            found = []
        elif about[2] is None:
            found = SCHEMAS[int(about[1])]
        client.sendall(http_response("200 OK", json.dumps(found).encode()))
        return True

    return StandIn(respond_with_schema)


FORMS: dict[str, Callable[[], Callable[[Order], bytes]]] = {
    "json": lambda: encode_json,
    "avro": lambda: encode_avro,
    "protobuf": protobuf_encoder,
}
MODES = ("observe", "reject")


@dataclass(frozen=True)
class AuditedOrders:
    """`events`: the proxy's events by topic. `errors`: the codes that producers received, by topic."""

    topics: dict[tuple[str, str], str]
    events: dict[str, list[dict[str, Any]]]
    errors: dict[str, list[int]]
    audit: Audit


@pytest.fixture(scope="module")
def audited_orders(
    spark: SparkSession, kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> AuditedOrders:
    """Send the orders in each form through one proxy, to a topic that observes and to a topic that rejects."""
    folder = tmp_path_factory.mktemp("contracts")
    topics = {(form, mode): create_topic(kafka_bootstrap, UNVALIDATED) for form in FORMS for mode in MODES}
    items = []
    for (form, mode), topic in topics.items():
        contract = ORDERS.replace("format: json", f"format: {form}").replace("orders.v1", topic)
        contract = re.sub(r"    quality:\n(?=      - {id: enough)", PROPERTIES, contract)
        (folder / f"{form}-{mode}.odcs.yaml").write_text(contract)
        items.append({"path": f"{form}-{mode}.odcs.yaml", "mode": mode})
        items[-1] |= {} if form == "json" else {"registry": "main"}
    errors: dict[str, list[int]] = {topic: [] for topic in topics.values()}

    def note_error(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            errors[str(message.topic())].append(error.code())

    made = orders_with_violations()
    bad = sum(map(is_rejected, made)) + 1
    with registry_with_schemas(topics.values()) as schemas:
        settings = {"contracts": items, "registries": {"main": {"url": schemas.url}}}
        proxy = ProxyProcess(folder, kafka_bootstrap, settings)
        try:
            proxy.start()
            # Each record is a batch, because a batch is rejected as a whole.
            producer = confluent_kafka.Producer({"bootstrap.servers": proxy.bootstrap, "batch.num.messages": 1})
            for (form, _), topic in topics.items():
                values = list(map(FORMS[form](), made))
                for value in (*values, values[0][:-1], None):
                    producer.produce(topic, value, b"key", 0, on_delivery=note_error)
            assert producer.flush(120) == 0
            events = {topic: proxy.wait_for_violations(topic, bad) for topic in topics.values()}
        finally:
            proxy.stop()
        found = audit(spark, kafka_bootstrap, list(topics.values()), folder / "out", folder / "sluicegate.yaml")
    return AuditedOrders(topics, events, errors, found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS)
def test_proxy_and_audit_counts_equal_the_counts_of_generated_orders(
    form: str, mode: str, audited_orders: AuditedOrders
) -> None:
    topic, made = audited_orders.topics[form, mode], [*orders_with_violations(), UNREAD]
    by_rule = expected_counts_by_rule(made)
    is_observed = mode == "observe"

    in_events = Counter[str]()
    for event in audited_orders.events[topic]:
        in_events.update({broken["rule"]: broken["bad_records"] for broken in event["rules"]})
    assert in_events == by_rule
    assert audited_orders.errors[topic] == ([] if is_observed else [87] * sum(map(is_rejected, made)))
    summary = audited_orders.audit.summary["topics"][topic]
    assert {row["rule"]: row["bad_records"] for row in summary["findings"]} == (by_rule if is_observed else {})
    checks = {check["check"].partition(":")[0]: check for check in summary["contract"]["checks"]}
    latency = checks.pop("latency")
    assert latency["passed"] and 0 <= latency["found"] < time.time() * 1000
    stored = made if is_observed else [order for order in made if not is_rejected(order)]
    counted = counted_over_all(stored)
    assert {name: check["found"] for name, check in checks.items()} == pytest.approx(counted)
    assert summary["contract"]["not_checked"] == [
        "sql: checks of type sql are not supported",
        "service level availability: not visible in stored records",
    ]
    if is_observed:
        assert {name for name, check in checks.items() if check["passed"]} == PASSED
    warning = (
        f"{topic}: its contract is broken: id.unique: duplicateValues of id mustBe 0, found {counted['id.unique']}"
    )
    assert any(warning in each for each in audited_orders.audit.warnings)
