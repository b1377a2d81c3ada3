"""The proxy's own requests end with a response or a message, whatever the server does."""

import asyncio
import base64
import hashlib
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import cast

import pytest
from aiohappyeyeballs import start_connection

from sluicegate.config.loading import read_section
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_RESPONSE,
)
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, NotABroker, ask_any_broker
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.network.tls.contexts import context_for_brokers
from tests.broker.certificates import Authority
from tests.proxy.scripted_broker import (
    CLOSE,
    SILENCE,
    Answer,
    RawResponse,
    ScriptedBroker,
    api_versions_response,
    metadata_of_brokers,
)

_PATIENCE = 60.0
LOGIN = {"mechanism": "SCRAM-SHA-256", "username": "me", "password": "mine-alone"}


def upstream_section(*addresses: HostPort, seconds: float = 5, **more: object) -> Upstream:
    given = {"bootstrap": [str(address) for address in addresses], "connect_timeout_seconds": seconds, **more}
    return read_section(Upstream, given)


async def ask_brokers(client: BrokerClient) -> object:
    return await client.ask(ApiKey.METADATA, METADATA_REQUEST, METADATA_RESPONSE, {"topics": []})


def frame_of_size(size: int, body: bytes = b"") -> Answer:
    return lambda _version, _body: RawResponse(size.to_bytes(4, "big", signed=True) + body)


GARBAGE: dict[str, dict[ApiKey, Answer]] = {
    "negative": {ApiKey.API_VERSIONS: frame_of_size(-1)},
    "huge greeting": {ApiKey.API_VERSIONS: frame_of_size(100_000_000)},
    "no header": {ApiKey.API_VERSIONS: frame_of_size(2, b"ab")},
    "another's answer": {ApiKey.API_VERSIONS: frame_of_size(10, b"\0\0\0\7" + bytes(6))},
    "cut": {ApiKey.API_VERSIONS: lambda _v, _b: bytes(3)},
    "not UTF-8": {ApiKey.METADATA: lambda _v, _b: b"\0\0\0\0\2\0\0\0\1\5\xff\xff\xff\xff"},
    "a varint without an end": {ApiKey.METADATA: lambda _v, _b: b"\0\0\0\0" + b"\xff" * 5000},
    "huge": {ApiKey.METADATA: frame_of_size(1 << 30)},
    "no Metadata": {ApiKey.API_VERSIONS: api_versions_response(ApiKey.API_VERSIONS, ApiKey.PRODUCE)},
    "a minimum of versions": {
        ApiKey.API_VERSIONS: lambda _v, _b: b"\0\0\0\0\0\2" + b"\0\0\0\0\0\1" + b"\0\3\x80\0\x80\0",
    },
}


@pytest.mark.parametrize("answers", GARBAGE.values(), ids=GARBAGE)
async def test_tries_next_bootstrap_address_after_invalid_response(answers: dict[ApiKey, Answer]) -> None:
    async with (
        ScriptedBroker(answers) as bad,
        ScriptedBroker({ApiKey.METADATA: metadata_of_brokers((1, "h", 9))}) as good,
    ):
        address, _ = await ask_any_broker(upstream_section(bad.address, good.address), None, ask_brokers)
        with pytest.raises(NoBrokerResponses, match="responds, but not as a Kafka broker") as raised:
            await ask_any_broker(upstream_section(bad.address), None, ask_brokers)

    assert address == good.address
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (api_versions_response(ApiKey.API_VERSIONS, ApiKey.FETCH), "is a KRaft controller, not a broker"),
        (lambda _v, _b: RawResponse(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "is an HTTP port, not a Kafka listener"),
        (lambda _v, _b: RawResponse(b"<!DOCTYPE HTML>"), "is an HTTP port, not a Kafka listener"),
        (frame_of_size(-1), "responds, but not as a Kafka broker"),
    ],
)
async def test_a_server_that_is_not_a_broker_is_distinguished_from_an_outage(answer: Answer, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = HostPort("127.0.0.1", closed.getsockname()[1])
    async with ScriptedBroker({ApiKey.API_VERSIONS: answer}) as other:
        found = await discover_cluster(upstream_section(dead, other.address), None, 7)
        with pytest.raises(NotABroker):
            await ask_any_broker(upstream_section(other.address), None, ask_brokers)
    outage = await discover_cluster(upstream_section(dead), None, 7)

    assert found.is_no_broker
    assert f"{other.address}: {words}" in str(found.reason)
    assert (outage.is_no_broker, outage.answered_by) == (False, None)


@pytest.mark.parametrize("host", ["a..b", "a" * 70, "x" * 3000])
async def test_an_impossible_bootstrap_name_is_reported(host: str) -> None:
    async with ScriptedBroker({ApiKey.METADATA: metadata_of_brokers((1, "h", 9))}) as good:
        address, _ = await ask_any_broker(upstream_section(HostPort(host, 9092), good.address), None, ask_brokers)
        with pytest.raises(NoBrokerResponses, match="no host can have this name"):
            await ask_any_broker(upstream_section(HostPort(host, 9092)), None, ask_brokers)

    assert address == good.address


async def test_an_error_while_a_response_is_read_is_reported() -> None:
    async def raise_recursion_error(_client: BrokerClient) -> None:
        raise RecursionError("too deep")

    async with ScriptedBroker({}) as broker:
        with pytest.raises(NoBrokerResponses, match="too deep"):
            await ask_any_broker(upstream_section(broker.address), None, raise_recursion_error)


async def test_incomplete_broker_response_times_out() -> None:
    async with ScriptedBroker({ApiKey.METADATA: frame_of_size(1000, bytes(500))}) as broker:
        started = monotonic()
        with pytest.raises(NoBrokerResponses, match=r"no response within 0\.3 s"):
            await ask_any_broker(upstream_section(broker.address, seconds=0.3), None, ask_brokers)

    assert monotonic() - started < 10


@pytest.mark.parametrize("signed_by, host", [("others", "127.0.0.1"), ("its own", "localhost")])
async def test_a_rejected_certificate_is_reported(tmp_path: Path, signed_by: str, host: str) -> None:
    authorities = {name: Authority(tmp_path, name) for name in ("its own", "others")}
    certificate = authorities["its own"].sign("broker", "127.0.0.1")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate.chain, certificate.key)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=serving)
    address = HostPort(host, server.sockets[0].getsockname()[1])
    trusting = upstream_section(address, tls={"ca_file": str(authorities[signed_by].file)})
    assert trusting.tls is not None

    with pytest.raises(NoBrokerResponses) as raised:
        await ask_any_broker(trusting, context_for_brokers(trusting.tls), ask_brokers)

    server.close()
    assert str(raised.value).startswith(f"{address}: the certificate is not accepted: ")


async def test_a_silent_broker_times_out() -> None:
    found = {ApiKey.METADATA: metadata_of_brokers((1, "h", 9))}
    async with ScriptedBroker({ApiKey.METADATA: lambda _v, _b: SILENCE}) as silent, ScriptedBroker(found) as good:
        async with asyncio.timeout(_PATIENCE / 2):
            address, _ = await ask_any_broker(
                upstream_section(silent.address, good.address, seconds=_PATIENCE), None, ask_brokers
            )

    assert address == good.address


async def test_connection_race_selects_broker_that_accepts_tcp_but_is_silent() -> None:
    """This is why the proxy does not use `aiohappyeyeballs` (proxy/network/happy_eyeballs.py)."""
    async with ScriptedBroker({ApiKey.METADATA: lambda _v, _b: SILENCE}) as silent, ScriptedBroker({}) as good:
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", (each.address.host, each.address.port))
            for each in (silent, good)
        ]
        with await start_connection(found, happy_eyeballs_delay=0.25) as reached:
            assert reached.getpeername()[1] == silent.address.port


async def test_a_connection_to_a_broker_that_never_reads_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.proxy.cluster.broker_client._CLOSE_SECONDS", 0.1)
    gone = asyncio.Event()

    async def accept_without_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(bytes.fromhex("00000010 00000001 0000 00000001 0000 0000") + b"\0\1")
        cast("asyncio.Transport", writer.transport).pause_reading()
        await gone.wait()
        writer.close()

    async def send_endless_bytes(client: BrokerClient) -> None:
        transport = client._writer.transport
        transport.write(bytes(50_000_000))
        clients.append(client)
        raise EOFError

    clients: list[BrokerClient] = []
    server = await asyncio.start_server(accept_without_reading, "127.0.0.1", 0)
    address = HostPort("127.0.0.1", server.sockets[0].getsockname()[1])
    with pytest.raises(NoBrokerResponses):
        await ask_any_broker(upstream_section(address, seconds=1), None, send_endless_bytes)

    (client,) = clients
    closed = asyncio.gather(client._writer.wait_closed(), return_exceptions=True)
    await asyncio.wait_for(closed, 5)
    gone.set()
    server.close()


# -- logins ------------------------------------------------------------------------------------------------------


def scram_responses(first: str | None, final: bytes = b"v=AAAA") -> dict[ApiKey, Answer]:
    """Return a broker's side of SCRAM. {nonce} in `first` is replaced by the server's nonce, which starts with the
    client's."""
    said: list[bytes] = []

    def respond_to_authenticate(version: int, body: bytes) -> bytes | None:
        token = SASL_AUTHENTICATE_REQUEST.parse(body, version)["auth_bytes"]
        said.append(token)
        if len(said) % 2 == 1:
            if first is None:
                reply = b"\xff\xfe"
            else:
                nonce = token.decode().rpartition("r=")[2] + "more"
                reply = first.replace("{nonce}", nonce).encode()
        else:
            reply = final
        value = {"error_code": 0, "error_message": None, "auth_bytes": reply}
        return SASL_AUTHENTICATE_RESPONSE.build(value, version)

    def respond_to_handshake(version: int, _body: bytes) -> bytes:
        return SASL_HANDSHAKE_RESPONSE.build({"error_code": 0, "mechanisms": []}, version)

    return {ApiKey.SASL_HANDSHAKE: respond_to_handshake, ApiKey.SASL_AUTHENTICATE: respond_to_authenticate}


SALT = base64.b64encode(bytes(16)).decode()


@pytest.mark.parametrize(
    "first",
    [
        f"r={{nonce}},s={SALT},i={2**31}",
        f"r={{nonce}},s={SALT},i=5000000",
        f"r={{nonce}},s={SALT},i=" + "9" * 5000,
        f"r={{nonce}},s={SALT},i=-1",
        f"r={{nonce}},s={SALT},i=0",
        f"r={{nonce}},s={SALT},i=٣",
        f"r={{nonce}},s={SALT}",
        f"r=other,s={SALT},i=4096",
        "r={nonce},s=***,i=4096",
        "",
        ",,,,",
        "e=other-error",
        None,
        f"r={{nonce}},s={SALT},i=4096",  # the final message contains a wrong signature
    ],
)
async def test_a_hostile_scram_server_is_rejected_with_a_short_error(
    first: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing = hashlib.pbkdf2_hmac

    def hash_with_bounded_iterations(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        assert iterations <= 1_000_000
        return hashing(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", hash_with_bounded_iterations)
    async with ScriptedBroker(scram_responses(first)) as broker:
        with pytest.raises(NoBrokerResponses, match=r"upstream\.sasl is rejected") as raised:
            await ask_any_broker(upstream_section(broker.address, sasl=LOGIN), None, ask_brokers)

    assert "mine-alone" not in str(raised.value)
    assert len(str(raised.value)) < 600


async def test_hashing_a_password_leaves_the_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    seen: list[float] = []
    hashing = hashlib.pbkdf2_hmac

    def slow_hash(*arguments: object) -> bytes:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(2)  # the event loop runs in the meantime
        seen.append(monotonic())
        return hashing(*arguments)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", slow_hash)
    async with ScriptedBroker(scram_responses(f"r={{nonce}},s={SALT},i=4096")) as broker:
        with pytest.raises(NoBrokerResponses):
            await ask_any_broker(upstream_section(broker.address, sasl=LOGIN), None, ask_brokers)

    assert len(seen) == 1


# -- discovery ---------------------------------------------------------------------------------------------------


async def test_login_is_not_needed_when_metadata_is_served_without_it() -> None:
    async with ScriptedBroker({ApiKey.METADATA: metadata_of_brokers((1, "h", 9))}) as broker:
        found = await discover_cluster(upstream_section(broker.address), None, 7)

    assert (found.needs_login, found.brokers) == (False, {1: HostPort("h", 9)})
    assert broker.connections == 1


async def test_queries_next_address_when_metadata_lists_no_brokers() -> None:
    async with (
        ScriptedBroker({ApiKey.METADATA: metadata_of_brokers()}) as lone,
        ScriptedBroker({ApiKey.METADATA: metadata_of_brokers((1, "h", 9))}) as whole,
    ):
        both = replace(upstream_section(lone.address), bootstrap=(lone.address, whole.address))
        found = await discover_cluster(both, None, 7)
        alone = await discover_cluster(upstream_section(lone.address), None, 7)

    assert (found.answered_by, found.brokers) == (whole.address, {1: HostPort("h", 9)})
    assert (alone.answered_by, alone.brokers, alone.needs_login) == (lone.address, {}, False)


async def test_two_connections_that_are_closed_at_metadata_mean_that_a_login_is_needed() -> None:
    async with ScriptedBroker({ApiKey.METADATA: lambda _v, _b: CLOSE}) as broker:
        found = await discover_cluster(upstream_section(broker.address), None, 7)

    assert (found.answered_by, found.brokers, found.needs_login) == (broker.address, None, True)
    assert broker.connections == 2


async def test_single_closed_connection_does_not_indicate_required_login() -> None:
    answers: list[Answer] = [lambda _v, _b: CLOSE, metadata_of_brokers((1, "h", 9))]

    def next_response(version: int, body: bytes) -> bytes | None:
        return answers.pop(0)(version, body)

    async with ScriptedBroker({ApiKey.METADATA: next_response}) as broker:
        found = await discover_cluster(upstream_section(broker.address), None, 7)

    assert (found.needs_login, found.brokers) == (False, {1: HostPort("h", 9)})


async def test_a_broker_that_closes_a_second_connection_does_not_mean_a_login() -> None:
    greetings = [api_versions_response()]
    answers = {
        ApiKey.API_VERSIONS: lambda v, b: greetings.pop()(v, b) if greetings else CLOSE,
        ApiKey.METADATA: lambda _v, _b: CLOSE,
    }
    async with ScriptedBroker(answers) as broker:
        found = await discover_cluster(upstream_section(broker.address), None, 7)

    assert (found.answered_by, found.needs_login) == (broker.address, None)


async def test_silent_broker_is_not_counted_as_responding() -> None:
    async with ScriptedBroker({ApiKey.METADATA: lambda _v, _b: SILENCE}) as broker:
        found = await discover_cluster(upstream_section(broker.address, seconds=0.3), None, 7)

    assert (found.answered_by, found.needs_login) == (None, None)


async def test_a_response_with_too_many_brokers_is_rejected() -> None:
    many = [(i, "h", 9) for i in range(20_000)]
    async with ScriptedBroker({ApiKey.METADATA: metadata_of_brokers(*many)}) as broker:
        found = await discover_cluster(upstream_section(broker.address), None, 7)

    assert found.brokers is None
    assert "20000 more elements than the 2000 that are left" in str(found.reason)
