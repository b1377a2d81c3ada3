"""Starts a Kafka broker for manual tests, until Ctrl-C or SIGTERM (python -m tests.broker).

Requires `make setup kafka`.
"""

import signal
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.broker.kafka import Kafka
from tests.oracle.kafka_java import KAFKA_NEW


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with TemporaryDirectory(prefix="kafka-") as folder, suppress(KeyboardInterrupt):
        kafka = Kafka(KAFKA_NEW, Path(folder))
        try:
            print(
                f"Kafka {KAFKA_NEW} listens at {kafka.start().bootstrap} until Ctrl-C; its log is in {folder}",
                flush=True,
            )
            signal.pause()
        finally:
            kafka.stop()


if __name__ == "__main__":
    main()
