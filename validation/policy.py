"""Defines a topic's policy, compiled once from the configuration, and the limits that apply to every validation."""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum

from sluicegate.config.teams import Owner
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.origins import UNKNOWN_ORIGINS, PolicyOrigins
from sluicegate.validation.requests.name_pattern import EnforcedClients, Exemption, OwnedClients
from sluicegate.validation.requests.quota import QuotaLimits
from sluicegate.validation.requests.request_rule import RequestCheck
from sluicegate.validation.rules.rule import Client, Mode
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.sensitive.from_keys import Sensitive


class TimestampType(Enum):
    """Whether the producer or the broker sets a record's timestamp (KIP-32)."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class Framing(Enum):
    """How to handle batches that brokers store but consumers read differently or not at all (docs/framing.md)."""

    SAFE = "safe"  # reject records that consumers read differently; report data that some consumers cannot read
    STRICT = "strict"  # reject both
    BROKER = "broker"  # check neither


class TimeFix(Enum):
    """The replacement for a timestamp outside a bound."""

    NOW = "now"
    CLAMP = "clamp"  # the nearest timestamp within the bound
    PREVIOUS = "previous"  # the latest good timestamp of the partition
    UNIT = "unit"  # the timestamp converted to ms, if it is plausible in another unit


@dataclass(frozen=True, slots=True)
class RehearsedBounds:
    """Rehearsed bounds (ms), ascending. Records that they would reject are only counted."""

    before_max_ms: tuple[int, ...] = ()
    after_max_ms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """The batches that a topic accepts, and how other batches are handled (`mode`).

    These fields have the meaning of Kafka's message.timestamp.*, cleanup.policy and max.message.bytes:

    - `before_max_ms`, `after_max_ms`: how far a record's timestamp may be before or after the broker's time, inclusive,
      in ms (KIP-937).
    - `compacted`: whether records need a key.
    - `max_message_bytes`: the maximum size of a batch; None if only the broker knows it.

    Other fields:

    - `checked`: whether batches are validated at all.
    - `dead_letters`: the topic for bad records if `mode` is QUARANTINE, and for copies of them if it is OBSERVE or
      COPY.
    - `rules`: rules for records that pass all other checks.
    - `requests`: rules for the client and its request.
    - `samples`: whether events contain parts of bad records.
    - `quota`: how many bytes and requests the topic may receive.
    - `framing`: whether batches that consumers and brokers read differently are accepted.
    - `enforced`: the clients for which the policy is enforced; None means all. Other clients' batches are validated
      against the floor `floor_of_others`, and otherwise only observed.
    - `owner`: the team that owns the topic.
    - `client_owners`: the owners of clients, for a topic without an owner.
    - `sensitive`: the fields that are never stored in clear, in any mode. If there are any, `framing` is STRICT.
    - `origins`: the sources of these values.
    - `exempt`: the clients for which another policy applies to this topic.
    - `is_plain`: whether `validate_partition` on its own determines the verdict.
    """

    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    before_max_ms: int = LONG_MAX
    after_max_ms: int = LONG_MAX
    compacted: bool = False
    max_message_bytes: int | None = None
    checked: bool = True
    mode: Mode = Mode.REJECT
    rehearsed: RehearsedBounds | None = None
    fix: TimeFix | None = None
    dead_letters: str | None = None
    rules: RuleSet | None = None
    requests: tuple[RequestCheck, ...] = ()
    samples: bool = False
    quota: QuotaLimits | None = None
    framing: Framing = Framing.SAFE
    enforced: EnforcedClients | None = None
    floor_of_others: "TopicPolicy | None" = None
    owner: Owner | None = None
    client_owners: tuple[OwnedClients, ...] = ()
    sensitive: Sensitive | None = None
    exempt: "ExemptClients | None" = None
    origins: PolicyOrigins = field(default=UNKNOWN_ORIGINS, compare=False, repr=False)
    is_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        if self.sensitive is not None:  # masking covers only validated content
            object.__setattr__(self, "framing", Framing.STRICT)
        is_plain = self.mode in _MODES_OF_PLAIN_VALIDATION and not _has_any(self, _ONLY_IN_EXTENDED_VALIDATION)
        object.__setattr__(self, "is_plain", is_plain)

    def observing(self) -> "TopicPolicy":
        """Return a copy of this policy that reports every violation and forwards every batch unchanged."""
        origins = replace(self.origins, is_suspended=True)
        return replace(
            self,
            mode=Mode.OBSERVE,
            fix=None,
            dead_letters=None,
            enforced=None,
            floor_of_others=None,
            origins=origins,
        )

    @property
    def varies_by_client(self) -> bool:
        """Return whether `for_client` may return another policy."""
        return self.enforced is not None or self.exempt is not None

    def exempts(self, client: Client) -> bool:
        """Return whether a client is exempt for this topic."""
        return self.exempt is not None and any(exemption.covers(client) for exemption in self.exempt.exemptions)

    def for_client(self, client: Client) -> "TopicPolicy":
        """Return the policy for one client.

        It is this policy, the policy of exempt clients, or a policy that applies the floor and otherwise only observes.
        """
        if self.exempt is not None and self.exempts(client):
            return self._masking(self.exempt.policy)
        if self.enforced is None or self.enforced.covers(client):
            return self
        if self.floor_of_others is None:
            return replace(self, mode=Mode.OBSERVE, fix=None, dead_letters=None)
        rules = None if self.rules is None else self.rules.without(self.floor_of_others.rules)
        return replace(self, mode=Mode.OBSERVE, fix=None, dead_letters=None, rules=rules, requests=())

    def for_exempt(self) -> "TopicPolicy":
        """Return the policy for clients that are exempt for all topics."""
        return self._masking(EXEMPT)

    def _masking(self, policy: "TopicPolicy") -> "TopicPolicy":
        """Return another policy for this topic, with the sensitive fields of this one. They apply to all clients."""
        if self.sensitive is None:
            return policy
        if policy.checked:
            return replace(policy, sensitive=self.sensitive)
        alone = TopicPolicy(mode=Mode.OBSERVE, sensitive=self.sensitive)
        return replace(alone, owner=self.owner, client_owners=self.client_owners, origins=self.origins)

    @property
    def lists_all_bad_records(self) -> bool:
        """Return whether validation must find all bad records in a batch, not only those that a response lists."""
        return self.dead_letters is not None or self.mode is Mode.MARK

    def only_observes(self, rules: Iterable[str]) -> bool:
        """Return whether all rules with these names have mode OBSERVE. Return False if there are none."""
        of_records = self.rules.rules if self.rules is not None else ()
        modes = {rule.name: rule.mode for rule in of_records} | {rule.name: rule.mode for rule in self.requests}
        found = [modes[name] for name in rules if name in modes]
        return bool(found) and all(mode is Mode.OBSERVE for mode in found)

    @property
    def has_rules(self) -> bool:
        """Return whether any of the operator's rules apply."""
        return self.rules is not None or bool(self.requests)

    @property
    def ordinary(self) -> "TopicPolicy | None":
        """The policy for the fast path; None if all batches need the slow path.

        Batches that follow the returned policy need no slow path. If a field that the fast path does not know differs
        from its default, all batches need the slow path.
        """
        if (
            self.mode not in _MODES_OF_FAST_PATH
            or (self.fix is not None and self.fix not in _FIXES_OF_FAST_PATH)
            or _has_any(self, _ONLY_ON_SLOW_PATH)
            or (self.rules is not None and self.rules.ordinary is None)
        ):
            return None
        return self.narrowest

    @property
    def narrowest(self) -> "TopicPolicy":
        """The policy with the narrowest of all bounds, including rehearsed ones. Batches within them need no report."""
        rehearsed = self.rehearsed
        if rehearsed is None:
            return self
        return replace(
            self,
            before_max_ms=min(self.before_max_ms, min(rehearsed.before_max_ms, default=LONG_MAX)),
            after_max_ms=min(self.after_max_ms, min(rehearsed.after_max_ms, default=LONG_MAX)),
        )


READ_BY_FAST_PATH = frozenset(
    {
        "timestamp_type",
        "before_max_ms",
        "after_max_ms",
        "compacted",
        "max_message_bytes",
        "checked",
        "rules",
        "framing",
    }
)
"""The TopicPolicy fields that `OrdinaryRequests.add_topic` reads."""
NOT_NEEDED_BY_FAST_PATH = frozenset(
    {
        "rehearsed",  # `narrowest` includes its bounds
        "mode",  # only affects bad batches; modes that change other batches are excluded (_MODES_OF_FAST_PATH)
        "fix",
        "dead_letters",
        "samples",
        "enforced",
        "floor_of_others",  # a batch within the stricter values is also within the floor
        "owner",  # only used in reports about bad batches
        "client_owners",
        "origins",
        "is_plain",
    }
)
"""The TopicPolicy fields that do not affect batches without violations.

For each of them, tests/two_paths/test_policy_fields.py sends good and bad batches to a policy that sets it.
"""
NOT_NEEDED_BY_PLAIN_VALIDATION = frozenset(
    {"dead_letters", "enforced", "floor_of_others", "owner", "client_owners", "origins", "quota", "exempt", "is_plain"}
)
"""The TopicPolicy fields that do not affect verdicts, or that `for_client` has already applied."""
# A new field, mode or fix needs the slow path and extended validation until it is listed here.
_MODES_OF_FAST_PATH = frozenset({Mode.REJECT, Mode.OBSERVE, Mode.FIX, Mode.QUARANTINE, Mode.COPY})
_MODES_OF_PLAIN_VALIDATION = frozenset({Mode.REJECT, Mode.FIX, Mode.QUARANTINE, Mode.COPY})
_FIXES_OF_FAST_PATH = frozenset({TimeFix.NOW, TimeFix.CLAMP, TimeFix.UNIT})


def _all_but(known: frozenset[str]) -> tuple[tuple[str, object], ...]:
    """Return all other TopicPolicy fields with their defaults."""
    return tuple(
        (each.name, each.default if each.default_factory is MISSING else each.default_factory())
        for each in fields(TopicPolicy)
        if each.name not in known
    )


_ONLY_ON_SLOW_PATH = _all_but(READ_BY_FAST_PATH | NOT_NEEDED_BY_FAST_PATH)
_ONLY_IN_EXTENDED_VALIDATION = _all_but((READ_BY_FAST_PATH - {"rules"}) | {"mode"} | NOT_NEEDED_BY_PLAIN_VALIDATION)


def _has_any(policy: TopicPolicy, others: tuple[tuple[str, object], ...]) -> bool:
    return any(getattr(policy, name) != default for name, default in others)


EXEMPT = TopicPolicy(checked=False)
"""The policy of exempt clients, for all topics."""


@dataclass(frozen=True, slots=True)
class ExemptClients:
    """Clients that are exempt for one topic. `policy` is their policy: EXEMPT or the floor."""

    exemptions: tuple[Exemption, ...]
    policy: TopicPolicy = EXEMPT


def bound_or_difference(bound: int | None, difference: int | None) -> int:
    """Return a bound (ms), or the deprecated difference if the bound has its default value (KIP-937)."""
    if bound is not None and bound != LONG_MAX:
        return bound
    return difference if difference is not None else LONG_MAX


@dataclass(frozen=True, slots=True)
class ValidationLimits:
    """The limits for validating one request, in bytes unless stated otherwise.

    - `max_decompressed_bytes`: the decompressed size of all payloads together.
    - `max_decompression_ratio`: the ratio of decompressed to compressed size of one payload. It applies only above
      `ratio_free_bytes`, so that small, highly regular batches pass.
    - `max_decompression_window_bytes`: the memory for one payload at any time.
    - `max_record_errors`: the number of record errors that a response lists.
    - `max_samples`: the number of bad records per batch with samples, if the topic's policy has `samples`.
    - `max_request_records`, `max_request_headers`: the total numbers of records and headers in a request; None means no
      limit.
    """

    max_decompressed_bytes: int = 128 << 20
    max_decompression_ratio: int = 1000
    ratio_free_bytes: int = 1 << 20
    max_decompression_window_bytes: int = 16 << 20
    max_record_errors: int = 1000
    max_samples: int = 0
    max_request_records: int | None = None
    max_request_headers: int | None = None

    def plain_limit(self, compressed_bytes: int) -> int:
        """Return the maximum decompressed size (bytes) of a payload with this compressed size."""
        return max(self.ratio_free_bytes, compressed_bytes * self.max_decompression_ratio)
