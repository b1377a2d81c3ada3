"""Where clients connect: the sections `listen` and `listen.tls`."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.values.address import HostPort, check_host
from sluicegate.config.values.kinds import (
    AdvertisedHost,
    FileName,
    ListenAddress,
    Networks,
    Patterns,
    Port,
    Secret,
    Text,
)
from sluicegate.config.values.password import Password, check_one

NODE_ID = "{node_id}"
MAX_NAMED_NODE = 999_999_999
"""The largest node id that `listen.broker_host` serves."""
_MAX_PORT = 65535


@section
class ListenTls:
    """TLS towards clients."""

    certificate_file: FileName = described("the certificate that clients see and its chain, PEM")
    key_file: FileName = described("its key, PEM")
    key_password: Secret | None = described("what the key is encrypted with", default=None)
    key_password_file: FileName | None = described("a file that holds it, instead", default=None)
    client_auth: Literal["none", "requested", "required"] = described(
        "whether clients show certificates, as `ssl.client.auth` on a broker", default="none"
    )
    client_ca_file: FileName | None = described(
        "who signs clients' certificates, PEM; needed unless `client_auth` is `none`", default=None
    )
    allowed_names: Patterns = described(
        "who may connect, by one of its certificate's names: the common name, and the alternative names (hosts, "
        "mail addresses, URIs, addresses), upper and lower case as they stand; needs `client_auth: required`; none: "
        "who has a certificate",
        default=(),
    )

    def __post_init__(self) -> None:
        if self.client_auth != "none" and self.client_ca_file is None:
            raise ValueError(f"client_auth {self.client_auth} needs client_ca_file: who signs clients' certificates")
        if self.allowed_names and self.client_auth != "required":
            raise ValueError("allowed_names needs client_auth: required: without a certificate nobody has a name")
        check_one("key_password", self.key_password, self.key_password_file)

    @property
    def password_of_key(self) -> Password:
        """What the key is encrypted with."""
        return Password("listen.tls.key_password_file", self.key_password, self.key_password_file)


def _names_each_broker(host: str) -> str:
    if host.count(NODE_ID) != 1:
        raise ValueError(f"expected a host name with {NODE_ID} in it, as broker-{NODE_ID}.kafka.example.com")
    check_host(host.replace(NODE_ID, "0"))
    return host


BrokerHost = Annotated[Text, AfterValidator(_names_each_broker)]


@section
class Listen:
    """Where clients connect, and which of them may."""

    bootstrap: ListenAddress = described(
        "where clients bootstrap; an empty host or `0.0.0.0` is every address of the machine"
    )
    broker_port_base: Port | None = described(
        "broker N listens at this + N, so that a restart keeps every port; none: the bootstrap port + 1",
        default=None,
        formerly="broker_ports",
    )
    broker_host: BrokerHost | None = described(
        "with TLS, instead of a port for each broker: one port, and a name for each, as "
        "`broker-{node_id}.kafka.example.com` (SNI); for node ids up to 999,999,999",
        default=None,
    )
    advertised_host: AdvertisedHost | None = described(
        "the host that clients are told, without a port; none: that of `listen.bootstrap`", default=None
    )
    tls: ListenTls | None = described(
        "TLS to clients. Files that change are read again. Absent: plaintext.", default=None
    )
    proxy_protocol: Literal["required", "optional"] | None = described(
        "take who the client is from load balancers in front (PROXY protocol v2): `required` of all connections, or "
        "`optional`; none: nobody is believed",
        default=None,
    )
    proxy_protocol_from: Networks = described(
        "the load balancers' networks or addresses; with `required` nobody else may connect, with `optional` nobody "
        "else is believed",
        default=(),
    )
    allowed_addresses: Networks = described(
        "networks or addresses that clients may connect from, before any TLS handshake; where a load balancer tells "
        "who the client is, that address counts; none: all",
        default=(),
    )
    oauthbearer_claim: Text | None = described(
        "the claim of an OAUTHBEARER token that the brokers take the principal from, as their "
        "`sasl.oauthbearer.sub.claim.name`, which is `sub` by default; none: principals of such logins are "
        "unverified, and no exemption matches them ([TLS and SASL](how-to/tls-and-sasl.md))",
        name="sasl.oauthbearer.sub.claim.name",
        default=None,
        formerly="sasl.oauthbearer.claim",
    )

    def __post_init__(self) -> None:
        if self.bootstrap.is_wildcard and not self.advertised_host:
            raise ValueError("listen.advertised_host is needed when listen.bootstrap is every address of the machine")
        if self.broker_host is not None and self.tls is None:
            raise ValueError("listen.broker_host needs listen.tls: only TLS clients say which name they want")
        if self.broker_host is not None and self.broker_port_base is not None:
            raise ValueError("listen.broker_host and listen.broker_port_base exclude each other")
        if self.bootstrap.port == 0 and self.broker_port_base is None and self.broker_host is None:
            raise ValueError("listen.broker_port_base is needed when listen.bootstrap leaves its port to the system")
        if (self.proxy_protocol is None) == bool(self.proxy_protocol_from):
            raise ValueError(
                "listen.proxy_protocol and listen.proxy_protocol_from belong together: only load balancers that are "
                "named may say who a client is"
            )

    def why_unavailable(self, node_id: int) -> tuple[str, str] | None:
        """Why broker `node_id` can have no address for clients, and what to do; None: it can have one."""
        smaller = "give the broker a smaller node.id"
        if self.broker_host is not None:
            if node_id <= MAX_NAMED_NODE:
                return None
            reason = f"broker {node_id} can have no name: listen.broker_host serves ids up to {MAX_NAMED_NODE}"
            return reason, smaller
        if 0 < self.port_of(node_id) <= _MAX_PORT:
            return None
        other = "use listen.broker_host" if node_id <= MAX_NAMED_NODE else smaller
        reason = f"broker {node_id} would need port {self.port_of(node_id)}, which does not exist"
        return reason, f"change listen.broker_port_base, or {other}"

    def port_of(self, node_id: int) -> int:
        """The port on which broker `node_id` is offered, where each has its own."""
        base = self.broker_port_base if self.broker_port_base is not None else self.bootstrap.port + 1
        return base + node_id

    def address_of(self, node_id: int) -> str:
        """Where clients find broker `node_id`, as a person reads it."""
        if self.broker_host is None:
            return str(HostPort(self.host_for_clients, self.port_of(node_id)))
        return str(HostPort(self.broker_host.replace(NODE_ID, str(node_id)), self.bootstrap.port))

    @property
    def host_for_clients(self) -> str:
        """The host that clients are told to connect to."""
        return self.advertised_host or self.bootstrap.host
