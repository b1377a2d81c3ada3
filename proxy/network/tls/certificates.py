"""Checks certificate and key files.

It finds missing, unreadable or damaged files, expiry dates, and keys that do not match. These checks only report
problems. The TLS library decides whether a connection is possible.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.config.disk.kept_files import ReadContent, read_current, read_kept
from sluicegate.config.model import Config
from sluicegate.config.tls import ListenTls, ServerTls, UpstreamTls
from sluicegate.config.values.password import Password, PasswordUnreadable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

SOON = timedelta(days=30)
_NEAR = timedelta(days=14)
# A certificate that is valid for only days or hours is renewed after two thirds of that time, or later.
_LAST_PART = 5
_MAX_BYTES = 16 << 20
_MOST_SHOWN = 20
_SUBJECT_CHARACTERS = 200
_CERTIFICATE_MARK = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK = b"PRIVATE KEY-----"


class Severity(Enum):
    """The severity of a flaw."""

    UNUSABLE = "unusable"
    """No connection is possible with the file."""
    EXPIRED = "expired"
    """Peers that verify certificates reject the file."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Flaw:
    """A problem with a file that the configuration names, or its approaching expiry."""

    key: str
    message: str
    level: Severity = Severity.UNUSABLE

    @property
    def is_error(self) -> bool:
        """Whether the file is unusable or expired."""
        return self.level is not Severity.WARNING

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


@dataclass(frozen=True, slots=True)
class Expiry:
    """A certificate's expiry time."""

    key: str
    file: str
    not_after: datetime
    subject: str
    not_before: datetime

    def expires_soon(self, now: datetime) -> bool:
        """Return whether the certificate expires soon.

        That means within 14 days or, if it is valid for less time, in the last fifth of its validity.
        """
        return self.not_after - now <= min(_NEAR, (self.not_after - self.not_before) / _LAST_PART)

    def days_left(self, now: datetime) -> float:
        """Return the number of days until expiry, negative after expiry."""
        return (self.not_after - now) / timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificate and key files of one configuration section."""

    section: str
    certificate_file: str | None
    key_file: str | None
    password: Password
    authorities: tuple[tuple[str, str], ...]
    """The configuration keys and files of the trusted CAs."""


class _Unusable(Exception):
    """A file cannot be used. The message gives the reason."""


def files_for_clients(tls: ListenTls) -> TlsFiles:
    """Return the files of `listen.tls`."""
    trusted = () if tls.client_ca_file is None else (("listen.tls.client_ca_file", tls.client_ca_file),)
    return TlsFiles("listen.tls", tls.certificate_file, tls.key_file, tls.password_of_key, trusted)


def files_for_brokers(tls: UpstreamTls) -> TlsFiles:
    """Return the files of `upstream.tls`."""
    trusted = () if tls.ca_file is None else (("upstream.tls.ca_file", tls.ca_file),)
    return TlsFiles("upstream.tls", tls.certificate_file, tls.key_file, tls.password_of_key, trusted)


def files_for_server(section: str, tls: ServerTls) -> TlsFiles:
    """Return the files of the configuration section `section`: the TLS settings for a server that is not a broker."""
    trusted = () if tls.ca_file is None else ((f"{section}.ca_file", tls.ca_file),)
    return TlsFiles(section, tls.certificate_file, tls.key_file, tls.password_of_key(section), trusted)


def tls_files(config: Config) -> list[TlsFiles]:
    """Return the files of `listen.tls` and `upstream.tls`."""
    clients = [] if config.listen.tls is None else [files_for_clients(config.listen.tls)]
    brokers = [] if config.upstream.tls is None else [files_for_brokers(config.upstream.tls)]
    return clients + brokers


def flaws_of(files: TlsFiles, now: datetime, read: ReadContent = read_current) -> Iterator[Flaw]:
    """Yield each file's errors and warnings. `read` returns a file's content."""
    certificate_key = f"{files.section}.certificate_file"
    shown: Sequence[Certificate] = ()
    if files.certificate_file is not None:
        try:
            shown = _certificates(files.certificate_file, read)
        except _Unusable as error:
            yield Flaw(certificate_key, str(error))
        else:
            yield from _validity(certificate_key, files.certificate_file, shown[:1], now)
            yield from _later_ones(certificate_key, files.certificate_file, shown[1:], now)
    if files.key_file is not None:
        try:
            key = _key(files.key_file, files.password, read)
        except PasswordUnreadable as error:
            yield Flaw(error.key, error.message)
        except _Unusable as error:
            yield Flaw(f"{files.section}.key_file", str(error))
        else:
            yield from _belonging(files, key, shown)
    for name, file in files.authorities:
        try:
            trusted = _certificates(file, read)
        except _Unusable as error:
            yield Flaw(name, str(error))
        else:
            yield from (
                _validity(name, file, trusted[:1], now) if len(trusted) == 1 else _later_ones(name, file, trusted, now)
            )


def first_error(files: TlsFiles) -> str | None:
    """Return the first error that makes the files unusable, or None. Expiry dates are ignored."""
    found = flaws_of(files, datetime.now(UTC))
    return next((str(flaw) for flaw in found if flaw.level is Severity.UNUSABLE), None)


def expiries_of(config: Config) -> list[Expiry]:
    """Return the expiry times of the proxy's own certificates for clients and brokers. Skip unreadable files."""
    return list(_own_of(tls_files(config)))


def _expiries_for_servers(config: Config) -> list[Expiry]:
    """Return the expiry times of the proxy's own certificates for registries and `otel`."""
    return list(_own_of(files_for_server(section, tls) for section, tls in _servers(config)))


def _own_of(several: Iterable[TlsFiles]) -> Iterator[Expiry]:
    for files in several:
        if files.certificate_file is not None:
            try:
                first = _certificates(files.certificate_file)[0]
            except _Unusable:
                continue
            yield _expiry(f"{files.section}.certificate_file", files.certificate_file, first)


def all_expiries_of(config: Config) -> list[Expiry]:
    """Return the expiry times of every certificate that the proxy sends or trusts.

    They include chains and CAs, and the files for registries and `otel`. Unreadable files are skipped, as are files
    with so many CAs that they must be the system's list.
    """
    servers = _servers(config)
    found: dict[tuple[str, str], Expiry] = {}
    for files in [*tls_files(config), *(files_for_server(section, tls) for section, tls in servers)]:
        own = () if files.certificate_file is None else ((f"{files.section}.certificate_file", files.certificate_file),)
        for key, file in (*own, *files.authorities):
            try:
                certificates = _certificates(file)
            except _Unusable:
                continue
            if len(certificates) > _MOST_SHOWN:
                continue
            for expiry in (_expiry(key, file, each) for each in certificates):
                known = found.get((key, expiry.subject))
                if known is None or known.not_after < expiry.not_after:
                    found[key, expiry.subject] = expiry
    return list(found.values())


def _servers(config: Config) -> list[tuple[str, ServerTls]]:
    """Return the configuration sections for servers that are not brokers: registries and `otel`."""
    servers = [
        each for name, registry in config.registries.items() for each in registry.tls_sections(f"registries.{name}")
    ]
    if config.otel is not None and config.otel.tls is not None:
        servers.append(("otel.tls", config.otel.tls))
    return servers


def _expiry(key: str, file: str, certificate: "Certificate") -> Expiry:
    return Expiry(
        key,
        file,
        certificate.not_valid_after_utc,
        certificate.subject.rfc4514_string()[:_SUBJECT_CHARACTERS],
        certificate.not_valid_before_utc,
    )


def first_certificate(file: str) -> "Certificate | None":
    """Return a file's first certificate, which is the one that peers receive. Blocks.

    Return None if the file is unusable.
    """
    try:
        return _certificates(file)[0]
    except _Unusable:
        return None


@dataclass(frozen=True, slots=True)
class OwnExpiries:
    """The proxy's own certificates that have expired or expire soon, as sentences by configuration key.

    `expired` covers the certificate that clients receive. `soon` covers all others, and also that certificate before it
    expires.
    """

    expired: str | None
    soon: dict[str, str]


def own_expiries(config: Config, now: datetime) -> OwnExpiries:
    """Return which of the proxy's certificates for clients, brokers and other servers an operator must renew."""
    expired, soon = None, {}
    for expiry in (*expiries_of(config), *_expiries_for_servers(config)):
        if not expiry.expires_soon(now):
            continue
        tense = "expired" if expiry.not_after <= now else "expires"
        text = f"{expiry.key}: {expiry.file} {tense} on {expiry.not_after:%Y-%m-%d %H:%M} UTC: renew it"
        if expiry.key.startswith("listen.") and expiry.not_after <= now:
            expired = text
        else:
            soon[expiry.key] = text
    return OwnExpiries(expired, soon)


def _validity(key: str, file: str, certificates: Iterable["Certificate"], now: datetime) -> Iterator[Flaw]:
    for certificate in certificates:
        until, since = certificate.not_valid_after_utc, certificate.not_valid_before_utc
        if until <= now:
            yield Flaw(key, f"{file} expired on {until:%Y-%m-%d %H:%M} UTC: renew it", Severity.EXPIRED)
        elif until - now <= SOON:
            days = (until - now).days
            yield Flaw(key, f"{file} expires in {days} days, on {until:%Y-%m-%d %H:%M} UTC: renew it", Severity.WARNING)
        elif since > now:
            yield Flaw(
                key, f"{file} is not valid before {since:%Y-%m-%d %H:%M} UTC: check the clock too", Severity.WARNING
            )


def _later_ones(key: str, file: str, certificates: Iterable["Certificate"], now: datetime) -> Iterator[Flaw]:
    """Yield warnings for expired certificates in a chain or CA list, which may have no effect."""
    for certificate in certificates:
        if certificate.not_valid_after_utc <= now:
            name = certificate.subject.rfc4514_string()
            ended = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
            yield Flaw(key, f"{file}: its certificate of {name} expired on {ended}", Severity.WARNING)


def _belonging(files: TlsFiles, key: "PrivateKeyTypes", shown: Sequence["Certificate"]) -> Iterator[Flaw]:
    places = [i for i, each in enumerate(shown) if each.public_key() == key.public_key()]
    if not shown or 0 in places:
        return
    message = f"{files.key_file}, {files.certificate_file}: the key does not match the first certificate"
    if places:
        message += f", but it matches certificate {places[0] + 1}, which must be the first"
    yield Flaw(f"{files.section}.key_file", message)


def _read(file: str, read: ReadContent) -> bytes:
    try:
        content = read(Path(file), _MAX_BYTES)
    except OSError as error:
        raise _Unusable(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise _Unusable(f"{file} is larger than {_MAX_BYTES >> 20} MiB")
    return content


def _certificates(file: str, read: ReadContent = read_kept) -> list["Certificate"]:
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415  # only with TLS

    content = _read(file, read)
    if _CERTIFICATE_MARK not in content:
        found = "; it contains a key" if _KEY_MARK in content else "; it is empty" if not content else ""
        raise _Unusable(f"no PEM certificate in {file}{found}")
    try:
        return load_pem_x509_certificates(content)
    except ValueError as error:
        raise _Unusable(f"{file} contains a damaged PEM certificate") from error


def _key(file: str, password: Password, read: ReadContent) -> "PrivateKeyTypes":
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # only with TLS
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415  # only with TLS

    content = _read(file, read)
    if _KEY_MARK not in content:
        found = "; it contains a certificate" if _CERTIFICATE_MARK in content else "" if content else "; it is empty"
        raise _Unusable(f"no PEM key in {file}{found}")
    given = password.get(read).encode() or None
    encrypted = b"ENCRYPTED" in content
    try:
        return load_pem_private_key(content, given if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if encrypted and given is None:
            reason = "is encrypted: set key_password_file or key_password"
        elif encrypted:
            reason = "cannot be decrypted: key_password is wrong"
        else:
            reason = "contains a damaged PEM key"
        raise _Unusable(f"{file} {reason}") from error
