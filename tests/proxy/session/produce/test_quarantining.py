"""Bad records are stored before the client gets a response, and only if the broker itself accepts the batch."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header, parse_request_header, response_body_at
from sluicegate.protocol.messages.produce import PRODUCE_REQUEST, PRODUCE_RESPONSE
from sluicegate.protocol.records.stand_in import stand_in
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.validated_request import Place
from tests.proxy.session.playbook import NOW, Playbook, replace_produce_dependencies
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

GONE, UNKNOWN, CORRUPT, REJECTED, RETRIABLE, FORBIDDEN = -1, 3, 2, 32, 7, 29
# Before v5, responses contain no log start offset, so none is requested.
_OLD = 3
_FILE = """
upstream: {bootstrap: ["127.0.0.1:9"], topic_settings: false}
listen: {bootstrap: "127.0.0.1:9"}
defaults: {message.timestamp.before.max.ms: 1h}
topics: [{match: q, quarantine: dead}, {match: c, quarantine: dead, mode: observe}]
"""
BAD = batch([Rec(5, b"k", b"bad", [(b"h", b"1")]), Rec(NOW, b"k", b"good")])


class RecordingSink:
    """Records the bad records to store, and reports the outcome that the test has set."""

    def __init__(self) -> None:
        self.letters: list[Sequence[DeadLetters]] = []
        self.tells: list[Callable[[dict[Place, str]], None]] = []

    def write(
        self, identity: ClientIdentity, letters: Sequence[DeadLetters], tell: Callable[[dict[Place, str]], None]
    ) -> None:
        assert identity.client_id == "test"
        self.letters.append(letters)
        self.tells.append(tell)


class StoreBadRecords(Playbook):
    """A session with quarantine for topic `q`."""

    def __init__(self, room_bytes: int = 1 << 20) -> None:
        self.sink: Any = RecordingSink()
        self.now_ms = NOW
        super().__init__(
            change=lambda dependencies: replace_produce_dependencies(
                dependencies, dead_letters=self.sink, now_ms=lambda: self.now_ms
            ),
            SLUICEGATE__LIMITS__MAX_QUARANTINED_BYTES=str(room_bytes),
        )
        self.room = self.parts.quarantine_memory
        self.parts.rules.adopt(file_policies_of(load(read_yaml(_FILE, "f"), {}).config))

    def send(self, *topics: Any, acks: int = -1, version: int = 9) -> None:
        body = produce_body(version, list(topics), acks)
        header = build_request_header(0, version, 7, "test", 2 if version >= 9 else 1)
        self.from_client(frame_of(header, body))

    def last_request(self, count: int, version: int = 9) -> Any:
        """Return the last of `count` requests that the broker has received."""
        self.loop.until(lambda: len(self._requests()) >= count)
        (frame,) = self._requests()[count - 1 :]
        body_at = parse_request_header(frame, 2 if version >= 9 else 1).body_at
        return PRODUCE_REQUEST.parse(bytes(frame[body_at:]), version)

    def respond(self, *entries: tuple[str, int, int], version: int = 9) -> None:
        """Send the broker's response: topic, partition and code of each entry."""
        topics = [
            {"name": name, "partition_responses": [{"index": index, "error_code": code, "base_offset": -1}]}
            for name, index, code in entries
        ]
        tags = b"\0" if version >= 9 else b""
        answer = PRODUCE_RESPONSE.build({"responses": topics}, version)
        self.from_broker(frame_of(struct.pack(">i", 7) + tags, answer))

    def client_response(self, version: int = 9) -> dict[str, Any]:
        self.loop.until(lambda: bool(self.client.sent))
        frame = bytes(self.client.sent[4:])
        answer = PRODUCE_RESPONSE.parse(frame[response_body_at(frame, 1 if version >= 9 else 0) :], version)
        return {topic["name"]: topic["partition_responses"][0] for topic in answer["responses"]}

    def _requests(self) -> list[bytearray]:
        found, rest = [], bytearray(self.broker.sent)
        while rest:
            size = int.from_bytes(rest[:4], "big")
            found.append(rest[4 : 4 + size])
            rest = rest[4 + size :]
        return found


def records_in(request: Any) -> dict[str, bytes]:
    return {topic["name"]: bytes(topic["partition_data"][0]["records"]) for topic in request["topic_data"]}


def test_bad_records_are_stored_after_the_brokers_check_and_before_the_response() -> None:
    script = StoreBadRecords()

    script.send(topic_data("q", (0, BAD)), version=_OLD)
    assert records_in(script.last_request(1, _OLD)) == {"q": stand_in(memoryview(BAD))}
    assert script.sink.letters == []
    script.respond(("q", 0, CORRUPT), version=_OLD)
    ((letters,),) = script.sink.letters
    assert (letters.topic, letters.source, letters.partition) == ("dead", "q", 0)
    assert [(r.index, r.key, r.value, r.headers) for r in letters.records] == [(0, b"k", b"bad", [(b"h", b"1")])]
    assert not script.client.sent
    assert not script.client.is_read
    script.sink.tells[0]({})

    assert script.client_response(_OLD)["q"]["error_code"] == REJECTED
    assert script.parts.counters.batch_counts["sluicegate_quarantined_batches"].total() == 1
    assert script.parts.counters.batch_counts["sluicegate_rejected_batches"].total() == 1
    assert script.client.is_read


def test_client_must_resend_batch_if_its_bad_records_cannot_be_stored() -> None:
    script = StoreBadRecords()

    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    script.respond(("q", 0, CORRUPT))
    script.sink.tells[0]({(0, 0): "no room at the inn"})

    entry = (script.client_response())["q"]
    assert entry["error_code"] == RETRIABLE
    assert entry["error_message"] == (
        "The batch for q-0 has bad records, which could not be written to dead: no room at the inn. The batch is not "
        "stored; send it again."
    )
    counters = script.parts.counters
    names = ("sluicegate_quarantined_batches", "sluicegate_rejected_batches", "sluicegate_quarantine_failures")
    assert [counters.batch_counts[name].total() for name in names] == [0, 0, 1]


@pytest.mark.parametrize("code", [FORBIDDEN, UNKNOWN])
def test_bad_records_are_not_stored_if_the_broker_returns_an_error(code: int) -> None:
    script = StoreBadRecords()

    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    script.respond(("q", 0, code))
    script.last_request(2)
    script.respond(("q", 0, code))

    assert (script.client_response())["q"]["error_code"] == code
    assert script.sink.letters == []


def test_batch_gets_a_retriable_error_if_the_broker_error_disappears() -> None:
    """Otherwise it would be rejected finally without storing its bad records."""
    script = StoreBadRecords()

    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    script.respond(("q", 0, UNKNOWN))
    script.last_request(2)
    script.respond(("q", 0, CORRUPT))

    assert (script.client_response())["q"]["error_code"] == RETRIABLE


@pytest.mark.parametrize("version", [3, 4])
def test_broker_check_before_quarantine_appends_no_record(version: int) -> None:
    good = batch([Rec(NOW)])
    script = StoreBadRecords()

    script.send(topic_data("g", (0, good)), topic_data("q", (0, BAD)), version=version)
    question = records_in(script.last_request(1, version))
    script.respond(("g", 0, CORRUPT), ("q", 0, CORRUPT), version=version)
    script.sink.tells[0]({})
    forwarded = records_in(script.last_request(2, version))
    script.respond(("g", 0, 0), ("q", 0, CORRUPT), version=version)

    assert question == {"g": stand_in(memoryview(good)), "q": stand_in(memoryview(BAD))}
    assert forwarded == {"g": good, "q": stand_in(memoryview(BAD))}
    answer = script.client_response(version)
    assert {name: entry["error_code"] for name, entry in answer.items()} == {"g": 0, "q": REJECTED}


def test_broker_check_before_quarantine_runs_at_most_once_a_second() -> None:
    script = StoreBadRecords()

    for count in (1, 2, 3):
        script.send(topic_data("q", (0, BAD)), version=_OLD)
        if count == 1:
            script.last_request(1, _OLD)
            script.respond(("q", 0, CORRUPT), version=_OLD)
        script.loop.until(lambda count=count: len(script.sink.tells) == count)
        script.sink.tells[-1]({})
        assert script.client_response(_OLD)["q"]["error_code"] == REJECTED
        script.client.sent.clear()
    script.now_ms += 1000
    script.send(topic_data("q", (0, BAD)), version=_OLD)
    assert records_in(script.last_request(2, _OLD)) == {"q": stand_in(memoryview(BAD))}


@pytest.mark.parametrize("version", [3, 9])
def test_broker_check_before_quarantine_requests_a_response_despite_acks_0(version: int) -> None:
    script = StoreBadRecords()

    script.send(topic_data("q", (0, BAD)), acks=0, version=version)
    question = script.last_request(1, version)
    script.respond(("q", 0, CORRUPT), version=version)
    script.sink.tells[0]({})
    forwarded = script.last_request(2, version)

    assert (question["acks"], forwarded["acks"]) == (1, 0)
    assert len(script.sink.letters[0][0].records) == 1
    assert not script.client.sent
    assert script.parts.counters.acks_0_closed == 1


def test_batch_beyond_the_quarantine_memory_gets_a_retriable_error() -> None:
    script = StoreBadRecords(room_bytes=1000)

    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    script.respond(("q", 0, CORRUPT))

    entry = (script.client_response())["q"]
    assert entry["error_code"] == RETRIABLE
    assert "more memory than limits.max_quarantined_bytes has free (1000)" in entry["error_message"]
    assert script.sink.letters == []
    assert script.parts.counters.limits_reached == {"limits.max_quarantined_bytes": 1}


@pytest.mark.parametrize(("missing", "beyond"), [(0, {}), (1, {"limits.max_quarantined_bytes": 1})])
def test_bad_records_that_just_fit_the_memory_are_stored(missing: int, beyond: dict[str, int]) -> None:
    roomy = StoreBadRecords()
    roomy.send(topic_data("q", (0, BAD)))
    roomy.last_request(1)
    takes = roomy.room.total_bytes - roomy.room.free_bytes
    script = StoreBadRecords(room_bytes=takes - missing)

    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    script.respond(("q", 0, CORRUPT))
    script.loop.until(lambda: bool(script.sink.letters or script.client.sent))

    assert len(script.sink.letters) == (0 if beyond else 1)
    assert script.parts.counters.limits_reached == beyond


def test_a_client_is_paused_only_while_its_records_are_quarantined() -> None:
    script = StoreBadRecords()
    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    assert list(script.session.client.pause_reasons) == [PauseReason.QUARANTINING]

    script.respond(("q", 0, CORRUPT))
    script.loop.until(lambda: bool(script.sink.letters))
    assert list(script.session.client.pause_reasons) == [PauseReason.QUARANTINING]


@pytest.mark.parametrize("where", ["asking", "keeping", "kept"])
def test_quarantine_memory_is_released_after_success_and_failure(where: str) -> None:
    script = StoreBadRecords()
    script.send(topic_data("q", (0, BAD)))
    script.last_request(1)
    assert script.room.free_bytes < script.room.total_bytes
    if where != "asking":
        script.respond(("q", 0, CORRUPT))
    if where == "kept":
        script.sink.tells[0]({})
    script.sink.letters.clear()
    script.sink.tells.clear()

    script.session.broker.connection_lost(None)
    script.session.client.connection_lost(None)

    script.loop.until(lambda: script.room.free_bytes == script.room.total_bytes)


@pytest.mark.parametrize("version", [3, 4, 9])
def test_copied_batch_is_forwarded_unchanged_after_its_bad_records_are_stored(version: int) -> None:
    script = StoreBadRecords()

    script.send(topic_data("c", (0, BAD)), version=version)
    assert records_in(script.last_request(1, version)) == {"c": stand_in(memoryview(BAD))}
    script.respond(("c", 0, CORRUPT), version=version)
    ((letters,),) = script.sink.letters
    assert ([r.index for r in letters.records], letters.is_copy) == ([0], True)
    script.sink.tells[0]({})
    assert records_in(script.last_request(2, version)) == {"c": BAD}
    script.respond(("c", 0, 0), version=version)

    assert script.client_response(version)["c"]["error_code"] == 0
    names = ("copied_batches", "copied_records", "observed_batches", "quarantined_batches", "rejected_batches")
    counts = script.parts.counters.batch_counts
    assert [counts[f"sluicegate_{name}"].total() for name in names] == [1, 1, 1, 0, 0]
    assert script.parts.counters.validated_batches == {"accepted": 1}


@pytest.mark.parametrize("code", [CORRUPT, FORBIDDEN])
def test_batch_is_not_forwarded_and_gets_a_retriable_error_if_its_copy_fails(code: int) -> None:
    """The broker rejects the partition for its own reason, or the write fails; a good neighbour is stored."""
    good = batch([Rec(NOW)])
    script = StoreBadRecords()

    script.send(topic_data("g", (0, good)), topic_data("c", (0, BAD)))
    script.last_request(1)
    script.respond(("g", 0, CORRUPT), ("c", 0, code))
    if code == CORRUPT:
        script.sink.tells[0]({(1, 0): "disk full"})
    assert records_in(script.last_request(2)) == {"g": good, "c": stand_in(memoryview(BAD))}
    script.respond(("g", 0, 0), ("c", 0, CORRUPT))

    assert {name: entry["error_code"] for name, entry in script.client_response().items()} == {"g": 0, "c": RETRIABLE}
    counts = script.parts.counters.batch_counts
    assert counts["sluicegate_quarantine_failures"].total() == (1 if code == CORRUPT else 0)
    assert counts["sluicegate_copied_batches"].total() == 0


def test_a_failed_copy_with_acks_0_closes_the_connection() -> None:
    script = StoreBadRecords()

    forwarded = []
    for failure in ({}, {(0, 0): "disk full"}):
        script.send(topic_data("c", (0, BAD)), acks=0)
        if not failure:
            script.last_request(1)
            script.respond(("c", 0, CORRUPT))
        script.loop.until(lambda: bool(script.sink.tells))
        script.sink.tells.pop()(failure)
        forwarded.append(records_in(script.last_request(2 + len(forwarded))))

    assert forwarded == [{"c": BAD}, {"c": stand_in(memoryview(BAD))}]
    assert script.parts.counters.acks_0_closed == 1
