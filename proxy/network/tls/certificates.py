"""Looks at certificate and key files by themselves: what is missing, unreadable, no PEM, expired or soon to be, and
whether key and certificate belong together. Nothing here decides whether a connection may be made.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.config.files.regular_file import read_file
from sluicegate.config.listen import ListenTls
from sluicegate.config.model import Config
from sluicegate.config.server_tls import ServerTls
from sluicegate.config.upstream import UpstreamTls
from sluicegate.config.values.password import Password, PasswordUnreadable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

SOON = timedelta(days=30)
_MAX_BYTES = 16 << 20
_CERTIFICATE_MARK = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK = b"PRIVATE KEY-----"


class Severity(Enum):
    """How bad a flaw is."""

    UNUSABLE = "unusable"
    """No connection can be made with the file."""
    EXPIRED = "expired"
    """Peers that verify certificates will not take it."""
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong, or soon to be, with a file that a configuration names."""

    key: str
    message: str
    level: Severity = Severity.UNUSABLE

    @property
    def is_error(self) -> bool:
        """Whether the file cannot do what it is for."""
        return self.level is not Severity.WARNING

    def __str__(self) -> str:
        return f"{self.key}: {self.message}"


@dataclass(frozen=True, slots=True)
class Expiry:
    """When the first certificate of a file ends: the one that is shown to peers, where it is not a list of CAs."""

    key: str
    file: str
    not_after: datetime

    def days_left(self, now: datetime) -> float:
        """Negative when it has expired."""
        return (self.not_after - now) / timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of one section."""

    section: str
    certificate_file: str | None
    key_file: str | None
    password: Password
    authorities: tuple[tuple[str, str], ...]
    """Keys and files of those who are trusted."""


class _Unusable(Exception):
    """The text says what is wrong with one file."""


def files_for_clients(tls: ListenTls) -> TlsFiles:
    """What listen.tls names."""
    trusted = () if tls.client_ca_file is None else (("listen.tls.client_ca_file", tls.client_ca_file),)
    return TlsFiles("listen.tls", tls.certificate_file, tls.key_file, tls.password_of_key, trusted)


def files_for_brokers(tls: UpstreamTls) -> TlsFiles:
    """What upstream.tls names."""
    trusted = () if tls.ca_file is None else (("upstream.tls.ca_file", tls.ca_file),)
    return TlsFiles("upstream.tls", tls.certificate_file, tls.key_file, tls.password_of_key, trusted)


def files_for_server(section: str, tls: ServerTls) -> TlsFiles:
    """What `section` names, which leads to a server that is no broker."""
    trusted = () if tls.ca_file is None else ((f"{section}.ca_file", tls.ca_file),)
    return TlsFiles(section, tls.certificate_file, tls.key_file, tls.password_of_key(section), trusted)


def tls_files(config: Config) -> list[TlsFiles]:
    """Of every section that asks for TLS where clients or brokers are met."""
    clients = [] if config.listen.tls is None else [files_for_clients(config.listen.tls)]
    brokers = [] if config.upstream.tls is None else [files_for_brokers(config.upstream.tls)]
    return clients + brokers


def flaws_of(files: TlsFiles, now: datetime) -> Iterator[Flaw]:
    """What there is to say about each file, errors and warnings."""
    certificate_key = f"{files.section}.certificate_file"
    shown: Sequence[Certificate] = ()
    if files.certificate_file is not None:
        try:
            shown = _certificates(files.certificate_file)
        except _Unusable as error:
            yield Flaw(certificate_key, str(error))
        else:
            yield from _validity(certificate_key, files.certificate_file, shown[:1], now)
            yield from _later_ones(certificate_key, files.certificate_file, shown[1:], now)
    if files.key_file is not None:
        try:
            key = _key(files.key_file, files.password)
        except PasswordUnreadable as error:
            yield Flaw(error.key, error.message)
        except _Unusable as error:
            yield Flaw(f"{files.section}.key_file", str(error))
        else:
            yield from _belonging(files, key, shown)
    for name, file in files.authorities:
        try:
            trusted = _certificates(file)
        except _Unusable as error:
            yield Flaw(name, str(error))
        else:
            yield from (
                _validity(name, file, trusted[:1], now) if len(trusted) == 1 else _later_ones(name, file, trusted, now)
            )


def first_error(files: TlsFiles) -> str | None:
    """The first thing that keeps files from being read or used together; dates aside."""
    found = flaws_of(files, datetime.now(UTC))
    return next((str(flaw) for flaw in found if flaw.level is Severity.UNUSABLE), None)


def expiries_of(config: Config) -> list[Expiry]:
    """When the certificates that are shown to clients and brokers end; those that cannot be read are left out."""
    found = []
    for files in tls_files(config):
        if files.certificate_file is not None:
            try:
                first = _certificates(files.certificate_file)[0]
            except _Unusable:
                continue
            found.append(Expiry(f"{files.section}.certificate_file", files.certificate_file, first.not_valid_after_utc))
    return found


def expired_for_clients(config: Config, now: datetime) -> str | None:
    """What clients that verify certificates will not take any more, in words; None: there is nothing such."""
    for expiry in expiries_of(config):
        if expiry.key.startswith("listen.") and expiry.not_after <= now:
            return f"{expiry.key}: {expiry.file} has expired, on {expiry.not_after:%Y-%m-%d %H:%M} UTC: renew it"
    return None


def _validity(key: str, file: str, certificates: Iterable["Certificate"], now: datetime) -> Iterator[Flaw]:
    for certificate in certificates:
        until, since = certificate.not_valid_after_utc, certificate.not_valid_before_utc
        if until <= now:
            yield Flaw(key, f"{file} has expired, on {until:%Y-%m-%d %H:%M} UTC: renew it", Severity.EXPIRED)
        elif until - now <= SOON:
            days = (until - now).days
            yield Flaw(key, f"{file} expires in {days} days, on {until:%Y-%m-%d %H:%M} UTC: renew it", Severity.WARNING)
        elif since > now:
            yield Flaw(
                key, f"{file} is not valid before {since:%Y-%m-%d %H:%M} UTC: look at the clock too", Severity.WARNING
            )


def _later_ones(key: str, file: str, certificates: Iterable["Certificate"], now: datetime) -> Iterator[Flaw]:
    """Of a chain or a list of CAs: one that has ended need not matter."""
    for certificate in certificates:
        if certificate.not_valid_after_utc <= now:
            name = certificate.subject.rfc4514_string()
            ended = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
            yield Flaw(key, f"{file}: the certificate of {name} in it has expired, on {ended}", Severity.WARNING)


def _belonging(files: TlsFiles, key: "PrivateKeyTypes", shown: Sequence["Certificate"]) -> Iterator[Flaw]:
    places = [i for i, each in enumerate(shown) if each.public_key() == key.public_key()]
    if not shown or 0 in places:
        return
    message = f"{files.key_file}, {files.certificate_file}: the key is not that of the certificate"
    if places:
        message += f" at its beginning, but of the one at place {places[0] + 1}, which must be the first"
    yield Flaw(f"{files.section}.key_file", message)


def _read(file: str) -> bytes:
    try:
        content = read_file(Path(file), _MAX_BYTES)
    except OSError as error:
        raise _Unusable(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise _Unusable(f"{file} has more than {_MAX_BYTES >> 20} MiB: no certificates")
    return content


def _certificates(file: str) -> list["Certificate"]:
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415  # only where TLS is wanted

    content = _read(file)
    if _CERTIFICATE_MARK not in content:
        what = "; it holds a key" if _KEY_MARK in content else "; it is empty" if not content else ""
        raise _Unusable(f"no PEM certificate in {file}{what}")
    try:
        return load_pem_x509_certificates(content)
    except ValueError as error:
        raise _Unusable(f"{file} holds a damaged PEM certificate") from error


def _key(file: str, password: Password) -> "PrivateKeyTypes":
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    content = _read(file)
    if _KEY_MARK not in content:
        what = "; it holds a certificate" if _CERTIFICATE_MARK in content else "; it is empty" if not content else ""
        raise _Unusable(f"no PEM key in {file}{what}")
    given = password.get().encode() or None
    encrypted = b"ENCRYPTED" in content
    try:
        return load_pem_private_key(content, given if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if encrypted and given is None:
            reason = "is encrypted: set key_password_file or key_password"
        elif encrypted:
            reason = "cannot be decrypted: key_password is not its password"
        else:
            reason = "holds a damaged PEM key"
        raise _Unusable(f"{file} {reason}") from error
