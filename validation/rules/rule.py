"""The interface of rules: a rule receives one record and returns its fault, or None.

A rule uses no file, socket or clock. To look something up (a schema), it gets a callable that may raise Outage. Its
texts are for the developer of the producer: they name the fault and the fix, and quote nothing from the record.

Compiled with the types in rule.pxd if a C compiler is installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Protocol, TypeVar, runtime_checkable

Header = tuple[bytes, bytes | None]

INLINE_STEPS = 200_000
"""A step takes at most about 100 ns; up to this bound a rule runs inline, at most about 20 ms."""
UNBOUNDED = 1 << 62
"""The steps of a rule without a known bound."""


class Mode(Enum):
    """How to handle a batch that breaks a rule."""

    REJECT = "reject"  # the batch is rejected as a broker would
    OBSERVE = "observe"  # the batch is forwarded unchanged, and the violation is reported
    FIX = "fix"  # the batch is forwarded with other times, and both times are reported
    QUARANTINE = "quarantine"  # like reject, and the bad records are written to another topic
    MARK = "mark"  # the batch is forwarded, and headers of its bad records name the violation
    COPY = "copy"  # like observe, and copies of the bad records are written to another topic

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is a Python call


class Part(Flag):
    """The parts of a record that a rule reads; parts that no rule reads are not extracted."""

    NONE = 0
    KEY = auto()
    VALUE = auto()
    HEADERS = auto()


class OnOutage(Enum):
    """How to handle a batch while a dependency of a rule does not respond."""

    RETRIABLE = "retriable"  # rejected with an error that makes producers retry
    FORWARD = "forward"
    REJECT = "reject"


class OnSchemaError(Enum):
    """How to handle a record whose schema exists, but cannot be compiled or applied by the proxy."""

    REJECT = "reject"
    RETRIABLE = "retriable"  # rejected with an error that makes producers retry
    FORWARD = "forward"


class RuleUnusable(Exception):
    """The operator's rule is invalid, or a package that it needs is not installed; the text gives the reason."""


class Outage(Exception):
    """A dependency of a rule does not respond; the text names it and the failed request. Never the client's fault."""


class SchemaError(Exception):
    """A schema exists, but the proxy cannot compile or apply it; the text gives the schema and the reason.

    `on_schema_error` decides how the record is handled.
    """


LIBRARY_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of a library with a schema or data that it does not expect: those of the client, so they are permanent."""


class TooManySteps(Exception):
    """A rule needs more steps for a record than it may take here."""


class StepBudget:
    """What a rule spends on one record, before it does the work; this budget only counts.

    Every rule may compare a few numbers without spending anything.
    """

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Count an upper bound of the steps that follow; UNBOUNDED if no bound is known.

        A budget with a limit raises TooManySteps, or OutOfTime where the work would block other work.
        """
        self.spent += steps


class LimitedSteps(StepBudget):
    """At most `most` steps, which another budget counts too."""

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
    """The client that sent a record. Fields that it has not sent are None.

    `is_unverified`: a broker has accepted its login, but the proxy does not know for which principal.
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
    """A record as rules see it; key, value and headers are only set if a rule of the topic reads them.

    A plain class that is filled again for each record of a batch, so no rule may keep it. `index`: position in the
    batch; `timestamp`: int64 ms; `key_size` and `value_size`: bytes, -1 for null, always set; `producer_id`: -1 if the
    producer is not idempotent. `headers` may lack headers whose names no rule reads; `header_count` and `header_bytes`
    (-1: unknown) are those of all headers. `budget`: what a rule spends before costly work on the record.
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
        """The bytes of key and value together."""
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
        """Fill with the next record; parts that no rule needs are None, or empty."""
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
    """The side of a record that a rule is about, named as in messages."""

    KEY = "key"
    VALUE = "value"

    @property
    def part(self) -> Part:
        """The part that a rule about this side reads."""
        return Part.KEY if self is Side.KEY else Part.VALUE

    def size_of(self, record: RuledRecord) -> int:
        """Return the size in bytes; -1 for null."""
        return record.key_size if self is Side.KEY else record.value_size

    def bytes_of(self, record: RuledRecord) -> bytes | None:
        """Return the bytes, if a rule needs them."""
        return record.key if self is Side.KEY else record.value


class RecordRule(Protocol):
    """One kind of rule with its options. Thread-safe."""

    @property
    def parts(self) -> Part:
        """The parts that it reads."""

    @property
    def is_slow(self) -> bool:
        """Whether a record may take more than about ten microseconds; such a rule never runs on the event loop."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, for the producer's developer; None if there is none.

        Before costly work, spends an upper bound of its steps from `record.budget`, computed without doing the work.
        Raises Outage, SchemaError, and what the budget raises. Without details: these come from `description`.
        """

    def description(self, record: RuledRecord) -> str | None:
        """Return a longer text that replaces the one of `fault` for this record: the first error in detail.

        Called at most once per batch, for the first bad record. Takes at most a few milliseconds, spends as `fault`
        does, and raises only what the budget raises. None: there are no more details, or finding them takes longer.
        """


@runtime_checkable
class NamesHeaders(Protocol):
    """A rule that reads headers by their names, so that a record's other headers are not extracted."""

    @property
    def header_names(self) -> frozenset[bytes] | None:
        """The names of the headers that it reads; None: all."""


def header_names_of(rule: object) -> frozenset[bytes] | None:
    """Return the names of the headers that a rule reads; None: all."""
    return rule.header_names if isinstance(rule, NamesHeaders) else None


Subject_contra = TypeVar("Subject_contra", contravariant=True)


@runtime_checkable
class SupportsLookAhead(Protocol[Subject_contra]):
    """A rule (of records), or a schema (of data), that evaluates several together in less time than one by one."""

    def look_ahead(self, subjects: Sequence[Subject_contra], budget: StepBudget) -> None:
        """Prepare for these records or data of one request, which it is asked about next. Changes no verdict.

        Called after a record took more than INLINE_STEPS. Raises what the budget raises, and what evaluating raises
        where it may not wait.
        """


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule from the configuration. `mode`: REJECT or OBSERVE."""

    name: str
    rule: RecordRule
    mode: Mode = Mode.REJECT
    on_outage: OnOutage = OnOutage.RETRIABLE
    on_schema_error: OnSchemaError = OnSchemaError.REJECT
