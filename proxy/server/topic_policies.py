"""Puts the cluster's topic settings (`sluicegate.*`) in force in one process, and validates new ones."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from sluicegate.config.setting_keys import SETTING_KEYS, SettingKey
from sluicegate.config.topic_policies import delegated_keys
from sluicegate.protocol.errors import ErrorCode
from sluicegate.proxy.network.daemon_thread import DaemonThread
from sluicegate.proxy.reload.topic_policies import (
    CompiledTopicPolicies,
    Configured,
    topic_policies_of,
)
from sluicegate.proxy.server.first_read import FirstRead
from sluicegate.proxy.server.settings_store import Commit
from sluicegate.proxy.session.topic_settings import SettingRefusal
from sluicegate.proxy.state.settings_table import TopicValues
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.topic_entry import NotDelegated, SettingUnusable
from sluicegate.validation.topic_policy import policy_by_settings

MOST_CHARACTERS = 48_000
"""The maximum number of characters in all of a topic's settings."""
_MOST_NAMED = 20


class TopicPoliciesInForce:
    """One process's topic settings and their policies. Belongs to the event loop; any thread may read it."""

    def __init__(self, rules: RulesInForce, configured: Configured, status: Status, commit: Commit) -> None:
        self._rules = rules
        self._status = status
        self.commit = commit
        self.first_read = FirstRead()
        self.configured = configured
        self._values: dict[str, TopicValues] = {}
        self.compiled = CompiledTopicPolicies()
        self._compiling = DaemonThread("topic settings")
        self._version = self._compiled_version = 0
        self._again: asyncio.Task[None] | None = None

    async def adopt(self, changes: Mapping[str, TopicValues | None]) -> None:
        """Put changed settings in force. A thread compiles the policies, in the order of the calls."""
        self._version += 1
        self._values |= {topic: its for topic, its in changes.items() if its is not None}
        for topic in (topic for topic, its in changes.items() if its is None):
            self._values.pop(topic, None)
        new = await self._compiling.do(lambda: topic_policies_of(self.configured, changes))
        self._activate(self.compiled.with_changes(changes, new))

    async def compile_all(self, configured: Configured) -> CompiledTopicPolicies:
        """Return another configuration's policies for all topics with settings."""
        values = dict(self._values)
        self._compiled_version = self._version
        return await self._compiling.do(lambda: topic_policies_of(configured, values))

    def configure(self, configured: Configured, compiled: CompiledTopicPolicies) -> None:
        """Put another configuration in force, with the policies that `compile_all` returned for it."""
        self.configured = configured
        self._activate(compiled)
        if self._compiled_version != self._version:  # settings have changed since
            self._again = asyncio.get_running_loop().create_task(self.adopt(dict(self._values)))

    def close(self) -> None:
        """End the thread."""
        self._compiling.close()

    @property
    def are_known(self) -> bool:
        """Whether the settings in the state topic are in force."""
        return self.first_read.is_done

    def await_known(self, report: Callable[[], None]) -> None:
        """Call `report` when the settings in the state topic are in force, or after a few seconds from the start."""
        self.first_read.wait(report)

    def settings_of(self, topic: str) -> Mapping[str, str]:
        """Return a topic's settings; an empty mapping if it has none."""
        its = self._values.get(topic)
        return {} if its is None else its.values

    def keys_of(self, topic: str) -> Sequence[SettingKey]:
        """Return the keys that a topic's owners may set."""
        return [SETTING_KEYS[name] for name in delegated_keys(self.configured.config.topic_policies, topic)]

    def refusal(self, topic: str, values: Mapping[str, str]) -> SettingRefusal | None:
        """Return why a topic cannot have exactly these settings, or None if it can. Blocks."""
        known, delegated = self.settings_of(topic), delegated_keys(self.configured.config.topic_policies, topic)
        # An unchanged setting whose key is no longer delegated does not prevent changes of others.
        new = {name: value for name, value in values.items() if name in delegated or known.get(name) != value}
        if sum(len(name) + len(value) for name, value in new.items()) > MOST_CHARACTERS:
            return SettingRefusal(
                ErrorCode.INVALID_CONFIG,
                f"the sluicegate settings of {topic} have more than {MOST_CHARACTERS} characters in total",
            )
        if not new:
            return None
        try:
            its = self.configured
            policy_by_settings(its.config, topic, new, its.file.place_of(topic), its.maker, its.source)
        except NotDelegated as error:
            return SettingRefusal(ErrorCode.POLICY_VIOLATION, f"{error.key}: {error}")
        except SettingUnusable as error:
            return SettingRefusal(
                ErrorCode.INVALID_CONFIG, f"Invalid value {_shown(new, error.key)} for {error.key}: {error}"
            )
        return None

    def _activate(self, compiled: CompiledTopicPolicies) -> None:
        self.compiled = compiled
        self._rules.adopt(self.configured.file.with_topics(compiled.policies, compiled.rules_name_principals))
        problems = self.compiled.problems
        named = dict(list(problems.items())[:_MOST_NAMED])
        if len(problems) > len(named):
            named["more"] = f"and {len(problems) - len(named)} more topics"
        self._status.set_all(
            Condition.TOPIC_SETTING_UNUSABLE,
            {topic: f"topic settings of {topic} without effect: {reason}" for topic, reason in named.items()},
        )


def _shown(values: Mapping[str, str], name: str) -> str:
    value = values.get(name, "")
    return value if len(value) <= 100 else f"{value[:100]}…"
