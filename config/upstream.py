"""The section `upstream`: the cluster behind the proxy, and the proxy's own login there."""

from typing import Literal

from sluicegate.config.section import described, section
from sluicegate.config.tls import UpstreamTls
from sluicegate.config.values.kinds import Addresses, BrokerAddress, FileName, Flag, NodeId, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@section
class Sasl:
    """The login of the proxy itself, for its own requests to the cluster; clients log in with their own credentials."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = described(
        "SASL mechanism", misnomers={"mechanisms": "mechanism: {value}", "sasl.mechanism": "mechanism: {value}"}
    )
    username: Text = described("SASL user name", misnomers={"user": "username: {value}"})
    password: Secret | None = described("SASL password; this or `password_file` is needed", default=None)
    password_file: FileName | None = described("file with the SASL password, instead of `password`", default=None)

    def __post_init__(self) -> None:
        check_one("password", self.password, self.password_file)
        if self.password is None and self.password_file is None:
            raise ValueError("password or password_file is needed")

    @property
    def current_password(self) -> Password:
        """The password, read from its file each time it is used."""
        return Password("upstream.sasl.password_file", self.password, self.password_file)


@section
class Upstream:
    """The cluster behind the proxy."""

    bootstrap: Addresses = described(
        "brokers to bootstrap from; each client starts with a different one, and the next is tried after 0.5 s without "
        "a response (RFC 8305)",
        misnomers=dict.fromkeys(("bootstrap.servers", "bootstrap_servers", "servers"), "bootstrap: {value}"),
    )
    brokers: dict[NodeId, BrokerAddress] = described(
        "broker addresses by node id, for clusters that return them only after a login; else they are discovered",
        default_factory=dict,
    )
    tls: UpstreamTls | None = described(
        "TLS towards the brokers; `tls: {}` trusts the system's CAs. Absent: plaintext.",
        default=None,
        misnomers={"ssl": "tls: {}"},
    )
    sasl: Sasl | None = described(
        "The login of the proxy itself, for its own requests to the cluster; clients log in with their own "
        "credentials. It needs DESCRIBE on the cluster and, for `topic_settings`, DESCRIBE_CONFIGS on topics.",
        default=None,
        corrections={
            mechanism.lower(): f"{{mechanism: {mechanism}, username: …, password_file: …}}" for mechanism in _MECHANISMS
        },
    )
    topic_settings: Flag = described(
        "whether the proxy reads topic configurations from the cluster, at a topic's first write and every "
        "`refresh_seconds`; the stricter of cluster and file applies, and the file alone if the cluster returns none",
        default=True,
    )
    connect_timeout_seconds: Seconds = described("connect timeout for one address", default=10)
    refresh_seconds: Seconds = described(
        "interval at which topic configurations are read again; whether brokers respond is checked every 5 s, or at "
        "this interval if it is shorter",
        default=30,
    )
