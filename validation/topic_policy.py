"""Builds a topic's policy from its topic settings (`sluicegate.*`) and the configuration."""

from collections.abc import Mapping

from sluicegate.config.files.source import Source
from sluicegate.config.model import Config
from sluicegate.validation.from_keys import policy_of_entry
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rules.from_keys import RuleMaker
from sluicegate.validation.rules.rule import RuleUnusable
from sluicegate.validation.topic_entry import SettingUnusable, TopicEntry, entry_of


def policy_by_settings(
    config: Config, topic: str, values: Mapping[str, str], place: int | None, maker: RuleMaker, source: Source
) -> tuple[TopicPolicy, TopicEntry]:
    """Return the policy of a topic with these settings, and its keys.

    `place` is the position of the `topics` entry that applies to it, or None. Blocks. Raises SettingUnusable.
    """
    entry = entry_of(config, topic, values, None if place is None else config.topics[place])
    try:
        policy = policy_of_entry(config, entry, place, maker, source)
    except RuleUnusable as error:
        raise SettingUnusable(next(iter(values)), str(error)) from None
    return policy, entry


def policy_by_usable_settings(
    config: Config, topic: str, values: Mapping[str, str], place: int | None, maker: RuleMaker, source: Source
) -> tuple[TopicPolicy | None, TopicEntry | None, list[str]]:
    """Return the same as `policy_by_settings` for the usable settings, and why the others are unusable.

    The policy and the keys are None if no setting is usable.
    """
    left = dict(values)
    reasons: list[str] = []
    while left:
        try:
            return *policy_by_settings(config, topic, left, place, maker, source), reasons
        except SettingUnusable as error:
            reasons.append(f"{error.key}: {error}")
            del left[error.key if error.key in left else next(iter(left))]
    return None, None, reasons
