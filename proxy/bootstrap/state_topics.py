"""Creates the shared state's missing topics, and checks the existing ones (`sluicegate bootstrap --state`)."""

from collections.abc import Iterator
from typing import Any

from sluicegate.config.model import Config
from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.proxy.state.topic_description import (
    REQUEST_SECONDS,
    TopicUnavailable,
    admin_client,
    connected,
    describe,
    result_of,
    settings_of,
)
from sluicegate.proxy.state.topic_plan import REPLICAS, TopicPlan, plans_of

_OPERATIONS = ("Read", "Write", "Describe", "DescribeConfigs")


def create_topics(config: Config, keys: StateTopics, login: Upstream) -> Iterator[str]:
    """Create the missing topics with this login.

    Yield a line for each action and each difference. Blocks for up to a few seconds. Raises TopicUnavailable.
    """
    client = admin_client(login)
    brokers = _brokers(login)
    if brokers < REPLICAS:
        yield f"the cluster has {brokers} brokers: a topic with {REPLICAS} replicas needs {REPLICAS} brokers"
    for plan in plans_of(keys, brokers):
        yield from _make(client, plan)
    yield from _acls(config, keys)


def _brokers(login: Upstream) -> int:
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    client = connected(login, confluent_kafka.Producer)
    try:
        return len(client.list_topics(timeout=REQUEST_SECONDS).brokers)
    except confluent_kafka.KafkaException as error:
        raise TopicUnavailable(str(error.args[0].str())) from None


def _make(client: Any, plan: TopicPlan) -> Iterator[str]:
    from confluent_kafka.admin import NewTopic  # noqa: PLC0415  # the extra `topic`

    try:
        found = describe(client, plan.name)
    except TopicUnavailable as error:
        if not error.is_missing:
            raise
        new = NewTopic(plan.name, 1, plan.replicas, config=dict(plan.settings))
        result_of(client.create_topics([new], request_timeout=REQUEST_SECONDS)[plan.name])
        yield f"{plan.key}: created {plan.name} with {plan.options}"
        return
    differences = []
    if found.partitions != 1:
        differences.append(f"{found.partitions} partitions instead of 1")
    if found.replicas < plan.replicas:
        differences.append(f"{found.replicas} replicas instead of {plan.replicas}")
    actual = settings_of(client, plan.name)
    differences += [
        f"{name}={actual.get(name)} instead of {value}"
        for name, value in plan.settings.items()
        if actual.get(name) != value
    ]
    yield f"{plan.key}: {plan.name} exists and was not changed; " + (
        "; ".join(differences) or "its settings are correct"
    )


def _acls(config: Config, keys: StateTopics) -> Iterator[str]:
    """Yield instructions for letting only the proxies write to the topics."""
    sasl, bootstrap = config.upstream.sasl, config.upstream.bootstrap[0]
    principal = "PROXY" if sasl is None or sasl.username is None else sasl.username
    operations = " ".join(f"--operation {each}" for each in _OPERATIONS)
    topics = " ".join(f"--topic {plan.name}" for plan in plans_of(keys))
    yield "every principal that may write to these topics can disable enforcement. Allow only the proxies' login, with"
    command = f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal User:{principal}"
    yield f"  {command} {operations} {topics}"
    yield "and look for other writers with: sluicegate doctor --config FILE"
