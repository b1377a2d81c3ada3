"""A copy of a client's identity at one moment, for reports."""

from typing import NamedTuple

from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.rules.rule import Client


class ClientDetails(NamedTuple):
    """A client's identity at one moment. Unknown fields are None."""

    peer: str
    client_id: str | None
    software_name: str | None
    software_version: str | None
    principal: str | None
    is_verified: bool = True

    @property
    def holder(self) -> str:
        """The name under which fair limits count the client: its verified principal, or else its address."""
        return holder_of(self)

    @property
    def named(self) -> Client:
        """The client as the configuration's patterns see it, without an unverified principal."""
        principal = self.principal if self.is_verified else None
        return Client(self.peer, self.client_id, self.software_name, self.software_version, principal)


def holder_of(identity: ClientIdentity | ClientDetails) -> str:
    """Return the name under which fair limits count the client: its verified principal, or else its address."""
    known = identity.principal if identity.is_verified else None
    return known or identity.peer.rpartition(":")[0]


def client_details(identity: ClientIdentity) -> ClientDetails:
    """Return a copy of the current identity."""
    return ClientDetails(
        identity.peer,
        identity.client_id,
        identity.software_name,
        identity.software_version,
        identity.principal,
        identity.is_verified,
    )
