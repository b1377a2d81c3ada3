"""Topic settings where no broker tells them: said once, and nobody waits for ever."""

import asyncio

from structlog.testing import capture_logs

from config.address import HostPort
from config.model import TopicKeys, Upstream
from protocol.headers import build_response_header
from protocol.messages import api_versions
from proxy.topic_settings import TopicSettings
from tests.broker.ports import free_ports
from validation.policies import TopicPolicies


def settings_for(*addresses: HostPort) -> TopicSettings:
    upstream = Upstream(bootstrap=tuple(map(str, addresses)), connect_timeout_seconds=2)  # type: ignore[arg-type]
    return TopicSettings(upstream, None, TopicPolicies(TopicKeys(), []))


async def test_no_broker_is_there() -> None:
    settings = settings_for(HostPort("127.0.0.1", free_ports(1)))

    with capture_logs() as lines:
        for topic in ("a", "b"):
            waiting = settings.known_soon([topic])
            assert waiting is not None
            await waiting

    assert [line["event"] for line in lines] == ["topic settings cannot be read, going on with the file"]
    assert settings.known_soon(["a", "b"]) is None  # not asked for again at once


async def test_two_who_ask_for_one_topic_wait_for_one_answer() -> None:
    settings = settings_for(HostPort("127.0.0.1", free_ports(1)))

    first, second = settings.known_soon(["a"]), settings.known_soon(["a", "b"])

    assert first is not None
    assert second is not None
    await asyncio.gather(first, second)
    assert settings.known_soon(["a", "b"]) is None


async def test_a_broker_that_does_not_know_the_question() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        keys = [{"api_key": 18, "min_version": 0, "max_version": 4}]
        body = build_response_header(1, 0) + api_versions.RESPONSE.build({"error_code": 0, "api_keys": keys}, 0)
        writer.write(len(body).to_bytes(4, "big") + body)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    settings = settings_for(HostPort("127.0.0.1", server.sockets[0].getsockname()[1]))

    with capture_logs() as lines:
        waiting = settings.known_soon(["a"])
        assert waiting is not None
        await waiting

    assert "the broker offers no DescribeConfigs" in lines[0]["reason"]
    server.close()
