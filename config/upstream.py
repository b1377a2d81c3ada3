"""What the configuration says of the cluster behind the proxy: where it is, and how the proxy itself comes in."""

from dataclasses import field
from typing import Literal

from sluicegate.config.section import section
from sluicegate.config.values.kinds import Addresses, BrokerAddress, FileName, Flag, NodeId, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one


@section
class UpstreamTls:
    """TLS towards the brokers: whom to trust (the system's CAs if no file is named), and a certificate of its own."""

    ca_file: FileName | None = None
    certificate_file: FileName | None = None
    key_file: FileName | None = None
    key_password: Secret | None = None
    key_password_file: FileName | None = None
    verify_hostname: Flag = True

    def __post_init__(self) -> None:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        check_one("key_password", self.key_password, self.key_password_file)

    @property
    def password_of_key(self) -> Password:
        """What the key is encrypted with."""
        return Password("upstream.tls.key_password_file", self.key_password, self.key_password_file)


@section
class Sasl:
    """How the proxy itself logs in, for what it asks the cluster; clients bring their own logins."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: Text
    password: Secret | None = None
    password_file: FileName | None = None

    def __post_init__(self) -> None:
        check_one("password", self.password, self.password_file)
        if self.password is None and self.password_file is None:
            raise ValueError("password or password_file is needed")

    @property
    def current_password(self) -> Password:
        """What to log in with, as it is when it is asked for."""
        return Password("upstream.sasl.password_file", self.password, self.password_file)


@section
class Upstream:
    """The cluster behind the proxy. `brokers` names addresses by node id, for clusters that tell them only to
    clients that have logged in; they are otherwise learnt. `topic_settings`: read topics' from the cluster.
    """

    bootstrap: Addresses
    brokers: dict[NodeId, BrokerAddress] = field(default_factory=dict)
    tls: UpstreamTls | None = None
    sasl: Sasl | None = None
    topic_settings: Flag = True
    connect_timeout_seconds: Seconds = 10
    refresh_seconds: Seconds = 30
