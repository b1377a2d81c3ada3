"""Represents a record in a dead-letter topic: the original record, its destination, and why it was rejected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluicegate.dead_letters.own_format import split_headers
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.validation.dispositions.quarantine import DeadLetterHeader

Header = tuple[str, bytes | None]
"""A header's name and value. A name that is not UTF-8 is decoded with "surrogateescape" (PEP 383), so that
`encode_headers` returns the same bytes.
"""
RawHeaders = tuple[tuple[bytes, bytes | None], ...]
_ESCAPED = "surrogateescape"


class NoDeadLetter(Exception):
    """Raised if a record lacks the headers of a dead letter. The message names the missing headers."""


@dataclass(frozen=True, slots=True)
class ReplayRecord:
    """A record to write. `timestamp` is in ms, as on the wire. None represents a null key, value or header value."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter, stored at `offset` of `kept_in`.

    `record` is the record as its producer wrote it to `partition` of `topic`. `reason` and `rules` are those of the
    proxy's rejection. `proxy_headers` are the headers that the proxy added.
    """

    kept_in: TopicPartition
    offset: int
    topic: str
    partition: int
    record: ReplayRecord
    reason: str
    rules: tuple[str, ...]
    proxy_headers: tuple[Header, ...]

    @property
    def is_copy(self) -> bool:
        """Return whether the proxy also forwarded the record (`quarantine` with `mode: observe`)."""
        return any(name == DeadLetterHeader.COPY for name, _ in self.proxy_headers)

    @property
    def place(self) -> str:
        """Return the place where the dead letter is stored, for messages."""
        return f"{self.kept_in} offset {self.offset} (for {self.topic}-{self.partition})"


def dead_letter(
    kept_in: TopicPartition,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Mapping[str, bytes | None]] | None,
) -> DeadLetter:
    """Return the dead letter in a row of the raw source; `headers` is its `headers_binary`. Raises NoDeadLetter.

    A record that was quarantined twice has two sets of the proxy's headers. Only the last set counts as the proxy's;
    the earlier one counts as the record's own headers.
    """
    own, added = split_headers(raw_headers(headers))
    proxy_headers = decode_headers(added)
    texts = {name: (text or b"").decode(errors="replace") for name, text in proxy_headers}
    rules = texts.get(DeadLetterHeader.RULE)
    record = ReplayRecord(_number(texts, DeadLetterHeader.TIMESTAMP), key, value, decode_headers(own))
    return DeadLetter(
        kept_in,
        offset,
        _text(texts, DeadLetterHeader.TOPIC),
        _number(texts, DeadLetterHeader.PARTITION),
        record,
        _text(texts, DeadLetterHeader.REASON),
        tuple(rules.split(", ")) if rules else (),
        proxy_headers,
    )


def raw_headers(headers: Sequence[Mapping[str, bytes | None]] | None) -> RawHeaders:
    """Return a row's headers from the raw source's column `headers_binary`."""
    return tuple((each["key"] or b"", each["value"]) for each in headers or ())


def decode_headers(headers: RawHeaders) -> tuple[Header, ...]:
    """Return headers with names as strings."""
    return tuple((name.decode(errors=_ESCAPED), value) for name, value in headers)


def encode_headers(headers: Sequence[Header]) -> RawHeaders:
    """Return headers with names as bytes. Raises UnicodeEncodeError if a name contains other surrogates."""
    return tuple((name.encode(errors=_ESCAPED), value) for name, value in headers)


def _text(texts: Mapping[str, str], name: DeadLetterHeader) -> str:
    if name not in texts:
        raise NoDeadLetter(f"the header {name} is missing")
    return texts[name]


def _number(texts: Mapping[str, str], name: DeadLetterHeader) -> int:
    try:
        found = int(_text(texts, name))
    except ValueError:
        raise NoDeadLetter(f"its header {name} is not a number") from None
    if not -(2**63) <= found < 2**63:
        raise NoDeadLetter(f"its header {name} is not a 64-bit integer")
    return found
