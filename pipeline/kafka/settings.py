"""How a broker is reached: plaintext, TLS or SASL, by librdkafka's names for it."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_NAMES = (
    "security.protocol",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "socket.timeout.ms",
)


class BadSetting(Exception):
    """A client setting that is not one, or that lacks another; the text names it."""


@dataclass(frozen=True, slots=True)
class Login:
    """A SASL login."""

    mechanism: str
    username: str
    password: str


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Checked settings. They travel to Spark's executors, so paths are those of files that lie on each of them."""

    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = None
    verify_hostname: bool = True
    login: Login | None = None
    timeout_seconds: float = 30.0

    def tls_context(self) -> ssl.SSLContext | None:
        """None for plaintext. Raises BadSetting when a file cannot be used."""
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
    """From librdkafka's names. Raises BadSetting."""
    for name in given:
        if name not in _NAMES:
            near = get_close_matches(name, _NAMES, 1)
            raise BadSetting(f"unknown client setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    protocol = given.get("security.protocol", "plaintext").lower()
    if protocol not in _PROTOCOLS:
        raise BadSetting(f"security.protocol: expected one of {', '.join(_PROTOCOLS)}, found {protocol!r}")
    return ClientSettings(
        tls=protocol.endswith("ssl"),
        ca_file=given.get("ssl.ca.location"),
        certificate_file=given.get("ssl.certificate.location"),
        key_file=given.get("ssl.key.location"),
        key_password=given.get("ssl.key.password"),
        verify_hostname=given.get("ssl.endpoint.identification.algorithm", "https") != "none",
        login=_login(given) if protocol.startswith("sasl") else None,
        timeout_seconds=_milliseconds(given, "socket.timeout.ms", 30_000) / 1000,
    )


def read_settings(file: Path) -> dict[str, str]:
    """From a file of `name=value` lines, as Kafka's own tools take, checked. Raises BadSetting."""
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


def _login(given: Mapping[str, str]) -> Login:
    mechanism = given.get("sasl.mechanism", "")
    if mechanism not in _MECHANISMS:
        raise BadSetting(f"sasl.mechanism: expected one of {', '.join(_MECHANISMS)}, found {mechanism!r}")
    for name in ("sasl.username", "sasl.password"):
        if name not in given:
            raise BadSetting(f"{mechanism} needs {name}")
    return Login(mechanism, given["sasl.username"], given["sasl.password"])


def _milliseconds(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdigit() or int(text) == 0:
        raise BadSetting(f"{name}: expected a number of milliseconds, found {text!r}")
    return int(text)
