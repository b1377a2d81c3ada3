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
    """A schema registry."""

    type: Literal["confluent", "apicurio", "glue"] = described(
        "API and framing of ids: `confluent` (other registries have it too), `apicurio` (its native API and ids) or "
        "`glue` (AWS Glue Schema Registry)",
        default="confluent",
    )
    id: Literal["globalId", "contentId"] = described(
        "with `apicurio`: the number that serializers write before the data (`apicurio.registry.use-id`)",
        default="globalId",
    )
    url: Annotated[Text, AfterValidator(url_like("https://registry.internal:8081"))] | None = described(
        "URL of the API, as `https://registry.internal:8081`; of Apicurio's native one, as "
        "`https://registry.internal:8080/apis/registry/v2`. Required unless the type is `glue`",
        default=None,
    )
    folder: FileName | None = described(
        "with `glue`: folder of schemas, in files `UUID.avsc`, `UUID.json` and `UUID.proto` with the UUID of a "
        "schema's version; no request is sent",
        default=None,
    )
    region: Annotated[Text, AfterValidator(_region)] | None = described(
        "with `glue`: AWS region, as `eu-west-1`; needs `pip install 'sluicegate[aws]'`. `url` names another endpoint. "
        "Credentials come from where AWS's SDKs find them",
        default=None,
    )
    registry: Text | None = described(
        "with `glue` and `region`: name of the registry. Default: schemas of every registry count", default=None
    )
    context: Annotated[Text, AfterValidator(_context)] | None = described(
        "context of schema ids and subjects, as `.staging`. Default: the registry's default context, or any other that "
        "has the id",
        default=None,
    )
    message_indexes: Literal["required", "optional"] = described(
        "with `confluent`: whether Protobuf data may lack the message indexes after the id, as those of kafkajs's "
        "serializer; then they are the first message of the schema (`optional`)",
        default="required",
    )
    username: Text | None = described("user name (HTTP basic authentication)", default=None)
    password: Secret | None = described("password (HTTP basic authentication)", default=None)
    password_file: FileName | None = described("file with the password, instead of `password`", default=None)
    token: Secret | None = described("bearer token, instead of a user name", default=None)
    token_file: FileName | None = described(
        "file with the bearer token, instead of `token`; it is read for each request", default=None
    )
    oauth: OauthClient | None = described(
        "OAuth 2.0 client credentials: the proxy requests bearer tokens. Default: another login, or none.", default=None
    )
    tls: ServerTls | None = described("TLS towards the registry. Default: the system's CAs.", default=None)
    refresh_seconds: Seconds = described(
        "time after which a schema and its subject are looked up again, in the background", default=60
    )

    def __post_init__(self) -> None:
        check_one_source("password", self.password, self.password_file)
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("username and password (or password_file) belong together")
        check_one_source("token", self.token, self.token_file)
        if (self.username is not None) + self.has_token + (self.oauth is not None) > 1:
            raise ValueError("a registry has one login: username, token (or token_file) or oauth")
        if self.type == "glue":
            self._check_glue()
        elif self.url is None:
            raise ValueError(f"type: {self.type} needs a url")
        elif self.folder is not None:
            raise ValueError("folder belongs to type: glue")
        elif self.region is not None or self.registry is not None:
            raise ValueError("region and registry belong to type: glue")
        if self.context is not None and self.type != "confluent":
            raise ValueError("context belongs to type: confluent")
        if self.message_indexes == "optional" and self.type != "confluent":
            raise ValueError("message_indexes belongs to type: confluent")
        if self.tls is not None and not is_https(self.endpoint):
            raise ValueError("tls belongs to an https URL")

    def _check_glue(self) -> None:
        if (self.folder is None) == (self.region is None):
            raise ValueError("type: glue needs a region or a folder")
        if self.folder is not None and (self.url is not None or self.registry is not None):
            raise ValueError("url and registry belong to region, not to a folder")
        if self.username is not None or self.has_token or self.oauth is not None:
            raise ValueError("type: glue has no login but AWS's credentials")

    @property
    def endpoint(self) -> str:
        """The URL of the API; empty: there is none."""
        if self.url is None and self.region is not None:
            return f"https://glue.{self.region}.amazonaws.com"
        return self.url or ""

    @property
    def has_token(self) -> bool:
        """Whether the login is a bearer token of the configuration."""
        return self.token is not None or self.token_file is not None

    def password_of(self, section: str) -> Password:
        """Return the password. `section` is the dotted path of this section, for messages."""
        return Password(f"{section}.password_file", self.password, self.password_file)

    def token_of(self, section: str) -> Password:
        """Return the bearer token. `section` is the dotted path of this section, for messages."""
        return Password(f"{section}.token_file", self.token, self.token_file)

    def secrets(self, section: str) -> tuple[Password, ...]:
        """Return every secret of the login. `section` is the dotted path of this section, for messages."""
        of_oauth = () if self.oauth is None else (self.oauth.secret_of(f"{section}.oauth"),)
        return (self.password_of(section), self.token_of(section), *of_oauth)

    def tls_sections(self, section: str) -> tuple[tuple[str, ServerTls], ...]:
        """Return the `tls` sections for the registry and its token endpoint, with their dotted paths."""
        oauth = None if self.oauth is None else self.oauth.tls
        given = ((f"{section}.tls", self.tls), (f"{section}.oauth.tls", oauth))
        return tuple((path, tls) for path, tls in given if tls is not None)
