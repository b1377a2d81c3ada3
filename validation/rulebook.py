"""Represents the policies of all topics as one immutable value, which is only replaced as a whole."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.validation.cluster_settings import ClusterSettings, stricter_of
from sluicegate.validation.floor import Floors
from sluicegate.validation.policy import (
    EXEMPT,
    ExemptClients,
    TopicPolicy,
)
from sluicegate.validation.requests.name_pattern import Exemption, NamePattern, OwnedClients
from sluicegate.validation.requests.quota import QuotaLimits
from sluicegate.validation.requests.request_rule import RequestCheck
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.topic_patterns import TopicPatterns

_NO_SETTINGS: Mapping[str, ClusterSettings] = {}


class FilePolicies:
    """The configuration's policies. The first pattern that matches the whole topic name applies, or else `default`.

    - `topics`: the pattern and the policy of each entry, in order.
    - `requests`: rules for requests, each with its topics; None means all topics.
    - `exempt`: exempt clients, for all topics or for those of the exemption.
    - `quotas`: limits on what clients may send.
    - `of_topics`: policies of topics with topic settings (`sluicegate.*`). They replace those from `topics`.
    - `floors`: policies that those in `topics` and `default` cannot weaken.
    - `depends_on_client`: whether any policy depends on the client.
    - `varies_by_client`: whether any topic's policy differs between clients.
    - `has_owners`, `has_sensitive_fields`: whether any topic has an owner or sensitive fields.
    - `names_principals`: whether any policy depends on the principal.
    - `rules_name_principals`: whether any rule for records depends on the principal.
    """

    def __init__(
        self,
        default: TopicPolicy,
        topics: Sequence[tuple[str, TopicPolicy]],
        requests: Sequence[tuple[str | None, RequestCheck]] = (),
        exempt: tuple[Exemption, ...] = (),
        quotas: tuple[QuotaLimits, ...] = (),
        floors: Floors | None = None,
        rules_name_principals: bool = False,
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
        self._of_topics: Mapping[str, TopicPolicy] = {}
        self._rules_name_principals = self._file_rules_name_principals = rules_name_principals
        self._exempt_anywhere = exempt
        self._summarize()

    def _summarize(self) -> None:
        """Set the attributes that depend on the policies of all topics."""
        default, floors = self.default, self._floors
        every = (default, *self._by_pattern, *self._of_topics.values())
        asks = any(policy.rules is not None for policy in every) or (floors is not None and floors.has_rules)
        self.varies_by_client = bool(self._exempt_from_topics) or any(policy.enforced is not None for policy in every)
        self.depends_on_client = bool(self._exempt_anywhere or self._requests) or asks or self.varies_by_client
        self.has_owners = any(policy.owner is not None for policy in every)
        self.has_sensitive_fields = any(policy.sensitive is not None for policy in every)
        self.names_principals = self._rules_name_principals or any(
            pattern is not None
            for pattern in (
                *(exemption.principal for exemption in self._exempt_anywhere),
                *(rule.of_principal for _, rule in self._requests),
                *(quota.principal for quota in self.quotas),
                *(owned.principal for owned in default.client_owners),
            )
        )

    def with_topics(self, of_topics: Mapping[str, TopicPolicy], rules_name_principals: bool) -> "FilePolicies":
        """Return a copy with other policies for the topics that have topic settings.

        `rules_name_principals` is whether any of their rules depends on the principal.
        """
        changed = copy(self)
        changed._of_topics = of_topics
        changed._rules_name_principals = self._file_rules_name_principals or rules_name_principals
        changed._summarize()
        return changed

    @property
    def client_owners(self) -> tuple[OwnedClients, ...]:
        """The owners of clients, for all topics."""
        return self.default.client_owners

    @property
    def has_topic_quotas(self) -> bool:
        """Return whether any quota applies to topics."""
        return bool(self._topic_quotas)

    def place_of(self, topic: str) -> int | None:
        """Return the position of the `topics` entry that applies to a topic, or None if none matches."""
        return self._patterns.first_match(topic)

    def of_pattern(self, pattern: str) -> TopicPolicy:
        """Return the policy of an entry of `topics`, or `default`.

        Includes the floor that covers all topics that the entry's pattern matches.
        """
        policy = next((policy for match, policy in self.topics if match == pattern), self.default)
        return policy if self._floors is None else self._floors.with_floor_of_pattern(pattern, policy)

    def policy_of(self, topic: str) -> TopicPolicy:
        """Return a topic's policy from the configuration only."""
        policy = self._with_floor_of(topic)
        quota = next((quota for quota in self._topic_quotas if quota.topic and quota.topic.matches(topic)), None)
        if quota is not None:
            policy = replace(policy, quota=quota)
        if self._requests:
            asked = tuple(rule for pattern, rule in self._requests if pattern is None or pattern.matches(topic))
            policy = _with_requests(policy, asked) if asked else policy
        exemptions = tuple(exemption for exemption in self._exempt_from_topics if exemption.applies_to_topic(topic))
        return self._with_exempt(topic, policy, exemptions) if exemptions else policy

    def _with_floor_of(self, topic: str) -> TopicPolicy:
        """Return a topic's policy from its topic settings or from `topics`, with its floor."""
        own, floors = self._of_topics.get(topic), self._floors
        if own is not None:
            return own if floors is None else floors.with_floor_once(topic, own)
        place = self._patterns.first_match(topic)
        policy = self.default if place is None else self._by_pattern[place]
        return policy if floors is None else floors.with_floor(topic, policy)

    def _with_exempt(self, topic: str, policy: TopicPolicy, exemptions: tuple[Exemption, ...]) -> TopicPolicy:
        """Return the policy, extended by the policy of exempt clients: no checks except the floor's."""
        theirs = EXEMPT if self._floors is None else self._floors.with_floor(topic, EXEMPT)
        if theirs is not EXEMPT:
            origins = replace(policy.origins, paths=theirs.origins.paths, rules=theirs.origins.rules)
            theirs = replace(
                theirs,
                requests=policy.requests,
                samples=policy.samples,
                owner=policy.owner,
                client_owners=policy.client_owners,
                origins=origins,
            )
        return replace(policy, exempt=ExemptClients(exemptions, theirs))


def _with_requests(policy: TopicPolicy, requests: tuple[RequestCheck, ...]) -> TopicPolicy:
    """Return a policy with the operator's rules for requests added, also to its floor."""
    floor = policy.floor_of_others
    return replace(
        policy, requests=requests, floor_of_others=None if floor is None else replace(floor, requests=requests)
    )


@dataclass(frozen=True, slots=True)
class SuspendedTopics:
    """The topics for which enforcement is suspended: violations are only reported. `everywhere` means all topics."""

    everywhere: bool = False
    topics: frozenset[str] = frozenset()

    def covers(self, topic: str) -> bool:
        """Return whether enforcement is suspended for `topic`."""
        return self.everywhere or topic in self.topics


NOTHING_SUSPENDED = SuspendedTopics()


class Rulebook:
    """The policies of all topics, tightened by the cluster's settings, and relaxed to observation by suspensions.

    Illegal topic names get the defaults without being matched, because a broker responds to all of them with error 3. A
    rulebook never changes, so a whole request is validated with the same one. Each rulebook has its own `generation`.
    Thread-safe; `sluicegate.validation.in_force` caches the policies.
    """

    def __init__(
        self,
        file: FilePolicies,
        from_cluster: Mapping[str, ClusterSettings] = _NO_SETTINGS,
        generation: int = 0,
        suspended: SuspendedTopics = NOTHING_SUSPENDED,
    ) -> None:
        self.generation = generation
        self._file = file
        self._from_cluster = from_cluster
        self._suspended = suspended

    def policy_of(self, topic: str) -> TopicPolicy:
        """Return a topic's policy."""
        if not is_legal_topic_name(topic):
            return self._file.default
        policy = self._applied(topic, self._file.policy_of(topic))
        if policy.floor_of_others is not None:
            policy = replace(policy, floor_of_others=self._applied(topic, policy.floor_of_others))
        exempt = policy.exempt
        if exempt is None or not exempt.policy.checked:
            return policy
        return replace(policy, exempt=replace(exempt, policy=self._applied(topic, exempt.policy)))

    def _applied(self, topic: str, policy: TopicPolicy) -> TopicPolicy:
        """Return a policy from the configuration, with cluster settings and suspensions applied."""
        settings = self._from_cluster.get(topic)
        if settings is not None:
            policy = stricter_of(policy, settings)
        return policy.observing() if self._suspended.covers(topic) else policy

    def settings_of(self, topic: str) -> ClusterSettings | None:
        """Return the cluster settings of a topic that this rulebook applies, or None."""
        return self._from_cluster.get(topic)

    @property
    def suspended(self) -> SuspendedTopics:
        """The topics for which enforcement is suspended."""
        return self._suspended

    @property
    def in_file(self) -> FilePolicies:
        """The configuration's policies, without cluster settings."""
        return self._file

    @property
    def depends_on_client(self) -> bool:
        """Return whether any policy depends on the client."""
        return self._file.depends_on_client

    def exempts(self, client: Client) -> bool:
        """Return whether a client is exempt for all topics, so that only the broker validates its batches."""
        return any(exemption.covers(client) for exemption in self._file.exempt)

    def with_settings(self, settings: Mapping[str, ClusterSettings | None]) -> "Rulebook":
        """Return the next generation, with new cluster settings for some topics.

        Return this rulebook if nothing changes.

        None means that the cluster has no settings for the topic, or no longer has any.
        """
        known = self._from_cluster
        new = {topic: found for topic, found in settings.items() if known.get(topic) != found}
        if not new:
            return self
        merged = {topic: found for topic, found in {**known, **new}.items() if found is not None}
        return Rulebook(self._file, merged, self.generation + 1, self._suspended)

    def with_file(self, file: FilePolicies) -> "Rulebook":
        """Return the next generation, with other configured policies but the same cluster settings and suspensions."""
        return Rulebook(file, self._from_cluster, self.generation + 1, self._suspended)

    def with_suspended(self, suspended: SuspendedTopics) -> "Rulebook":
        """Return the next generation, with enforcement suspended for exactly these topics."""
        return Rulebook(self._file, self._from_cluster, self.generation + 1, suspended)
