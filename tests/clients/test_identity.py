"""Clients in three languages log in with OAUTHBEARER at brokers that use a claim: without a signature, and with keys.

The brokers have a very large node id. One accepts unsecured tokens (RFC 7515, A.5). The other checks signatures with
keys (JWKS); for this broker, Java's client and the proxy get their tokens from an endpoint (OIDC, client credentials).
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.authorizer_log import AUTHORIZER, PROGRAM, writers_of
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import bearer_login, security_settings
from tests.broker.signed_tokens import SigningKey, allow_url_option, validation_settings
from tests.clients.programs import java_record, javascript_record
from tests.integration.topics import DEFAULTS, UNVALIDATED
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.bearers import CLIENT, SECRET, token_endpoint, unsecured_token

pytestmark = pytest.mark.long

_NODE = 2_000_000_000
_SUBJECT, _USER, _PROXY, _FORGER = "backfill", "etl", "sluicegate", "mirror"
_CLAIM = "preferred_username"
_OLD_MS = 2 * 86_400_000
_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_OIDC = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_SETTINGS = security_settings("SASL_PLAINTEXT", "OAUTHBEARER", oauthbearer=bearer_login(_CLAIM)) | {
    "authorizer.class.name": AUTHORIZER,
    "super.users": f"User:broker;User:{_USER};User:{_PROXY};User:ANONYMOUS",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A broker with logins of one user. `token`: makes tokens that the broker accepts. `java`: settings and Java
    options of a client. `own_login`: the login of the proxy.
    """

    broker: Kafka
    token: Callable[..., str]
    java: tuple[dict[str, str], tuple[str, ...]]
    own_login: dict[str, Any]

    def users_token(self) -> str:
        return self.token(_SUBJECT, **{_CLAIM: _USER})


def _unsecured(folder: Path, stack: ExitStack) -> Cluster:
    broker = Kafka(KAFKA_NEW, folder, settings=_SETTINGS, program=PROGRAM, first_id=_NODE)
    stack.callback(broker.stop)
    (file := folder.with_name("own-token")).write_text(unsecured_token(_PROXY, **{_CLAIM: _PROXY}))
    claims = f'unsecuredLoginStringClaim_sub="{_SUBJECT}" unsecuredLoginStringClaim_{_CLAIM}="{_USER}"'
    java = {"sasl.jaas.config": f"{_LOGIN} {claims};"}
    return Cluster(broker.start(), unsecured_token, (java, ()), {"token_file": str(file)})


def _with_keys(folder: Path, stack: ExitStack) -> Cluster:
    key = SigningKey("first")
    folder.mkdir(parents=True, exist_ok=True)
    (keys := folder / "keys.json").write_text(key.key_set())
    settings = _SETTINGS | validation_settings(keys, _CLAIM)
    options = (allow_url_option(keys.as_uri()),)
    broker = Kafka(KAFKA_NEW, folder, settings=settings, program=PROGRAM, options=options, first_id=_NODE)
    stack.callback(broker.stop)
    for_client, for_proxy = (
        stack.enter_context(token_endpoint(made=partial(key.token, subject, **{_CLAIM: user})))
        for subject, user in ((_SUBJECT, _USER), (_PROXY, _PROXY))
    )
    (secret := folder / "secret").write_text(SECRET)
    java = {
        "sasl.login.callback.handler.class": _OIDC,
        "sasl.oauthbearer.token.endpoint.url": for_client.url,
        "sasl.jaas.config": f'{_LOGIN} clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka";',
    }
    oauth = {"token_url": for_proxy.url, "client_id": CLIENT, "client_secret_file": str(secret), "scope": "kafka"}
    return Cluster(broker.start(), key.token, (java, (allow_url_option(for_client.url),)), {"oauth": oauth})


@pytest.fixture(scope="module", params=[_unsecured, _with_keys], ids=["unsecured", "with keys"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield request.param(tmp_path_factory.mktemp("claims") / "broker", stack)


@pytest.fixture(scope="module")
def proxy(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    settings = {"defaults": DEFAULTS, "exempt": [{"principal": f"User:{user}"} for user in (_SUBJECT, _FORGER)]}
    proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), cluster.broker.bootstrap, settings)
    proxy.config["upstream"]["sasl"] = {"mechanism": "OAUTHBEARER", **cluster.own_login}
    proxy.config["listen"]["broker_port_map"] = {_NODE: free_ports(1)}
    proxy.config["listen"]["sasl.oauthbearer.sub.claim.name"] = _CLAIM
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def _settings(bootstrap: str, given: Callable[[], str]) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (given(), time.time() + 3600),
    }


def _python(cluster: Cluster, bootstrap: str, topic: str, timestamp: int) -> str:
    outcomes: list[str] = []
    producer = Producer(_settings(bootstrap, cluster.users_token))
    producer.produce(
        topic, b"v", timestamp=timestamp, on_delivery=lambda e, _: outcomes.append("ok" if e is None else e.name())
    )
    assert producer.flush(60) == 0
    return outcomes[0]


def _java(cluster: Cluster, bootstrap: str, topic: str, timestamp: int) -> str:
    login, options = cluster.java
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **login}
    return java_record(bootstrap, topic, timestamp, settings, options)


def _javascript(cluster: Cluster, bootstrap: str, topic: str, timestamp: int) -> str:
    return javascript_record(bootstrap, topic, timestamp, {"token": cluster.users_token()})


def _create(cluster: Cluster, topic: str, **config: str) -> None:
    admin = AdminClient(_settings(cluster.broker.bootstrap, cluster.users_token))
    for created in admin.create_topics([NewTopic(topic, 1, 1, config=UNVALIDATED | config)]).values():
        created.result(60)


def _now() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("produce", [_java, _python, _javascript])
def test_the_configured_claim_is_the_principal_and_an_exempt_subject_exempts_no_client(
    cluster: Cluster, proxy: ProxyProcess, produce: Callable[[Cluster, str, str, int], str]
) -> None:
    """Broker and proxy both know User:etl; the token's subject, which `exempt` names, exempts no client."""
    topic = f"claims{produce.__name__}"
    _create(cluster, topic)

    assert produce(cluster, proxy.bootstrap, topic, _now()) == "ok"
    outcome = produce(cluster, proxy.bootstrap, topic, _now() - _OLD_MS)

    assert outcome in ("INVALID_TIMESTAMP", "InvalidTimestampException")
    assert {event["principal"] for event in proxy.wait_for_violations(topic, 1)} == {f"User:{_USER}"}
    assert writers_of(cluster.broker, topic) == {f"User:{_USER}"}


def test_the_proxys_own_login_reads_the_topics_settings(cluster: Cluster, proxy: ProxyProcess) -> None:
    """The cluster's bound is stricter than the file's, so a record that only it rejects proves that it was read."""
    topic = "own-login"
    _create(cluster, topic, **{"message.timestamp.before.max.ms": "60000"})

    eventually(
        lambda: _python(cluster, proxy.bootstrap, topic, _now() - 120_000) == "INVALID_TIMESTAMP",
        what="the cluster's bound",
    )

    (event, *_) = proxy.wait_for_violations(topic, 1)
    assert (event["bound"]["value"], event["bound"]["source"]) == (60_000, "cluster topic setting")
    assert proxy.get("/readyz")[1] == "serving\n"


def test_the_live_view_names_the_principal_that_the_broker_accepted_and_no_other(
    cluster: Cluster, proxy: ProxyProcess
) -> None:
    """A token that another key signed, or that has expired, is rejected by the broker, and its name is not shown."""
    made = (
        partial(unsecured_token, lasts_seconds=-3600) if cluster.token is unsecured_token else SigningKey("first").token
    )
    forged = partial(made, _FORGER, **{_CLAIM: _FORGER})
    outcomes: list[str] = []
    forger = AdminClient(
        _settings(proxy.bootstrap, forged) | {"client.id": "forger", "error_cb": lambda e: outcomes.append(e.name())}
    )
    honest = AdminClient(_settings(proxy.bootstrap, cluster.users_token) | {"client.id": "honest"})
    eventually(lambda: bool(honest.list_topics(timeout=30).topics), what="the honest client's login")

    def is_login_rejected() -> bool:
        forger.poll(0.1)
        return "_AUTHENTICATION" in outcomes

    eventually(is_login_rejected, what="the rejected login")

    connections = json.loads(proxy.get("/api/live")[1])["connections"]["listed"]
    assert {each["principal"] for each in connections if each["client_id"] == "honest"} == {f"User:{_USER}"}
    assert all(each["principal"] is None for each in connections if each["client_id"] == "forger")
    reported = [*proxy.violations(), *map(json.loads, proxy.log().splitlines())]
    assert not any(each.get("principal") == f"User:{_FORGER}" for each in reported)
