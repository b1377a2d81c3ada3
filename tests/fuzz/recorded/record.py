"""Records the bytes that real clients send to real brokers, through a relay: `python -m tests.fuzz.recorded.record`.

The script rewrites `streams.zip`, which contains for each client and codec the connection that sent the records, from
its first byte to the end of its last small frame. Requires `make kafka`. Go and Node.js clients are recorded if `make
clients` built them.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests.broker.kafka import Kafka
from tests.broker.recording_relay import RecordingRelay
from tests.clients.programs import PROGRAMS
from tests.fuzz.recorded.producers import LIBRARIES, OLD_LIBRARIES, VALUES
from tests.fuzz.recorded.streams import MOMENT, STREAMS, frames_of
from tests.integration.java import java_tool
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD, ROOT

_RELAY = "127.0.0.2"
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_OLD_CODECS = ("none", "gzip", "snappy")
_PRODUCE_KEY = b"\0\0"
_MOST_BYTES = 4096
_JAVA = str(ROOT / "tests/integration/JavaProducer.java")


class Writer(NamedTuple):
    """A client that writes records: `write(bootstrap, topic)`."""

    name: str
    write: Callable[[str, str], object]


def main() -> None:
    recorded: dict[str, bytes] = {}
    for version, writers in ((KAFKA_NEW, list(_new_writers())), (KAFKA_OLD, list(_old_writers()))):
        with TemporaryDirectory() as folder:
            broker = Kafka(version, Path(folder), relay_host=_RELAY)
            try:
                recorded.update(_recorded(broker.start(), writers))
            finally:
                broker.stop()
    with ZipFile(STREAMS, "w", ZIP_DEFLATED) as archive:
        for name, stream in sorted(recorded.items()):
            archive.writestr(ZipInfo(name), stream, ZIP_DEFLATED)


def _recorded(broker: Kafka, writers: list[Writer]) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each writer and its stream."""
    for writer in writers:
        topic = create_topic(broker.bootstrap, UNVALIDATED, partitions=1, prefix="orders")
        with RecordingRelay(_RELAY, [node.relayed_port for node in broker.nodes]) as relay:
            writer.write(broker.relayed_bootstrap, topic)
            kept = max(map(_small_part, relay.sent_by_clients), key=_produced)
        assert _produced(kept), f"{writer.name} has written nothing"
        print(f"{writer.name}: {len(kept):,} bytes")
        yield writer.name, kept


def _small_part(stream: bytes) -> bytes:
    """Return complete frames from the start, up to the size limit."""
    size = 0
    for frame in frames_of(stream):
        if size + 4 + len(frame) > _MOST_BYTES:
            break
        size += 4 + len(frame)
    return stream[:size]


def _produced(stream: bytes) -> int:
    """Return the number of Produce requests in a stream."""
    return sum(frame.startswith(_PRODUCE_KEY) for frame in frames_of(stream))


def _new_writers() -> Iterator[Writer]:
    for library, codec in product(LIBRARIES, _CODECS):
        yield _python(library, codec)
    for mode, codec in product(("idempotent", "transactional"), _CODECS):
        yield _java(KAFKA_NEW, mode, codec)
    for program in PROGRAMS:
        if program.name in ("franz-go", "sarama", "kafkajs", "kcat") and program.version is not None:
            for command in ("produce-default", "produce-strict"):
                yield Writer(
                    f"{program.name}-{command.removeprefix('produce-')}",
                    lambda bootstrap, topic, run=program.run, what=command: run(what, bootstrap, topic),
                )


def _old_writers() -> Iterator[Writer]:
    for library, codec in product(OLD_LIBRARIES, _OLD_CODECS):
        yield _python(library, codec)
    for codec in _CODECS:
        yield _java(KAFKA_OLD, "plain", codec)


def _python(library: str, codec: str) -> Writer:
    def write(bootstrap: str, topic: str) -> None:
        command = [sys.executable, "-m", "tests.fuzz.recorded.producers", library, bootstrap, topic, codec, str(MOMENT)]
        subprocess.run(command, check=True, timeout=120)

    return Writer(f"{library}-{codec}", write)


def _java(version: str, mode: str, codec: str) -> Writer:
    lines = "".join(f"{MOMENT} {value.decode()}\n" for value in VALUES)

    def write(bootstrap: str, topic: str) -> None:
        said = java_tool(_JAVA, bootstrap, topic, codec, mode, "500", stdin=lines, version=version)
        assert said.split() == ["ok"] * len(VALUES), said

    return Writer(f"java-{version}-{mode}-{codec}", write)


if __name__ == "__main__":
    main()
