"""What of a proxy's configuration audits records at rest, as it goes to executors, and the rulebook that they make."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sluicegate.config.model import Config
from sluicegate.config.registries import Registry
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policy import Fix, TopicPolicy, ValidationLimits
from sluicegate.validation.rulebook import Rulebook, compile_policies
from sluicegate.validation.rules.built_in import MonotonicTime

_ALL_OF_A_BATCH = 2**31 - 1  # a batch has no more records
_REQUESTS = "rules about requests (requests): who sent a batch, and with which acks, is not stored"
_EXEMPT = "who is exempt (exempt): who sent a batch is not stored, so everybody is validated"


@dataclass(frozen=True, slots=True)
class Policies:
    """`settings`: what the cluster has set topics to. Of secrets it has those of registries alone."""

    defaults: TopicKeys
    topics: tuple[Topic, ...]
    registries: tuple[tuple[str, Registry], ...]
    limits: ValidationLimits
    settings: Mapping[str, ClusterSettings]

    def rulebook(self) -> Rulebook:
        """A new one: what some rules remember is of one reading. Raises RuleUnusable."""
        topics = [(topic.match, topic) for topic in self.topics]
        in_file = compile_policies(self.defaults, topics, maker=_schema_rules(self.registries))
        return Rulebook(in_file).with_settings(self.settings)

    def that_describe_all(self) -> "Policies":
        """The same, with a description of each bad record, however many a batch has."""
        return replace(self, limits=replace(self.limits, max_record_errors=_ALL_OF_A_BATCH))


def policies_of(config: Config, settings: Mapping[str, ClusterSettings]) -> Policies:
    """Without what a configuration says of requests and clients; see `left_out`."""
    limits = config.limits
    return Policies(
        config.defaults,
        config.topics,
        tuple(sorted(config.registries.items())),
        ValidationLimits(
            limits.max_decompressed_bytes,
            limits.max_decompression_ratio,
            max_decompression_window_bytes=limits.max_decompression_window_bytes,
            max_record_errors=limits.max_record_errors,
        ),
        settings,
    )


def looks_back(policy: TopicPolicy) -> bool:
    """Whether what is said of a batch depends on those of its partition before it."""
    rules = () if policy.rules is None else policy.rules.rules
    return policy.fix is Fix.PREVIOUS or any(isinstance(named.rule, MonotonicTime) for named in rules)


def left_out(config: Config) -> list[str]:
    """What a configuration asks that nothing at rest can answer, each in a clause."""
    return [words for asked, words in ((config.requests, _REQUESTS), (config.exempt, _EXEMPT)) if asked]


@lru_cache(maxsize=1)
def _schema_rules(registries: tuple[tuple[str, Registry], ...]) -> SchemaRules:
    """What a process knows of schemas serves all its tasks. Files are read again by each process, not by each task."""
    return SchemaRules(Registries().by_name(dict(registries)))
