"""The doctor reports declared principals that look like tokens or account keys."""

import asyncio
import json

import pytest

from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.checks import CheckedCluster
from sluicegate.proxy.doctor.user_names import CHECK, kind_of_secret
from tests.config.reading import SMALLEST, load_text
from tests.proxy.scripted_broker import ScriptedBroker

_DECLARED = SMALLEST.replace("listen: {", "listen: {user_name_is_principal: [PLAIN], ")


@pytest.mark.parametrize(
    "name",
    [
        "token",  # used by IBM Event Streams and many token services
        "$ConnectionString",  # Azure Event Hubs
        "$accessToken",  # Strimzi, for OAuth over PLAIN
        "ABCDEFGHIJ234567",  # Confluent Cloud
        "AKIAIOSFODNN7EXAMPLE",  # AWS
        "tenancy/user@example.com/ocid1.streampool.oc1.iad.aaaa",  # OCI Streaming
        "8d969eef-6eca-3c29-a3a6-29280e686cf0",  # a service account of Redpanda or Aiven
    ],
)
def test_tokens_and_keys_as_user_names_are_recognized(name: str) -> None:
    assert kind_of_secret(name) is not None


@pytest.mark.parametrize("name", ["alice", "mirror-maker", "svc_billing", "CN=etl", "avnadmin", "TEAM/ETL", ""])
def test_ordinary_user_names_are_not_taken_for_keys(name: str) -> None:
    assert kind_of_secret(name) is None


async def _found(text: str) -> list[tuple[Level, str]]:
    async with ScriptedBroker({}) as broker:
        cluster = CheckedCluster(load_text(text).config, None, broker.address)
        return [(each.level, each.found) async for each in CHECK.run(cluster)]


def _with_login(user: str, text: str = _DECLARED) -> str:
    return text.replace("upstream: {", f"upstream: {{sasl: {{mechanism: PLAIN, username: '{user}', password: p}}, ")


async def test_a_token_as_the_proxys_user_name_is_a_warning() -> None:
    ((level, found),) = await _found(_with_login("$ConnectionString"))

    assert level is Level.WARNING
    assert found.startswith("$ConnectionString looks like a token in place of a password: ")
    assert await _found(_with_login("sluicegate")) == []
    assert await _found(_with_login("$ConnectionString", SMALLEST)) == []


async def test_api_keys_as_client_principals_are_a_warning() -> None:
    listed = [{"principal": each} for each in (None, "User:alice", "User:ABCDEFGHIJ234567", "unknown (unverified)")]
    body = json.dumps({"connections": {"listed": listed}}).encode()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /api/live ")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        found = await _found(f"{_DECLARED}admin: {{listen: '127.0.0.1:{port}'}}")

    assert [level for level, _ in found] == [Level.WARNING]
    assert found[0][1].startswith("ABCDEFGHIJ234567 looks like an API key")
