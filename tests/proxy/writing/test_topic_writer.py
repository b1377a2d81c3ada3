"""The reason of a record that could not be written has librdkafka's last error."""

from sluicegate.proxy.writing.topic_writer import TopicWriter
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.config.reading import loaded


def test_a_timeout_has_the_last_error_as_reason() -> None:
    port = free_ports(1)
    text = f"upstream: {{bootstrap: ['127.0.0.1:{port}']}}\nlisten: {{bootstrap: '127.0.0.1:2'}}\n"
    writer = TopicWriter(loaded(text).config.upstream, {"message.timeout.ms": 1500})
    told: list[str | None] = []

    def served() -> bool:
        writer.serve(0.1)
        return bool(told)

    writer.write("dead", b"k", b"v", [("a", b"1")], told.append)
    eventually(served, 30)

    (why,) = told
    assert why is not None and "Message timed out" in why
    assert "Connection refused" in why, "not that all brokers are down"
