"""Tests how connections are accepted: unfinished TLS handshakes, PROXY headers, allowed addresses, rates, a lack of
descriptors."""

import asyncio
import os
import resource
import socket
import ssl
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs

from sluicegate.config.listen import Listen
from sluicegate.config.loading import read_section
from sluicegate.config.tls import ListenTls, UpstreamTls
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.accept_filter import (
    NEW_CONNECTIONS,
    NEW_CONNECTIONS_PER_ADDRESS,
    AcceptFilter,
    AddressRate,
    ConnectionRate,
    parse_networks,
)
from sluicegate.proxy.network.accepting import ClientAcceptor, NewConnection
from sluicegate.proxy.network.listeners import bind
from sluicegate.proxy.network.proxy_protocol import ProxyProtocol, proxy_protocol_of
from sluicegate.proxy.network.tls.contexts import RequestedNames, context_for_brokers, context_for_clients
from sluicegate.proxy.network.tls.handshake import HANDSHAKE_SECONDS, MAX_HANDSHAKES, PendingHandshakes
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from tests.broker.certificates import Authority

# From the specification: signature, version 2 and command, TCP over IPv4, and length, followed by both addresses and
# both ports.
SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")
FROM_192_0_2_7 = SIGNATURE + bytes.fromhex("21 11 000c c0000207 7f000001 dc04 01bb")
OF_ITS_OWN = SIGNATURE + bytes.fromhex("20 00 0000")


class GreetingServer(asyncio.Protocol):
    """Greets each accepted client, with the client's address if it is known."""

    def __init__(self, client: str | None) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(b"hello" if self._client is None else f"hello {self._client}".encode())
        transport.close()


class TlsListener:
    """A TLS listener and its clients."""

    def __init__(
        self,
        authority: Authority,
        new_protocol: Callable[[str | None], asyncio.BaseProtocol] = GreetingServer,
        proxied: ProxyProtocol | None = None,
        accept_filter: AcceptFilter | None = None,
        rate: ConnectionRate | None = None,
        most: int = 1000,
        seconds: float = 30.0,
    ) -> None:
        """At most `most` handshakes at once, each limited to `seconds`."""
        self.reached: Counter[str] = Counter()
        self.cut_off: Counter[str] = Counter()
        own = authority.sign("server", "127.0.0.1")
        self.handshakes = PendingHandshakes(most, seconds, self.reached, self.cut_off)
        self.log = SessionLog()
        self.client_tls = context_for_brokers(UpstreamTls(ca_file=str(authority.file))).current()
        listening = bind(HostPort("127.0.0.1", 0))
        self.address = listening.getsockname()
        context = context_for_clients(ListenTls(**own.files), RequestedNames())
        self.acceptor = ClientAcceptor(
            listening,
            "bootstrap",
            context,
            proxied,
            accept_filter,
            cast(NewConnection, new_protocol),
            self.log,
            self.handshakes,
            rate,
            None,
        )

    async def receive_greeting(self, header: bytes = b"") -> bytes:
        """Return the greeting that a client receives; `header` is sent before its handshake, one byte at a time."""
        loop = asyncio.get_running_loop()
        with socket.socket() as plain:
            plain.setblocking(False)
            await loop.sock_connect(plain, self.address)
            for byte in header:
                await loop.sock_sendall(plain, bytes([byte]))
            reader, writer = await asyncio.open_connection(
                sock=plain.dup(), ssl=self.client_tls, server_hostname="127.0.0.1"
            )
        try:
            return await reader.read()
        finally:
            writer.close()

    async def connect_silently(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address)

    def lines(self) -> list[str]:
        with capture_logs() as lines:
            self.log.flush()
        return [str(line.get("reason")) for line in lines]


@pytest.fixture
async def tls_listener(tmp_path: Path) -> AsyncIterator[TlsListener]:
    opened = TlsListener(Authority(tmp_path))
    yield opened
    opened.acceptor.close()


async def wait_until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.01)


async def test_unfinished_tls_handshakes_are_closed_for_new_ones(tmp_path: Path) -> None:
    tls_listener = TlsListener(Authority(tmp_path), most=3)
    with capture_logs() as lines:
        silent = [await tls_listener.connect_silently() for _ in range(3)]
        await wait_until(lambda: len(tls_listener.handshakes) == 3)
        assert tls_listener.reached == {}

        assert await asyncio.wait_for(tls_listener.receive_greeting(), 10) == b"hello"

        first, _ = silent[0]
        with suppress(ConnectionError):
            assert await asyncio.wait_for(first.read(), 5) == b""
        tls_listener.log.flush()
    tls_listener.acceptor.close()
    assert any(
        "cancelled in favour of a new handshake" in line["reason"] and MAX_HANDSHAKES in line["reason"]
        for line in lines
    )
    assert tls_listener.reached[MAX_HANDSHAKES] >= 1
    for _, writer in silent:
        writer.close()


async def test_many_clients_connect_with_few_handshake_slots(tmp_path: Path) -> None:
    tls_listener = TlsListener(Authority(tmp_path), most=2)

    assert (
        await asyncio.wait_for(asyncio.gather(*(tls_listener.receive_greeting() for _ in range(40))), 30)
        == [b"hello"] * 40
    )

    tls_listener.acceptor.close()


async def test_a_tls_handshake_beyond_its_timeout_is_closed_logged_and_counted(tmp_path: Path) -> None:
    tls_listener = TlsListener(Authority(tmp_path), seconds=0.5)
    with capture_logs() as lines:
        assert await asyncio.wait_for(tls_listener.receive_greeting(), 10) == b"hello"
        reader, writer = await tls_listener.connect_silently()
        writer.write(b"\x16\x03\x01\x02\x00\x01")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        await wait_until(lambda: len(tls_listener.handshakes) == 0)
        tls_listener.log.flush()
        writer.close()
    tls_listener.acceptor.close()

    assert [line["reason"] for line in lines] == [f"not complete within 0.5 s ({HANDSHAKE_SECONDS})"]
    assert tls_listener.cut_off == {HANDSHAKE_SECONDS: 1}


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(70_000), b"\0" * 9])
async def test_garbage_in_place_of_a_tls_handshake_is_closed_and_logged(
    garbage: bytes, tls_listener: TlsListener
) -> None:
    with capture_logs() as lines:
        reader, writer = await tls_listener.connect_silently()
        writer.write(garbage)
        writer.write_eof()
        with suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 5)
        await wait_until(lambda: len(tls_listener.handshakes) == 0)
        tls_listener.log.flush()
        writer.close()

    assert [line["event"] for line in lines] == ["client TLS handshake failed"]


@pytest.mark.parametrize("linger_seconds", [None, 0])
async def test_a_health_check_that_sends_nothing_is_not_logged(
    linger_seconds: int | None, tls_listener: TlsListener
) -> None:
    """Load balancers connect and close, some with a reset (SO_LINGER 0)."""
    with capture_logs() as lines:
        probe = socket.create_connection(tls_listener.address)
        if linger_seconds is not None:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, linger_seconds))
        await wait_until(lambda: len(tls_listener.handshakes) == 1)
        probe.close()
        await wait_until(lambda: len(tls_listener.handshakes) == 0)
        assert await asyncio.wait_for(tls_listener.receive_greeting(), 10) == b"hello"
        tls_listener.log.flush()

    assert lines == []


async def test_unexpected_handshake_errors_are_logged(tmp_path: Path) -> None:
    def raise_error(_client: str | None) -> asyncio.BaseProtocol:
        raise RuntimeError("no session for you")

    tls_listener = TlsListener(Authority(tmp_path), raise_error)
    with capture_logs() as lines:
        with suppress(ConnectionError, ssl.SSLError):
            await asyncio.wait_for(tls_listener.receive_greeting(), 5)
        await wait_until(lambda: len(tls_listener.handshakes) == 0)
        tls_listener.log.flush()
    tls_listener.acceptor.close()

    assert [line["reason"] for line in lines] == ["no session for you"]


async def test_clients_are_closed_without_free_descriptors_and_later_ones_are_served(tls_listener: TlsListener) -> None:
    """Clients that cannot be accepted must not wait in the system's queue."""
    connected = [socket.create_connection(tls_listener.address) for _ in range(3)]
    for one in connected:
        one.setblocking(False)
    await wait_until(lambda: len(tls_listener.handshakes) == 3)
    late = socket.socket()
    late.setblocking(False)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    loop = asyncio.get_running_loop()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free_descriptor(), hard))
        with capture_logs() as lines:
            await loop.sock_connect(late, tls_listener.address)
            assert await asyncio.wait_for(loop.sock_recv(late, 1), 5) == b""
            tls_listener.log.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [line["event"] for line in lines] == ["accepting connections failed"]

    assert await asyncio.wait_for(tls_listener.receive_greeting(), 10) == b"hello"

    for one in (*connected, late):
        one.close()


def lowest_free_descriptor() -> int:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


# -- PROXY headers ---------------------------------------------------------------------------------------------------


def proxy_protocol_of_section(how: str, *trusted: str) -> ProxyProtocol | None:
    return proxy_protocol_of(
        read_section(Listen, {"bootstrap": "127.0.0.1:9", "proxy_protocol": how, "proxy_protocol_from": list(trusted)})
    )


@pytest.mark.parametrize("how", ["required", "optional"])
async def test_a_trusted_proxy_header_before_tls_gives_the_client_address(how: str, tmp_path: Path) -> None:
    tls_listener = TlsListener(Authority(tmp_path), proxied=proxy_protocol_of_section(how, "127.0.0.0/8"))
    try:
        assert await asyncio.wait_for(tls_listener.receive_greeting(FROM_192_0_2_7), 10) == b"hello 192.0.2.7:56324"
        assert await asyncio.wait_for(tls_listener.receive_greeting(OF_ITS_OWN), 10) == b"hello"
    finally:
        tls_listener.acceptor.close()


async def test_an_optional_proxy_header_may_be_missing(tmp_path: Path) -> None:
    tls_listener = TlsListener(Authority(tmp_path), proxied=proxy_protocol_of_section("optional", "127.0.0.0/8"))
    try:
        assert await asyncio.wait_for(tls_listener.receive_greeting(), 10) == b"hello"
    finally:
        tls_listener.acceptor.close()


@pytest.mark.parametrize(
    ("how", "trusted", "begins_with", "reason"),
    [
        ("required", "127.0.0.1", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcde", "no PROXY protocol header"),
        ("required", "127.0.0.1", b"PROXY TCP4 192.0.2.7 127.0.0.1 56324 443\r\n", "of version 1"),
        ("required", "10.0.0.0/8", FROM_192_0_2_7, "not an address of listen.proxy_protocol_from"),
        ("optional", "10.0.0.0/8", FROM_192_0_2_7, ""),  # untrusted address: it is an invalid TLS handshake
    ],
)
async def test_a_missing_or_forbidden_proxy_header_closes_the_connection_with_a_log_line(
    how: str, trusted: str, begins_with: bytes, reason: str, tmp_path: Path
) -> None:
    tls_listener = TlsListener(Authority(tmp_path), proxied=proxy_protocol_of_section(how, trusted))
    try:
        with capture_logs() as lines:
            reader, writer = await tls_listener.connect_silently()
            writer.write(begins_with)
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
            await wait_until(lambda: len(tls_listener.handshakes) == 0)
            tls_listener.log.flush()
            writer.close()
    finally:
        tls_listener.acceptor.close()

    assert len(lines) == 1
    assert reason in lines[0]["reason"]


async def test_an_endless_proxy_header_times_out(tmp_path: Path) -> None:
    tls_listener = TlsListener(
        Authority(tmp_path), proxied=proxy_protocol_of_section("optional", "127.0.0.1"), seconds=0.2
    )
    try:
        with capture_logs() as lines:
            reader, writer = await tls_listener.connect_silently()
            writer.write(FROM_192_0_2_7[:5])
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
            await wait_until(lambda: len(tls_listener.handshakes) == 0)
            tls_listener.log.flush()
            writer.close()
    finally:
        tls_listener.acceptor.close()

    assert [line["reason"] for line in lines] == [f"no PROXY protocol header within 0.2 s ({HANDSHAKE_SECONDS})"]
    assert tls_listener.cut_off == {HANDSHAKE_SECONDS: 1}


async def test_a_connection_without_bytes_is_not_logged(tmp_path: Path) -> None:
    tls_listener = TlsListener(Authority(tmp_path), proxied=proxy_protocol_of_section("required", "127.0.0.1"))
    try:
        with capture_logs() as lines:
            _reader, writer = await tls_listener.connect_silently()
            writer.close()
            await wait_until(lambda: len(tls_listener.handshakes) == 0)
            tls_listener.log.flush()
    finally:
        tls_listener.acceptor.close()

    assert lines == []


# -- allowed addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "header", "comes_in"),
    [
        ("127.0.0.0/8", b"", True),
        ("192.0.2.0/24", b"", False),
        ("192.0.2.0/24", FROM_192_0_2_7, True),
        ("127.0.0.0/8", FROM_192_0_2_7, False),  # the load balancer's own address is not the client's
        ("2001:db8::/32", b"", False),
    ],
)
async def test_a_forbidden_address_is_closed_before_the_handshake(
    allowed: str, header: bytes, comes_in: bool, tmp_path: Path
) -> None:
    rejected: Counter[str] = Counter()
    log = SessionLog()
    accept_filter = AcceptFilter(parse_networks([allowed]), log.connection_rejected, rejected)
    tls_listener = TlsListener(
        Authority(tmp_path), proxied=proxy_protocol_of_section("optional", "127.0.0.0/8"), accept_filter=accept_filter
    )
    try:
        with capture_logs() as lines:
            if comes_in:
                assert (await asyncio.wait_for(tls_listener.receive_greeting(header), 10)).startswith(b"hello")
            for _ in range(0 if comes_in else 3):
                reader, writer = await tls_listener.connect_silently()
                writer.write(header or b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcde")
                with suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 10) == b""
                writer.close()
            await wait_until(lambda: len(tls_listener.handshakes) == 0)
    finally:
        tls_listener.acceptor.close()

    assert rejected == ({} if comes_in else {"listen.allowed_addresses": 3})
    assert [line["limit"] for line in lines] == ([] if comes_in else ["listen.allowed_addresses"])  # once per minute
    assert tls_listener.lines() == []


# -- connection rates --------------------------------------------------------------------------------------------------


async def test_connections_above_the_rate_wait_and_are_counted_and_logged_once(tmp_path: Path) -> None:
    delayed: Counter[str] = Counter()
    log = SessionLog()
    tls_listener = TlsListener(Authority(tmp_path), rate=ConnectionRate(2, log.connection_delayed, delayed))
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        with capture_logs() as lines:
            greeted = await asyncio.wait_for(asyncio.gather(*(tls_listener.receive_greeting() for _ in range(5))), 30)
    finally:
        tls_listener.acceptor.close()

    assert greeted == [b"hello"] * 5
    assert loop.time() - began >= 1.4  # two at once, then one more every half second
    assert 0 < delayed[NEW_CONNECTIONS] <= 3
    assert [line["event"] for line in lines] == ["connection delayed"]
    assert lines[0]["limit"] == NEW_CONNECTIONS
    assert "more than 2 new connections a second" in lines[0]["reason"]


async def test_an_address_above_its_connection_rate_is_closed_counted_and_logged(tmp_path: Path) -> None:
    rejected: Counter[str] = Counter()
    log = SessionLog()
    accept_filter = AcceptFilter(None, log.connection_rejected, rejected, AddressRate(2))
    tls_listener = TlsListener(
        Authority(tmp_path), proxied=proxy_protocol_of_section("optional", "127.0.0.0/8"), accept_filter=accept_filter
    )
    try:
        with capture_logs() as lines:
            greeted = [await asyncio.wait_for(tls_listener.receive_greeting(FROM_192_0_2_7), 10) for _ in range(2)]
            with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
                for _ in range(20):  # on a slow machine, one more may be allowed
                    await asyncio.wait_for(tls_listener.receive_greeting(FROM_192_0_2_7), 10)
            another = await asyncio.wait_for(tls_listener.receive_greeting(), 10)
    finally:
        tls_listener.acceptor.close()

    assert greeted == [b"hello 192.0.2.7:56324"] * 2
    assert another == b"hello"
    assert rejected == {NEW_CONNECTIONS_PER_ADDRESS: 1}
    assert [(line["event"], line["limit"]) for line in lines] == [("connection rejected", NEW_CONNECTIONS_PER_ADDRESS)]


async def test_waiting_connections_are_closed_when_the_proxy_stops(tmp_path: Path) -> None:
    waiting = asyncio.Event()
    rate = ConnectionRate(1, lambda *_: waiting.set(), Counter())
    tls_listener = TlsListener(Authority(tmp_path), rate=rate)
    assert await asyncio.wait_for(tls_listener.receive_greeting(), 10) == b"hello"
    reader, writer = await tls_listener.connect_silently()
    await asyncio.wait_for(waiting.wait(), 10)

    tls_listener.acceptor.close()

    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
