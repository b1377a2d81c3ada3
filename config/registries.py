"""What the file says of schema registries."""

from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from sluicegate.config.kinds import FileName, Seconds, Secret, Text
from sluicegate.config.password import Password, check_one
from sluicegate.config.section import Section


class RegistryTls(Section):
    """TLS to a registry: whom to trust (the system's CAs if no file is named), and a certificate of the proxy's own."""

    ca_file: FileName | None = None
    certificate_file: FileName | None = None
    key_file: FileName | None = None

    @model_validator(mode="after")
    def _certificate_has_key(self) -> "RegistryTls":
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        return self


class Registry(Section):
    """A schema registry with Confluent's API. `refresh_seconds`: how long a schema is taken to be under its subject."""

    url: Text
    username: Text | None = None
    password: Secret | None = None
    password_file: FileName | None = None
    tls: RegistryTls | None = None
    refresh_seconds: Seconds = 60

    @field_validator("url")
    @classmethod
    def _can_be_asked(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            port = parts.port
        except ValueError:
            raise ValueError("expected a URL, as https://registry.internal:8081") from None
        if "@" in parts.netloc:  # what stands before it may be a secret
            raise ValueError("expected a URL without a user or password; they have keys of their own")
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.query or parts.fragment:
            raise ValueError("expected a URL, as https://registry.internal:8081, http or https, without ? and #")
        return value

    @model_validator(mode="after")
    def _login_is_whole(self) -> "Registry":
        check_one("password", self.password, self.password_file)
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("username and password (or password_file) belong together")
        if self.tls is not None and not self.url.startswith("https:"):
            raise ValueError("tls belongs to an https URL")
        return self

    @property
    def current_password(self) -> Password:
        """What to log in with, as it is when it is asked for."""
        return Password("registries.password_file", self.password, self.password_file)
