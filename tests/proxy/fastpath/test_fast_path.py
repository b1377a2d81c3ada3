"""Sessions with and without the fast path send the same bytes in the same order, for every split of the input."""

import random
import struct
from collections import Counter
from dataclasses import fields

import pytest

import sluicegate.proxy.scheduling.scheduler
from sluicegate.config.requests import Exempt
from sluicegate.config.topics import TopicKeys
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import FilePolicies
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import NamedRule, Side
from sluicegate.validation.rules.rule_set import RuleSet
from tests.bounds.frames import (
    compact_string,
    good_batch,
    request_header,
    sized_frame,
    sized_produce_request,
    sized_request,
)
from tests.bounds.stand_in_responses import StandInResponses, topic_id_of
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.batches import CODECS, Rec, batch

pytestmark = pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")

_BOUNDS = {"SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": "86400000"}
_TOPIC = b"orders"
_ENDLESS = 1000


@pytest.fixture(autouse=True)
def _with_time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    # The loop validates inline even on a busy machine, because validation in a thread changes the order of responses.
    monkeypatch.setattr(sluicegate.proxy.scheduling.scheduler, "_LOOP_REQUEST_SECONDS", 60.0)


class RespondingPlaybook:
    """A session with a broker that responds to each complete request, in pieces of a given size."""

    def __init__(self, has_fast_path: bool, **settings: str) -> None:
        self.playbook = Playbook(has_fast_path, **_BOUNDS, **settings)
        self._broker = StandInResponses({1: ("127.0.0.1", 9092)})
        self._seen = 0

    def run(self, stream: bytes, piece: int, answered: int) -> tuple[bytes, bytes]:
        """Return the bytes that the broker and the client have received. The first request arrives in one piece."""
        playbook = self.playbook
        first = 4 + struct.unpack_from(">i", stream)[0]
        playbook.from_client(stream[:first])
        self._response(answered)
        for at in range(first, len(stream), piece):
            playbook.from_client(stream[at : at + piece])
            self._response(answered)
        for _ in range(_ENDLESS):
            playbook.from_client(b"")
            if not self._response(answered):
                break
        return bytes(playbook.broker.sent), bytes(playbook.client.sent)

    def _response(self, piece: int) -> bool:
        self.playbook.loop.run_steps()
        client = self.playbook.session.client  # on a busy machine, the thread validates more requests
        self.playbook.loop.until(lambda: PauseReason.VALIDATING not in client.pause_reasons)
        sent, answers = self.playbook.broker.sent, b""
        begun = self._seen
        while len(sent) - self._seen >= 4:
            size = struct.unpack_from(">i", sent, self._seen)[0]
            if len(sent) - self._seen - 4 < size:
                break
            answers += self._broker.response(bytes(sent[self._seen + 4 : self._seen + 4 + size])) or b""
            self._seen += 4 + size
        for at in range(0, len(answers), piece):
            self.playbook.from_broker(answers[at : at + piece])
        self.playbook.loop.run_steps()
        return self._seen > begun


def _of_clients(sent: bytes) -> list[bytes]:
    """Return the client's requests at the broker. The number of the proxy's own depends on timing."""
    found = []
    while sent:
        end = 4 + struct.unpack_from(">i", sent)[0]
        if struct.unpack_from(">i", sent, 8)[0] != -1:
            found.append(sent[:end])
        sent = sent[end:]
    return found


def _good(version: int, number: int, codec: int = 0, acks: int = -1, size: int = 20) -> bytes:
    topic = topic_id_of(_TOPIC.decode()) if version >= 13 else _TOPIC
    records = batch([Rec(NOW - i, b"key", b"v" * size, [(b"h", b"x")] * (i % 2)) for i in range(3)], codec)
    return sized_produce_request(version, {topic: [(0, records)]}, acks, number)


def _bad(version: int, number: int, acks: int = -1) -> bytes:
    return sized_produce_request(version, {_TOPIC: [(0, good_batch(NOW)), (1, batch([Rec(1)]))]}, acks, number)


def _frames(chance: random.Random, count: int) -> list[bytes]:
    """Return a client's requests in order: mostly ordinary ones, mixed with all other kinds."""
    made = [sized_request(18, 3, compact_string(b"soft") + compact_string(b"1") + b"\0", 0)]
    for number in range(1, count):
        match chance.randrange(12):
            case 0:
                made.append(sized_request(3, 9, b"\1\1\0\0\0", number))
            case 1:
                made.append(sized_request(1, 11, b"\xff" * 4 + bytes(34), number))
            case 2:
                made.append(_bad(9, number))
            case 3:
                made.append(
                    sized_produce_request(9, {b"another": [(0, good_batch(NOW))]}, -1, number, client_id=b"else")
                )
            case 4:
                made.append(_good(chance.choice((3, 7, 9, 12, 13)), number, acks=0))
            case 5:
                made.append(_good(9, number, size=chance.choice((5_000, 40_000, 200_000))))
            case 6:
                made.append(sized_request(12, 4, bytes(chance.randrange(200)), number))
            case _:
                version = chance.choice((3, 8, 9, 11, 12, 13))
                made.append(_good(version, number, chance.choice(list(CODECS.values()) if version >= 7 else [0, 1, 3])))
    return made


@pytest.mark.parametrize("seed", range(12))
def test_fast_path_results_equal_slow_path_results(seed: int) -> None:
    chance = random.Random(seed)
    stream = b"".join(_frames(chance, 60))
    piece = (
        chance.choice((1, 7, 100, 1500, 30_000, 1 << 20)) if len(stream) < 300_000 else chance.choice((1500, 30_000))
    )
    with_it, without = RespondingPlaybook(True), RespondingPlaybook(False)

    fast = with_it.run(stream, piece, chance.choice((1, 9, 5000, 1 << 20)))
    slow = without.run(stream, 1 << 20, 1 << 20)

    assert _of_clients(fast[0]) == _of_clients(slow[0]), "the bytes for the broker"
    assert fast[1] == slow[1], "the bytes for the client"
    assert len(with_it.playbook.session.queue) == len(without.playbook.session.queue) == 0
    ordinary = with_it.playbook.parts.ordinary
    assert ordinary is not None and ordinary.requests > 5
    with_it.playbook.parts.observer.settle_traffic()
    with_fast_path, without_fast_path = (each.playbook.parts.observer.counted() for each in (with_it, without))
    assert counts_of_both_paths(with_fast_path) == counts_of_both_paths(without_fast_path)
    assert traffic_histories(with_it.playbook.parts.view) == traffic_histories(without.playbook.parts.view)
    assert without_fast_path.fast_requests == Counter()
    assert with_fast_path.fast_requests["Produce"] == ordinary.requests
    assert sum(with_fast_path.fallback.values()) == with_fast_path.slow_requests["Produce"]
    assert with_fast_path.fast_requests + with_fast_path.slow_requests == without_fast_path.slow_requests


def traffic_histories(view: LiveView) -> dict[str, object]:
    """Return the histories of topics and clients, by name."""
    view.tick(NOW + 60_000)
    return {
        f"{kind} {each['name']}": (all_of.history(each["name"]), each["rates"])
        for kind, all_of in (("topic", view.topics), ("client", view.clients))
        for each in all_of.state(0)
    }


def counts_of_both_paths(counters: Counters) -> dict[str, object]:
    """Return the counts of both paths together.

    Without `topic_batches`: a name that a response shows between the request and the count has a label only on the fast
    path. `traffic` compares the same counts.
    """
    of_lanes = {"fast_requests", "slow_requests", "fallback", "proxy_seconds", "upstream_seconds", "loop_delay"}
    of_lanes.add("topic_batches")
    return {each.name: getattr(counters, each.name) for each in fields(Counters) if each.name not in of_lanes}


def test_a_request_that_is_made_natively_has_the_defaults_of_one_that_is_made_in_python() -> None:
    made, native = InFlightRequest(0), InFlightRequest.__new__(InFlightRequest)
    names = [name for name in dir(made) if not name.startswith("_") and not callable(getattr(InFlightRequest, name))]

    assert "code_at" in names
    assert {name: getattr(native, name) for name in names} == {name: getattr(made, name) for name in names}


def test_consecutive_requests_leave_in_one_write() -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    play.playbook.broker.writes.clear()
    frames = [_good(9, number) for number in range(2, 12)]

    play.playbook.from_client(b"".join(frames))

    assert play.playbook.broker.writes == [sum(map(len, frames))]
    play.playbook.loop.run_steps()


def test_a_rejected_request_keeps_its_place_between_forwarded_ones() -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    before = len(play.playbook.client.sent)
    stream = _good(9, 2) + _bad(9, 3) + _good(9, 4) + _bad(9, 5)

    _, client = play.run(stream, 1 << 20, 1 << 20)

    answers, at = [], before
    while at < len(client):
        size, correlation_id = struct.unpack_from(">ii", client, at)
        answers.append((correlation_id, b"Timestamp" in client[at : at + 4 + size]))
        at += 4 + size
    assert answers == [(2, False), (3, True), (4, False), (5, True)]


def test_a_batch_is_validated_by_the_current_policy_and_time() -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1) + _good(9, 2), 1 << 20, 1 << 20)
    ordinary = play.playbook.parts.ordinary
    assert ordinary is not None and ordinary.requests == 1

    play.playbook.parts.rules.learn({_TOPIC.decode(): ClusterSettings(before_max_ms=1)})
    _, client = play.run(_good(9, 3), 1 << 20, 1 << 20)

    assert ordinary.requests == 1
    assert b"Timestamp" in client


@pytest.mark.parametrize("size", [20, 40_000])
def test_exemption_applies_to_open_connection_until_it_is_removed(size: int) -> None:
    """This also holds if another client's request teaches the topic again. Large requests are not completely in the
    buffer."""

    def send_numbers(*numbers: int) -> None:
        for number in numbers:
            play.run(_good(9, number, size=size), 40_000, 1 << 20)

    play = RespondingPlaybook(True)
    parts = play.playbook.parts
    assert parts.ordinary is not None
    send_numbers(1, 2)
    before = parts.ordinary.requests

    parts.rules.adopt(compile_policies(TopicKeys(), exempt=[Exempt(client_id="hostile")]))
    parts.ordinary.add_topic(_TOPIC, False, _TOPIC.decode(), TopicPolicy())
    send_numbers(3, 4, 5)

    assert before == 1
    assert parts.observer.counted().exempt_partitions == 3
    assert parts.ordinary.requests == before

    parts.rules.adopt(compile_policies(TopicKeys()))
    send_numbers(6, 7, 8)

    assert parts.observer.counted().exempt_partitions == 3
    assert parts.ordinary.requests == before + 2


def test_rules_accept_valid_and_reject_invalid_records() -> None:
    play = RespondingPlaybook(True)
    rule = NamedRule("body", JsonSyntax(Side.VALUE))
    play.playbook.parts.rules.adopt(FilePolicies(TopicPolicy(rules=RuleSet([rule])), ()))
    ordinary = play.playbook.parts.ordinary
    assert ordinary is not None

    play.run(_json(1, b"{}") + _json(2, b'{"a": 1}'), 1 << 20, 1 << 20)
    assert ordinary.requests == 1  # the slow path validated the first request and learned the topic
    _, client = play.run(_json(3, b'{"a": 1,}') + _json(4, b"[]"), 1 << 20, 1 << 20)

    assert ordinary.requests == 2
    assert b"rule body: the value is not JSON: a key in double quotes was expected (at byte 8)" in client


def _json(number: int, value: bytes) -> bytes:
    return sized_produce_request(9, {_TOPIC: [(0, batch([Rec(NOW, b"key", value)], CODECS["lz4"]))]}, -1, number)


def test_the_fast_path_accepts_nothing_before_a_required_login() -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    play.playbook.parts.login.is_wanted = True

    play.playbook.from_client(_good(9, 2))

    assert not play.playbook.client.is_read, "the session reads nothing further"


@pytest.mark.parametrize("body", [b"", b"\0" * 3, sized_frame(b"")])
def test_garbage_after_ordinary_requests_leaves_the_fast_path(body: bytes) -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    good = _good(9, 2)

    broker, _ = play.run(good + sized_frame(request_header(0, 9) + body), 1 << 20, 1 << 20)

    assert broker.endswith(good)
    assert not play.playbook.client.is_read, "the session reads nothing further"


# -- partial requests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [300, 60_000, 120_000])
@pytest.mark.parametrize("acks", [-1, 0])
def test_an_ordinary_request_in_pieces_never_leaves_the_fast_path(size: int, acks: int) -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    stream = b"".join(_good(9, number, acks=acks, size=size // 3) for number in range(2, 6))
    before = len(play.playbook.broker.sent)

    broker, _ = play.run(b"".join((_good(9, 6), stream)), 1000, 1 << 20)

    assert broker[before:].endswith(stream)
    ordinary = play.playbook.parts.ordinary
    assert ordinary is not None and ordinary.requests == 5
    assert play.playbook.parts.observer.counted().slow_requests["Produce"] == 1, (
        "only the first request, because its topic was unknown"
    )
    assert _held(play) == 0


def test_a_bad_request_in_pieces_is_rejected_like_a_whole_one() -> None:
    answers = []
    for piece in (1 << 20, 50):
        play = RespondingPlaybook(True)
        play.run(_good(9, 1), 1 << 20, 1 << 20)
        before = len(play.playbook.client.sent)
        _, client = play.run(_good(9, 2) + _bad(9, 3) + _good(9, 4), piece, 1 << 20)
        answers.append(client[before:])
        assert _held(play) == 0

    assert answers[0] == answers[1]
    assert b"Timestamp" in answers[0]


def test_a_partial_request_uses_memory_until_its_client_disconnects() -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    frame = _good(9, 2, size=60_000)

    play.playbook.from_client(frame[:200])

    assert _held(play) == len(frame)
    play.playbook.session.client.connection_lost(None)
    assert _held(play) == 0


def test_slow_path_buffers_requests_when_fast_path_memory_is_exhausted() -> None:
    play = RespondingPlaybook(
        True, SLUICEGATE__LIMITS__MAX_FRAME_BYTES="200000", SLUICEGATE__LIMITS__MAX_BUFFERED_BYTES="640000"
    )
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    frame = _good(9, 2, size=20_000)  # a sixteenth of the total budget is 40,000
    ordinary = play.playbook.parts.ordinary
    assert ordinary is not None

    play.playbook.from_client(frame[:200])

    assert _held(play) == 0
    play.playbook.from_client(frame[200:])
    play.playbook.loop.run_steps()
    assert play.playbook.broker.sent.endswith(frame)
    assert ordinary.requests == 1, "still validated natively"


@pytest.mark.parametrize("piece", [1 << 20, 1000])
def test_oversized_frames_are_not_forwarded(piece: int) -> None:
    play = RespondingPlaybook(True, SLUICEGATE__LIMITS__MAX_FRAME_BYTES="10000")
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    before = bytes(play.playbook.broker.sent)

    play.playbook.from_client(_good(9, 2, size=20_000)[:piece])
    play.playbook.loop.run_steps()

    assert bytes(play.playbook.broker.sent) == before
    assert play.playbook.parts.counters.limits_reached == {"limits.max_frame_bytes": 1}


@pytest.mark.parametrize(("size", "after"), [(20_000, "128 KiB"), (60_000, "512 KiB"), (150_000, "512 KiB")])
def test_a_client_with_larger_valid_requests_gets_a_larger_buffer(size: int, after: str) -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    assert _read_at_once(play) == "128 KiB"

    play.run(_large(2, size) + _large(3, size), 1 << 20, 1 << 20)

    assert _read_at_once(play) == after
    assert play.playbook.broker.sent.endswith(_large(2, size) + _large(3, size))


@pytest.mark.parametrize(
    ("is_good", "size"), [(False, 60_000), (True, 200_000)], ids=["for a bad one", "for a request that does not fit"]
)
def test_a_bad_or_oversized_request_enlarges_no_buffer(is_good: bool, size: int) -> None:
    play = RespondingPlaybook(True)
    play.run(_good(9, 1), 1 << 20, 1 << 20)
    frame = _large(2, size)

    play.playbook.from_client(frame if is_good else frame[:-20] + bytes(20))
    play.playbook.loop.run_steps()

    assert _read_at_once(play) == "128 KiB"


def _large(number: int, size: int) -> bytes:
    return sized_produce_request(
        9, {_TOPIC: [(partition, good_batch(NOW, size)) for partition in range(3)]}, -1, number
    )


def _read_at_once(play: RespondingPlaybook) -> str:
    return f"{len(play.playbook.session.client.get_buffer(-1)) >> 10} KiB"


def _held(play: RespondingPlaybook) -> int:
    room = play.playbook.parts.dependencies.fast_path_buffer
    assert room is not None
    return room.held_bytes
