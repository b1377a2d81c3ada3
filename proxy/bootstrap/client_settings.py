"""Reads TLS and SASL settings from a client's .properties file.

The names are those of the Java client or of librdkafka. Settings for producing and consuming are ignored.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sluicegate.config.disk.regular_file import read_file
from sluicegate.config.values.http import is_https, url_like
from sluicegate.proxy.bootstrap.jaas import MalformedJaas, options_in
from sluicegate.proxy.bootstrap.java_properties import MalformedProperty, properties_in

_MAX_BYTES = 1 << 20
_BEARER = "OAUTHBEARER"
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", _BEARER)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS = "sasl.jaas.config"
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes."""
_LIBRDKAFKA = frozenset(
    {"sasl.username", "sasl.password", "sasl.mechanisms", "ssl.ca.location", "ssl.certificate.location"}
    | {"ssl.key.location", "https.ca.location", "sasl.oauthbearer.method", "sasl.oauthbearer.client.id"}
)
"""Names that exist in librdkafka, but not in the Java client.

Programs pass the values of these settings to librdkafka without interpreting escapes.
"""
_OAUTH = "sasl.oauthbearer."
_URL = f"{_OAUTH}token.endpoint.url"
_CREDENTIALS = f"{_OAUTH}client.credentials."
_HANDLER = "sasl.login.callback.handler.class"
_KAFKA = "org.apache.kafka.common.security.oauthbearer."
_TAKEN = {
    f"{_OAUTH}method": ("oidc",),
    f"{_OAUTH}grant.type": ("client_credentials",),
    f"{_OAUTH}metadata.authentication.type": ("none",),
    f"{_OAUTH}jwt.retriever.class": tuple(
        f"{_KAFKA}{name}JwtRetriever" for name in ("Default", "ClientCredentials", "File")
    ),
    _HANDLER: tuple(f"{_KAFKA}{package}OAuthBearerLoginCallbackHandler" for package in ("", "secured.")),
}
"""The values that the proxy's own login also supports (KIP-768, KIP-1139, and librdkafka's CONFIGURATION.md)."""
_ONLY = "takes a token file or OAuth client credentials, and CA certificates in a file"
_UNSIGNED = "takes a token file or OAuth client credentials, not tokens that a client makes without a signature"


class UnusableClientSettings(Exception):
    """The settings are missing or unsupported. The message names the key but never the value, which may be secret."""


def upstream_from(file: Path) -> dict[str, Any]:
    """Return the keys `tls` and `sasl` of `upstream`. Raises UnusableClientSettings."""
    settings, jaas_line = _read(file)
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise UnusableClientSettings(f"security.protocol must be one of {', '.join(_PROTOCOLS)}")
    found: dict[str, Any] = {}
    if protocol.endswith("SSL"):
        found["tls"] = _tls(settings)
    if protocol.startswith("SASL"):
        found["sasl"] = _sasl(settings, jaas_line)
    return found


def _read(file: Path) -> tuple[dict[str, str], int]:
    """Return the settings, and the line number of the login module, or 0 without one."""
    try:
        text = read_file(file, _MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableClientSettings(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    if len(text) > _MAX_BYTES:
        raise UnusableClientSettings("larger than 1 MiB: not a file of client settings")
    plain = _as_librdkafka(text)
    if _JAAS not in plain and not _LIBRDKAFKA.isdisjoint(plain):
        return plain, 0
    try:
        found = {each.name: each for each in properties_in(text)}
    except MalformedProperty as error:
        raise UnusableClientSettings(str(error)) from error
    for name, each in found.items():
        if name.startswith(("sasl.", "ssl.")) and not each.is_ascii:
            raise UnusableClientSettings(
                f"line {each.line}: {name} has characters outside of ASCII, which Java's programs read as ISO 8859-1 "
                "or as UTF-8: write each as a \\u escape"
            )
    jaas_line = found[_JAAS].line if _JAAS in found else 0
    return {name: each.value.strip(_JAVA_BLANKS) for name, each in found.items()}, jaas_line


def _as_librdkafka(text: str) -> dict[str, str]:
    """Parse lines of the form `name=value` without escapes, as programs that use librdkafka do."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", "!")):
            found[name.strip()] = value.strip()
    return found


def _tls(settings: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for store in ("ssl.truststore", "ssl.keystore"):
        if f"{store}.location" in settings and settings.get(f"{store}.type", "JKS").upper() != "PEM":
            raise UnusableClientSettings(f"{store}.location is not a PEM file: export it with keytool or openssl")
    keystore = settings.get("ssl.keystore.location")
    names = {
        "ca_file": settings.get("ssl.ca.location") or settings.get("ssl.truststore.location"),
        "certificate_file": settings.get("ssl.certificate.location") or keystore,
        "key_file": settings.get("ssl.key.location") or keystore,
        "key_password": settings.get("ssl.key.password"),
    }
    found |= {name: _absolute(name, value) for name, value in names.items() if value}
    if settings.get("ssl.endpoint.identification.algorithm", "https").lower() in ("", "none"):
        found["verify_hostname"] = "false"
    return found


def _absolute(name: str, value: str) -> str:
    """Return an absolute path.

    In a client's settings, paths are relative to the client's working directory. In a configuration, they are relative
    to the file's folder.
    """
    return str(Path(value).absolute()) if name.endswith("_file") else value


def _sasl(settings: dict[str, str], jaas_line: int) -> dict[str, Any]:
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    if mechanism not in _MECHANISMS:
        raise UnusableClientSettings(f"sasl.mechanism: the proxy's own login supports {', '.join(_MECHANISMS)}")
    try:
        jaas = options_in(settings[_JAAS]) if _JAAS in settings else {}
    except MalformedJaas as error:
        raise UnusableClientSettings(f"line {jaas_line}: {_JAAS} {error}") from error
    if mechanism == _BEARER:
        return {"mechanism": _BEARER, **_bearer(settings, jaas)}
    username = settings.get("sasl.username") or jaas.get("username")
    password = settings.get("sasl.password") or jaas.get("password")
    if not username or not password:
        raise UnusableClientSettings("sasl.username and sasl.password are required, or sasl.jaas.config with both")
    return {"mechanism": mechanism, "username": username, "password": password}


def _bearer(settings: Mapping[str, str], jaas: Mapping[str, str]) -> dict[str, Any]:
    """Return `oauth` or `token_file`, and `extensions`.

    Raises UnusableClientSettings for any other source of tokens.
    """
    _check_way_to_tokens(settings, jaas)
    url = settings.get(_URL)
    if not url:
        raise UnusableClientSettings(
            f"{_URL} is required: the proxy {_UNSIGNED}, nor tokens that a program passes to its client"
        )
    extensions = _extensions(settings.get(f"{_OAUTH}extensions", ""))
    extensions |= {
        name.removeprefix("extension_"): value for name, value in jaas.items() if name.startswith("extension_")
    }
    more = {"extensions": extensions} if extensions else {}
    if url[:5].lower() == "file:":  # the Java client reads the token from this file
        return {"token_file": _file_of(url), **more}
    try:
        url_like("https://login.internal/oauth2/token")(url)
    except ValueError as error:
        raise UnusableClientSettings(f"{_URL}: {error}") from error
    given = {
        "client_id": _first(settings, f"{_CREDENTIALS}client.id", f"{_OAUTH}client.id") or jaas.get("clientId"),
        "client_secret": _first(settings, f"{_CREDENTIALS}client.secret", f"{_OAUTH}client.secret")
        or jaas.get("clientSecret"),
        "scope": settings.get(f"{_OAUTH}scope") or jaas.get("scope"),
    }
    if not given["client_id"] or not given["client_secret"]:
        raise UnusableClientSettings(
            f"{_OAUTH}client.id and {_OAUTH}client.secret are required, or {_JAAS} with clientId and clientSecret"
        )
    oauth: dict[str, Any] = {"token_url": url} | {name: value for name, value in given.items() if value}
    tls = _tls_of_endpoint(settings, jaas)
    if tls and is_https(url):
        oauth["tls"] = tls
    return {"oauth": oauth, **more}


def _check_way_to_tokens(settings: Mapping[str, str], jaas: Mapping[str, str]) -> None:
    for name, values in _TAKEN.items():
        if settings.get(name, values[0]).lower() not in [value.lower() for value in values]:
            raise UnusableClientSettings(f"{name}: the proxy's own login can only take over {' or '.join(values)}")
    for name in settings:
        if name.startswith(f"{_OAUTH}assertion.") or name == "https.ca.pem":
            shown = name if name == "https.ca.pem" else f"{_OAUTH}assertion.*"
            raise UnusableClientSettings(f"{shown} cannot be taken over: the proxy {_ONLY}")
    if f"{_OAUTH}config" in settings or any(name.startswith("unsecuredLogin") for name in jaas):
        where = f"{_OAUTH}config" if f"{_OAUTH}config" in settings else f"{_JAAS} with unsecuredLogin… options"
        raise UnusableClientSettings(f"{where} cannot be taken over: the proxy {_UNSIGNED}")


def _first(settings: Mapping[str, str], *names: str) -> str | None:
    return next((settings[name] for name in names if settings.get(name)), None)


def _file_of(url: str) -> str:
    with suppress(ValueError):
        parts = urlsplit(url)
        path = unquote(parts.path)
        if parts.netloc in ("", "localhost") and path.startswith("/") and not parts.query and not parts.fragment:
            return path
    raise UnusableClientSettings(f"{_URL}: expected the file with the token as file:///absolute/path")


def _tls_of_endpoint(settings: Mapping[str, str], jaas: Mapping[str, str]) -> dict[str, Any]:
    """Return the TLS settings for the token endpoint.

    In librdkafka they are settings; in the Java client they are options of the login module.
    """
    found = _tls({name: value for name, value in jaas.items() if name.startswith("ssl.")})
    if found.pop("verify_hostname", None) is not None:
        raise UnusableClientSettings(f"{_JAAS}: the proxy always checks the host name of the token endpoint")
    ca_file = settings.get("https.ca.location")
    return found if ca_file in (None, "", "probe") else found | {"ca_file": _absolute("ca_file", str(ca_file))}


def _extensions(text: str) -> dict[str, str]:
    """Parse `name=value,…` as librdkafka does. Error messages quote none of the input."""
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise UnusableClientSettings(f"{_OAUTH}extensions: expected name=value,…")
    return {name: value for name, _, value in pairs}
