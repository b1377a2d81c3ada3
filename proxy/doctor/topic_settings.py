"""Checks whether the topic settings that the proxies share (`sluicegate.*`) are in force."""

from collections.abc import AsyncIterator, Iterator

from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.state.settings_now import read_settings_table
from sluicegate.proxy.state.settings_table import SettingsTable
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.names_only import NamesOnly
from sluicegate.validation.rulebook import FilePolicies
from sluicegate.validation.rules.rule import RuleUnusable
from sluicegate.validation.topic_policy import policy_by_usable_settings

_ABOUT = "topic settings"
_MOST_NAMED = 20


async def check_topic_settings(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Check each topic's settings, if the configuration has a section `state`."""
    keys, upstream = cluster.config.state, cluster.config.upstream
    if keys is None:
        return
    try:
        check_client("state.topic")
        table = await in_daemon_thread(lambda: read_settings_table(upstream, keys.topic))
    except (ClientMissing, TopicUnavailable):
        return  # the check of the shared state reports it
    found = await in_daemon_thread(lambda: list(_checked(cluster, table)))
    for result in found[:_MOST_NAMED]:
        yield result
    if len(found) > _MOST_NAMED:
        more = f"{len(found) - _MOST_NAMED} more settings are not in force"
        yield CheckResult(_ABOUT, Level.WARNING, more, "sluicegate explain shows what applies to a topic")
    if len(table) and not found:
        yield CheckResult(_ABOUT, Level.OK, f"the settings of {len(table)} topics are in force")


def _checked(cluster: CheckedCluster, table: SettingsTable) -> Iterator[CheckResult]:
    try:
        file = file_policies_of(cluster.config, NamesOnly(), cluster.source)
    except RuleUnusable:
        return  # the check of the policies reports it
    for topic in sorted(topic for topic, _ in table):
        yield from _of(cluster, file, topic, table)


def _of(cluster: CheckedCluster, file: FilePolicies, topic: str, table: SettingsTable) -> Iterator[CheckResult]:
    """Yield a result for each of a topic's settings that has no effect."""
    its = table.of(topic)
    values = {} if its is None else its.values
    place, source = file.place_of(topic), cluster.source
    policy, entry, reasons = policy_by_usable_settings(cluster.config, topic, values, place, NamesOnly(), source)
    for reason in reasons:
        advice = f"delegate the key in topic_policies, or delete the setting of {topic} with kafka-configs.sh"
        yield CheckResult(_ABOUT, Level.WARNING, f"{topic}: {reason}", advice)
    if policy is None or entry is None:
        return
    in_force = file.with_topics({topic: policy}, rules_name_principals=False).policy_of(topic)
    for key, name in entry.settings.items():
        path = in_force.origins.paths.get(key)
        if path is not None and path[0] == "floor":
            found = f"{topic}: {name} is weaker than the floor ({source.place_of(path)}), which applies"
            yield CheckResult(_ABOUT, Level.WARNING, found, "set a stricter value, or delete the setting")


CHECK = ClusterCheck(46, (), check_topic_settings)
