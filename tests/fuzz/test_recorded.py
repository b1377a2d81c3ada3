"""Recorded streams of real clients have the stated codecs, and a session forwards them unchanged on both paths."""

import pytest

from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from tests.fuzz.recorded.streams import batches_in, frames_of, recorded_streams
from tests.proxy.session.playbook import Playbook

_BOUNDS = {"SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": "86400000"}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MAGIC_AT, _CODEC_AT, _OLD_CODEC_AT = 16, 22, 17
_FIRST_WITH_TOPIC_IDS = 13
_MOST_BYTES = 100_000


def codecs_in(stream: bytes) -> set[str]:
    found = (one[_CODEC_AT if one[_MAGIC_AT] == 2 else _OLD_CODEC_AT] & 7 for one in batches_in(stream))
    return {_CODECS[codec] for codec in found}


def names_topics(stream: bytes) -> bool:
    """Return whether all Produce requests have topic names; the scripted broker does not resolve ids."""
    versions = [frame[3] for frame in frames_of(stream) if frame[:2] == b"\0\0"]
    return max(versions) < _FIRST_WITH_TOPIC_IDS


def test_every_codec_of_every_client_is_recorded() -> None:
    found = {name.rpartition("-")[0] for name in recorded_streams()}

    assert found >= {"librdkafka", "librdkafka-transactional", "kafka-python", "kafka-python-0.9", "aiokafka"}
    assert sum(name.startswith("java-") for name in recorded_streams()) >= 3 * len(_CODECS)
    for name, stream in recorded_streams().items():
        codec = name.rpartition("-")[2]
        assert codecs_in(stream) == {codec} if codec in _CODECS else codecs_in(stream)
    assert sum(map(len, recorded_streams().values())) < _MOST_BYTES


@pytest.mark.parametrize("name", recorded_streams())
def test_recorded_streams_pass_unchanged_on_both_paths(name: str) -> None:
    stream = recorded_streams()[name]
    if not names_topics(stream):
        assert name.startswith("java-4") or "default" in name or "strict" in name
        return
    fast, slow = Playbook(**_BOUNDS), Playbook(has_fast_path=False, **_BOUNDS)

    for play in (fast, slow):
        for _ in range(2):
            play.from_client(stream)
            play.loop.run_steps()

        assert play.broker.sent == stream * 2
        assert not play.client.sent and not play.client.is_closing()
        play.ends()
    assert slow.parts.observer.counted().accepted_records == fast.parts.observer.counted().accepted_records > 0
    if HAS_FAST_PATH and not name.startswith("kafka-python-0."):
        assert fast.parts.observer.counted().fast_requests["Produce"] >= 1
