"""The policies of all topics as one immutable value, compiled from the configuration and replaced as a whole."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluicegate.config.keys import each_key_of
from sluicegate.config.model import Config
from sluicegate.config.quotas import Quota as QuotaKeys
from sluicegate.config.requests import Exempt
from sluicegate.config.requests import RequestRule as RequestKeys
from sluicegate.config.source import Path, Source
from sluicegate.config.teams import Floor as FloorKeys
from sluicegate.config.topics import Enforce, Rehearse, Topic, TopicKeys
from sluicegate.config.topics import Fix as FixKeys
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.validation.cluster_settings import AFTER_MAX, BEFORE_MAX, DIFFERENCE_MAX, ClusterSettings, stricter_of
from sluicegate.validation.floor import Floors
from sluicegate.validation.origins import NOWHERE, Origins, rule_paths
from sluicegate.validation.policy import (
    EXEMPT,
    ExemptClients,
    Fix,
    Framing,
    Rehearsed,
    TimestampType,
    TopicPolicy,
    ValidationLimits,
    bound_or_difference,
)
from sluicegate.validation.requests.name_pattern import EnforcedClients, Exemption, NamePattern
from sluicegate.validation.requests.quota import Quota
from sluicegate.validation.requests.request_rule import RequestRule, exemptions_of, quotas_of, request_rule_of
from sluicegate.validation.rules.from_keys import INLINE_RULES, RuleMaker, rule_set_of
from sluicegate.validation.rules.rule import Client, Mode, RuleUnusable
from sluicegate.validation.sensitive.from_keys import sensitive_of
from sluicegate.validation.topic_patterns import TopicPatterns
from sluicegate.validation.units import PLAUSIBLE_MS

_NO_SETTINGS: Mapping[str, ClusterSettings] = {}


class FilePolicies:
    """The policies of the configuration: the first pattern that matches the whole topic name decides, else `default`.

    `topics`: pattern and policy of each entry, in order. `requests`: rules about requests, each with its topics (None:
    all). `exempt`: exempt clients, for all topics or those of the exemption; `quotas`: how much clients may send.
    `floors`: what the policies of `topics` and `default` cannot weaken. `depends_on_client`: whether any policy depends
    on the client; `varies_by_client`: whether that of any topic differs between clients. `names_principals`: whether
    any depends on the principal.
    """

    def __init__(
        self,
        default: TopicPolicy,
        topics: Sequence[tuple[str, TopicPolicy]],
        requests: Sequence[tuple[str | None, RequestRule]] = (),
        exempt: tuple[Exemption, ...] = (),
        quotas: tuple[Quota, ...] = (),
        floors: Floors | None = None,
    ) -> None:
        self.default = default
        self.exempt = tuple(exemption for exemption in exempt if not exemption.topics)
        self._exempt_from_topics = tuple(exemption for exemption in exempt if exemption.topics)
        self.quotas = quotas
        self._topic_quotas = tuple(quota for quota in quotas if quota.topic is not None)
        self.topics = tuple(topics)
        self._patterns = TopicPatterns([match for match, _ in topics])
        self._by_pattern = [policy for _, policy in topics]
        self._requests = [(None if match is None else NamePattern(match), rule) for match, rule in requests]
        self._floors = floors
        asks = any(policy.rules is not None for policy in (default, *self._by_pattern))
        asks = asks or (floors is not None and floors.has_rules)
        is_gradual = any(policy.enforced is not None for policy in (default, *self._by_pattern))
        self.varies_by_client = is_gradual or bool(self._exempt_from_topics)
        self.depends_on_client = bool(exempt or requests) or asks or self.varies_by_client
        self.names_principals = any(
            pattern is not None
            for pattern in (
                *(exemption.principal for exemption in exempt),
                *(rule.of_principal for _, rule in requests),
                *(quota.principal for quota in quotas),
            )
        )

    @property
    def has_owners(self) -> bool:
        """Whether any topic has an owner."""
        return any(policy.owner is not None for policy in (self.default, *self._by_pattern))

    @property
    def has_sensitive_fields(self) -> bool:
        """Whether any topic has sensitive fields."""
        return any(policy.sensitive is not None for policy in (self.default, *self._by_pattern))

    @property
    def has_topic_quotas(self) -> bool:
        """Whether there are quotas of topics."""
        return bool(self._topic_quotas)

    def of_pattern(self, pattern: str) -> TopicPolicy:
        """Return the policy of an entry of `topics`, or `default`, with the floor of all topics of its pattern."""
        policy = next((policy for match, policy in self.topics if match == pattern), self.default)
        return policy if self._floors is None else self._floors.under_for_all(pattern, policy)

    def of(self, topic: str) -> TopicPolicy:
        """Return the policy of `topic` by the configuration alone."""
        place = self._patterns.first_match(topic)
        policy = self.default if place is None else self._by_pattern[place]
        if self._floors is not None:
            policy = self._floors.under(topic, policy)
        quota = next((quota for quota in self._topic_quotas if quota.topic and quota.topic.matches(topic)), None)
        if quota is not None:
            policy = replace(policy, quota=quota)
        if self._requests:
            asked = tuple(rule for pattern, rule in self._requests if pattern is None or pattern.matches(topic))
            policy = replace(policy, requests=asked) if asked else policy
        exemptions = tuple(exemption for exemption in self._exempt_from_topics if exemption.is_for(topic))
        return self._with_exempt(topic, policy, exemptions) if exemptions else policy

    def _with_exempt(self, topic: str, policy: TopicPolicy, exemptions: tuple[Exemption, ...]) -> TopicPolicy:
        """Return the policy with that of exempt clients, as `checks: none` would make it."""
        theirs = EXEMPT if self._floors is None else self._floors.under(topic, EXEMPT)
        if theirs is not EXEMPT:
            origins = replace(policy.origins, paths=theirs.origins.paths, rules=theirs.origins.rules)
            theirs = replace(
                theirs, requests=policy.requests, samples=policy.samples, owner=policy.owner, origins=origins
            )
        return replace(policy, exempt=ExemptClients(exemptions, theirs))


@dataclass(frozen=True, slots=True)
class Suspended:
    """The topics without enforcement for now: their violations are only reported. `everywhere`: all topics."""

    everywhere: bool = False
    topics: frozenset[str] = frozenset()

    def covers(self, topic: str) -> bool:
        """Return whether enforcement is suspended for `topic`."""
        return self.everywhere or topic in self.topics


NOTHING_SUSPENDED = Suspended()


class Rulebook:
    """The policies of all topics: those of the configuration, tightened by the cluster's own settings, and relaxed to
    observation where enforcement is suspended.

    Illegal topic names get the defaults without being matched (a broker responds 3 to all of them). A rulebook never
    changes, so a whole request is validated by one rulebook; each has its own `generation`. Thread-safe;
    `sluicegate.validation.in_force` caches the policies.
    """

    def __init__(
        self,
        file: FilePolicies,
        from_cluster: Mapping[str, ClusterSettings] = _NO_SETTINGS,
        generation: int = 0,
        suspended: Suspended = NOTHING_SUSPENDED,
    ) -> None:
        self.generation = generation
        self._file = file
        self._from_cluster = from_cluster
        self._suspended = suspended

    def of(self, topic: str) -> TopicPolicy:
        """Return the policy of `topic`."""
        if not is_legal_topic_name(topic):
            return self._file.default
        policy = self._applied(topic, self._file.of(topic))
        exempt = policy.exempt
        if exempt is None or not exempt.policy.checked:
            return policy
        return replace(policy, exempt=replace(exempt, policy=self._applied(topic, exempt.policy)))

    def _applied(self, topic: str, policy: TopicPolicy) -> TopicPolicy:
        """Return a policy of the configuration with the cluster's settings and suspensions applied."""
        settings = self._from_cluster.get(topic)
        if settings is not None:
            policy = stricter_of(policy, settings)
        return policy.observing() if self._suspended.covers(topic) else policy

    def settings_of(self, topic: str) -> ClusterSettings | None:
        """Return the cluster's settings of `topic` that this rulebook applies; None if it has none."""
        return self._from_cluster.get(topic)

    @property
    def suspended(self) -> Suspended:
        """The topics without enforcement for now."""
        return self._suspended

    @property
    def in_file(self) -> FilePolicies:
        """The policies of the configuration, without the cluster's settings."""
        return self._file

    @property
    def depends_on_client(self) -> bool:
        """Whether any policy depends on the client."""
        return self._file.depends_on_client

    def exempts(self, client: Client) -> bool:
        """Return whether a client is exempt for all topics: only the broker validates its batches."""
        return any(exemption.covers(client) for exemption in self._file.exempt)

    def with_settings(self, settings: Mapping[str, ClusterSettings | None]) -> "Rulebook":
        """Return the next generation with the cluster's settings of some topics; this rulebook if nothing changes.

        None: the cluster has no settings of a topic, or no longer has them.
        """
        known = self._from_cluster
        new = {topic: found for topic, found in settings.items() if known.get(topic) != found}
        if not new:
            return self
        merged = {topic: found for topic, found in {**known, **new}.items() if found is not None}
        return Rulebook(self._file, merged, self.generation + 1, self._suspended)

    def with_file(self, file: FilePolicies) -> "Rulebook":
        """Return the next generation with other configured policies; the rest stays."""
        return Rulebook(file, self._from_cluster, self.generation + 1, self._suspended)

    def with_suspended(self, suspended: Suspended) -> "Rulebook":
        """Return the next generation with enforcement suspended for these topics, and for no others."""
        return Rulebook(self._file, self._from_cluster, self.generation + 1, suspended)


def compile_policies(
    defaults: TopicKeys,
    topics: Iterable[tuple[str, TopicKeys]] = (),
    requests: Iterable[RequestKeys] = (),
    exempt: Iterable[Exempt] = (),
    maker: RuleMaker = INLINE_RULES,
    quotas: Iterable[QuotaKeys] = (),
    floor: Sequence[FloorKeys] = (),
    source: Source = NOWHERE,
    first: int = 0,
) -> FilePolicies:
    """Compile keys to policies; missing keys of a topic come from `defaults`. Raises RuleUnusable.

    `source` has the places of the keys; `first`: the position of the first entry of `topics` there.
    """
    requests, quotas = tuple(requests), tuple(quotas)
    compiling = _Compiling(
        defaults,
        maker,
        Origins(
            source,
            requests={rule.name: i for i, rule in enumerate(requests)},
            quotas={quota.name: i for i, quota in enumerate(quotas)},
        ),
    )
    return FilePolicies(
        compiling.policy(defaults, ("defaults",)),
        [(match, compiling.policy(keys, ("topics", i))) for i, (match, keys) in enumerate(topics, first)],
        [(rule.match.topics, request_rule_of(rule)) for rule in requests],
        exemptions_of(exempt),
        quotas_of(quotas),
        Floors(floor, defaults.mode, maker) if floor else None,
    )


def file_policies_of(
    config: Config, maker: RuleMaker = INLINE_RULES, source: Source = NOWHERE, only: int | None = None
) -> FilePolicies:
    """Return the policies of a configuration; `only`: of this entry of `topics` and the defaults.

    Raises RuleUnusable.
    """
    first, end = (0, len(config.topics)) if only is None else (only, only + 1)
    topics = [(topic.match, topic) for topic in config.topics[first:end]]
    keys = (config.defaults, topics, config.requests, config.exempt, maker, config.quotas, config.floor)
    return compile_policies(*keys, source=source, first=first)


def rulebook_of(config: Config, maker: RuleMaker = INLINE_RULES, source: Source = NOWHERE) -> Rulebook:
    """Return the first rulebook of a configuration, without cluster settings. Raises RuleUnusable."""
    return Rulebook(file_policies_of(config, maker, source))


def limits_of(config: Config) -> ValidationLimits:
    """Return the validation limits of a configuration."""
    limits = config.limits
    return ValidationLimits(
        limits.max_decompressed_bytes,
        limits.max_decompression_ratio,
        max_decompression_window_bytes=limits.max_decompression_window_bytes,
        max_record_errors=limits.max_record_errors,
        max_samples=config.violations.max_records if config.violations.is_anywhere else 0,
        max_request_records=limits.max_request_records,
        max_request_headers=limits.max_request_headers,
    )


_NAMED = tuple((key.attribute, key.name) for key in each_key_of(Topic) if key.name != "match")


class _Compiling:
    """Compiles one configuration. `origins`: the part of the origins that all its policies share."""

    def __init__(self, defaults: TopicKeys, maker: RuleMaker, origins: Origins) -> None:
        self._defaults = defaults
        self._maker = maker
        self._origins = origins
        self._paths_of_defaults = _paths_of(defaults, ("defaults",))

    def policy(self, keys: TopicKeys, section: Path) -> TopicPolicy:
        """Return the policy of `defaults` or of an entry of `topics`, at the path `section`. Raises RuleUnusable."""

        def given(name: str) -> Any:
            own = getattr(keys, name)
            return own if own is not None else getattr(self._defaults, name)

        paths = {**self._paths_of_defaults, **_paths_of(keys, section)}
        difference = given("difference_max_ms")
        cleanup = given("cleanup_policy") or "delete"
        dead_letters = keys.quarantine if isinstance(keys, Topic) else None
        mode = Mode(given("mode") or "reject")
        if dead_letters is not None:
            paths["checks"] = paths["quarantine"]
            if keys.mode != "observe":  # a mode of `defaults` does not count
                mode, paths["mode"] = Mode.QUARANTINE, paths["quarantine"]
        fix = _fix(given("fix")) if dead_letters is None else None
        widest = PLAUSIBLE_MS if fix is Fix.UNIT else LONG_MAX
        bounds = {}
        for key, bound in ((BEFORE_MAX, given("before_max_ms")), (AFTER_MAX, given("after_max_ms"))):
            bounds[key] = bound_or_difference(bound, difference)
            if bounds[key] > widest:
                bounds[key], paths[key] = widest, paths["fix"]
            elif bounds[key] != bound and difference is not None:
                paths[key] = paths[DIFFERENCE_MAX]
        sensitive = sensitive_of(given("sensitive"))
        others = {"quarantine": dead_letters, "samples": given("samples"), "checks: none": given("checks") == "none"}
        for other, is_given in others.items() if sensitive is not None else ():
            if is_given:
                raise RuleUnusable(f"sensitive and {other} exclude each other: values would be stored in clear")
        return TopicPolicy(
            TimestampType(given("timestamp_type") or "CreateTime"),
            bounds[BEFORE_MAX],
            bounds[AFTER_MAX],
            "compact" in str(cleanup).replace(" ", "").split(","),
            given("max_message_bytes"),
            dead_letters is not None or (given("checks") or "all") == "all",
            mode,
            _rehearsed(given("rehearse")),
            fix,
            dead_letters,
            rule_set_of(given("rules"), self._maker),
            samples=bool(given("samples")),
            framing=Framing(given("framing") or "safe"),
            enforced=_enforced(given("enforce")),
            owner=given("owner"),
            sensitive=sensitive,
            origins=replace(self._origins, paths=paths, rules=rule_paths(given("rules"), paths.get("rules"))),
        )


def _paths_of(keys: TopicKeys, section: Path) -> dict[str, Path]:
    """Return the path of each key that is set, by its name."""
    return {name: (*section, name) for attribute, name in _NAMED if getattr(keys, attribute, None) is not None}


def _enforced(keys: Enforce | None) -> EnforcedClients | None:
    return None if keys is None else EnforcedClients(tuple(map(NamePattern, keys.clients or ())), keys.percent)


def _fix(keys: FixKeys | None) -> Fix | None:
    return None if keys is None else Fix(keys.timestamp)


def _rehearsed(keys: Rehearse | None) -> Rehearsed | None:
    return None if keys is None else Rehearsed(keys.before_max_ms, keys.after_max_ms)
