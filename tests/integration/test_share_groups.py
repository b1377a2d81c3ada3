"""Responses for share groups (KIP-932) contain node endpoints after the records, so the proxy rewrites them whole."""

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.integration.clients import PLAIN, Confluent, Sent
from tests.integration.java import java_tool
from tests.integration.test_produce import now_ms
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import CONFIG_COMMAND

pytestmark = pytest.mark.long


def test_a_share_consumer_reads_through_the_proxy(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, partitions=1)
    group = f"{topic}-shared"
    values = [f"record {i}" for i in range(50)]
    change = ("--alter", "--entity-type", "groups", "--entity-name", group)
    setting = ("--add-config", "share.auto.offset.reset=earliest")
    java_tool(CONFIG_COMMAND, "--bootstrap-server", proxy.bootstrap, *change, *setting)
    sent = Confluent().send(proxy.bootstrap, topic, [Sent(value, now_ms()) for value in values], "lz4", PLAIN)
    assert sent == ["ok"] * len(values)

    read = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
        *("--bootstrap-server", proxy.bootstrap, "--topic", topic, "--group", group),
        *("--max-messages", str(len(values)), "--timeout-ms", "60000"),
    )

    assert read.splitlines() == values
    assert "upstream connection closed" not in proxy.log()
