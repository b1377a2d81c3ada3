"""If a cluster's Metadata differs by client, for example by zone, each client stays in its zone."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from tests.broker.certificates import Authority
from tests.broker.proxy_process import ProxyProcess
from tests.proxy.scripted_broker import ScriptedBroker, metadata_of_brokers
from tests.wire.raw_client import RawClient

_NODE = 1
_VERSION = 9
_ZONES = ("east", "west")


def _listen(folder: Path, by_name: bool) -> tuple[dict[str, Any], ssl.SSLContext | None]:
    if not by_name:
        return {}, None
    authority = Authority(folder)
    files = authority.sign("sluicegate", "127.0.0.1", "*.brokers.test").files
    keys = {"tls": files, "broker_host": "broker-{node_id}.brokers.test"}
    return keys, ssl.create_default_context(cafile=authority.file)


def _ask(address: str, context: ssl.SSLContext | None, name: str, zone: str, first: ApiKey) -> list[tuple[str, int]]:
    """Connect as a client of a zone, and return the brokers that its Metadata has."""
    client_id = f"az={zone}"
    with RawClient(address) as client:
        if context is not None:
            client.socket = context.wrap_socket(client.socket, server_hostname=name)
        if first is ApiKey.API_VERSIONS:
            client.send(first, 0, b"", client_id)
            assert isinstance(client.receive(), bytes)
        sent = client.send(ApiKey.METADATA, _VERSION, METADATA_REQUEST.build({"topics": []}, _VERSION), client_id)
        response = client.response_to(sent, ApiKey.METADATA, _VERSION, METADATA_RESPONSE)
    assert not isinstance(response, str), response
    return [(each["host"], each["port"]) for each in response["brokers"]]


@pytest.mark.parametrize("by_name", [False, True], ids=["port per broker", "SNI"])
async def test_clients_of_two_zones_get_the_brokers_of_their_zone(tmp_path: Path, by_name: bool) -> None:
    keys, context = await asyncio.to_thread(_listen, tmp_path, by_name)
    async with ScriptedBroker({}) as east, ScriptedBroker({}) as west, ScriptedBroker({}) as bootstrap:
        agents = {"east": east, "west": west}
        for each in (east, west, bootstrap):

            def metadata_by_client(version: int, body: bytes, asked: ScriptedBroker = each) -> bytes | None:
                agent = agents["east" if "east" in asked.client else "west"].address
                return metadata_of_brokers((_NODE, agent.host, agent.port))(version, body)

            each.answers[ApiKey.METADATA] = metadata_by_client
        proxy = ProxyProcess(tmp_path, str(bootstrap.address))
        proxy.config["listen"] |= keys
        if by_name:
            del proxy.config["listen"]["broker_port_base"]
        try:
            await asyncio.to_thread(proxy.start)
            at_broker = proxy.bootstrap if by_name else f"127.0.0.1:{proxy.broker_port(_NODE)}"
            for zone in _ZONES:  # the last response is for a client in the west
                await asyncio.to_thread(_ask, proxy.bootstrap, context, "127.0.0.1", zone, ApiKey.API_VERSIONS)
            for first in (ApiKey.API_VERSIONS, ApiKey.METADATA):
                for zone in _ZONES:
                    name = f"broker-{_NODE}.brokers.test"
                    ((host, port),) = await asyncio.to_thread(_ask, at_broker, context, name, zone, first)
                    assert f"{host}:{port}".startswith(name if by_name else at_broker), "the address of the proxy"
        finally:
            proxy.stop()
        assert {zone: agent.clients - {"sluicegate"} for zone, agent in agents.items()} == {
            zone: {f"az={zone}"} for zone in _ZONES
        }
