"""Writes the class archive (JEP 350) for a release's brokers: `python -m tests.broker.class_archive 4.3.1`.

A broker spends most of its start loading classes. With an archive of loaded and verified classes it starts in half the
time. Without an archive, or with an archive from a different Java version, it starts at the usual speed.
"""

import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.broker.kafka import Kafka
from tests.oracle.java_program import class_archive_path
from tests.oracle.kafka_java import kafka_folder


def make_class_archive(version: str) -> None:
    """Start a broker and stop it cleanly; Java writes the archive at its end."""
    archive = class_archive_path(kafka_folder(version))
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
    make_class_archive(sys.argv[1])
