"""A new connection does not evade a quota: its first request waits, unread, until its client has no debt."""

import gc
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from structlog.testing import capture_logs

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.quotas import shares as shares_of_quotas
from sluicegate.proxy.session.quotas.metering import QuotaDecision
from sluicegate.proxy.session.quotas.shares import Quotas
from sluicegate.validation.rules.rule import Client
from tests.bounds.frames import sized_produce_request
from tests.proxy.session.playbook import NOW, Outlet, Playbook, deliver_from_peer, objects_of_sessions
from tests.wire.batches import Rec, batch

_SLOW = {"name": "slow", "client_id": "*", "bytes_per_second": 1000}
_NARROW = {"name": "narrow", "topic": "*", "bytes_per_second": 1000}
_FIRST_READ_BYTES = 4096
# The number of connections in a flood, and the bytes that may be kept for each connection, which are fewer than any
# object uses.
_FLOOD = 30
_KEPT_BYTES = 40


Change = Callable[[SessionDependencies], SessionDependencies]


def _unchanged(dependencies: SessionDependencies) -> SessionDependencies:
    return dependencies


def replace_quotas(dependencies: SessionDependencies, **limits: int) -> SessionDependencies:
    """Return the dependencies with other limits of waiting requests."""
    requests = dependencies.requests
    quotas = Quotas(requests.produce.rules, requests.produce.clock.now, dependencies.loop.call_later, **limits)
    return replace(dependencies, requests=replace(requests, quotas=quotas))


class ProxyWithQuotas:
    """One proxy under quotas, and its sessions."""

    def __init__(self, *quotas: dict[str, object], change: Change = _unchanged, **environment: str) -> None:
        bound = {"SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": "86400000"}
        self.play = Playbook(change=change, **bound, SLUICEGATE__QUOTAS=json.dumps(quotas), **environment)

    def let_time_pass(self, seconds: float) -> None:
        """Let time pass in steps that are shorter than any turn."""
        loop = self.play.loop
        for _ in range(round(seconds * 20)):
            loop.seconds += 0.05
            for timer in loop.timers:
                timer.seconds -= 0.05
            loop.time_passes(1e-9)

    def rejected_connections(self) -> int:
        return self.play.parts.observer.counted().connections_rejected["quotas[].connections"]


class QuotaSession:
    """One connection of a client; unread bytes stay with the client."""

    def __init__(self, proxy: ProxyWithQuotas) -> None:
        self._loop = proxy.play.loop
        self.session, self.client = proxy.play.another_session()
        self.broker = Outlet(self.session.broker)
        self.unread = b""

    @property
    def connection(self) -> Connection:
        return self.session.client

    @property
    def is_waiting(self) -> bool:
        return PauseReason.QUOTA_QUEUE in self.connection.pause_reasons

    def receive(self, data: bytes) -> None:
        self.unread += data
        self.let_clients_send()
        if not self.session.broker.is_open:
            self.session.broker.connection_made(self.broker)
        self.let_clients_send()

    def let_clients_send(self) -> None:
        """Let the proxy read."""
        for _ in range(3):
            self.unread = deliver_from_peer(self.connection, self.client, self.unread)
            self._loop.run_steps()


def _request(size: int, acks: int = -1, topic: bytes = b"orders", client_id: bytes = b"etl") -> bytes:
    return sized_produce_request(
        9, {topic: [(0, batch([Rec(NOW, b"key", b"v" * size)]))]}, acks, 1, client_id=client_id
    )


@pytest.mark.parametrize("acks", [-1, 0])
@pytest.mark.parametrize("size", [100, 5_000, 200_000])
def test_first_request_of_a_new_connection_waits_until_quota_debt_is_paid(size: int, acks: int) -> None:
    proxy = ProxyWithQuotas(_SLOW)
    first, second = QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(3000))
    second.receive(_request(size, acks))

    assert second.is_waiting
    assert not second.broker.sent
    assert second.connection.bytes_in <= _FIRST_READ_BYTES, "no more of it is kept"

    proxy.let_time_pass(1.0)
    second.let_clients_send()
    assert not second.broker.sent

    proxy.let_time_pass(1.5)
    second.let_clients_send()
    assert second.broker.sent == _request(size, acks)


def test_malformed_request_after_a_quota_wait_is_reported_as_a_client_error() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    first, second = QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(3000))
    cut_short = _request(100)[4:-20]
    second.receive(len(cut_short).to_bytes(4, "big") + cut_short)
    assert second.is_waiting

    with capture_logs() as log:
        proxy.let_time_pass(3.0)
        second.let_clients_send()

    assert [(line["log_level"], line["client_id"]) for line in log] == [("warning", "etl")], log
    assert not second.broker.sent
    assert proxy.play.parts.observer.counted().protocol_errors == 1


def test_single_requests_on_many_connections_are_limited_to_the_quota_rate() -> None:
    """In a hundred seconds only as many requests pass as the quota allows, which is fewer than arrive."""
    proxy = ProxyWithQuotas(_SLOW)
    sessions = [QuotaSession(proxy) for _ in range(60)]
    for session in sessions:
        session.receive(_request(5000, acks=0))

    for _ in range(100 * 20):
        proxy.let_time_pass(0.05)
        for session in sessions:
            session.let_clients_send()

    sent = sum(len(session.broker.sent) for session in sessions)
    assert sent == pytest.approx(100 * 1000, rel=0.1)
    assert sorted(map(bool, (session.broker.sent for session in sessions)), reverse=True) == [
        bool(session.broker.sent) for session in sessions
    ], "in the order of arrival"


def test_new_session_gets_its_turn_among_busy_ones_within_the_quota_rate() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    busy = [QuotaSession(proxy) for _ in range(5)]
    new, since = QuotaSession(proxy), 0.0
    for tick in range(200 * 20):
        if tick == 20 * 20:
            new.receive(_request(100))
        for session in busy:
            if not session.connection.is_paused and not session.unread:
                session.receive(_request(1500))
        proxy.let_time_pass(0.05)
        for session in (*busy, new):
            session.let_clients_send()
        if new.broker.sent and not since:
            since = tick / 20

    assert 20 <= since < 40
    sent = [len(session.broker.sent) for session in busy]
    assert sum(sent) == pytest.approx(200 * 1000, rel=0.1)
    assert min(sent) > 0.8 * max(sent)


def test_idle_connections_in_the_quota_queue_delay_no_other() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    idle, new = [QuotaSession(proxy) for _ in range(100)], QuotaSession(proxy)
    for session in idle:
        session.receive(_request(1))
        proxy.let_time_pass(0.1)
    for session in idle:
        session.receive(_request(20))
    proxy.let_time_pass(5.0)
    new.receive(_request(1))

    for _ in range(400):
        proxy.let_time_pass(0.05)
        new.let_clients_send()
        if new.broker.sent:
            break

    owed = sum(len(session.broker.sent) for session in idle) / 1000
    assert proxy.play.loop.seconds < owed + 2


def test_session_that_sends_nothing_in_its_quota_turn_delays_no_other() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    first, stalls, third = QuotaSession(proxy), QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(2000))
    stalls.receive(_request(50_000)[:6000])
    third.receive(_request(100))

    proxy.let_time_pass(1.5)
    third.let_clients_send()

    assert third.broker.sent == _request(100)


def test_disconnected_client_is_removed_from_the_quota_queue() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    first, leaves, third = QuotaSession(proxy), QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(3000))
    leaves.receive(_request(100))
    third.receive(_request(100))

    leaves.client.aborted = True
    leaves.connection.connection_lost(ConnectionResetError())
    proxy.let_time_pass(2.5)
    third.let_clients_send()

    assert third.broker.sent == _request(100)
    assert not leaves.broker.sent, "as a broker drops unread requests"


def test_quota_turns_of_disconnected_clients_go_to_the_next_client_at_once() -> None:
    """A reset is only noticed when the connection is read again, in its turn."""
    proxy = ProxyWithQuotas(_SLOW)
    QuotaSession(proxy).receive(_request(3000))
    waiting = [QuotaSession(proxy) for _ in range(20)]
    for session in waiting:
        session.receive(_request(50_000)[:6000])
    *left, last = waiting
    while left[0].is_waiting:
        proxy.let_time_pass(0.05)

    for session in left:
        assert not session.is_waiting
        session.connection.connection_lost(ConnectionResetError())
        proxy.play.loop.time_passes(1e-9)

    assert not last.is_waiting


def test_the_request_of_a_half_closed_client_is_forwarded_in_its_turn() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    first, ends = QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(3000))
    ends.receive(_request(100, acks=0))

    ends.connection.eof_received()
    proxy.let_time_pass(3.0)

    assert ends.broker.sent == _request(100, acks=0)
    assert ends.broker.has_ended_writing


def test_connections_beyond_the_quota_queue_limit_are_rejected() -> None:
    proxy = ProxyWithQuotas(_SLOW, change=partial(replace_quotas, most_waiting=5))
    sessions = [QuotaSession(proxy) for _ in range(8)]
    for session in sessions:
        session.receive(_request(3000))

    assert [session.is_waiting for session in sessions] == [False] + [True] * 5 + [False] * 2
    assert proxy.rejected_connections() == 2
    other = QuotaSession(proxy)
    other.receive(_request(100, client_id=b"other"))
    assert other.broker.sent == _request(100, client_id=b"other")


@pytest.mark.long
@pytest.mark.parametrize("ending", ["reset", "end of stream"])
@pytest.mark.parametrize("waits", [True, False], ids=["in the line", "after its turn"])
@pytest.mark.parametrize("quota", [_SLOW, _NARROW], ids=["client", "topic"])
def test_connection_flood_under_a_quota_retains_no_memory(quota: dict[str, object], waits: bool, ending: str) -> None:
    """Some connections wait in the line, and some are rejected because it is full."""
    proxy = ProxyWithQuotas(quota, change=partial(replace_quotas, most_waiting=20))
    tracemalloc.start()
    gc.disable()
    try:
        _flood(proxy, waits, ending)  # the first sessions create a share and log lines
        rejected = proxy.rejected_connections()
        gc.collect()
        before, bytes_before = objects_of_sessions(), tracemalloc.get_traced_memory()[0]
        _flood(proxy, waits, ending)
        left = objects_of_sessions() - before
        gc.collect()  # also empties the interpreter's free lists
        kept_bytes = tracemalloc.get_traced_memory()[0] - bytes_before
    finally:
        tracemalloc.stop()
        gc.enable()

    shares = proxy.play.dependencies.requests.quotas
    assert proxy.rejected_connections() - rejected >= 5
    assert not left
    assert kept_bytes < _FLOOD * _KEPT_BYTES
    assert shares.held_bytes == 0
    (share,) = (*shares._clients._known.values(), *shares._topics._known.values())
    assert share.connections == share.requests_waiting == len(share.line) == 0


def _flood(proxy: ProxyWithQuotas, waits: bool, ending: str) -> None:
    """Open connections that send one request each, and end in the line or after their turn."""
    sessions = [QuotaSession(proxy) for _ in range(_FLOOD)]
    for session in sessions:
        session.receive(_request(500))
    assert any(session.is_waiting for session in sessions)
    if not waits:
        proxy.let_time_pass(20.0)
    for session in sessions:
        if ending == "reset":
            session.client.aborted = True
            session.connection.connection_lost(ConnectionResetError())
        else:
            session.connection.eof_received()
    if ending != "reset":
        proxy.let_time_pass(20.0)  # complete requests before the end of the stream are forwarded in their turn
    for session in sessions:
        session.broker.abort()
        session.client.abort()
    proxy.let_time_pass(1.0)


def test_a_quota_wait_is_not_subject_to_request_deadlines() -> None:
    proxy = ProxyWithQuotas(_SLOW)
    first, second, third = QuotaSession(proxy), QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(200_000))
    second.receive(_request(200_000))
    third.receive(_request(100))

    for now in range(0, 180, 10):
        for session in (second, third):
            session.session.check_deadlines(float(now))

    assert second.is_waiting
    assert third.is_waiting
    assert not second.client.is_closing()


def _without_client_id(size: int) -> bytes:
    sent = bytearray(_request(size, client_id=b""))
    sent[12:14] = b"\xff\xff"  # the length of the client id, after the size and the first eight bytes
    return bytes(sent)


@pytest.mark.parametrize("second", [_without_client_id(100), _request(100, client_id=b"")])
def test_clients_without_a_client_id_share_one_quota(second: bytes) -> None:
    """Kafka treats a missing client id as the empty one."""
    proxy = ProxyWithQuotas(_SLOW)
    one, another = QuotaSession(proxy), QuotaSession(proxy)
    one.receive(_without_client_id(3000))
    another.receive(second)

    assert one.broker.sent == _without_client_id(3000)
    assert another.is_waiting


@pytest.mark.parametrize("acks", [-1, 0])
def test_a_topic_quota_applies_to_new_connections(acks: int) -> None:
    proxy = ProxyWithQuotas(_NARROW)
    first, second, elsewhere = QuotaSession(proxy), QuotaSession(proxy), QuotaSession(proxy)
    first.receive(_request(3000))
    second.receive(_request(100, acks))
    elsewhere.receive(_request(100, topic=b"else"))

    assert second.is_waiting
    assert not second.broker.sent
    assert elsewhere.broker.sent

    proxy.let_time_pass(3.0)
    assert second.broker.sent == _request(100, acks)


def test_requests_waiting_for_topic_quotas_use_bounded_memory() -> None:
    proxy = ProxyWithQuotas(_NARROW, change=partial(replace_quotas, most_held_bytes=10_000))
    sessions = [QuotaSession(proxy) for _ in range(6)]
    for session in sessions:
        session.receive(_request(3000))

    assert [session.is_waiting for session in sessions] == [False, True, True, True, False, False]
    assert proxy.rejected_connections() == 2
    sessions[1].session.close_now()
    another = QuotaSession(proxy)
    another.receive(_request(3000))
    assert another.is_waiting


def test_flood_of_client_ids_does_not_evict_quotas_in_use() -> None:
    few = {"name": "few", "client_id": "*", "connections": 2, "bytes_per_second": 1000}
    proxy = ProxyWithQuotas(few, {"name": "topics", "topic": "*", "requests_per_second": 5})
    there = [QuotaSession(proxy) for _ in range(2)]
    there[0].receive(_request(3000, client_id=b"etl"))
    there[1].receive(_request(100, client_id=b"etl"))
    shares = proxy.play.dependencies.requests.quotas
    quota = proxy.play.parts.rules.rulebook.in_file.quotas[1]
    for number in range(12_000):
        shares.share_of_topic(quota, f"topic-{number}")
        assert proxy.play.session.metering.admit(Client("192.0.2.9:1", f"client-{number}")) is QuotaDecision.PROCEED

    another = QuotaSession(proxy)
    another.receive(_request(100, client_id=b"etl"))

    assert not another.broker.sent
    assert proxy.rejected_connections() == 1
    assert len(shares._clients._known) <= shares_of_quotas._MOST_REMEMBERED
    assert len(shares._topics._known) <= shares_of_quotas._MOST_REMEMBERED
