"""Defines quotas: bytes and requests per second for clients or topics, and numbers of connections."""

from dataclasses import dataclass

from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rules.rule import Client

_ANONYMOUS = "User:ANONYMOUS"  # KafkaPrincipal.ANONYMOUS
_UNVERIFIED = "an unverified principal"


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """A quota for each client that matches the given `client_id` and `principal`, or for each topic.

    A limit of None means no limit. As on a broker, a client without an id has an empty id (RequestHeader.parse), and a
    client without a principal has the principal User:ANONYMOUS. All clients with unverified principals count as one
    client, because clients choose the names in their tokens.
    """

    name: str
    client_id: NamePattern | None
    principal: NamePattern | None
    topic: NamePattern | None
    bytes_per_second: int | None
    requests_per_second: int | None
    connections: int | None

    def counted_names(self, client: Client) -> tuple[str, ...] | None:
        """Return the names by which this client is counted, or None if the quota does not apply."""
        if self.topic is not None:
            return None
        names = []
        if self.principal is not None:
            principal = _principal_of(client, self.principal)
            if principal is None:
                return None
            names.append(principal)
        if self.client_id is not None:
            client_id = client.client_id or ""
            if not self.client_id.matches(client_id):
                return None
            names.append(client_id)
        return tuple(names)


def _principal_of(client: Client, pattern: NamePattern) -> str | None:
    if client.is_unverified:
        return _UNVERIFIED if pattern.is_for_every_principal else None
    principal = client.principal or _ANONYMOUS
    return principal if pattern.matches(principal) else None
