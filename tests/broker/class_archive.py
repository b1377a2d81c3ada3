"""Makes the archive of classes that brokers of a release start from: `python -m tests.broker.class_archive 4.3.1`.

A broker spends most of its start on loading classes. Java keeps those that a first one has loaded and checked
(JEP 350), and the next start in half the time; where the archive is missing, or another Java's, they start as ever.
"""

import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.broker.kafka import Kafka
from tests.oracle.java_program import archive_of
from tests.oracle.kafka_java import kafka_folder


def make(version: str) -> None:
    """Starts a broker and ends it well: Java writes the archive at the end."""
    archive = archive_of(kafka_folder(version))
    archive.unlink(missing_ok=True)
    with TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        kafka = Kafka(version, Path(folder) / "kafka", options=(f"-XX:ArchiveClassesAtExit={made}",))
        try:
            (node,) = kafka.start().nodes
            assert node.process is not None
            node.process.send_signal(signal.SIGTERM)
            node.process.wait(60)
        finally:
            kafka.stop()
        made.replace(archive)


if __name__ == "__main__":
    make(sys.argv[1])
