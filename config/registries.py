"""The section `registries`: schema registries that rules use."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.oauth import OauthClient
from sluicegate.config.section import described, section
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.http import is_https, url_like
from sluicegate.config.values.kinds import FileName, Seconds, Secret, Text
from sluicegate.config.values.password import Password, check_one_source


def _context(name: str) -> str:
    if not re.fullmatch(r"\.[^:/]+", name):
        raise ValueError("a context is a dot and a name, such as .staging")
    return name


def _region(name: str) -> str:
    if not re.fullmatch(r"[a-z]{2,}(-[a-z]+)+-[0-9]+", name):
        raise ValueError("a region is a name such as eu-west-1")
    return name


@section
class Registry:
    """A schema registry and the proxy's login there."""

    type: Literal["confluent", "apicurio", "glue"] = described(
        "The API of the registry and the framing of schema ids: `confluent` (which other registries support too), "
        "`apicurio` (its native API and ids) or `glue` (AWS Glue Schema Registry).",
        default="confluent",
    )
    id: Literal["globalId", "contentId"] = described(
        "The id that serializers write before the data, with `apicurio` (`apicurio.registry.use-id`).",
        default="globalId",
    )
    url: Annotated[Text, AfterValidator(url_like("https://registry.internal:8081"))] | None = described(
        "The URL of the API, for example `https://registry.internal:8081`, or "
        "`https://registry.internal:8080/apis/registry/v2` for Apicurio's native API. Required unless the type is "
        "`glue`.",
        default=None,
    )
    folder: FileName | None = described(
        "A folder of schemas, with `glue`. Its files are named `UUID.avsc`, `UUID.json` and `UUID.proto`, with the "
        "UUID of a schema's version. The proxy then sends no requests.",
        default=None,
    )
    region: Annotated[Text, AfterValidator(_region)] | None = described(
        "The AWS region, with `glue`, for example `eu-west-1`. The proxy finds credentials in the same places as AWS's "
        "SDKs. Set `url` for another endpoint. Needs `pip install 'sluicegate[aws]'`.",
        default=None,
    )
    registry: Text | None = described(
        "The name of the registry, with `glue` and `region`. Default: schemas of every registry are accepted.",
        default=None,
    )
    context: Annotated[Text, AfterValidator(_context)] | None = described(
        "The context of schema ids and subjects, for example `.staging`. Default: the registry's default context, "
        "or any other context that has the id.",
        default=None,
    )
    message_indexes: Literal["required", "optional"] = described(
        "Whether Protobuf data may lack the message indexes after the schema id, with `confluent`. With `optional`, "
        "the proxy reads such data, which kafkajs's serializer writes, as the first message of the schema.",
        default="required",
    )
    username: Text | None = described("The user name for HTTP basic authentication.", default=None)
    password: Secret | None = described("The password for HTTP basic authentication.", default=None)
    password_file: FileName | None = described("The file with the password, instead of `password`.", default=None)
    token: Secret | None = described("The bearer token, instead of a user name.", default=None)
    token_file: FileName | None = described(
        "The file with the bearer token, instead of `token`. The proxy reads it for each request.", default=None
    )
    oauth: OauthClient | None = described(
        "OAuth 2.0 client credentials, with which the proxy requests bearer tokens. Default: `username` or `token`, if "
        "set.",
        default=None,
    )
    tls: ServerTls | None = described("TLS towards the registry. Default: the system's CAs.", default=None)
    refresh_seconds: Seconds = described(
        "The time after which the proxy looks a schema and its subject up again, in the background.", default=60
    )

    def __post_init__(self) -> None:
        check_one_source("password", self.password, self.password_file)
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("username and password (or password_file) must be set together")
        check_one_source("token", self.token, self.token_file)
        if (self.username is not None) + self.has_token + (self.oauth is not None) > 1:
            raise ValueError("set only one login for a registry: username, token (or token_file) or oauth")
        if self.type == "glue":
            self._check_glue()
        elif self.url is None:
            raise ValueError(f"type: {self.type} requires url")
        elif self.folder is not None:
            raise ValueError("folder is only valid with type: glue")
        elif self.region is not None or self.registry is not None:
            raise ValueError("region and registry are only valid with type: glue")
        if self.context is not None and self.type != "confluent":
            raise ValueError("context is only valid with type: confluent")
        if self.message_indexes == "optional" and self.type != "confluent":
            raise ValueError("message_indexes is only valid with type: confluent")
        if self.tls is not None and not is_https(self.endpoint):
            raise ValueError("tls is only valid with an https URL")

    def _check_glue(self) -> None:
        if (self.folder is None) == (self.region is None):
            raise ValueError("type: glue requires region or folder")
        if self.folder is not None and (self.url is not None or self.registry is not None):
            raise ValueError("url and registry are only valid with region, not with folder")
        if self.username is not None or self.has_token or self.oauth is not None:
            raise ValueError("type: glue uses AWS credentials; remove the login")

    @property
    def endpoint(self) -> str:
        """Return the URL of the API. It is empty if there is none."""
        if self.url is None and self.region is not None:
            return f"https://glue.{self.region}.amazonaws.com"
        return self.url or ""

    @property
    def has_token(self) -> bool:
        """Return whether the login is a bearer token from the configuration."""
        return self.token is not None or self.token_file is not None

    def password_of(self, section: str) -> Password:
        """Return the password. `section` is the dotted path of this section, for messages."""
        return Password(f"{section}.password_file", self.password, self.password_file)

    def token_of(self, section: str) -> Password:
        """Return the bearer token. `section` is the dotted path of this section, for messages."""
        return Password(f"{section}.token_file", self.token, self.token_file)

    def secrets(self, section: str) -> tuple[Password, ...]:
        """Return all secrets of the login. `section` is the dotted path of this section, for messages."""
        of_oauth = () if self.oauth is None else (self.oauth.secret_of(f"{section}.oauth"),)
        return (self.password_of(section), self.token_of(section), *of_oauth)

    def tls_sections(self, section: str) -> tuple[tuple[str, ServerTls], ...]:
        """Return the `tls` sections for the registry and its token endpoint, with their dotted paths."""
        oauth = None if self.oauth is None else self.oauth.tls
        given = ((f"{section}.tls", self.tls), (f"{section}.oauth.tls", oauth))
        return tuple((path, tls) for path, tls in given if tls is not None)
