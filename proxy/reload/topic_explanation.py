"""Explains a topic's policy: each value in force, its source and the reason (`sluicegate explain`, the web UI)."""

from collections.abc import Callable, Iterator
from typing import Any

from sluicegate.config.files.source import Path
from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import Loaded
from sluicegate.config.section import is_section
from sluicegate.config.topics import Topic
from sluicegate.config.values.contract import contract_of
from sluicegate.config.values.glob_cover import probably_intended_glob
from sluicegate.config.values.password import SecretText
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.cluster.topics import SETTINGS_OFF, SettingsRead
from sluicegate.proxy.reload.policy_history import PolicyHistory
from sluicegate.validation.cluster_settings import CLEANUP_POLICY, DIFFERENCE_MAX, MAX_MESSAGE_BYTES
from sluicegate.validation.effective import EffectiveValue, effective_policy
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.names_only import NamesOnly
from sluicegate.validation.origins import TOPIC_SETTINGS, OriginKind
from sluicegate.validation.policy import TimestampType, TopicPolicy
from sluicegate.validation.rulebook import NOTHING_SUSPENDED, Rulebook, SuspendedTopics
from sluicegate.validation.rules.from_keys import RuleMaker
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.topic_patterns import TopicPatterns
from sluicegate.validation.topic_policy import policy_by_usable_settings

_KEYS = [key.name for key in each_key_of(Topic) if key.name not in ("match", DIFFERENCE_MAX)]
_MOST_LATER = 5
_NEVER_IN_A_FLOOR = frozenset({"enforce", "rehearse", "fix", "quarantine", "sensitive", "rules", "requests", "checks"})
NO_TOPIC = "this is not a valid topic name, and brokers reject it (at most 249 letters, digits, . _ -)"
NOT_ASKED = SettingsRead(reason="the cluster was not queried")

ReadSettings = Callable[[str], SettingsRead]
"""Returns the cluster's settings that the proxy applies to a topic. Blocks."""


class TopicExplanation:
    """Explains one topic's policy: the configured policy, tightened by the cluster's settings in `read`.

    `maker` creates the rules of `policy`. If it is None, the rules have only names. Raises RuleUnusable.
    """

    def __init__(
        self,
        topic: str,
        loaded: Loaded,
        read: SettingsRead = NOT_ASKED,
        suspended: SuspendedTopics = NOTHING_SUSPENDED,
        maker: RuleMaker | None = None,
    ) -> None:
        self._topic = topic
        self._loaded = loaded
        self._read = read
        self._place = TopicPatterns([entry.match for entry in loaded.config.topics]).first_match(topic)
        deciding = len(loaded.config.topics) if self._place is None else self._place
        rules = maker or NamesOnly()
        in_file = file_policies_of(loaded.config, rules, loaded.source, deciding)
        policy, self._entry, self._unusable = policy_by_usable_settings(
            loaded.config, topic, read.shared, self._place, rules, loaded.source
        )
        if policy is not None:
            in_file = in_file.with_topics({topic: policy}, rules_name_principals=True)
        rulebook = Rulebook(in_file, suspended=suspended).with_settings({topic: read.settings})
        self.policy = rulebook.policy_of(topic)
        self.exempts = rulebook.exempts
        self.values = effective_policy(self.policy)

    def decides(self) -> str:
        """Return which entry applies."""
        if self._place is None:
            return f"{self._topic}: no entry of topics matches; defaults apply"
        path = ("topics", self._place)
        match = self._loaded.config.topics[self._place].match
        source = self._loaded.source
        return f"{self._topic}: {source.key_of(path)} decides (match: {match}, {source.place_of((*path, 'match'))})"

    def cluster_settings_text(self) -> str:
        """Return a sentence that says whether the cluster's settings are included."""
        if self._read.settings is not None:
            return "the cluster's settings of this topic were read: the stricter value applies"
        if self._read.reason == SETTINGS_OFF:
            return f"the cluster's settings do not apply: {SETTINGS_OFF}"
        return (
            f"the cluster's settings of this topic were not read ({self._read.reason}): a running proxy applies those "
            f"that are stricter"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for the API (docs/web-ui.md)."""
        source, path = self._loaded.source, ("topics", self._place or 0)
        entry = None if self._place is None else source.key_of(path)
        is_off = self._read.reason == SETTINGS_OFF
        owner = self.policy.owner
        return {
            "topic": self._topic,
            "owner": None if owner is None else {"team": owner.team, "contact": owner.contact},
            "lines": [self.decides(), *self.lines()],
            "effective": [value.as_json() for value in self.values],
            "source": {
                "entry": entry,
                "match": None if self._place is None else self._loaded.config.topics[self._place].match,
                "place": None if self._place is None else source.place_of((*path, "match")),
                "cluster_settings": "read" if self._read.settings else "off" if is_off else "not read",
                "reason": self._read.reason,
            },
        }

    def lines(self) -> Iterator[str]:
        """Yield a line for each key in force, and then notes."""
        yield from self._near_misses() if self._place is None else self._later(self._place + 1)
        yield f"  {self.cluster_settings_text()}"
        yield from (f"  topic setting without effect: {reason}" for reason in self._unusable)
        width = max(map(len, _KEYS))
        known = {value.key: value for value in reversed(self.values)}
        for key in _KEYS:
            text, source = self._text_of(known[key]), known[key].source
            rules = self._rules() if key == "rules" else []
            if rules:
                text, source = str(len(rules)), ", ".join(dict.fromkeys(self._stands(path[:-1]) for path, _ in rules))
            yield f"  {key:<{width}}  {text}  ({source})"
            for path, rule in rules:
                yield f"    {_shown(rule)}  ({self._stands(path)})"
        contract = contract_of(self._loaded.source.contracts, self._topic)
        if contract is not None:
            yield from (f"  {line}" for line in contract.lines())
        yield from self._requests()
        yield from self._notes()

    def _rules(self) -> list[tuple[Path, Any]]:
        """Return each rule's path and keys."""
        names = [value.value for value in self.values if value.key == "rules" and value.value is not None]
        paths = [self.policy.origins.rules[str(name)] for name in names]
        return [(path, self._section_at(path).rules[path[-1]]) for path in paths]

    def _section_at(self, path: Path) -> Any:
        """Return the section of the configuration that contains the key at `path`."""
        if path[0] == TOPIC_SETTINGS and self._entry is not None:
            return self._entry.keys
        section = getattr(self._loaded.config, str(path[0]))
        return section if path[0] == "defaults" else section[path[1]]

    def _text_of(self, value: EffectiveValue) -> str:
        if value.key == CLEANUP_POLICY and self.policy.compacted:
            return "compact (null keys are rejected)"
        if value.key == MAX_MESSAGE_BYTES and value.value is None:
            return "the broker's own"
        path = self.policy.origins.paths.get(value.key)
        if value.key in ("enforce", "fix", "rehearse") and value.value is not None and path is not None:
            return _shown(getattr(self._section_at(path), value.key))
        return "none" if value.value is None else _shown(value.value)

    def _requests(self) -> Iterator[str]:
        """Yield the request rules that apply to the topic, the exempt clients, and the quotas."""
        config = self._loaded.config
        for i, rule in enumerate(config.requests):
            if rule.match.topics is None or _matches(rule.match.topics, self._topic):
                yield f"  requests: {_shown(rule)}  ({self._stands(('requests', i))})"
        for i, exempt in enumerate(config.exempt):
            if exempt.topics is None or any(_matches(pattern, self._topic) for pattern in exempt.topics):
                yield f"  exempt: {_shown(exempt)}  ({self._stands(('exempt', i))})"
        for i, quota in enumerate(config.quotas):
            if quota.topic is None or _matches(quota.topic, self._topic):
                yield f"  quotas: {_shown(quota)}  ({self._stands(('quotas', i))})"

    def _stands(self, path: Path) -> str:
        if path[0] == TOPIC_SETTINGS:
            return f"{OriginKind.TOPIC_SETTING} {path[1]}"
        source = self._loaded.source
        return f"{source.place_of(path)}, {source.key_of(path)}"

    def _later(self, first: int) -> Iterator[str]:
        """Yield the matching entries from index `first` on, which do not apply."""
        entries = self._loaded.config.topics
        later = [i for i in range(first, len(entries)) if _matches(entries[i].match, self._topic)]
        for i in later[:_MOST_LATER]:
            words = "also matches, but comes later: the first match decides"
            yield f"  {self._stands(('topics', i, 'match'))}: {entries[i].match} {words}"
        if len(later) > _MOST_LATER:
            yield f"  and {len(later) - _MOST_LATER} more entries also match"

    def _near_misses(self) -> Iterator[str]:
        for i, entry in enumerate(self._loaded.config.topics):
            meant = probably_intended_glob(entry.match)
            if meant is not None and self._topic.startswith(meant[:-1]):
                where = self._loaded.source.place_of(("topics", i, "match"))
                yield f"  hint: {where}: the dot in {entry.match} is a literal dot; {meant} would match this topic"

    def _notes(self) -> Iterator[str]:
        policy = self.policy
        if not policy.checked:
            yield "  checks: none: its batches are forwarded unvalidated; the other settings do not apply"
        elif policy.mode in (Mode.OBSERVE, Mode.MARK) and policy.fix is not None:
            yield f"  the proxy fixes nothing while mode is {policy.mode.value}"
        if policy.floor_of_others is not None:
            floor = policy.floor_of_others
            path = next((path[:2] for path in floor.origins.paths.values() if path[0] == "floor"), ("floor",))
            yield (
                f"  enforce: for all other clients, {self._stands(path)} rejects by its own values "
                f"({_differing(floor, policy)}); violations of the values above are reported"
            )
        is_unknown = self._read.settings is None and self._read.reason != SETTINGS_OFF
        if is_unknown and policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
            yield "  the cluster decides message.timestamp.type: if it is CreateTime there, the bounds above apply"


class PolicyQuery:
    """Explains the policies in force. Thread-safe.

    A reload replaces `loaded`. `read_settings` returns the cluster's settings that the proxy applies to a topic.
    `suspended` returns the topics whose enforcement is suspended. The proxy sets both functions. `history` contains the
    latest policy changes.
    """

    def __init__(self, loaded: Loaded, read_settings: ReadSettings = lambda _topic: NOT_ASKED) -> None:
        self.loaded = loaded
        self.read_settings = read_settings
        self.suspended: Callable[[], SuspendedTopics] = lambda: NOTHING_SUSPENDED
        self.history = PolicyHistory()

    def __call__(self, topic: str) -> dict[str, Any]:
        """Return a topic's policy in the API's form.

        Blocks for up to a few seconds, and a second longer with thousands of patterns.
        """
        if not is_legal_topic_name(topic):
            words = [f"{topic}: {NO_TOPIC}"]
            return {"topic": topic, "owner": None, "lines": words, "effective": [], "source": None}
        return TopicExplanation(topic, self.loaded, self.read_settings(topic), self.suspended()).as_json()


def explain(topic: str, loaded: Loaded, read_settings: ReadSettings = lambda _topic: NOT_ASKED) -> Iterator[str]:
    """Yield lines for a person. The first line names the entry that applies."""
    yield from PolicyQuery(loaded, read_settings)(topic)["lines"]


def _differing(floor: TopicPolicy, policy: TopicPolicy) -> str:
    """Return the keys whose value in the floor, which applies to other clients, differs from the topic's own value."""
    theirs = {value.key: value.value for value in effective_policy(floor) if value.key not in _NEVER_IN_A_FLOOR}
    own = {value.key: value.value for value in effective_policy(policy)}
    found = [f"{key}: {_shown_bound(value)}" for key, value in theirs.items() if value != own.get(key)]
    rules = [rule.name for rule in floor.rules.rules] if floor.rules is not None else []
    return ", ".join([*found, f"rules: [{', '.join(rules)}]"])


def _shown_bound(value: Any) -> str:
    return "none" if value in (None, LONG_MAX) else _shown(value)


def _matches(match: str, topic: str) -> bool:
    return TopicPatterns([match]).first_match(topic) is not None


def _shown(value: Any) -> str:
    """Return a value as the configuration writes it, such as `{timestamp: unit}`, without secrets."""
    if is_section(type(value)):
        held = ((key, getattr(value, key.attribute)) for key in each_key_of(type(value)))
        return "{" + ", ".join(f"{key.name}: {_shown(inner)}" for key, inner in held if inner != key.default) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, SecretText):
        return "(secret)"
    return str(value).lower() if isinstance(value, bool) else str(value)
