"""Runs `sluicegate dead-letters` in this process, and writes letters to a real broker."""

import json
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from sluicegate.dead_letters import Headers
from sluicegate.proxy.cli.commands import app
from tests.dead_letters.letters import CONNECT

SECONDS = 60


def run(*arguments: str, code: int = 0) -> str:
    """Return the output of the command, or its errors if it is expected to fail."""
    done = CliRunner().invoke(app, ["dead-letters", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done.stdout if code == 0 else done.output


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def new_topic(bootstrap: str, name: str, partitions: int = 1, **settings: str) -> str:
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})  # its result is lost if it is deleted
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(SECONDS)
    return topic


def write(
    bootstrap: str, topic: str, records: Sequence[tuple[bytes | None, bytes | None, Headers]], partition: int = 0
) -> None:
    """Write keys, values and headers to one partition."""
    failed: list[Any] = []
    # Idempotent, so that a retry does not change the order.
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True})
    for key, value, headers in records:
        named = [(name.decode(), data) for name, data in headers]
        producer.produce(
            topic, value, key, partition, lambda error, _: failed.append(error) if error else None, headers=named
        )
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    assert not failed, failed[0]


def from_topic(headers: Headers, topic: str) -> Headers:
    """Return the headers with another original topic."""
    return tuple((name, topic.encode() if value == b"orders" else value) for name, value in headers)


def letters_for(topic: str, partition: int = 0) -> Headers:
    """Return the headers of a letter of Connect for one partition of the topic."""
    headers = from_topic(CONNECT, topic)
    return tuple((name, str(partition).encode() if name.endswith(b".partition") else text) for name, text in headers)


def planned(dead: str, file: str, *options: str) -> tuple[list[str], Any]:
    """Return the options that apply the plan, and the plan."""
    plan = run_json("redrive", dead, "--config", file, *options)
    return ["redrive", dead, "--config", file, *options, "--offsets", plan["offsets"], "--apply", plan["digest"]], plan


def configuration(folder: Path, bootstrap: str, **sections: Any) -> str:
    file = folder / "sluicegate.yaml"
    file.write_text(
        yaml.safe_dump({"upstream": {"bootstrap": [bootstrap]}, "listen": {"bootstrap": "127.0.0.1:19092"}, **sections})
    )
    return str(file)


def stored(bootstrap: str, topic: str) -> list[Any]:
    """Return all committed records of a topic, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found, left = [], set(partitions)
        end = time.monotonic() + SECONDS
        while left:
            assert time.monotonic() < end, f"no record of {topic} arrived within {SECONDS} s"
            for message in consumer.consume(1000, 1):
                end = time.monotonic() + SECONDS
                if message.error() is None:
                    found.append(message)
                else:
                    left.discard(message.partition())
        return sorted(found, key=lambda message: (message.partition(), message.offset()))
    finally:
        consumer.close()
