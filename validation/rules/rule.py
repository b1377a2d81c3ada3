"""Defines the interface of rules: a rule receives one record and returns its fault, or None.

A rule does not use files, sockets or clocks. If it must look something up, such as a schema, it receives a callable
that may raise Outage. Its messages are for the producer's developer: they name the fault and the fix, and quote nothing
from the record.

Compiled with the types in rule.pxd if a C compiler is installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Protocol, TypeVar, runtime_checkable

Header = tuple[bytes, bytes | None]

INLINE_STEPS = 200_000
"""A step takes at most about 100 ns. Up to this many steps, a rule runs inline, for at most about 20 ms."""
UNBOUNDED = 1 << 62
"""The steps of a rule without a known bound."""


class Mode(Enum):
    """How a batch that violates a rule is handled."""

    REJECT = "reject"  # the batch is rejected, as by a broker
    OBSERVE = "observe"  # the batch is forwarded unchanged, and the violation is reported
    FIX = "fix"  # the batch is forwarded with corrected timestamps, and both timestamps are reported
    QUARANTINE = "quarantine"  # like reject, but the bad records are written to another topic
    MARK = "mark"  # the batch is forwarded, and headers on its bad records name the violation
    COPY = "copy"  # like observe, but copies of the bad records are written to another topic

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is a Python call


class Part(Flag):
    """The parts of a record that a rule reads. Parts that no rule reads are not extracted."""

    NONE = 0
    KEY = auto()
    VALUE = auto()
    HEADERS = auto()


class OnOutage(Enum):
    """How a batch is handled while a dependency of a rule does not respond."""

    RETRIABLE = "retriable"  # rejected with an error that makes producers retry
    FORWARD = "forward"
    REJECT = "reject"


class OnSchemaError(Enum):
    """How a record is handled if its schema exists, but the proxy cannot compile or apply it."""

    REJECT = "reject"
    RETRIABLE = "retriable"  # rejected with an error that makes producers retry
    FORWARD = "forward"


class RuleUnusable(Exception):
    """Raised if the operator's rule is invalid, or requires a package that is not installed.

    The message gives the reason.
    """


class Outage(Exception):
    """Raised if a dependency of a rule does not respond. This is never the client's fault.

    The message names the dependency and the failed request.
    """


class SchemaError(Exception):
    """Raised if a schema exists, but the proxy cannot compile or apply it. The message gives the schema and the reason.

    `on_schema_error` determines how the record is handled.
    """


LIBRARY_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that a library raises for an unexpected schema or unexpected data.

The client caused them, so they are permanent.
"""


class TooManySteps(Exception):
    """Raised if a rule needs more steps for a record than are allowed where it runs."""


class StepBudget:
    """A rule's budget for one record. The rule spends steps before it does the work; this class only counts them.

    Every rule may compare a few numbers without spending steps.
    """

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Spend an upper bound of the steps that follow; UNBOUNDED if no bound is known.

        A budget with a limit raises TooManySteps, or OutOfTime if the work would block other work.
        """
        self.spent += steps


class LimitedSteps(StepBudget):
    """A budget of at most `most` steps, which another budget also counts."""

    def __init__(self, within: StepBudget, most: int = INLINE_STEPS) -> None:
        super().__init__()
        self._within = within
        self._most = most

    def spend(self, steps: int) -> None:
        self.spent += steps
        if self.spent > self._most:
            raise TooManySteps
        self._within.spend(steps)


class Client:
    """The client that sent a record. Fields that the client did not send are None.

    `is_unverified` means that a broker has accepted the client's login, but the proxy does not know for which
    principal.
    """

    __slots__ = ("address", "client_id", "is_unverified", "principal", "software_name", "software_version")

    def __init__(
        self,
        address: str,
        client_id: str | None = None,
        software_name: str | None = None,
        software_version: str | None = None,
        principal: str | None = None,
        is_unverified: bool = False,
    ) -> None:
        self.address = address
        self.client_id = client_id
        self.software_name = software_name
        self.software_version = software_version
        self.principal = principal
        self.is_unverified = is_unverified


class RuledRecord:
    """A record as rules read it. Key, value and headers are set only if one of the topic's rules reads them.

    The same object is filled again for each record in a batch, so rules must not keep it.

    - `index`: the position in the batch.
    - `timestamp`: int64 ms.
    - `key_size` and `value_size`: bytes, or -1 for null; always set.
    - `producer_id`: -1 if the producer is not idempotent.
    - `headers`: may omit headers whose names no rule reads.
    - `header_count` and `header_bytes`: number and size of all headers; -1 if unknown.
    - `budget`: the budget that a rule spends before costly work on the record.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        index: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        client: Client,
        producer_id: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.index = index
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.client = client
        self.key_size = -1 if key is None else len(key)
        self.value_size = -1 if value is None else len(value)
        self.producer_id = producer_id
        self.header_count = len(headers)
        self.header_bytes = -1
        self.budget = StepBudget()

    @property
    def content_bytes(self) -> int:
        """Return the size of key and value together (bytes)."""
        return max(0, self.key_size) + max(0, self.value_size)

    def fill(
        self,
        index: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        key_size: int,
        value_size: int,
    ) -> None:
        """Fill in the next record. Parts that no rule needs are None or empty."""
        self.index = index
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.key_size = key_size
        self.value_size = value_size
        self.header_count = len(headers)
        self.header_bytes = -1


class Side(Enum):
    """The side of a record to which a rule applies, with its name in messages."""

    KEY = "key"
    VALUE = "value"

    @property
    def part(self) -> Part:
        """Return the part that a rule for this side reads."""
        return Part.KEY if self is Side.KEY else Part.VALUE

    def size_of(self, record: RuledRecord) -> int:
        """Return the size in bytes, or -1 for null."""
        return record.key_size if self is Side.KEY else record.value_size

    def bytes_of(self, record: RuledRecord) -> bytes | None:
        """Return the bytes, if a rule needs them."""
        return record.key if self is Side.KEY else record.value


class RecordRule(Protocol):
    """One kind of rule with its options. Thread-safe."""

    @property
    def parts(self) -> Part:
        """Return the parts that the rule reads."""

    @property
    def is_slow(self) -> bool:
        """Return whether a record may take more than about ten microseconds.

        Such a rule never runs on the event loop.
        """

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, for the producer's developer, or None.

        Before costly work, the rule spends an upper bound of its steps from `record.budget`. It computes the bound
        without doing the work. The message contains no details, because `description` returns these. Raises Outage,
        SchemaError, and the errors of the budget.
        """

    def description(self, record: RuledRecord) -> str | None:
        """Return a longer message that replaces that of `fault` for this record, with details of the first error.

        Returns None if there are no more details, or if finding them would take more than a few milliseconds. Called at
        most once per batch, for the first bad record. Spends steps like `fault`, and raises only the errors of the
        budget.
        """


@runtime_checkable
class NamesHeaders(Protocol):
    """A rule that reads headers by name, so that a record's other headers are not extracted."""

    @property
    def header_names(self) -> frozenset[bytes] | None:
        """Return the names of the headers that the rule reads; None means all."""


def header_names_of(rule: object) -> frozenset[bytes] | None:
    """Return the names of the headers that a rule reads; None means all."""
    return rule.header_names if isinstance(rule, NamesHeaders) else None


Subject_contra = TypeVar("Subject_contra", contravariant=True)


@runtime_checkable
class SupportsLookAhead(Protocol[Subject_contra]):
    """A rule (for records) or a schema (for data) that evaluates several of them together faster than one by one."""

    def look_ahead(self, subjects: Sequence[Subject_contra], budget: StepBudget) -> None:
        """Prepare for the records or data in one request that will be evaluated next. Changes no verdict.

        Called after a record has taken more than INLINE_STEPS. Raises the errors of the budget, and those of the
        evaluation if it may not wait here.
        """


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule from the configuration. `mode` is REJECT or OBSERVE."""

    name: str
    rule: RecordRule
    mode: Mode = Mode.REJECT
    on_outage: OnOutage = OnOutage.RETRIABLE
    on_schema_error: OnSchemaError = OnSchemaError.REJECT
