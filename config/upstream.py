"""What the configuration says of the cluster behind the proxy: where it is, and how the proxy itself comes in."""

from typing import Literal

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import Addresses, BrokerAddress, FileName, Flag, NodeId, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one


@section
class UpstreamTls:
    """TLS towards the brokers: whom to trust (the system's CAs if no file is named), and a certificate of its own."""

    ca_file: FileName | None = described("whom to trust, PEM; none: the system's CAs", default=None)
    certificate_file: FileName | None = described(
        "the proxy's own certificate and its chain, PEM, for brokers that want one", default=None
    )
    key_file: FileName | None = described("its key, PEM", default=None)
    key_password: Secret | None = described("what the key is encrypted with", default=None)
    key_password_file: FileName | None = described("a file that holds it, instead", default=None)
    verify_hostname: Flag = described("whether a broker's certificate must name its host", default=True)

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

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = described("how to log in")
    username: Text = described("as whom")
    password: Secret | None = described("with what; this or `password_file` is needed", default=None)
    password_file: FileName | None = described("a file that holds it, instead", default=None)

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
    """The cluster behind the proxy."""

    bootstrap: Addresses = described(
        "brokers to start from; each client begins with another one, and beside one that says nothing the next is "
        "tried half a second later"
    )
    brokers: dict[NodeId, BrokerAddress] = described(
        "addresses by node id, for clusters that tell them only after a login; else they are learnt",
        default_factory=dict,
    )
    tls: UpstreamTls | None = described(
        "TLS to the brokers; `tls: {}` trusts the system's CAs. Absent: plaintext.", default=None
    )
    sasl: Sasl | None = described(
        "The proxy's own login, for what it asks the cluster itself; clients log in with their own. It needs to "
        "describe the cluster and, for `topic_settings`, topics' configurations (`DescribeConfigs`).",
        default=None,
    )
    topic_settings: Flag = described(
        "read each topic's settings from the cluster, when it is first written to and every `refresh_seconds`; the "
        "stricter of cluster and file wins, and where the cluster tells none, the file holds",
        default=True,
    )
    connect_timeout_seconds: Seconds = described("patience with one address", default=10)
    refresh_seconds: Seconds = described("how often the proxy looks at the cluster", default=30)
