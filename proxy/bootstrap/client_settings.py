"""Reads TLS and SASL settings from a client's .properties file, with the names of the Java client or librdkafka.

Settings of producing and consuming are ignored.
"""

import re
from pathlib import Path
from typing import Any

from sluicegate.config.files.regular_file import read_file

_MAX_BYTES = 1 << 20
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS = {
    option: re.compile(rf"""\b{option}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""")
    for option in ("username", "password")
}


class UnusableClientSettings(Exception):
    """The settings are missing or unsupported; the text names the key, never a value, which may be secret."""


def upstream_from(file: Path) -> dict[str, Any]:
    """Return the keys `tls` and `sasl` of `upstream`. Raises UnusableClientSettings."""
    settings = _read(file)
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise UnusableClientSettings(f"security.protocol must be one of {', '.join(_PROTOCOLS)}")
    found: dict[str, Any] = {}
    if protocol.endswith("SSL"):
        found["tls"] = _tls(settings)
    if protocol.startswith("SASL"):
        found["sasl"] = _sasl(settings)
    return found


def _read(file: Path) -> dict[str, str]:
    try:
        text = read_file(file, _MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableClientSettings(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    if len(text) > _MAX_BYTES:
        raise UnusableClientSettings("larger than 1 MiB: not a file of client settings")
    found = {}
    for line in text.replace("\\\n", "").splitlines():
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
    """Return an absolute path: a client's paths are relative to its working directory, ours to the file's folder."""
    return str(Path(value).absolute()) if name.endswith("_file") else value


def _sasl(settings: dict[str, str]) -> dict[str, str]:
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    if mechanism not in _MECHANISMS:
        raise UnusableClientSettings(f"sasl.mechanism: the proxy's own login supports {', '.join(_MECHANISMS)}")
    jaas = settings.get("sasl.jaas.config", "")
    username = settings.get("sasl.username") or _of_jaas("username", jaas)
    password = settings.get("sasl.password") or _of_jaas("password", jaas)
    if not username or not password:
        raise UnusableClientSettings("sasl.username and sasl.password are required, or sasl.jaas.config with both")
    return {"mechanism": mechanism, "username": username, "password": password}


def _of_jaas(option: str, jaas: str) -> str | None:
    found = _JAAS[option].search(jaas)
    return next((group for group in found.groups() if group is not None), None) if found is not None else None
