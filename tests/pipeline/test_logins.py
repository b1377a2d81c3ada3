"""Proxy and pipeline share one login: each mechanism works with real brokers, and a rejection states its reason."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sluicegate.config.oauth import OauthClient
from sluicegate.config.tls import UpstreamTls
from sluicegate.config.upstream import Sasl, Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import SecretText
from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.kafka.connection import ClusterLoginRejected
from sluicegate.pipeline.kafka.settings import client_settings
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.proxy.cluster.broker_client import BrokerClient, OwnLoginRejected, ask_any_broker
from sluicegate.proxy.network.tls.contexts import TlsContext, context_for_server
from tests.broker.kafka import Kafka
from tests.integration.secure_brokers import MECHANISMS, TOPIC, GuardedBroker, client_login
from tests.pipeline.bearers import CLIENT, SECRET, ScriptedTokenEndpoint, bearer_broker, token_endpoint, unsecured_token


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedTokenEndpoint]:
    with token_endpoint() as found:
        yield found


@pytest.fixture(scope="module")
def bearer_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = bearer_broker(tmp_path_factory.mktemp("bearers"))
    try:
        yield kafka.start()
    finally:
        kafka.stop()


async def topics_for_proxy(bootstrap: str, sasl: Sasl, tls: TlsContext | None = None) -> list[str]:
    """Return the topics that the proxy sees with this login."""
    host, _, port = bootstrap.partition(",")[0].rpartition(":")
    address = HostPort(host, int(port))
    upstream = Upstream(bootstrap=(address,), sasl=sasl, tls=None if tls is None else UpstreamTls())

    async def list_topic_names(client: BrokerClient) -> list[str]:
        found = await client.ask(ApiKey.METADATA, METADATA_REQUEST, METADATA_RESPONSE, {"topics": None})
        return [topic["name"] for topic in found["topics"]]

    _, found = await ask_any_broker(upstream, tls, list_topic_names)
    return found


def topics_for_pipeline(bootstrap: str, settings: dict[str, str]) -> list[str]:
    """Return the topics that the pipeline sees with this login."""
    host, _, port = bootstrap.partition(",")[0].rpartition(":")
    with KafkaCluster([(host, int(port))], client_settings(settings), timeout_seconds=5) as cluster:
        return [topic.name for topic in cluster.topics()]


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_proxy_and_pipeline_log_in_with_each_mechanism_and_report_a_wrong_password(
    guarded: GuardedBroker, mechanism: str
) -> None:
    ca_file = str(guarded.authority.file)
    tls = context_for_server("upstream.tls", UpstreamTls(ca_file=ca_file))
    bootstrap = guarded.kafka.bootstrap

    def sasl_section(password: str) -> Sasl:
        return Sasl(mechanism=mechanism, username="alice", password=SecretText(password))

    def login_settings(password: str) -> dict[str, str]:
        return client_login("alice", password, mechanism) | {"ssl.ca.location": ca_file}

    assert TOPIC in await topics_for_proxy(bootstrap, sasl_section("secret"), tls)
    assert TOPIC in topics_for_pipeline(bootstrap, login_settings("secret"))
    with pytest.raises(OwnLoginRejected) as of_proxy:
        await topics_for_proxy(bootstrap, sasl_section("planted"), tls)
    with pytest.raises(ClusterLoginRejected) as of_pipeline:
        topics_for_pipeline(bootstrap, login_settings("planted"))

    reasons = [str(of_proxy.value).rpartition(": ")[2], str(of_pipeline.value).rpartition(": ")[2]]
    assert reasons[0] == reasons[1]
    assert any(words in reasons[0] for words in ("Authentication failed", "nvalid credentials", "Invalid username"))
    assert "planted" not in f"{of_proxy.value} {of_pipeline.value}"


async def test_unsupported_mechanism_error_lists_supported_mechanisms(bearer_kafka: Kafka) -> None:
    words = "the broker offers OAUTHBEARER, not PLAIN"

    with pytest.raises(OwnLoginRejected, match=words):
        await topics_for_proxy(bearer_kafka.bootstrap, Sasl(mechanism="PLAIN", username="u", password=SecretText("p")))
    with pytest.raises(ClusterLoginRejected, match=words):
        topics_for_pipeline(
            bearer_kafka.bootstrap, client_login("u", "p") | {"security.protocol": "sasl_plaintext"}
        )  # fmt: skip


def _oauth(endpoint: ScriptedTokenEndpoint) -> tuple[Sasl, dict[str, str]]:
    keys = OauthClient(token_url=endpoint.url, client_id=CLIENT, client_secret=SecretText(SECRET))
    prefix = "sasl.oauthbearer."
    settings = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        f"{prefix}token.endpoint.url": endpoint.url,
        f"{prefix}client.id": CLIENT,
        f"{prefix}client.secret": SECRET,
    }
    return Sasl(mechanism="OAUTHBEARER", oauth=keys), settings


async def test_a_token_of_an_endpoint_is_accepted(bearer_kafka: Kafka, endpoint: ScriptedTokenEndpoint) -> None:
    sasl, settings = _oauth(endpoint)

    assert isinstance(await topics_for_proxy(bearer_kafka.bootstrap, sasl), list)
    assert isinstance(topics_for_pipeline(bearer_kafka.bootstrap, settings), list)


async def test_rejected_token_is_replaced_by_new_token_from_endpoint(bearer_kafka: Kafka) -> None:
    """For the broker the first token has expired, although the endpoint reports a lifetime of an hour."""
    lasts = iter((-60.0, 3600.0, -60.0, 3600.0))

    def make_short_token(**_: object) -> str:
        return unsecured_token(lasts_seconds=next(lasts))

    with token_endpoint(made=make_short_token) as endpoint:
        sasl, settings = _oauth(endpoint)
        with pytest.raises(OwnLoginRejected, match="invalid_token"):
            await topics_for_proxy(bearer_kafka.bootstrap, sasl)
        await topics_for_proxy(bearer_kafka.bootstrap, sasl)
        with pytest.raises(ClusterLoginRejected, match="invalid_token"):
            topics_for_pipeline(bearer_kafka.bootstrap, settings)
        topics_for_pipeline(bearer_kafka.bootstrap, settings)

        assert len(endpoint.given) == 4


async def test_a_token_in_a_file_that_has_expired_is_not_sent(bearer_kafka: Kafka, tmp_path: Path) -> None:
    (file := tmp_path / "token").write_text(unsecured_token(lasts_seconds=-60))
    words = rf"the token in {file} expired \d+ s ago; the process that writes this file must renew it"
    settings = _oauth(ScriptedTokenEndpoint(url=file.as_uri()))[1]
    sasl = Sasl(mechanism="OAUTHBEARER", token_file=str(file))

    with pytest.raises(OwnLoginRejected, match=words):
        await topics_for_proxy(bearer_kafka.bootstrap, sasl)
    with pytest.raises(ClusterLoginRejected, match=words):
        topics_for_pipeline(bearer_kafka.bootstrap, settings)

    file.write_text(unsecured_token())
    await topics_for_proxy(bearer_kafka.bootstrap, sasl)
    assert urlsplit(settings["sasl.oauthbearer.token.endpoint.url"]).scheme == "file"
    topics_for_pipeline(bearer_kafka.bootstrap, settings)
