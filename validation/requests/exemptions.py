"""Clients that are asked nothing: mirrors and backfills, whose batches are the broker's alone to validate."""

from dataclasses import dataclass

from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rules.rule import Client


@dataclass(frozen=True, slots=True)
class Exemption:
    """What is given must match, both where both are; at least one is."""

    principal: NamePattern | None
    client_id: NamePattern | None

    def covers(self, client: Client) -> bool:
        """Whether this client is asked nothing. An unverified principal matches no pattern."""
        return (self.principal is None or self.principal.matches(client.principal)) and (
            self.client_id is None or self.client_id.matches(client.client_id)
        )
