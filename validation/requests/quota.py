"""What clients may send in a second, or topics be sent, and on how many connections."""

from dataclasses import dataclass

from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rules.rule import Client

_ANONYMOUS = "User:ANONYMOUS"  # KafkaPrincipal.ANONYMOUS
_UNVERIFIED = "an unverified principal"


@dataclass(frozen=True, slots=True)
class Quota:
    """Of each client whose names match what is given of `client_id` and `principal`; or of each topic. None: no
    bound.

    A client without an id has the empty one, as at a broker (RequestHeader.parse), and one without a principal is
    User:ANONYMOUS. Clients with unverified principals are one client here: they may choose the name in their token.
    """

    name: str
    client_id: NamePattern | None
    principal: NamePattern | None
    topic: NamePattern | None
    bytes_per_second: int | None
    requests_per_second: int | None
    connections: int | None

    def whose(self, client: Client) -> tuple[str, ...] | None:
        """By which names this client is one of those that it is about; None: it is not."""
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
