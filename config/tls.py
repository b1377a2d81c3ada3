"""The `tls` sections: for clients (`listen.tls`), brokers (`upstream.tls`) and other servers (registries, OTLP)."""

from typing import Literal

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import OFF, ON, FileName, Flag, Patterns, Secret
from sluicegate.config.values.password import Password, check_one_source

_OF_CA = dict.fromkeys(("ca", "truststore", "ca_certificate"), "ca_file: {value}")


@section
class ListenTls:
    """TLS towards clients."""

    certificate_file: FileName = described(
        "The PEM file with the certificate chain that the proxy presents to clients.",
        misnomers=dict.fromkeys(("cert", "certificate", "cert_file"), "certificate_file: {value}"),
    )
    key_file: FileName = described(
        "The PEM file with the private key of that certificate.",
        misnomers=dict.fromkeys(("key", "private_key"), "key_file: {value}"),
    )
    key_password: Secret | None = described("The password of the private key, if the key is encrypted.", default=None)
    key_password_file: FileName | None = described(
        "The file with the password of the private key, instead of `key_password`.", default=None
    )
    client_auth: Literal["none", "requested", "required"] = described(
        "Whether clients must present certificates, as with a broker's `ssl.client.auth`.",
        default="none",
        corrections=dict.fromkeys(ON, "required") | dict.fromkeys(OFF, "none") | {"require": "required"},
    )
    client_ca_file: FileName | None = described(
        "The PEM file with the CA certificates that sign client certificates. Required unless `client_auth` is `none`.",
        default=None,
        misnomers=dict.fromkeys(("ca", "ca_file", "truststore"), "client_ca_file: {value}"),
    )
    allowed_names: Patterns = described(
        "Patterns of names. A client may connect if a name in its certificate matches: its common name or an "
        "alternative name (a host, a mail address, a URI or an IP address). Names are case-sensitive. Needs "
        "`client_auth: required`. Default: every valid certificate is accepted.",
        default=(),
    )

    def __post_init__(self) -> None:
        if self.client_auth != "none" and self.client_ca_file is None:
            raise ValueError(f"client_auth {self.client_auth} needs client_ca_file, the CAs of client certificates")
        if self.allowed_names and self.client_auth != "required":
            raise ValueError("allowed_names needs client_auth: required, because names come from client certificates")
        check_one_source("key_password", self.key_password, self.key_password_file)

    @property
    def password_of_key(self) -> Password:
        """The private key's password."""
        return Password("listen.tls.key_password_file", self.key_password, self.key_password_file)


@section
class UpstreamTls:
    """TLS towards the brokers."""

    ca_file: FileName | None = described(
        "The PEM file with the CA certificates to trust. Default: the system's CAs.", default=None, misnomers=_OF_CA
    )
    certificate_file: FileName | None = described(
        "The PEM file with the proxy's certificate chain, for brokers that require client certificates.", default=None
    )
    key_file: FileName | None = described("The PEM file with the private key of that certificate.", default=None)
    key_password: Secret | None = described("The password of the private key, if the key is encrypted.", default=None)
    key_password_file: FileName | None = described(
        "The file with the password of the private key, instead of `key_password`.", default=None
    )
    verify_hostname: Flag = described("Whether a broker's certificate must match its host name.", default=True)

    def __post_init__(self) -> None:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file must be set together")
        check_one_source("key_password", self.key_password, self.key_password_file)

    @property
    def password_of_key(self) -> Password:
        """The private key's password."""
        return Password("upstream.tls.key_password_file", self.key_password, self.key_password_file)


@section
class ServerTls:
    """TLS towards a server that is not a broker: a schema registry, a token endpoint or an OTLP collector."""

    ca_file: FileName | None = described(
        "The PEM file with the CA certificates to trust. Default: the system's CAs.", default=None, misnomers=_OF_CA
    )
    certificate_file: FileName | None = described(
        "The PEM file with the proxy's certificate chain, for servers that require client certificates.", default=None
    )
    key_file: FileName | None = described("The PEM file with the private key of that certificate.", default=None)
    key_password: Secret | None = described("The password of the private key, if the key is encrypted.", default=None)
    key_password_file: FileName | None = described(
        "The file with the password of the private key, instead of `key_password`.", default=None
    )

    def __post_init__(self) -> None:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file must be set together")
        check_one_source("key_password", self.key_password, self.key_password_file)

    def password_of_key(self, section: str) -> Password:
        """The private key's password. `section` is the dotted path of this section, for messages."""
        return Password(f"{section}.key_password_file", self.key_password, self.key_password_file)
