"""A client over its quota gets a throttle time and is paused for that time, on both paths."""

import json
import struct

import pytest
from structlog.testing import capture_logs

from sluicegate.config.quotas import Quota
from sluicegate.config.topics import TopicKeys
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.quotas.metering import QuotaDecision
from sluicegate.validation.from_keys import compile_policies
from tests.bounds.frames import good_batch, int32, short_string, sized_produce_request, sized_request
from tests.bounds.stand_in_responses import StandInResponses, topic_id_of
from tests.proxy.session.playbook import NOW, Outlet, Playbook
from tests.wire.batches import Rec, batch

_TOPIC = "orders"
_LANES = [False, True] if HAS_FAST_PATH else [False]
_ONE_A_SECOND = {"name": "slow", "client_id": "*", "requests_per_second": 1}


class QuotaPlay:
    """A session under quotas, whose broker responds at once."""

    def __init__(self, has_fast_path: bool, *quotas: dict[str, object]) -> None:
        bound = {"SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": "86400000"}
        declared = {"SLUICEGATE__LISTEN__USER_NAME_IS_PRINCIPAL": "[PLAIN]"}
        self.playbook = Playbook(has_fast_path, **bound, **declared, SLUICEGATE__QUOTAS=json.dumps(quotas))
        self._broker = StandInResponses({1: ("127.0.0.1", 9092)})
        self._seen = self._read = 0

    @property
    def is_waiting(self) -> bool:
        """Return whether the client is paused because of its quota."""
        return PauseReason.QUOTA in self.playbook.session.client.pause_reasons

    def let_time_pass(self, seconds: float) -> None:
        self.playbook.loop.seconds += seconds
        self.playbook.loop.time_passes(seconds)

    def send(self, data: bytes) -> list[bytes]:
        """Send bytes; return the client's responses, each without its size."""
        self.playbook.from_client(data)
        self.settle_all_requests()
        return self.client_responses()

    def settle_all_requests(self) -> None:
        """Let the broker respond to all requests, until there are no more."""
        for _ in range(20):
            self.playbook.loop.run_steps()
            sent, answers = self.playbook.broker.sent, b""
            while len(sent) - self._seen >= 4:
                size = struct.unpack_from(">i", sent, self._seen)[0]
                answers += self._broker.response(bytes(sent[self._seen + 4 : self._seen + 4 + size])) or b""
                self._seen += 4 + size
            self.playbook.from_broker(answers)

    def client_responses(self) -> list[bytes]:
        found, sent = [], self.playbook.client.sent
        while self._read < len(sent):
            size = struct.unpack_from(">i", sent, self._read)[0]
            found.append(bytes(sent[self._read + 4 : self._read + 4 + size]))
            self._read += 4 + size
        return found


def _good(version: int, number: int, acks: int = -1, size: int = 20, client_id: bytes = b"etl") -> bytes:
    topic = topic_id_of(_TOPIC) if version >= 13 else _TOPIC.encode()
    return sized_produce_request(
        version, {topic: [(0, batch([Rec(NOW, b"key", b"v" * size)]))]}, acks, number, client_id=client_id
    )


def _throttle_ms(answer: bytes, version: int) -> int:
    """Return the throttle time, read with the protocol's schema."""
    told: int = PRODUCE_RESPONSE.parse(answer[5 if version >= 9 else 4 :], version)["throttle_time_ms"]
    return told


@pytest.mark.parametrize("has_fast_path", _LANES)
@pytest.mark.parametrize("version", range(3, 14))
def test_a_client_over_its_quota_gets_a_throttle_time_and_is_paused(version: int, has_fast_path: bool) -> None:
    play = QuotaPlay(has_fast_path, _ONE_A_SECOND)
    (first,) = play.send(_good(version, 1))
    (second,) = play.send(_good(version, 2))

    assert (_throttle_ms(first, version), _throttle_ms(second, version)) == (0, 1000)
    assert play.is_waiting
    assert play.send(_good(version, 3)) == []

    play.let_time_pass(1.0)
    play.playbook.from_client(b"")
    play.settle_all_requests()

    (third,) = play.client_responses()
    assert _throttle_ms(third, version) == 1000
    counted = play.playbook.parts.observer.counted()
    assert (counted.throttled["slow"], counted.throttled_ms["slow"]) == (2, 2000)


def test_quotas_count_bytes_including_the_frame_size() -> None:
    frame = _good(9, 1, size=5000)
    play = QuotaPlay(HAS_FAST_PATH, {"name": "wide", "client_id": "etl", "bytes_per_second": 2 * len(frame)})

    told = [_throttle_ms(play.send(_good(9, number, size=5000))[0], 9) for number in (1, 2, 3)]

    assert told == pytest.approx([0, 0, 500], abs=2)


@pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")
def test_requests_forwarded_together_are_charged_together() -> None:
    play = QuotaPlay(True, _ONE_A_SECOND)
    play.send(_good(9, 1))

    answers = play.send(b"".join(_good(9, number) for number in (2, 3, 4, 5)))

    assert [_throttle_ms(answer, 9) for answer in answers] == [0, 0, 0, 4000]
    assert play.playbook.parts.ordinary is not None
    assert play.playbook.parts.ordinary.requests == 4, "the fast path still validates a client with a quota"


@pytest.mark.parametrize("has_fast_path", _LANES)
def test_only_produce_responses_get_a_throttle_time(has_fast_path: bool) -> None:
    fetch = sized_request(1, 11, b"\xff" * 4 + bytes(34), 7)
    free, bound = QuotaPlay(has_fast_path), QuotaPlay(has_fast_path, _ONE_A_SECOND)
    for play in (free, bound):
        play.send(_good(9, 1))

    told = [play.send(fetch + _good(9, 2, acks=0)) for play in (free, bound)]

    assert told[0] == told[1]
    assert (free.is_waiting, bound.is_waiting) == (False, True)


@pytest.mark.parametrize("has_fast_path", _LANES)
def test_rejection_responses_include_the_throttle_time(has_fast_path: bool) -> None:
    play = QuotaPlay(has_fast_path, _ONE_A_SECOND)
    bad = {_TOPIC.encode(): [(0, good_batch(NOW)), (1, batch([Rec(1)]))]}
    play.send(_good(9, 1))

    (answer,) = play.send(sized_produce_request(9, bad, -1, 2, client_id=b"etl"))

    assert _throttle_ms(answer, 9) == 1000
    assert b"Timestamp" in answer


def test_connections_of_a_client_id_share_its_quota() -> None:
    play = QuotaPlay(HAS_FAST_PATH, _ONE_A_SECOND)
    play.send(_good(9, 1, client_id=b"etl-1"))
    quotas = play.playbook.dependencies.requests.quotas

    other, again = play.playbook.another_session()[0], play.playbook.another_session()[0]
    for session, name in ((other, "etl-2"), (again, "etl-1")):
        session.identity.client_id = name
        assert session.metering.admit(session.identity.for_rules()) is QuotaDecision.PROCEED
        session.metering.take(100)

    assert quotas.has_quotas
    assert (PauseReason.QUOTA in other.client.pause_reasons, PauseReason.QUOTA in again.client.pause_reasons) == (
        False,
        True,
    )


def test_a_client_without_a_quota_is_not_metered() -> None:
    play = QuotaPlay(HAS_FAST_PATH, {**_ONE_A_SECOND, "client_id": "somebody"})

    answers = [play.send(_good(9, number)) for number in range(20)]

    assert not play.is_waiting
    assert all(_throttle_ms(answer, 9) == 0 for (answer,) in answers)


def test_connection_above_the_quota_limit_is_closed_until_another_closes() -> None:
    play = QuotaPlay(HAS_FAST_PATH, {"name": "few", "client_id": "*", "connections": 1})
    play.send(_good(9, 1))

    with capture_logs() as lines:
        broker = _another_sends(play, _good(9, 1))
        play.playbook.parts.log.flush()

    assert broker.has_ended_writing, "like the end of a session"
    assert not broker.sent
    (line,) = (line for line in lines if line["event"] == "connection rejected")
    assert line["reason"] == "etl has the 1 connections on which quota few allows it to produce"
    assert play.playbook.parts.observer.counted().connections_rejected["quotas[].connections"] == 1

    play.playbook.session.close_now()
    play.playbook.loop.run_steps()
    assert _another_sends(play, _good(9, 1)).sent == _good(9, 1)


@pytest.mark.parametrize("has_fast_path", _LANES)
@pytest.mark.parametrize("version", [9, 12, 13])
def test_a_topics_quota_counts_the_bytes_of_all_clients(version: int, has_fast_path: bool) -> None:
    play = QuotaPlay(has_fast_path, {"name": "narrow", "topic": "ord*", "requests_per_second": 1})

    (first,) = play.send(_good(version, 1, client_id=b"one"))
    (second,) = play.send(_good(version, 2, client_id=b"two"))

    assert (_throttle_ms(first, version), _throttle_ms(second, version)) == (0, 1000)
    assert play.is_waiting
    assert play.playbook.parts.observer.counted().throttled["narrow"] == 1


def test_a_topic_quota_ignores_other_topics() -> None:
    play = QuotaPlay(HAS_FAST_PATH, {"name": "narrow", "topic": "else", "requests_per_second": 1})

    answers = [play.send(_good(9, number)) for number in range(5)]

    assert all(_throttle_ms(answer, 9) == 0 for (answer,) in answers)
    ordinary = play.playbook.parts.ordinary
    assert ordinary is None or ordinary.requests == 4


def test_the_longer_throttle_time_of_two_quotas_is_returned() -> None:
    of_topic = {"name": "narrow", "topic": "*", "requests_per_second": 1}
    play = QuotaPlay(HAS_FAST_PATH, {**_ONE_A_SECOND, "requests_per_second": 2}, of_topic)

    told = [_throttle_ms(play.send(_good(9, number))[0], 9) for number in (1, 2)]

    assert told == [0, 1000]


def test_quotas_of_a_new_configuration_apply_at_once() -> None:
    play = QuotaPlay(HAS_FAST_PATH)
    play.send(_good(9, 1))
    quota = Quota(name="new", client_id="etl", requests_per_second=1)

    play.playbook.parts.rules.adopt(compile_policies(TopicKeys(), quotas=[quota]))
    told = [_throttle_ms(play.send(_good(9, number))[0], 9) for number in (2, 3)]
    play.playbook.parts.rules.adopt(compile_policies(TopicKeys()))
    play.let_time_pass(1.0)
    told += [_throttle_ms(play.send(_good(9, number))[0], 9) for number in (4, 5)]

    assert told == [0, 1000, 0, 0]


@pytest.mark.parametrize("has_fast_path", _LANES)
def test_a_login_after_the_first_request_applies_the_quota_of_its_principal(has_fast_path: bool) -> None:
    play = QuotaPlay(has_fast_path, {"name": "alice's", "principal": "User:alice", "requests_per_second": 1})
    play.send(_good(9, 1))
    play.send(_good(9, 2))
    assert not play.is_waiting

    play.send(sized_request(17, 1, short_string(b"PLAIN"), 3, b"etl"))
    play.send(sized_request(36, 1, int32(8) + b"\0alice\0p", 4, b"etl"))
    told = [_throttle_ms(play.send(_good(9, number))[0], 9) for number in (5, 6)]

    assert told == [0, 1000]


def _another_sends(play: QuotaPlay, data: bytes) -> Outlet:
    """Send from a separate connection; return its broker."""
    session, _ = play.playbook.another_session()
    view = session.client.get_buffer(-1)
    view[: len(data)] = data
    session.client.buffer_updated(len(data))
    broker = Outlet(session.broker)
    session.broker.connection_made(broker)
    play.playbook.loop.run_steps()
    return broker
