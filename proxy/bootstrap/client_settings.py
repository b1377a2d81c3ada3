"""How to come into a cluster, from the settings of a client: a .properties file of Java's or librdkafka's names.

Whatever else such a file holds is about producing or consuming, and left aside.
"""

import re
from pathlib import Path
from typing import Any

from sluicegate.config.files.regular_file import read_file

_MAX_BYTES = 1 << 20
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS = {
    what: re.compile(rf"""\b{what}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""") for what in ("username", "password")
}


class UnusableClientSettings(Exception):
    """The file does not say how to come in; the text names the key, and never a value that may be secret."""


def upstream_from(file: Path) -> dict[str, Any]:
    """The keys `tls` and `sasl` of `upstream`. Raises UnusableClientSettings."""
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
        raise UnusableClientSettings("more than 1 MiB: these are no client's settings")
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
            raise UnusableClientSettings(f"{store}.location is no PEM: export it (keytool, openssl) and name that file")
    both = settings.get("ssl.keystore.location")
    names = {
        "ca_file": settings.get("ssl.ca.location") or settings.get("ssl.truststore.location"),
        "certificate_file": settings.get("ssl.certificate.location") or both,
        "key_file": settings.get("ssl.key.location") or both,
        "key_password": settings.get("ssl.key.password"),
    }
    found |= {name: _whole(name, value) for name, value in names.items() if value}
    if settings.get("ssl.endpoint.identification.algorithm", "https").lower() in ("", "none"):
        found["verify_hostname"] = "false"
    return found


def _whole(name: str, value: str) -> str:
    """Relative names begin where the client is started; in a configuration they would begin at its folder."""
    return str(Path(value).absolute()) if name.endswith("_file") else value


def _sasl(settings: dict[str, str]) -> dict[str, str]:
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
    if mechanism not in _MECHANISMS:
        raise UnusableClientSettings(f"sasl.mechanism: the proxy's own login can be {', '.join(_MECHANISMS)}")
    jaas = settings.get("sasl.jaas.config", "")
    username = settings.get("sasl.username") or _of_jaas("username", jaas)
    password = settings.get("sasl.password") or _of_jaas("password", jaas)
    if not username or not password:
        raise UnusableClientSettings("sasl.username and sasl.password (or sasl.jaas.config with both) are needed")
    return {"mechanism": mechanism, "username": username, "password": password}


def _of_jaas(what: str, jaas: str) -> str | None:
    found = _JAAS[what].search(jaas)
    return next((group for group in found.groups() if group is not None), None) if found is not None else None
