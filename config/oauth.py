"""The sections `oauth`: the proxy's logins with tokens that an authorization server grants."""

import re
from typing import Annotated

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.http import is_https, url_like
from sluicegate.config.values.kinds import FileName, Secret, Text
from sluicegate.config.values.password import Password, check_one_source


def _client_id(text: str) -> str:
    if not re.fullmatch(r"[ -9;-~]+", text):
        raise ValueError("a client id must consist of printable ASCII characters other than colons")
    return text


@section
class OauthClient:
    """OAuth 2.0 client credentials (RFC 6749, 4.4). The proxy requests a token, and a new one before it expires."""

    token_url: Annotated[Text, AfterValidator(url_like("https://login.internal/oauth2/token"))] = described(
        "The URL of the token endpoint, for example `https://login.internal/oauth2/token`.",
        misnomers=dict.fromkeys(("token_endpoint", "token_endpoint_url", "endpoint"), "token_url: {value}"),
    )
    client_id: Annotated[Text, AfterValidator(_client_id)] = described("The client id.")
    client_secret: Secret | None = described(
        "The client secret. Set exactly one of `client_secret` and `client_secret_file`.", default=None
    )
    client_secret_file: FileName | None = described(
        "The file with the client secret, instead of `client_secret`. The proxy reads it for each request.",
        default=None,
    )
    scope: Text | None = described("The requested scope. Default: the endpoint's default.", default=None)
    tls: ServerTls | None = described("TLS towards the token endpoint. Default: the system's CAs.", default=None)

    def __post_init__(self) -> None:
        check_one_source("client_secret", self.client_secret, self.client_secret_file)
        if self.client_secret is None and self.client_secret_file is None:
            raise ValueError("client_secret or client_secret_file is required")
        if self.tls is not None and not is_https(self.token_url):
            raise ValueError("tls is only valid with an https token_url")

    def secret_of(self, section: str) -> Password:
        """Return the client secret. Messages about it name `section`."""
        return Password(f"{section}.client_secret_file", self.client_secret, self.client_secret_file)
