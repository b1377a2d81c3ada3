"""Lists all targets, each with its seeds and its corpus."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from tests.fuzz import seeds
from tests.fuzz.explored import batches, sessions, texts
from tests.fuzz.recorded.streams import recorded_streams
from tests.oracle.kafka_java import ROOT
from tests.proxy.session.playbook import NOW

_CODEC_AT, _PAYLOAD_AT = 22, 61
_CORPUS = Path(__file__).with_name("corpus")


class Target(NamedTuple):
    """`run` raises if the target fails; `seeds` are valid inputs."""

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def _streams() -> list[bytes]:
    """Return real clients' requests, each twice: the second time the fast path knows the topics."""
    return _requests() + [b"\0\0" + stream * 2 for stream in recorded_streams().values()]


def _requests() -> list[bytes]:
    frames = [len(frame).to_bytes(4, "big") + frame for frame in seeds.seed_requests()]
    return [b"\0\0" + b"".join(frames[at : at + 5]) for at in range(0, len(frames), 5)]


def _responses() -> list[bytes]:
    whole = sessions.seed_responses()
    return [b"\1\1" + b"".join(whole[:end]) for end in range(1, len(whole) + 1)]


def _configurations() -> list[bytes]:
    return [file.read_bytes() for file in sorted((ROOT / "deploy").rglob("*.yaml"))] + [
        (ROOT / "sluicegate.yaml").read_bytes()
    ]


def _batches() -> list[bytes]:
    return seeds.seed_batches(NOW)


def _payloads() -> list[bytes]:
    compressed = [batch for batch in _batches() if len(batch) > _PAYLOAD_AT and batch[_CODEC_AT] & 7 in range(1, 5)]
    return [bytes([(batch[_CODEC_AT] & 7) - 1]) + batch[_PAYLOAD_AT:] for batch in compressed]


TARGETS = {
    "from_client": Target(sessions.from_client, _streams),
    "from_broker": Target(sessions.from_broker, _responses),
    "records": Target(batches.records, _batches),
    "payload": Target(batches.payload, _payloads),
    "configuration": Target(texts.configuration, _configurations),
}


def stored_corpus(name: str) -> dict[str, bytes]:
    """Return the inputs that earlier runs of this target found, by name."""
    with ZipFile(_CORPUS / f"{name}.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}
