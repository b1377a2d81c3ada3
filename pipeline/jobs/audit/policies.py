"""Selects the part of a proxy's configuration that applies to stored records, in a form that executors can receive."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sluicegate.config.content_keys import Schema
from sluicegate.config.model import Config
from sluicegate.config.registries import Registry
from sluicegate.config.teams import Floor
from sluicegate.config.topics import Topic, TopicKeys
from sluicegate.proxy.registry.breaker import NoRegistryEvents
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema

_ALL_OF_A_BATCH = 2**31 - 1  # the maximum number of records in a batch
_REQUESTS = "rules about requests (requests): brokers do not store the client or the acks of a batch"
_ENFORCE = (
    "gradual enforcement (enforce): brokers do not store the client of a batch, so all batches are validated as under "
    "full enforcement"
)
_EXEMPT = "exemptions (exempt): brokers do not store the client of a batch, so all batches are validated"


class EncryptedCounts(NoRegistryEvents):
    """Counts the records that serializers encrypted, by registry and encrypted part."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, str]]()

    def count_encrypted(self, registry: str, part: str) -> None:
        self._counts[registry, part] += 1

    def take(self) -> Counter[tuple[str, str]]:
        """Return the counts since the last call."""
        counts, self._counts = self._counts, Counter()
        return counts


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies, and the topics' `settings` in the cluster. The only secrets are those of registries."""

    defaults: TopicKeys
    floor: tuple[Floor, ...]
    topics: tuple[Topic, ...]
    registries: tuple[tuple[str, Registry], ...]
    limits: ValidationLimits
    settings: Mapping[str, ClusterSettings]

    def rulebook(self) -> Rulebook:
        """Return a new rulebook, because some rules have state that readings must not share. Raises RuleUnusable."""
        topics = [(topic.match, topic) for topic in self.topics]
        in_file = compile_policies(self.defaults, topics, maker=_schema_rules(self.registries)[0], floor=self.floor)
        return Rulebook(in_file).with_settings(self.settings)

    def encrypted_counts(self) -> EncryptedCounts:
        """Return the counts of encrypted records that this process has validated with `rulebook`."""
        return _schema_rules(self.registries)[1]

    def schema_of_records(self, registry: str) -> HasRegisteredSchema:
        """Return the rule that finds the schemas of values in one of the configuration's registries."""
        found = _schema_rules(self.registries)[0].of_schema(Schema(registry=registry), Side.VALUE)
        assert isinstance(found, HasRegisteredSchema)
        return found

    def describing_all(self) -> "Policies":
        """Return the same policies, but with a description of every bad record in a batch."""
        return replace(self, limits=replace(self.limits, max_record_errors=_ALL_OF_A_BATCH))


def policies_of(config: Config, settings: Mapping[str, ClusterSettings]) -> Policies:
    """Return a configuration's policies without the rules about requests and clients; see `parts_left_out`."""
    limits = config.limits
    return Policies(
        config.defaults,
        config.floor,
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


def parts_left_out(config: Config) -> list[str]:
    """Return a clause for each part of a configuration that stored records cannot violate or show."""
    gradual = any(keys.enforce is not None for keys in (config.defaults, *config.topics))
    parts = ((config.requests, _REQUESTS), (config.exempt, _EXEMPT), (gradual, _ENFORCE))
    return [words for asked, words in parts if asked]


@lru_cache(maxsize=1)
def _schema_rules(registries: tuple[tuple[str, Registry], ...]) -> tuple[SchemaRules, EncryptedCounts]:
    """Cache the schemas for all tasks of a process. Each process reads the files itself."""
    counts = EncryptedCounts()
    return SchemaRules(Registries(reports=counts).by_name(dict(registries))), counts
