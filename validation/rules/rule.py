"""What a rule is: asked about one record, it says what is wrong with it, or nothing.

A rule knows no file, socket or clock. What it has to look up elsewhere (a schema) it is handed as a callable, which may
raise Outage. Its words reach the producer's developer: they say what is wrong and what to do, and quote nothing of what
the record holds.

Compiled with the types in rule.pxd where a C compiler was at hand.
"""

from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Protocol

from sluicegate.validation.mode import Mode

Header = tuple[bytes, bytes | None]

INLINE_STEPS = 200_000
"""A step takes at most about 100 ns; within this bound a rule runs inline, at most about 20 ms."""
UNBOUNDED = 1 << 62
"""The steps of a rule of which no bound is known."""
CONSTANT_STEPS = 10
"""Those of a rule that looks at a few numbers."""


class Part(Flag):
    """What a rule reads of a record; what none reads is not taken out of its batch."""

    NONE = 0
    KEY = auto()
    VALUE = auto()
    HEADERS = auto()


class OnOutage(Enum):
    """What becomes of a batch while something that a rule depends on does not answer."""

    RETRIABLE = "retriable"  # rejected with an error upon which producers try again
    FORWARD = "forward"
    REJECT = "reject"


class OnSchemaError(Enum):
    """What becomes of a record whose schema exists and cannot be compiled or applied by the proxy."""

    REJECT = "reject"
    RETRIABLE = "retriable"  # rejected with an error upon which producers try again
    FORWARD = "forward"


class RuleUnusable(Exception):
    """A rule cannot be made of what the operator wrote, or of what is installed; the text says why."""


class Outage(Exception):
    """Something that a rule depends on does not answer; says what, and what was tried. Never the client's fault."""


class SchemaError(Exception):
    """A schema exists, and the proxy cannot compile or apply it; the text says which and why. `on_schema_error` decides
    what becomes of the record.
    """


class Client:
    """Who sent a record, as far as it is known; None where it has not said. `is_unverified`: a broker has accepted its
    login, and the proxy does not know as which principal.
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
    """A record as rules see it; of key, value and headers only what a rule of its topic `needs` is there.

    A plain class that is filled again for each record of a batch: no rule keeps it. `index`: its place in the batch;
    `timestamp`: int64 ms; `key_size` and `value_size`: bytes, -1 for null, there whatever is needed; `producer_id`: -1
    where the producer is not idempotent.
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

    @property
    def content_bytes(self) -> int:
        """The bytes of its key and value together."""
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
        """With the next record; what no rule needs is None, or none."""
        self.index = index
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.key_size = key_size
        self.value_size = value_size


class Rule(Protocol):
    """One kind of rule with its options. Any thread may ask, several at once."""

    @property
    def needs(self) -> Part:
        """What it reads."""

    @property
    def is_slow(self) -> bool:
        """Whether a record may take it longer than some ten microseconds: then it is never asked on the event loop."""

    def steps(self, record: RuledRecord) -> int:
        """Return an upper bound of the steps that `complaint` takes for this record, computed without doing the work.

        Schema times value: UNBOUNDED where no bound is known.
        """

    def complaint(self, record: RuledRecord) -> str | None:
        """Return what is wrong with a record, for the producer's developer; None: nothing.

        Raises Outage, and SchemaError.

        The verdict alone, as cheap as it can be had: details are for `explanation`.
        """

    def explanation(self, record: RuledRecord) -> str | None:
        """Return a longer text in place of what `complaint` has returned for this record: the first error in detail.

        Asked at most once a batch, for the first bad record. It takes a few milliseconds at most, and raises nothing;
        None: there is nothing to add, or finding it takes longer.
        """


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule as the file has it. `mode`: REJECT or OBSERVE."""

    name: str
    rule: Rule
    mode: Mode = Mode.REJECT
    on_outage: OnOutage = OnOutage.RETRIABLE
    on_schema_error: OnSchemaError = OnSchemaError.REJECT
