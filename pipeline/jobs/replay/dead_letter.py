"""A record of a dead-letter topic: what its producer wrote, where it was to go, and why the proxy rejected it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.validation.dead_letter_headers import DeadLetterHeader, shown, unpacked

Header = tuple[str, bytes | None]
"""A name that is not UTF-8 is decoded with "surrogateescape" (PEP 383), so `encoded` returns the same bytes."""
RawHeaders = tuple[tuple[bytes, bytes | None], ...]
_ESCAPED = "surrogateescape"
_OURS = frozenset(DeadLetterHeader)
_OWN, _REASON = DeadLetterHeader.OWN.encode(), DeadLetterHeader.REASON.encode()


class NoDeadLetter(Exception):
    """A record has not the headers of one; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Record:
    """`timestamp`: ms, as on the wire. A key, value or header's value of None is null."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`record` as its producer wrote it, which was to go to `partition` of `topic`, and lies at `offset` of `kept_in`.

    `reason` and `rules`: why it was rejected then. `told`: the headers that the proxy gave it.
    """

    kept_in: TopicPartition
    offset: int
    topic: str
    partition: int
    record: Record
    reason: str
    rules: tuple[str, ...]
    told: tuple[Header, ...]

    @property
    def place(self) -> str:
        """Where it lies, for people."""
        return f"{self.kept_in} offset {self.offset} (for {self.topic}-{self.partition})"


def dead_letter(
    kept_in: TopicPartition,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Mapping[str, bytes | None]] | None,
) -> DeadLetter:
    """From a row of the raw source; `headers` are its `headers_binary`. Raises NoDeadLetter.

    A record that was kept twice has the proxy's headers twice: those before the last ones came with it.
    """
    own, told = _apart(raw_headers(headers))
    said = {name: (text or b"").decode(errors="replace") for name, text in told}
    rules = said.get(DeadLetterHeader.RULE)
    record = Record(_number(said, DeadLetterHeader.TIMESTAMP), key, value, own)
    return DeadLetter(
        kept_in,
        offset,
        _text(said, DeadLetterHeader.TOPIC),
        _number(said, DeadLetterHeader.PARTITION),
        record,
        _text(said, DeadLetterHeader.REASON),
        tuple(rules.split(", ")) if rules else (),
        told,
    )


def raw_headers(headers: Sequence[Mapping[str, bytes | None]] | None) -> RawHeaders:
    """Of a row of the raw source, its `headers_binary`."""
    return tuple((each["key"] or b"", each["value"]) for each in headers or ())


def decoded(headers: RawHeaders) -> tuple[Header, ...]:
    """Return headers with names as text."""
    return tuple((name.decode(errors=_ESCAPED), value) for name, value in headers)


def encoded(headers: Sequence[Header]) -> RawHeaders:
    """Return headers with names as bytes. Raises UnicodeEncodeError for a name with other surrogates."""
    return tuple((name.encode(errors=_ESCAPED), value) for name, value in headers)


def _apart(headers: RawHeaders) -> tuple[tuple[Header, ...], tuple[Header, ...]]:
    """Its own, and those of the last time it was kept; what others have put behind these is its own."""
    begins = max((i for i, (name, _) in enumerate(headers) if name == _REASON), default=len(headers))
    own, behind = headers[:begins], headers[begins:]
    if own and behind:
        name, packed = own[-1]
        stood = unpacked(packed) if name == _OWN and packed is not None else None
        if stood is not None and shown(stood) == list(decoded(own[:-1])):
            own, behind = tuple(stood), headers[begins - 1 :]
    put_behind = decoded(behind)
    told = tuple(each for each in put_behind if each[0] in _OURS)
    return (*decoded(own), *(each for each in put_behind if each[0] not in _OURS)), told


def _text(said: Mapping[str, str], name: DeadLetterHeader) -> str:
    if name not in said:
        raise NoDeadLetter(f"it has no header {name}")
    return said[name]


def _number(said: Mapping[str, str], name: DeadLetterHeader) -> int:
    try:
        found = int(_text(said, name))
    except ValueError:
        raise NoDeadLetter(f"its header {name} is no number") from None
    if not -(2**63) <= found < 2**63:
        raise NoDeadLetter(f"its header {name} is no int64")
    return found
