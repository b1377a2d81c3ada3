"""The section `upstream`: the cluster behind the proxy, and the proxy's own login there."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.oauth import OauthClient
from sluicegate.config.section import described, section
from sluicegate.config.tls import UpstreamTls
from sluicegate.config.values.json_schema_kinds import Takes
from sluicegate.config.values.kinds import Addresses, BrokerAddress, FileName, Flag, NodeId, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one_source

_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x20-\x7e\t\r\n]+")


def _extensions(given: dict[str, str]) -> dict[str, str]:
    """Check the names and values of SASL extensions against RFC 7628, section 3.1. Raises ValueError."""
    for name, value in given.items():
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
            raise ValueError("the name of an extension consists of letters, and is not auth")
        if not _EXTENSION_VALUE.fullmatch(value):
            raise ValueError(f"the value of the extension {name} is not printable ASCII")
    return given


@section
class Sasl:
    """The login of the proxy itself, for its own requests to the cluster. Clients log in with their own credentials."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = described(
        "The SASL mechanism.", misnomers={"mechanisms": "mechanism: {value}", "sasl.mechanism": "mechanism: {value}"}
    )
    username: Text | None = described(
        "The SASL user name. Required unless the mechanism is OAUTHBEARER.",
        default=None,
        misnomers={"user": "username: {value}"},
    )
    password: Secret | None = described(
        "The SASL password. Set exactly one of `password` and `password_file`.", default=None
    )
    password_file: FileName | None = described("The file with the SASL password, instead of `password`.", default=None)
    oauth: OauthClient | None = described(
        "OAuth 2.0 client credentials, with OAUTHBEARER. The proxy requests tokens from a token endpoint. Default: "
        "`token_file`.",
        default=None,
    )
    token_file: FileName | None = described(
        "The file with the token, with OAUTHBEARER. Another process replaces the file before the token expires. The "
        "proxy reads it for each login.",
        default=None,
    )
    extensions: Annotated[dict[Text, Text], AfterValidator(_extensions), Takes("`{name: value}`")] = described(
        "SASL extensions by name, with OAUTHBEARER, for example `{logicalCluster: lkc-1}`.", default_factory=dict
    )

    def __post_init__(self) -> None:
        check_one_source("password", self.password, self.password_file)
        has_password = self.password is not None or self.password_file is not None
        if self.mechanism in _WITH_PASSWORD:
            if self.token_file is not None or self.oauth is not None or self.extensions:
                raise ValueError("oauth, token_file and extensions need mechanism: OAUTHBEARER")
            if self.username is None:
                raise ValueError(f"{self.mechanism} needs a username")
            if not has_password:
                raise ValueError("password or password_file is required")
        elif self.username is not None or has_password:
            raise ValueError("OAUTHBEARER takes a token, not username and password")
        elif (self.token_file is None) == (self.oauth is None):
            raise ValueError("OAUTHBEARER needs oauth or token_file")

    @property
    def current_password(self) -> Password:
        """Return the password. Its file is read at each use."""
        return Password("upstream.sasl.password_file", self.password, self.password_file)

    @property
    def current_token(self) -> Password:
        """Return the token in `token_file`. The file is read at each use."""
        return Password("upstream.sasl.token_file", None, self.token_file)

    @property
    def secrets(self) -> tuple[Password, ...]:
        """Return all secrets of this login."""
        of_client = () if self.oauth is None else (self.oauth.secret_of("upstream.sasl.oauth"),)
        return (self.current_password, self.current_token, *of_client)


@section
class Upstream:
    """The cluster behind the proxy."""

    bootstrap: Addresses = described(
        "The brokers from which the proxy bootstraps. Each client starts with a different one. The proxy tries the "
        "next broker after 0.5 s without a response (RFC 8305).",
        misnomers=dict.fromkeys(("bootstrap.servers", "bootstrap_servers", "servers"), "bootstrap: {value}"),
    )
    brokers: dict[NodeId, BrokerAddress] = described(
        "Broker addresses by node id, for clusters that return them only after a login. Default: the proxy "
        "discovers the addresses.",
        default_factory=dict,
    )
    tls: UpstreamTls | None = described(
        "TLS towards the brokers; `tls: {}` trusts the system's CAs. Default: plaintext.",
        default=None,
        misnomers={"ssl": "tls: {}"},
    )
    sasl: Sasl | None = described(
        "The login of the proxy itself, for its own requests to the cluster. Clients log in with their own "
        "credentials. The proxy needs DESCRIBE on the cluster and, for `topic_settings`, DESCRIBE_CONFIGS on "
        "topics.",
        default=None,
        corrections={
            mechanism.lower(): f"{{mechanism: {mechanism}, username: …, password_file: …}}"
            for mechanism in _WITH_PASSWORD
        }
        | {"oauthbearer": "{mechanism: OAUTHBEARER, oauth: {token_url: …, client_id: …, client_secret_file: …}}"},
    )
    topic_settings: Flag = described(
        "Whether the proxy reads topic configurations from the cluster, at the first write to a topic and every "
        "`refresh_seconds`. The stricter of the cluster's and the file's settings applies. If the cluster returns "
        "none, the file alone applies.",
        default=True,
    )
    connect_timeout_seconds: Seconds = described("The timeout of a connection attempt to one address.", default=10)
    refresh_seconds: Seconds = described(
        "The interval at which topic configurations are read again. The proxy also checks that the brokers respond, "
        "every 3 s or at this interval if it is shorter.",
        default=30,
    )
