"""Checks the state topic: whether it is there with the right settings, and who else may write to it."""

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.network.tls.contexts import MemoryFiles
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client, client_settings

_ABOUT, _FILE = "state.topic", "state.snapshot_file"
_SECONDS = 5.0
_CLEANUP, _IN_SYNC = "cleanup.policy", "min.insync.replicas"
_CREATE = (
    "create {topic} with --partitions 1 --replication-factor 3 --config cleanup.policy=compact --config "
    "min.insync.replicas=2, and allow the proxy's login READ, WRITE, DESCRIBE and DESCRIBE_CONFIGS on it"
)
_CHANGES = frozenset({"ALL", "ALTER", "ALTER_CONFIGS", "DELETE", "WRITE"})
"""Kafka's AclOperations with which somebody can change what all proxies do."""


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """The state topic in the cluster. `writers`: the principals that ACLs allow to change it; None: unknown, and
    `why_unknown` says why.
    """

    partitions: int
    replicas: int
    settings: dict[str, str]
    writers: frozenset[str] | None
    why_unknown: str = ""


class _NotFound(Exception):
    """The topic cannot be described; the text says why."""


def check_state_topic(keys: StateTopics, topic: FoundTopic) -> Iterator[CheckResult]:
    """Yield what is wrong with the topic, or that nothing is; and who may write to it."""
    wrong = []
    if topic.partitions != 1:
        wrong.append(
            CheckResult(
                _ABOUT,
                Level.FAILURE,
                f"{keys.topic} has {topic.partitions} partitions",
                "make it again with one partition: they cannot be reduced",
            )
        )
    if topic.settings.get(_CLEANUP, "compact") != "compact":
        found = f"{keys.topic} has {_CLEANUP}={topic.settings[_CLEANUP]}: suspensions can be deleted while they apply"
        wrong.append(CheckResult(_ABOUT, Level.FAILURE, found, f"set {_CLEANUP}=compact"))
    in_sync = int(topic.settings.get(_IN_SYNC, "2"))
    if topic.replicas < 2 or in_sync < 2:
        found = (
            f"{keys.topic} has {topic.replicas} replicas and {_IN_SYNC}={in_sync}: a change can be lost with one broker"
        )
        wrong.append(CheckResult(_ABOUT, Level.WARNING, found, f"use 3 replicas and {_IN_SYNC}=2"))
    yield from wrong or [CheckResult(_ABOUT, Level.OK, f"{keys.topic} has one partition and is compacted")]
    yield _writers(keys.topic, topic)


def _writers(name: str, topic: FoundTopic) -> CheckResult:
    about = f"{_ABOUT}: who may write"
    if topic.writers is None:
        return CheckResult(
            about, Level.NOT_CHECKED, topic.why_unknown, "allow the proxy's login DESCRIBE on the cluster"
        )
    if len(topic.writers) > 1:
        found = f"ACLs let {names_shortened(sorted(topic.writers))} change {name}, and so switch enforcement off"
        return CheckResult(about, Level.FAILURE, found, "leave these rights to the proxies' login alone")
    if not topic.writers:  # librdkafka returns no ACLs for brokers without an authorizer, too
        found = f"no ACL says who may change {name}: without an authorizer everybody may, and with one only super users"
        return CheckResult(about, Level.WARNING, found, "allow only the proxies' login to do so, by an ACL")
    return CheckResult(about, Level.OK, f"ACLs let only {next(iter(topic.writers))} change {name}")


def check_snapshot_file(keys: StateTopics) -> Iterator[CheckResult]:
    """Yield whether the snapshot file can be written."""
    if keys.snapshot_file is not None:
        folder = Path(keys.snapshot_file).absolute().parent
        if os.access(folder, os.W_OK | os.X_OK):
            yield CheckResult(_FILE, Level.OK, f"{folder} is writable")
        else:
            found = f"the folder {folder} does not exist or is not writable"
            yield CheckResult(_FILE, Level.FAILURE, found, "mount a writable volume there, or correct the key")


async def check_shared_state(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Check the state topic and the snapshot file, if there is a section `state`."""
    keys = cluster.config.state
    if keys is None:
        return
    for result in check_snapshot_file(keys):
        yield result
    try:
        check_client(_ABOUT)
        topic = await in_daemon_thread(lambda: _described(keys.topic, cluster.config.upstream))
    except ClientMissing as error:
        found, _, advice = str(error).partition(": ")
        yield CheckResult(_ABOUT, Level.FAILURE, found, advice)
    except _NotFound as error:
        yield CheckResult(_ABOUT, Level.FAILURE, f"{keys.topic}: {error}", _CREATE.format(topic=keys.topic))
    else:
        for result in check_state_topic(keys, topic):
            yield result


def _described(name: str, upstream: Upstream) -> FoundTopic:
    """Raises _NotFound."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`
    from confluent_kafka import admin  # noqa: PLC0415  # the extra `topic`

    try:
        with MemoryFiles() as copies:
            client = admin.AdminClient(client_settings(upstream, copies))
        topics = client.describe_topics(confluent_kafka.TopicCollection([name]), request_timeout=_SECONDS)
        partitions = topics[name].result(_SECONDS + 1).partitions
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, name)
        (described,) = client.describe_configs([resource], request_timeout=_SECONDS).values()
        settings = {key: entry.value for key, entry in described.result(_SECONDS + 1).items()}
    except confluent_kafka.KafkaException as error:
        raise _NotFound(str(error.args[0].str())) from None
    except (PasswordUnreadable, OSError, ValueError, TimeoutError) as error:
        raise _NotFound(str(error) or f"no broker responded within {_SECONDS:.0f} s") from None
    replicas = min((len(partition.replicas) for partition in partitions), default=0)
    writers, why = _writers_in(client, admin, name)
    return FoundTopic(len(partitions), replicas, settings, writers, why)


def _writers_in(client: Any, admin: Any, name: str) -> tuple[frozenset[str] | None, str]:
    """Return the principals that ACLs let change the topic; or None, and why they are not known."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    wanted = admin.AclBindingFilter(
        admin.ResourceType.TOPIC,
        name,
        admin.ResourcePatternType.MATCH,
        None,
        None,
        admin.AclOperation.ANY,
        admin.AclPermissionType.ALLOW,
    )
    try:
        acls: Iterable[Any] = client.describe_acls(wanted, request_timeout=_SECONDS).result(_SECONDS + 1)
    except confluent_kafka.KafkaException as error:
        return None, f"ACLs cannot be read: {error.args[0].str()}"
    except TimeoutError:
        return None, f"no broker has listed ACLs within {_SECONDS:.0f} s"
    return frozenset(acl.principal for acl in acls if acl.operation.name in _CHANGES), ""


CHECK = ClusterCheck(45, (), check_shared_state)
