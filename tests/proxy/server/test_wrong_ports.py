"""A port of a different kind than configured is recognized: TLS or not, with or without logins."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
import uvloop

from sluicegate.config.loading import read_section
from sluicegate.config.tls import UpstreamTls
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.handshake import SASL_HANDSHAKE_RESPONSE
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.network.tls.contexts import context_for_brokers
from sluicegate.proxy.network.upstream import Dialler
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import UpstreamUnreachable
from tests.broker.certificates import Authority
from tests.proxy.scripted_broker import CLOSE, ScriptedBroker

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOGIN = {"mechanism": "PLAIN", "username": "me", "password": "mine-alone"}


@asynccontextmanager
async def listen_with(handle: Handle) -> AsyncIterator[HostPort]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    yield HostPort("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()


async def ask_for_metadata(client: BrokerClient) -> object:
    return await client.ask(ApiKey.METADATA, METADATA_REQUEST, METADATA_RESPONSE, {"topics": []})


async def failure_reason(address: HostPort, **more: object) -> str:
    upstream = read_section(Upstream, {"bootstrap": str(address), "connect_timeout_seconds": 5, **more})
    tls = context_for_brokers(upstream.tls) if upstream.tls is not None else None
    with pytest.raises(NoBrokerResponses) as raised:
        await ask_any_broker(upstream, tls, ask_for_metadata)
    return str(raised.value).removeprefix(f"{address}: ")


async def close_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(4)
    writer.close()


async def send_tls_alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(4)
    writer.write(bytes.fromhex("15030300020250"))
    writer.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_tls_to_a_plaintext_port_is_reported(run: Callable[[Awaitable[None]], None], tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def connect_to_wrong_port() -> None:
        async with listen_with(close_connection) as address:
            ours = await failure_reason(address, tls={"ca_file": str(authority.file)})
            context = context_for_brokers(UpstreamTls(ca_file=str(authority.file)))
            with pytest.raises(UpstreamUnreachable) as raised:
                await Dialler(context, 5, None).connect((address,), cast(Connection, asyncio.Protocol()))
        assert ours == (
            "closed the connection during the TLS handshake: this is probably a plaintext port (upstream.tls is set)"
        )
        assert str(raised.value) == f"{address}: {ours}"

    run(connect_to_wrong_port())


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        (close_connection, "closes plaintext connections: if it is a TLS port, set upstream.tls"),
        (send_tls_alert, "is a TLS port: set"),
    ],
)
async def test_plaintext_to_a_tls_port_is_reported(handle: Handle, words: str) -> None:
    async with listen_with(handle) as address:
        assert (await failure_reason(address)).startswith(words)


async def test_missing_login_is_reported_with_the_setting_to_set() -> None:
    async with ScriptedBroker({ApiKey.METADATA: CLOSE}) as broker:
        assert (await failure_reason(broker.address)).startswith("requires a login: set upstream.sasl")


async def test_login_at_a_broker_listener_without_sasl_is_reported() -> None:
    def reject_handshake(version: int, _body: bytes) -> bytes:
        return SASL_HANDSHAKE_RESPONSE.build({"error_code": 33, "mechanisms": []}, version)

    async with ScriptedBroker({ApiKey.SASL_HANDSHAKE: reject_handshake}) as broker:
        words = await failure_reason(broker.address, sasl=LOGIN)

    assert words == "upstream.sasl is rejected: the broker offers no SASL here; is this the plaintext listener?"


async def test_missing_password_file_is_reported_with_its_path(tmp_path: Path) -> None:
    def accept_handshake(version: int, _body: bytes) -> bytes:
        return SASL_HANDSHAKE_RESPONSE.build({"error_code": 0, "mechanisms": ["PLAIN"]}, version)

    login = {"mechanism": "PLAIN", "username": "me", "password_file": str(tmp_path / "none")}
    async with ScriptedBroker({ApiKey.SASL_HANDSHAKE: accept_handshake}) as broker:
        words = await failure_reason(broker.address, sasl=login)

    assert words == (
        f"upstream.sasl is rejected: upstream.sasl.password_file: {tmp_path}/none cannot be read: "
        "No such file or directory"
    )
