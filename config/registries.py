"""What the file says of schema registries."""

from typing import Annotated

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.server_tls import ServerTls
from sluicegate.config.values.http import url_like
from sluicegate.config.values.kinds import FileName, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one


@section
class Registry:
    """A schema registry with Confluent's API."""

    url: Annotated[Text, AfterValidator(url_like("https://registry.internal:8081"))] = described(
        "where its Confluent API is, as `https://registry.internal:8081`"
    )
    username: Text | None = described("whom to log in as (HTTP basic)", default=None)
    password: Secret | None = described("with what", default=None)
    password_file: FileName | None = described("a file that holds it, instead", default=None)
    tls: ServerTls | None = described("TLS to the registry. Absent: the system's CAs.", default=None)
    refresh_seconds: Seconds = described(
        "how long a schema is taken to be under its subject; then it is asked again, and nobody waits", default=60
    )

    def __post_init__(self) -> None:
        check_one("password", self.password, self.password_file)
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("username and password (or password_file) belong together")
        if self.tls is not None and not self.url.startswith("https:"):
            raise ValueError("tls belongs to an https URL")

    @property
    def current_password(self) -> Password:
        """What to log in with, as it is when it is asked for."""
        return Password("registries.password_file", self.password, self.password_file)
