"""Topic settings at three proxies of a cluster with ACLs only change with permission, and survive while proxies and a
broker are killed.

With `SLUICEGATE_THOROUGH`, there are 1,000 changes instead of 60.
"""

import os
import random
import threading

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_agreement_under_faults import TOPICS, WRITERS, acl_allowing, client_login, cluster, proxies

__all__ = ["cluster", "proxies"]  # fixtures

pytestmark = pytest.mark.long

CHANGES = 1000 if os.environ.get("SLUICEGATE_THOROUGH") else 60
ROUNDS = 3  # of kills
OWNER = "sluicegate.owner"
DENIED = 29


@pytest.fixture
def delegating(cluster: Kafka, proxies: list[ProxyProcess]) -> list[ProxyProcess]:
    """Return the proxies with delegated keys. Their login may describe the topics."""
    admin = AdminClient(client_login("admin") | {"bootstrap.servers": cluster.bootstrap})
    rights = [acl_allowing("User:proxies", ResourceType.TOPIC, topic, AclOperation.DESCRIBE) for topic in TOPICS]
    for done in admin.create_acls(rights).values():
        done.result(60)
    for proxy in proxies:
        proxy.stop()
        proxy.config["topic_policies"] = [{"topics": ["topic-*"], "keys": ["owner", "mode"]}]
        proxy.start()
    return proxies


class Team(threading.Thread):
    """The owners of some topics, who change their settings at any proxy, each change until it is accepted.

    `expected` has the last accepted value of each topic.
    """

    def __init__(self, number: int, proxies: list[ProxyProcess], over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._admins = [
            AdminClient(client_login("alice") | {"bootstrap.servers": each.bootstrap, "log_level": 0})
            for each in proxies
        ]
        self._over = over
        self.expected: dict[str, str] = {}
        self.done = 0

    def run(self) -> None:
        rng = random.Random(self._number)
        for i in range(CHANGES // len(WRITERS)):
            topic, value = rng.choice(WRITERS[self._number]), f"team-{self._number}-{i}"
            while not self._is_accepted(rng.choice(self._admins), topic, value):
                if self._over.wait(0.1):
                    return
            self.expected[topic] = value
            self.done += 1

    def _is_accepted(self, admin: AdminClient, topic: str, value: str) -> bool:
        entry = ConfigEntry(OWNER, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        try:
            admin.incremental_alter_configs([resource], request_timeout=20)[resource].result(30)
        except (KafkaException, TimeoutError):
            return False
        return True


def owners_at(proxy: ProxyProcess) -> dict[str, str]:
    """Return the owner of each topic by its topic settings, as DescribeConfigs shows them."""
    admin = AdminClient(client_login("alice") | {"bootstrap.servers": proxy.bootstrap, "log_level": 0})
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in TOPICS]
    found = {}
    for resource, described in admin.describe_configs(resources, request_timeout=30).items():
        entry = described.result(60).get(OWNER)
        if entry is not None and entry.value is not None:
            found[resource.name] = entry.value
    return found


def test_settings_agree_after_many_changes_and_kills(cluster: Kafka, delegating: list[ProxyProcess]) -> None:
    over = threading.Event()
    teams = [Team(number, delegating, over) for number in range(len(WRITERS))]
    try:
        for team in teams:
            team.start()
        for round_ in range(1, ROUNDS + 1):
            share = round_ * CHANGES // (ROUNDS + 1)
            eventually(lambda share=share: sum(each.done for each in teams) >= share, 600, f"{share} changes")
            if round_ == 2:
                cluster.kill(cluster.nodes[0])
            for proxy in delegating:
                proxy.kill()
                proxy.start()
            if round_ == 2:
                cluster.start_node(cluster.nodes[0])
        for team in teams:
            team.join(600)
            assert not team.is_alive()
    finally:
        over.set()
    expected = {topic: value for team in teams for topic, value in team.expected.items()}
    for proxy in delegating:
        eventually(lambda proxy=proxy: owners_at(proxy) == expected, 60, f"{expected} at {proxy.admin}")


def test_a_client_without_the_acl_gets_the_brokers_error(cluster: Kafka, delegating: list[ProxyProcess]) -> None:
    """The login `proxies` may describe the topic, and not alter it."""
    proxy, topic = delegating[0], TOPICS[0]
    before = owners_at(proxy).get(topic)
    for bootstrap, key in ((cluster.bootstrap, "retention.ms"), (proxy.bootstrap, OWNER)):
        admin = AdminClient(client_login("proxies") | {"bootstrap.servers": bootstrap})
        entry = ConfigEntry(key, "7200000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        with pytest.raises(KafkaException) as refused:
            admin.incremental_alter_configs([resource])[resource].result(60)
        assert refused.value.args[0].code() == DENIED
    assert owners_at(proxy).get(topic) == before
