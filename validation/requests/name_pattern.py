"""Matches clients by name (client id, principal, software), and finds exempt clients and the owners of clients."""

from dataclasses import dataclass
from hashlib import sha256

from sluicegate.config.teams import Owner
from sluicegate.config.values.topic_pattern import (
    INSTRUCTION_NANOSECONDS,
    compile_expression,
    is_for_every_principal,
    regular_expression_of,
)
from sluicegate.validation.rules.rule import Client

_ALL = 100
_MOST_NANOSECONDS = 20_000_000


class NamePattern:
    """A glob, or an RE2 regular expression. Both match in linear time. Thread-safe.

    Clients choose their own ids, so a name that is too long to match within 20 ms does not match.
    `is_for_every_principal` is whether the pattern matches every principal.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = compile_expression(regular_expression_of(pattern))
        self._most_characters = _MOST_NANOSECONDS // (INSTRUCTION_NANOSECONDS * self._compiled.programsize)
        self.is_for_every_principal = is_for_every_principal(pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamePattern) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def matches(self, name: str | None) -> bool:
        """Return whether the whole name matches. A missing name (None) never matches."""
        if name is None or len(name) > self._most_characters:
            return False
        return self._compiled.fullmatch(name.encode(errors="replace").decode()) is not None

    def concerns_principal_of(self, client: Client) -> bool:
        """Return whether the client's principal matches.

        An unverified one matches only a pattern that matches all principals.
        """
        return self.is_for_every_principal if client.is_unverified else self.matches(client.principal)


@dataclass(frozen=True, slots=True)
class EnforcedClients:
    """The clients for which a policy is enforced: all with an id that matches a pattern, or a share (`percent`)."""

    patterns: tuple[NamePattern, ...] = ()
    percent: int | None = None

    def covers(self, client: Client) -> bool:
        """Return whether the policy is enforced for this client.

        If the client has no id, the patterns match the empty id.
        """
        client_id = client.client_id or ""
        if self.percent is None:
            return any(pattern.matches(client_id) for pattern in self.patterns)
        digest = sha256(client_id.encode(errors="replace")).digest()
        return int.from_bytes(digest[:8]) % _ALL < self.percent

    def __str__(self) -> str:
        if self.percent is not None:
            return f"{self.percent} % of clients"
        return f"clients {', '.join(pattern.pattern for pattern in self.patterns)}"


@dataclass(frozen=True, slots=True)
class Exemption:
    """Clients, such as mirrors, that only the broker validates.

    At least one pattern is set, and all patterns that are set must match. `topics` contains patterns for the topics to
    which the exemption applies; an empty `topics` means all topics.
    """

    principal: NamePattern | None
    client_id: NamePattern | None
    topics: tuple[NamePattern, ...] = ()

    def covers(self, client: Client) -> bool:
        """Return whether this client is exempt. An unverified principal matches no pattern."""
        return _are_of(client, self.principal, self.client_id)

    def applies_to_topic(self, topic: str) -> bool:
        """Return whether a pattern in `topics` matches this topic."""
        return any(pattern.matches(topic) for pattern in self.topics)


@dataclass(frozen=True, slots=True)
class OwnedClients:
    """The clients of one owner. At least one pattern is set, and all patterns that are set must match."""

    principal: NamePattern | None
    client_id: NamePattern | None
    owner: Owner

    def covers(self, client: Client) -> bool:
        """Return whether this client belongs to the owner. An unverified principal matches no pattern."""
        return _are_of(client, self.principal, self.client_id)


def owner_among(owners: tuple[OwnedClients, ...], client: Client) -> Owner | None:
    """Return the owner from the first entry that covers the client, or None."""
    return next((owned.owner for owned in owners if owned.covers(client)), None)


def _are_of(client: Client, principal: NamePattern | None, client_id: NamePattern | None) -> bool:
    return (principal is None or principal.matches(client.principal)) and (
        client_id is None or client_id.matches(client.client_id)
    )
