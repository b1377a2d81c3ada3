"""The section `listen`: the addresses of the proxy, and the clients that may connect."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.tls import ListenTls
from sluicegate.config.values.address import HostPort, check_host
from sluicegate.config.values.claim_path import claim_path
from sluicegate.config.values.kinds import (
    LEAVE_OUT,
    OFF,
    ON,
    AdvertisedHost,
    ListenAddress,
    Networks,
    NodeId,
    Port,
    Text,
)
from sluicegate.config.values.principal_mapping import PrincipalMapping

NODE_ID = "{node_id}"
_MAX_PORT = 65535


def _names_each_broker(host: str) -> str:
    if host.count(NODE_ID) != 1:
        raise ValueError(f"expected a host name with {NODE_ID} in it, such as broker-{NODE_ID}.kafka.example.com")
    check_host(host.replace(NODE_ID, "0"))
    return host


def _leads_to_a_claim(claim: str) -> str:
    claim_path(claim)
    return claim


def _maps_principals(rules: str) -> str:
    PrincipalMapping(rules)
    return rules


BrokerHost = Annotated[Text, AfterValidator(_names_each_broker)]
Claim = Annotated[Text, AfterValidator(_leads_to_a_claim)]
MappingRules = Annotated[Text, AfterValidator(_maps_principals)]


@section
class Listen:
    """The addresses that clients connect to, and the clients that may connect."""

    bootstrap: ListenAddress = described(
        "The address on which clients bootstrap. An empty host or `0.0.0.0` listens on every address of the machine.",
        misnomers={"address": "bootstrap: {value}", "port": 'bootstrap: "0.0.0.0:{value}"'},
    )
    broker_port_base: Port | None = described(
        "The first port for brokers: the listener of broker N has this port + N, so that ports survive restarts. "
        "Default: the bootstrap port + 1.",
        default=None,
        formerly="broker_ports",
    )
    broker_host: BrokerHost | None = described(
        "The host name of each broker, for example `broker-{node_id}.kafka.example.com`. All brokers then share one "
        "port (TLS SNI) instead of one port each. Needs `listen.tls`.",
        default=None,
    )
    broker_port_map: dict[NodeId, Port] = described(
        "The ports of brokers by node id, for ids that are too high for `broker_port_base`, such as 2000000000. "
        "Other brokers have their port by `broker_port_base`.",
        default_factory=dict,
    )
    advertised_host: AdvertisedHost | None = described(
        "The host that the proxy advertises to clients, without a port. Default: the host of `listen.bootstrap`.",
        default=None,
        misnomers=dict.fromkeys(("advertised.listeners", "advertised_listeners"), "advertised_host: …"),
    )
    tls: ListenTls | None = described(
        "TLS towards clients. Changed certificate files are reloaded. Default: plaintext.", default=None
    )
    proxy_protocol: Literal["required", "optional"] | None = described(
        "Whether connections begin with a PROXY protocol v2 header, in which a load balancer sends the client's "
        "address: `required`, or `optional`. Default: the proxy accepts no PROXY headers.",
        default=None,
        corrections=dict.fromkeys(ON, "required") | dict.fromkeys(OFF, LEAVE_OUT),
    )
    proxy_protocol_from: Networks = described(
        "The networks or addresses of the load balancers. With `proxy_protocol: required`, only these "
        "addresses may connect. With `optional`, headers are accepted only from them.",
        default=(),
    )
    allowed_addresses: Networks = described(
        "The networks or addresses from which clients may connect, checked before the TLS handshake. Behind a load "
        "balancer the address is the one in the PROXY header. Default: all addresses.",
        default=(),
    )
    legacy: Literal["convert"] | None = described(
        "How the proxy serves producers that are older than Kafka 0.11, whose requests Kafka 4 rejects. `convert`: the "
        "proxy converts Produce requests v0 to v2, with messages of magic 0 and 1, to v3 with record batches of magic "
        "2, as brokers up to Kafka 3.9 do ([Legacy producers](how-to/legacy-producers.md)). Default: the proxy "
        "forwards these requests unchanged.",
        default=None,
        corrections=dict.fromkeys(ON, "convert") | dict.fromkeys(OFF, LEAVE_OUT),
        misnomers={"log.message.format.version": "legacy: convert", "message.format.version": "legacy: convert"},
    )
    user_name_is_principal: tuple[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], ...] = described(
        "The SASL mechanisms whose user name is the principal at the brokers. Name a mechanism only if the brokers "
        "have the default `principal.builder.class` and Kafka's own login handlers. The principals of all other "
        "logins with a user name are unverified and match no exemption ([TLS and SASL](how-to/tls-and-sasl.md)).",
        corrections={"plain": "PLAIN", "scram": "SCRAM-SHA-512"},
        misnomers={"principal.builder.class": "user_name_is_principal: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512]"},
        default=(),
    )
    oauthbearer_claim: Text | None = described(
        "The claim of an OAUTHBEARER token from which the brokers take the principal. Set it to the brokers' value, "
        "which is `sub` by default. If it is not set, the principals of OAUTHBEARER logins are unverified and "
        "match no exemption ([TLS and SASL](how-to/tls-and-sasl.md)).",
        name="sasl.oauthbearer.sub.claim.name",
        formerly="sasl.oauthbearer.claim",
        default=None,
    )
    oauth_username_claim: Claim | None = described(
        "The claim from which brokers with Strimzi's login handler take the principal. Set it to their "
        "`oauth.username.claim` (`userNameClaim`): a claim, or the path of a nested claim, for example "
        "`['user'].['id']`.",
        name="oauth.username.claim",
        misnomers=dict.fromkeys(("userNameClaim", "user_name_claim"), "oauth.username.claim: {value}"),
        default=None,
    )
    oauth_username_prefix: Text | None = described(
        "The prefix before that user name. Set it to the brokers' `oauth.username.prefix`. Default: no prefix.",
        name="oauth.username.prefix",
        misnomers={"userNamePrefix": "oauth.username.prefix: {value}"},
        default=None,
    )
    oauth_fallback_claim: Claim | None = described(
        "The claim of a token that lacks `oauth.username.claim`. Set it to the brokers' "
        "`oauth.fallback.username.claim` (`fallbackUserNameClaim`). If it is not set, such a token has no user "
        "name.",
        name="oauth.fallback.username.claim",
        misnomers={"fallbackUserNameClaim": "oauth.fallback.username.claim: {value}"},
        default=None,
    )
    oauth_fallback_prefix: Text | None = described(
        "The prefix before a user name from the fallback claim. Set it to the brokers' "
        "`oauth.fallback.username.prefix` (`fallbackUserNamePrefix`). Default: no prefix.",
        name="oauth.fallback.username.prefix",
        misnomers={"fallbackUserNamePrefix": "oauth.fallback.username.prefix: {value}"},
        default=None,
    )
    principal_mapping_rules: MappingRules | None = described(
        "The rules that turn the subject of a client's certificate into a principal, as in a broker's "
        "`ssl.principal.mapping.rules`: `RULE:pattern/replacement/[LU]` and `DEFAULT`, separated by commas. A "
        "client to which no rule applies is rejected. Default: the principal is the whole subject.",
        name="ssl.principal.mapping.rules",
        default=None,
    )

    def __post_init__(self) -> None:
        if self.bootstrap.is_wildcard and not self.advertised_host:
            raise ValueError("listen.advertised_host is required if listen.bootstrap is a wildcard address")
        if self.broker_host is not None and self.tls is None:
            raise ValueError("listen.broker_host needs listen.tls: only TLS clients send the host name (SNI)")
        if self.broker_host is not None and self.broker_port_base is not None:
            raise ValueError("listen.broker_host and listen.broker_port_base cannot be combined")
        if self.broker_host is not None and self.broker_port_map:
            raise ValueError("listen.broker_host and listen.broker_port_map cannot be combined")
        if len(set(self.broker_port_map.values())) < len(self.broker_port_map):
            raise ValueError("listen.broker_port_map assigns one port to several brokers")
        if self.bootstrap.port == 0 and self.broker_port_base is None and self.broker_host is None:
            raise ValueError("listen.broker_port_base is required if the system chooses the port of listen.bootstrap")
        if self.broker_host is None and not self.broker_port_map and self.port_of(1) > _MAX_PORT:
            key = "listen.bootstrap" if self.broker_port_base is None else "listen.broker_port_base"
            raise ValueError(f"{key} is too high: broker 1 would need {self.port_of(1)}; write a lower port")
        if (self.proxy_protocol is None) == bool(self.proxy_protocol_from):
            raise ValueError(
                "listen.proxy_protocol and listen.proxy_protocol_from must be set together: PROXY headers are "
                "accepted from named load balancers only"
            )
        self._check_principals()

    def _check_principals(self) -> None:
        """Check the keys that describe how brokers name principals. Raises ValueError."""
        of_strimzi = (self.oauth_username_prefix, self.oauth_fallback_claim, self.oauth_fallback_prefix)
        if self.oauth_username_claim is None and any(each is not None for each in of_strimzi):
            raise ValueError("listen.oauth.username.claim is required with the other keys listen.oauth.*")
        if self.oauth_fallback_prefix is not None and self.oauth_fallback_claim is None:
            raise ValueError("listen.oauth.fallback.username.prefix needs listen.oauth.fallback.username.claim")
        if self.oauthbearer_claim is not None and self.oauth_username_claim is not None:
            raise ValueError(
                "listen.sasl.oauthbearer.sub.claim.name (Kafka's login handler) and listen.oauth.username.claim "
                "(Strimzi's) cannot be combined"
            )
        if self.principal_mapping_rules is not None and (self.tls is None or self.tls.client_auth == "none"):
            raise ValueError("listen.ssl.principal.mapping.rules needs listen.tls.client_auth: it maps certificates")

    def why_no_client_address(self, node_id: int) -> tuple[str, str] | None:
        """Return why broker `node_id` can have no address for clients, and the remedy. Return None if it can."""
        if self.broker_host is not None or node_id in self.broker_port_map:
            return None
        port = self.port_of(node_id)
        advice = "add its port to listen.broker_port_map, or use listen.broker_host"
        if not 0 < port <= _MAX_PORT:
            return f"broker {node_id} would need port {port}, which does not exist", advice
        other = next((each for each, taken in self.broker_port_map.items() if taken == port), None)
        if other is not None:
            return f"broker {node_id} would need port {port}, which broker {other} already uses", advice
        return None

    def port_of(self, node_id: int) -> int:
        """Return the port of broker `node_id`. Requires a separate port for each broker."""
        base = self.broker_port_base if self.broker_port_base is not None else self.bootstrap.port + 1
        return self.broker_port_map.get(node_id, base + node_id)

    def broker_at(self, port: int, ids: int) -> int | None:
        """Return the broker with this port, or None.

        Considers ids below `ids`, and those in `broker_port_map`.
        """
        return next((each for each in (*range(ids), *self.broker_port_map) if self.port_of(each) == port), None)

    def address_of(self, node_id: int) -> str:
        """Return the address to advertise for broker `node_id`, as a string."""
        if self.broker_host is None:
            return str(HostPort(self.host_for_clients, self.port_of(node_id)))
        return str(HostPort(self.broker_host.replace(NODE_ID, str(node_id)), self.bootstrap.port))

    @property
    def user_claim(self) -> str | None:
        """Return the claim of an OAUTHBEARER token from which brokers take the principal, or None if it is unknown."""
        return self.oauth_username_claim or self.oauthbearer_claim

    @property
    def declares_principals(self) -> bool:
        """Return whether any key declares how brokers derive principals from SASL logins."""
        return bool(self.user_name_is_principal) or self.user_claim is not None

    @property
    def host_for_clients(self) -> str:
        """Return the host to advertise to clients."""
        return self.advertised_host or self.bootstrap.host
