"""Rules for headers: required and forbidden names, values, number and size."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.config.values.topic_pattern import INSTRUCTION_NANOSECONDS, compile_expression, regular_expression_of
from sluicegate.validation.rules.rule import INLINE_STEPS, Part, RuledRecord
from sluicegate.validation.rules.simple_rule import SimpleRule

_PARTS = Part.HEADERS
_MATCH_STEPS = 60
_INSTRUCTIONS_A_STEP = 100 // INSTRUCTION_NANOSECONDS  # a step is 100 ns


@dataclass(frozen=True, slots=True)
class _ListedHeaders(SimpleRule):
    """The common base of rules for header names."""

    names: tuple[str, ...]

    @property
    def header_names(self) -> frozenset[bytes]:
        """The listed names."""
        return frozenset(name.encode() for name in self.names)

    @property
    def parts(self) -> Part:
        """The headers."""
        return _PARTS


@dataclass(frozen=True, slots=True)
class RequiredHeaders(_ListedHeaders):
    """A rule that requires each of these headers, with any value."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message with the missing names, or None."""
        record.budget.spend(len(record.headers))
        present = {name for name, _ in record.headers}
        missing = [name for name in self.names if name.encode() not in present]
        return f"header {', '.join(missing)} is missing; send it with every record" if missing else None


@dataclass(frozen=True, slots=True)
class ForbiddenHeaders(_ListedHeaders):
    """A rule that rejects each of these headers."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message with the forbidden names that are present, or None."""
        record.budget.spend(len(record.headers))
        present = {name for name, _ in record.headers}
        found = [name for name in self.names if name.encode() in present]
        return f"header {', '.join(found)} is not allowed; remove it" if found else None


class MatchedHeader(SimpleRule):
    """A rule that requires the whole value of each header with this name to match, as UTF-8. A missing header passes.

    `pattern` is a glob, or an RE2 regular expression between slashes. A value that needs more than INLINE_STEPS is a
    fault, because matching cannot be interrupted.
    """

    def __init__(self, name: str, pattern: str) -> None:
        self.name = name
        self.pattern = pattern
        self._name = name.encode()
        self._compiled = compile_expression(regular_expression_of(pattern))
        self._instructions = self._compiled.programsize

    @property
    def parts(self) -> Part:
        """The headers."""
        return _PARTS

    @property
    def header_names(self) -> frozenset[bytes]:
        """The single name."""
        return frozenset({self._name})

    def _steps_of(self, value: bytes | None) -> int:
        return _MATCH_STEPS + (0 if value is None else len(value) * self._instructions // _INSTRUCTIONS_A_STEP)

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message if a value does not match, otherwise None. It does not quote the value."""
        left = INLINE_STEPS
        matched: bytes | None = None
        for name, value in record.headers:
            if name != self._name or (matched is not None and value == matched):
                continue
            matched = value
            steps = self._steps_of(value)
            left -= steps
            if left < 0:
                return f"header {self.name} is too costly to match with {self.pattern}; send a shorter value"
            record.budget.spend(steps)
            if not self._matches(value):
                return f"the value of header {self.name} does not match {self.pattern}"
        return None

    def _matches(self, value: bytes | None) -> bool:
        if value is None:
            return False
        try:
            return self._compiled.fullmatch(value.decode()) is not None
        except UnicodeDecodeError:
            return False


@dataclass(frozen=True, slots=True)
class HeaderBounds(SimpleRule):
    """A rule that limits the headers to `most_headers`, and their names and values together to `most_bytes`."""

    most_headers: int | None = None
    most_bytes: int | None = None

    @property
    def parts(self) -> Part:
        """The headers."""
        return _PARTS

    @property
    def header_names(self) -> frozenset[bytes]:
        """Return no names, because only the number and size of the headers are needed."""
        return frozenset()

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message if there are too many headers or they are too large, otherwise None."""
        count = record.header_count
        if self.most_headers is not None and count > self.most_headers:
            return f"{count} headers, but at most {self.most_headers} are allowed"
        size = record.header_bytes if record.header_bytes >= 0 else _size_of(record.headers)
        if self.most_bytes is not None and size > self.most_bytes:
            return f"headers of {size} bytes, including names and values; at most {self.most_bytes} are allowed"
        return None


def _size_of(headers: Sequence[tuple[bytes, bytes | None]]) -> int:
    return sum(len(name) + (len(value) if value is not None else 0) for name, value in headers)
