"""Checks the shared state's topics: whether they exist, their settings, and which other principals
may write to them.
"""

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.doctor.shared_topics import FoundTopic, check_topic
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.state.topic_description import (
    REQUEST_SECONDS,
    TopicUnavailable,
    admin_client,
    describe,
    result_of,
    settings_of,
)
from sluicegate.proxy.state.topic_plan import TopicPlan, plans_of
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client

_FILE = "state.snapshot_file"
_CHANGES = frozenset({"ALL", "ALTER", "ALTER_CONFIGS", "DELETE", "WRITE"})
"""Kafka's AclOperations that let a principal change what all proxies do."""


def check_snapshot_file(keys: StateTopics) -> Iterator[CheckResult]:
    """Yield a result that tells whether the snapshot file can be written."""
    if keys.snapshot_file is not None:
        folder = Path(keys.snapshot_file).absolute().parent
        if os.access(folder, os.W_OK | os.X_OK):
            yield CheckResult(_FILE, Level.OK, f"{folder} is writable")
        else:
            found = f"the folder {folder} does not exist or is not writable"
            yield CheckResult(_FILE, Level.FAILURE, found, "mount a writable volume there, or correct the key")


async def check_shared_state(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Check the topics and the snapshot file, if the configuration has a section `state`."""
    keys = cluster.config.state
    if keys is None:
        return
    for result in check_snapshot_file(keys):
        yield result
    try:
        check_client("state.topic")
    except ClientMissing as error:
        found, _, advice = str(error).partition(": ")
        yield CheckResult("state.topic", Level.FAILURE, found, advice)
        return
    for plan in plans_of(keys):
        for result in await in_daemon_thread(partial(_checked, plan, cluster.config.upstream)):
            yield result


def _checked(plan: TopicPlan, upstream: Upstream) -> list[CheckResult]:
    try:
        client = admin_client(upstream)
        found, settings = describe(client, plan.name), settings_of(client, plan.name)
    except TopicUnavailable as error:
        return [CheckResult(plan.key, Level.FAILURE, f"{plan.name}: {error}", plan.remedy)]
    writers, why = _writers_in(client, plan.name)
    return list(check_topic(plan, FoundTopic(found.partitions, found.replicas, settings, writers, why)))


def _writers_in(client: Any, name: str) -> tuple[frozenset[str] | None, str]:
    """Return the principals that ACLs allow to change the topic. If they are unknown, return None and the reason."""
    from confluent_kafka import admin  # noqa: PLC0415  # the extra `topic`

    everything: Any = None  # the library's type hints allow only strings
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
