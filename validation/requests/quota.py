"""What clients may send in a second, or topics be sent, and on how many connections."""

from dataclasses import dataclass

from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rules.rule import Client


@dataclass(frozen=True, slots=True)
class Quota:
    """Of each client whose names match what is given of `client_id` and `principal`; or of each topic. None: no
    bound.
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
        for pattern, name in ((self.principal, client.principal), (self.client_id, client.client_id)):
            if pattern is None:
                continue
            if name is None or not pattern.matches(name):
                return None
            names.append(name)
        return tuple(names)
