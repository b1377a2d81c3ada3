"""The operator's floor: a policy that topics' own policies cannot weaken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluicegate.config.files.source import Path
from sluicegate.config.teams import Floor as FloorKeys
from sluicegate.config.topics import STRICTNESS_OF_FRAMING, STRICTNESS_OF_MODE, TopicKeys
from sluicegate.config.values.glob_cover import is_within
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import (
    AFTER_MAX,
    BEFORE_MAX,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
)
from sluicegate.validation.origins import PolicyOrigins, rule_paths
from sluicegate.validation.policy import Framing, TimestampType, TopicPolicy
from sluicegate.validation.rules.from_keys import RuleMaker, rule_set_of
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.topic_patterns import TopicPatterns

_RAISED = {
    "timestamp_type": TIMESTAMP_TYPE,
    "before_max_ms": BEFORE_MAX,
    "after_max_ms": AFTER_MAX,
    "compacted": CLEANUP_POLICY,
    "max_message_bytes": MAX_MESSAGE_BYTES,
    "checked": "checks",
    "mode": "mode",
    "framing": "framing",
}
"""The policy fields that a floor may raise, and their keys."""

_KEYS_OF_POLICIES = frozenset({TIMESTAMP_TYPE, "checks"})
"""Keys that a floor does not contain."""

_KEPT_WITHOUT_CHECKS = frozenset({TIMESTAMP_TYPE, "samples", "owner"})


@dataclass(frozen=True, slots=True)
class FloorPolicy:
    """The weakest policy that a topic may have. The fields are those of TopicPolicy.

    `rules` is None if the floor has no rules. `path` is the path of the floor's entry, and `rule_paths` maps the names
    of its rules to their paths.
    """

    before_max_ms: int = LONG_MAX
    after_max_ms: int = LONG_MAX
    compacted: bool = False
    max_message_bytes: int | None = None
    mode: Mode = Mode.REJECT
    framing: Framing = Framing.SAFE
    rules: RuleSet | None = None
    path: Path = ("floor",)
    rule_paths: Mapping[str, Path] = field(default_factory=dict)

    def with_floor(self, policy: TopicPolicy) -> TopicPolicy:
        """Return the policy, using the floor's value for each key for which the floor is stricter.

        A floor that rejects applies to all clients. The topic's `enforce` applies only to the topic's own stricter
        values. Only the floor applies to a topic without checks. If the floor bounds timestamps, they are validated
        whatever the policy's timestamp type is; only the cluster's own setting can disable this.
        """
        given = policy
        if not policy.checked:
            policy = _without_checks(policy)
        alone = None
        if policy.enforced is not None and self.mode is not Mode.OBSERVE:
            alone = self.with_floor(_without_checks(policy))
        bounds_times = min(self.before_max_ms, self.after_max_ms) < LONG_MAX
        sizes = [size for size in (policy.max_message_bytes, self.max_message_bytes) if size is not None]
        raised = replace(
            policy,
            timestamp_type=TimestampType.CREATE_TIME if bounds_times else policy.timestamp_type,
            before_max_ms=min(policy.before_max_ms, self.before_max_ms),
            after_max_ms=min(policy.after_max_ms, self.after_max_ms),
            compacted=policy.compacted or self.compacted,
            max_message_bytes=min(sizes, default=None),
            mode=self._mode_above(policy),
            floor_of_others=alone,
            framing=max(policy.framing, self.framing, key=_strictness_of_framing),
            rules=_both(self.rules, policy.rules),
        )
        return replace(raised, origins=self._origins(given, raised))

    def _mode_above(self, policy: TopicPolicy) -> Mode:
        if STRICTNESS_OF_MODE[policy.mode.value] >= STRICTNESS_OF_MODE[self.mode.value]:
            return policy.mode
        return self.mode if policy.dead_letters is None else Mode.QUARANTINE

    def _origins(self, given: TopicPolicy, raised: TopicPolicy) -> PolicyOrigins:
        """Return the origins, updated for each value that this floor raised."""
        changed = (key for name, key in _RAISED.items() if getattr(given, name) != getattr(raised, name))
        own = {key: self.path if key in _KEYS_OF_POLICIES else (*self.path, key) for key in changed}
        paths = {**raised.origins.paths, **own}
        return replace(raised.origins, paths=paths, rules={**raised.origins.rules, **self.rule_paths})


def _without_checks(policy: TopicPolicy) -> TopicPolicy:
    """Return a policy without bounds. It keeps only those fields of `policy` that bound nothing."""
    paths = {key: path for key, path in policy.origins.paths.items() if key in _KEPT_WITHOUT_CHECKS}
    return TopicPolicy(
        policy.timestamp_type,
        mode=Mode.OBSERVE,
        samples=policy.samples,
        owner=policy.owner,
        client_owners=policy.client_owners,
        origins=replace(policy.origins, paths=paths, rules={}),
    )


def _strictness_of_framing(framing: Framing) -> int:
    return STRICTNESS_OF_FRAMING[framing.value]


class Floors:
    """A configuration's floors. The first pattern that matches the whole topic name applies. Thread-safe."""

    def __init__(self, keys: Sequence[FloorKeys], defaults: TopicKeys, maker: RuleMaker) -> None:
        """Compile floors. `defaults` provides a missing `mode` or `framing`. Raises RuleUnusable."""
        self._matches = [each.match for each in keys]
        self._patterns = TopicPatterns(self._matches)
        self._floors = [_floor(each, ("floor", i), defaults, maker) for i, each in enumerate(keys)]
        self._raised: dict[tuple[int, int], tuple[TopicPolicy, TopicPolicy]] = {}

    @property
    def has_rules(self) -> bool:
        """Return whether any floor has rules."""
        return any(floor is not None and floor.rules is not None for floor in self._floors)

    def with_floor(self, topic: str, policy: TopicPolicy) -> TopicPolicy:
        """Return a topic's policy with its floor applied. Equal arguments return the same object."""
        return self._raised_by(self._patterns.first_match(topic), policy)

    def with_floor_once(self, topic: str, policy: TopicPolicy) -> TopicPolicy:
        """Return the same as `with_floor`, but without caching. Policies from topic settings change at any time."""
        place = self._patterns.first_match(topic)
        floor = None if place is None else self._floors[place]
        return policy if floor is None else floor.with_floor(policy)

    def with_floor_of_pattern(self, pattern: str, policy: TopicPolicy) -> TopicPolicy:
        """Return the policy of a pattern's topics, with the first floor that provably covers all of them."""
        found = (i for i, match in enumerate(self._matches) if is_within(pattern, [match]))
        return self._raised_by(next(found, None), policy)

    def _raised_by(self, place: int | None, policy: TopicPolicy) -> TopicPolicy:
        floor = None if place is None else self._floors[place]
        if place is None or floor is None:
            return policy
        known = self._raised.get((id(policy), place))
        if known is None:  # the policy is kept alive, so that its id is not reused
            known = self._raised[id(policy), place] = (policy, floor.with_floor(policy))
        return known[1]


def _floor(keys: FloorKeys, path: Path, defaults: TopicKeys, maker: RuleMaker) -> FloorPolicy | None:
    if keys == FloorKeys(match=keys.match):
        return None
    return FloorPolicy(
        LONG_MAX if keys.before_max_ms is None else keys.before_max_ms,
        LONG_MAX if keys.after_max_ms is None else keys.after_max_ms,
        keys.cleanup_policy is not None,
        keys.max_message_bytes,
        Mode(keys.mode or defaults.mode or "reject"),
        Framing(keys.framing or defaults.framing or "safe"),
        rule_set_of(keys.rules, maker),
        path,
        rule_paths(keys.rules, (*path, "rules")),
    )


def _both(first: RuleSet | None, then: RuleSet | None) -> RuleSet | None:
    if first is None or then is None:
        return first or then
    return RuleSet((*first.rules, *then.rules))
