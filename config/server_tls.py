"""TLS to a server that is no broker: a schema registry, a receiver of OpenTelemetry."""

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import FileName, Secret
from sluicegate.config.values.password import Password, check_one


@section
class ServerTls:
    """Whom to trust (the system's CAs if no file is named), and a certificate of the proxy's own."""

    ca_file: FileName | None = described("whom to trust, PEM; none: the system's CAs", default=None)
    certificate_file: FileName | None = described("the proxy's own certificate and its chain, PEM", default=None)
    key_file: FileName | None = described("its key, PEM", default=None)
    key_password: Secret | None = described("what the key is encrypted with", default=None)
    key_password_file: FileName | None = described("a file that holds it, instead", default=None)

    def __post_init__(self) -> None:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        check_one("key_password", self.key_password, self.key_password_file)

    def password_of_key(self, section: str) -> Password:
        """What the key is encrypted with; `section` is where this stands in the file, for messages."""
        return Password(f"{section}.key_password_file", self.key_password, self.key_password_file)
