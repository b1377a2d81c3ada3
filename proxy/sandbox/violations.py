"""Collects a sandbox's violations, and decides which of them fail the run."""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluicegate.config.model import Config
from sluicegate.proxy.reporting.events.reasons_reference import ENTRIES
from sluicegate.proxy.reporting.events.violation_event import Event, RehearsalEvent, event_of
from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Reason

REPORT_VERSION: Final = 1
_MOST_LISTED = 10_000
_REJECTING = frozenset({Mode.REJECT, Mode.QUARANTINE})
_REFERENCE = re.compile(r" \(\[[^\]]*\]\([^)]*\)\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class BadAllowance(Exception):
    """An invalid value of `--allow`. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Violations that do not fail the run: a pattern of topics, and a reason's code or a rule's name."""

    topic: NamePattern
    code: str

    def covers(self, topic: str | None, code: str) -> bool:
        """Return whether a violation with this topic and code is allowed."""
        return code == self.code and self.topic.matches(topic)


def allowance_of(text: str) -> Allowance:
    """Parse an allowance TOPIC=CODE. Raises BadAllowance."""
    topic, _, code = text.rpartition("=")
    if not topic or not code:
        raise BadAllowance(f"{text}: expected TOPIC=CODE, for example payments=null_key")
    try:
        return Allowance(NamePattern(topic), code)
    except ValueError as error:
        raise BadAllowance(f"{text}: {error}") from None


def allowances(texts: Iterable[str], config: Config) -> list[Allowance]:
    """Parse the values of `--allow TOPIC=CODE`. Raises BadAllowance for a code that no violation can have."""
    rules = [rule.name for _, keys in config.sections_with_rules() for rule in keys.rules or ()]
    rules += [rule.name for rule in config.requests]
    known = {*rules, *(reason.value for reason in Reason)}
    found = [allowance_of(text) for text in texts]
    for allowance in found:
        if allowance.code not in known:
            raise BadAllowance(f"no reason and no rule of the configuration is named {allowance.code}")
    return found


def codes_not_allowed(allowed: Sequence[Allowance], topic: str | None, codes: Iterable[str]) -> Iterator[str]:
    """Yield a batch's codes that no allowance covers."""
    return (code for code in codes if not any(allowance.covers(topic, code) for allowance in allowed))


@dataclass(frozen=True, slots=True)
class Violation:
    """A batch with a violation. `event` is its violation event.

    `code` is the reason or the name of a violated rule, if possible one that `--allow` does not name. `is_rejection` is
    false if the policy only observes. `is_allowed` is true if `--allow` names all its codes.
    """

    number: int
    code: str
    fix: str
    is_rejection: bool
    is_allowed: bool
    event: dict[str, Any]

    @property
    def fails(self) -> bool:
        """Whether the violation fails the run."""
        return self.is_rejection and not self.is_allowed

    @property
    def codes(self) -> list[str]:
        """The names of all violated rules, or the reason if no rule is violated."""
        return [each["rule"] for each in self.event.get("rules", ())] or [self.code]

    @classmethod
    def from_json(cls, shown: dict[str, Any]) -> "Violation":
        """Create a violation from an entry of `/report`."""
        outcome = shown["rejected"], shown["allowed"]
        return cls(shown["number"], shown["code"], shown["fix"], *outcome, shown["event"])

    def as_json(self) -> dict[str, Any]:
        """Return the violation in the form that `/report` shows."""
        return {
            "number": self.number,
            "code": self.code,
            "fix": self.fix,
            "rejected": self.is_rejection,
            "allowed": self.is_allowed,
            "event": self.event,
        }


class ViolationList:
    """A sink for violation events, which lists the first 10,000 and counts all. Thread-safe."""

    def __init__(self, allowed: Sequence[Allowance] = ()) -> None:
        self._allowed = tuple(allowed)
        self._lock = threading.Lock()
        self._listed: list[Violation] = []
        self._count = 0
        self._failures = 0

    def write(self, event: Event) -> None:
        """Add a violation. Rehearsed bounds reject nothing, so their events are not listed."""
        if isinstance(event, RehearsalEvent):
            return
        codes = [rule for rule, _ in event.rules] or [event.reason.value]
        code = next(codes_not_allowed(self._allowed, event.topic, codes), None)
        is_rejection, is_allowed = event.mode in _REJECTING, code is None
        code = codes[0] if code is None else code
        with self._lock:
            self._count += 1
            self._failures += is_rejection and not is_allowed
            if len(self._listed) < _MOST_LISTED:
                fix = _fix_of(event.reason, code)
                self._listed.append(Violation(self._count, code, fix, is_rejection, is_allowed, event_of(event)))

    def close(self) -> None:
        """Do nothing, because there is no file to close."""

    @property
    def count(self) -> int:
        """The number of all violations."""
        return self._count

    @property
    def failures(self) -> int:
        """The number of violations that fail the run."""
        return self._failures

    def listed(self, after: int = 0) -> list[Violation]:
        """Return the violations numbered above `after`."""
        with self._lock:
            return self._listed[after:]

    def as_json(self, after: int = 0) -> dict[str, Any]:
        """Return the report. `after` has the same meaning as in `listed`."""
        with self._lock:
            listed, count, failures = self._listed[after:], self._count, self._failures
        return {
            "report_version": REPORT_VERSION,
            "count": count,
            "failures": failures,
            "violations": [violation.as_json() for violation in listed],
        }


def grouped(violations: Iterable[Violation]) -> Iterator[list[Violation]]:
    """Yield the violations of each client, topic and code, in the order of their first violation."""
    groups: dict[tuple[object, ...], list[Violation]] = {}
    for violation in violations:
        event = violation.event
        of = (event["topic"], event["client_id"], event["principal"], violation.code, violation.is_rejection)
        groups.setdefault(of, []).append(violation)
    yield from groups.values()


def _fix_of(reason: Reason, code: str) -> str:
    """Return the advice for a violation, without links to the documentation."""
    if reason is Reason.RULE_VIOLATED:
        return f"Send records that meet the rule {code}, or ask the owner of the policy to change it."
    plain = _LINK.sub(r"\1", _REFERENCE.sub("", ENTRIES[reason].remedy))
    return plain.replace("the event's `diagnosis`", "the line of the record")
