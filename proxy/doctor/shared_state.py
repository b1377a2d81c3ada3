"""Checks the state topic: whether it is there with the right settings, and who else may write to it."""

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.state.topic_description import (
    REQUEST_SECONDS,
    TopicUnavailable,
    admin_client,
    describe,
    result_of,
    settings_of,
)
from sluicegate.proxy.state.topic_plan import RIGHTS, plans_of
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client

_ABOUT, _FILE = "state.topic", "state.snapshot_file"
_CLEANUP, _IN_SYNC = "cleanup.policy", "min.insync.replicas"
_CREATE = "run sluicegate bootstrap --state FILE, or create {topic} with {options}, and {rights}"
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
    except TopicUnavailable as error:
        yield CheckResult(
            _ABOUT,
            Level.FAILURE,
            f"{keys.topic}: {error}",
            _CREATE.format(topic=keys.topic, options=plans_of(keys)[0].options, rights=RIGHTS),
        )
    else:
        for result in check_state_topic(keys, topic):
            yield result


def _described(name: str, upstream: Upstream) -> FoundTopic:
    """Raises TopicUnavailable."""
    client = admin_client(upstream)
    found, settings = describe(client, name), settings_of(client, name)
    writers, why = _writers_in(client, name)
    return FoundTopic(found.partitions, found.replicas, settings, writers, why)


def _writers_in(client: Any, name: str) -> tuple[frozenset[str] | None, str]:
    """Return the principals that ACLs let change the topic; or None, and why they are not known."""
    from confluent_kafka import admin  # noqa: PLC0415  # the extra `topic`

    everything: Any = None  # its type hints know only texts
    wanted = admin.AclBindingFilter(
        admin.ResourceType.TOPIC,
        name,
        admin.ResourcePatternType.MATCH,
        everything,
        everything,
        admin.AclOperation.ANY,
        admin.AclPermissionType.ALLOW,
    )
    try:
        acls: Iterable[Any] = result_of(client.describe_acls(wanted, request_timeout=REQUEST_SECONDS))
    except TopicUnavailable as error:
        return None, f"ACLs cannot be read: {error}"
    return frozenset(acl.principal for acl in acls if acl.operation.name in _CHANGES), ""


CHECK = ClusterCheck(45, (), check_shared_state)
