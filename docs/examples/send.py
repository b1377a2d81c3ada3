"""Sends one record whose time is in a unit of your choice, and says what became of it."""

import argparse
import time

from confluent_kafka import Producer

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("server", metavar="HOST:PORT")
arguments.add_argument("topic")
arguments.add_argument("unit", choices=NANOSECONDS, help="Kafka expects ms")
arguments.add_argument("--hours-ahead", type=int, default=0)
arguments.add_argument("--client-id", default="my-service")
given = arguments.parse_args()

when = time.time_ns() + given.hours_ahead * 3600 * NANOSECONDS["s"]
producer = Producer({"bootstrap.servers": given.server, "client.id": given.client_id})
producer.produce(
    given.topic,
    b"hello",
    b"key",
    timestamp=when // NANOSECONDS[given.unit],
    on_delivery=lambda error, _: print(error.str() if error else "stored"),
)
producer.flush()
