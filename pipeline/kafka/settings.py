"""Parses a connection's settings (plaintext, TLS or SASL), which have librdkafka's names.

References to secrets are resolved when settings are checked, so Spark's options contain no secrets. References use the
names of Kafka's config providers (KIP-297, KIP-887): `${env:NAME}`, `${file:PATH:KEY}` (a file with `key=value` lines)
and `${directory:PATH:FILE}` (a whole file).
"""

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sluicegate.pipeline.kafka.tokens import Bearer, for_librdkafka
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.protocol.messages.login import PasswordLogin

_REFERENCE = re.compile(r"\$\{(env|file|directory):([^}]*)\}")
_MOST_BYTES = 64 * 1024


class NoSecret(Exception):
    """Raised if a reference cannot be resolved. The message names the reference, but no secret."""


def resolve_references(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with references replaced by their values. Raises NoSecret."""
    return {name: _REFERENCE.sub(partial(_value, name), value) for name, value in given.items()}


def _value(name: str, found: re.Match[str]) -> str:
    provider, rest = found[1], found[2]
    if provider == "env":
        if rest not in os.environ:
            raise NoSecret(f"{name}: {found[0]}: the environment variable {rest} is not set")
        return os.environ[rest]
    path, colon, key = rest.rpartition(":")
    if not colon or not path or not key:
        shape = "${file:PATH:KEY}" if provider == "file" else "${directory:PATH:FILE}"
        raise NoSecret(f"{name}: {found[0]}: expected {shape}")
    if provider == "directory":
        return _text(name, found[0], Path(path, key)).strip()
    for line in _text(name, found[0], Path(path)).splitlines():
        its_key, equals, value = line.partition("=")
        if equals and its_key.strip() == key:
            return value.strip()
    raise NoSecret(f"{name}: {found[0]}: {path} has no line {key}=")


def _text(name: str, reference: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise NoSecret(f"{name}: {reference}: {path} is larger than {_MOST_BYTES // 1024} KiB")
        return content.decode()
    except OSError as error:
        raise NoSecret(f"{name}: {reference}: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NoSecret(f"{name}: {reference}: {path} is not text") from error


PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_BEARER = "OAUTHBEARER"
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", _BEARER)
_HOSTNAME = "ssl.endpoint.identification.algorithm"
_NAMES = (
    "security.protocol",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    _HOSTNAME,
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.extensions",
    "https.ca.location",
    "socket.timeout.ms",
)


class BadSetting(PipelineError):
    """Raised if a client setting is unknown or invalid, or needs another setting. The message names it."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Checked settings. Spark sends them to the executors, so the paths in them must exist there."""

    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True
    login: PasswordLogin | Bearer | None = None
    timeout_seconds: float = 30.0

    @property
    def security_protocol(self) -> str:
        """Return librdkafka's name of the protocol."""
        return PROTOCOLS[int(self.tls) + 2 * (self.login is not None)]

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None for plaintext. Raises BadSetting if a file cannot be used."""
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            context.check_hostname = self.verify_hostname
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file, self.key_password)
        except (OSError, ssl.SSLError) as error:
            raise BadSetting(f"the files for TLS cannot be used: {error}") from error
        return context


def client_settings(given: Mapping[str, str]) -> ClientSettings:
    """Check settings with librdkafka's names, and return them with secrets resolved. Raises BadSetting."""
    given = _followed(given)
    for name in given:
        if name not in _NAMES:
            near = get_close_matches(name, _NAMES, 1)
            raise BadSetting(f"unknown client setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    protocol = given.get("security.protocol", "plaintext").lower()
    if protocol not in PROTOCOLS:
        raise BadSetting(f"security.protocol: expected one of {', '.join(PROTOCOLS)}, found {protocol!r}")
    verification = given.get(_HOSTNAME, "https")
    if verification not in ("https", "none"):
        raise BadSetting(f"{_HOSTNAME}: expected https or none, found {verification!r}")
    return ClientSettings(
        tls=protocol.endswith("ssl"),
        ca_file=given.get("ssl.ca.location"),
        certificate_file=given.get("ssl.certificate.location"),
        key_file=given.get("ssl.key.location"),
        key_password=given.get("ssl.key.password"),
        verify_hostname=verification == "https",
        login=_login(given) if protocol.startswith("sasl") else None,
        timeout_seconds=_milliseconds(given, "socket.timeout.ms", 30_000) / 1000,
    )


def read_settings(file: Path) -> dict[str, str]:
    """Read and check a file with `name=value` lines, in the format of Kafka's tools. Raises BadSetting."""
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise BadSetting(f"{file}: {error.strerror}") from error
    given = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise BadSetting(f"{file}, line {number}: expected name=value")
        given[name.strip()] = value.strip()
    try:
        client_settings(given)
    except BadSetting as error:
        raise BadSetting(f"{file}: {error}") from error
    return given


def settings_for_librdkafka(given: Mapping[str, str]) -> dict[str, Any]:
    """Return settings for librdkafka's clients. Raises BadSetting.

    The project's own code provides tokens, because librdkafka cannot read them from a file.
    """
    login = client_settings(given).login
    found: dict[str, Any] = _followed(given)
    if isinstance(login, Bearer):
        found = {name: value for name, value in found.items() if not name.startswith(("sasl.oauthbearer.", "https."))}
        found["oauth_cb"] = partial(for_librdkafka, login)
    return found


def _followed(given: Mapping[str, str]) -> dict[str, str]:
    try:
        return resolve_references(given)
    except NoSecret as error:
        raise BadSetting(str(error)) from error


def _login(given: Mapping[str, str]) -> PasswordLogin | Bearer:
    mechanism = given.get("sasl.mechanism", "")
    if mechanism not in _MECHANISMS:
        raise BadSetting(f"sasl.mechanism: expected one of {', '.join(_MECHANISMS)}, found {mechanism!r}")
    if mechanism == _BEARER:
        return _bearer(given)
    for name in ("sasl.username", "sasl.password"):
        if name not in given:
            raise BadSetting(f"{mechanism} needs {name}")
    return PasswordLogin(mechanism, given["sasl.username"], given["sasl.password"])


def _bearer(given: Mapping[str, str]) -> Bearer:
    prefix = "sasl.oauthbearer."
    if given.get(f"{prefix}method", "oidc").lower() != "oidc":
        raise BadSetting(f"{prefix}method: only oidc is supported, found {given[f'{prefix}method']!r}")
    endpoint = given.get(f"{prefix}token.endpoint.url", "")
    scheme = urlsplit(endpoint).scheme
    if scheme not in ("http", "https", "file"):
        raise BadSetting(f"{_BEARER} needs {prefix}token.endpoint.url: https://…, http://… or file:///…")
    if scheme != "file":
        for name in (f"{prefix}client.id", f"{prefix}client.secret"):
            if not given.get(name):
                raise BadSetting(f"{_BEARER} needs {name}")
    return Bearer(
        endpoint,
        given.get(f"{prefix}client.id", ""),
        given.get(f"{prefix}client.secret", ""),
        given.get(f"{prefix}scope", ""),
        _extensions(given.get(f"{prefix}extensions", "")),
        given.get("https.ca.location"),
        _milliseconds(given, "socket.timeout.ms", 30_000) / 1000,
    )


def _extensions(text: str) -> tuple[tuple[str, str], ...]:
    """Parse `name=value,…` as librdkafka does. Names consist of letters (RFC 7628, 3.1)."""
    found = []
    for part in (chunk.strip() for chunk in text.split(",") if chunk.strip()):
        name, equals, value = part.partition("=")
        if not equals or not name.isalpha() or not name.isascii() or name == "auth" or not value.isprintable():
            raise BadSetting(f"sasl.oauthbearer.extensions: expected name=value,… of letters, found {name!r}")
        found.append((name, value))
    return tuple(found)


def _milliseconds(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdigit() or int(text) == 0:
        raise BadSetting(f"{name}: expected a number of milliseconds, found {text!r}")
    return int(text)
