"""A record of a dead-letter topic: what its producer wrote, where it was to go, and why the proxy refused it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.validation.dead_letter_headers import DeadLetterHeader

Header = tuple[str, bytes | None]
_OURS = frozenset(DeadLetterHeader)


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

    `reason` and `rules`: why it was refused then. `told`: the headers that the proxy gave it. `names_are_shown`: some
    header of its own had a name that is no UTF-8, which stands in `record` as it can be shown.
    """

    kept_in: TopicPartition
    offset: int
    topic: str
    partition: int
    record: Record
    reason: str
    rules: tuple[str, ...]
    told: tuple[Header, ...]
    names_are_shown: bool

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
    shown, are_shown = shown_headers(headers)
    own, told = _apart(shown)
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
        DeadLetterHeader.OWN in said or are_shown,
    )


def shown_headers(headers: Sequence[Mapping[str, bytes | None]] | None) -> tuple[tuple[Header, ...], bool]:
    """`headers_binary` of a row of the raw source, with names as text; and whether one is no UTF-8, so that it stands
    there as it can be shown.
    """
    names = [each["key"] or b"" for each in headers or ()]
    shown = [name.decode(errors="backslashreplace") for name in names]
    found = tuple((name, each["value"]) for name, each in zip(shown, headers or (), strict=True))
    return found, [name.encode() for name in shown] != names


def _apart(headers: Sequence[Header]) -> tuple[tuple[Header, ...], tuple[Header, ...]]:
    """Its own, and those of the last time it was kept; what others have put behind these is its own."""
    begins = max((i for i, (name, _) in enumerate(headers) if name == DeadLetterHeader.REASON), default=len(headers))
    if 0 < begins < len(headers) and headers[begins - 1][0] == DeadLetterHeader.OWN:
        begins -= 1
    behind = headers[begins:]
    own = (*headers[:begins], *(each for each in behind if each[0] not in _OURS))
    return own, tuple(each for each in behind if each[0] in _OURS)


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
