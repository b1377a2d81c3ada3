"""TLS contexts that are reloaded when their files change, so that new connections use certificates renewed on disk.

While a file is missing or unreadable, its last content stays in use.
"""

import os
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from weakref import WeakKeyDictionary

import structlog

from sluicegate.config.disk.deadline import FileUnreadable, within_deadline
from sluicegate.config.disk.kept_files import read_kept
from sluicegate.config.disk.regular_file import is_unreadable, stat_now
from sluicegate.config.tls import ListenTls, ServerTls, UpstreamTls
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.tls.certificates import (
    files_for_brokers,
    files_for_clients,
    files_for_server,
    first_error,
)

_MOST_BYTES = 16 << 20


class MemoryFiles:
    """A context manager that copies files to memory, and removes the copies when it exits.

    On systems without memfd_create the copies are temporary files.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> "MemoryFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def copy_of(self, file: str) -> str:
        """Copy a regular file and return the copy's name. Blocks for up to a few seconds. Raises OSError."""
        content = read_kept(Path(file), _MOST_BYTES)
        if len(content) > _MOST_BYTES:
            raise OSError(f"{file} has more than {_MOST_BYTES >> 20} MiB")
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("sluicegate")
            self._stack.callback(os.close, descriptor)
            with open(descriptor, "wb", closefd=False) as copy:
                copy.write(content)
            return f"/proc/self/fd/{descriptor}"
        temporary = self._stack.enter_context(NamedTemporaryFile())  # noqa: SIM115  # mode 0600
        temporary.write(content)
        temporary.flush()
        return temporary.name


_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_Stamp = tuple[tuple[int, int, int] | None, ...]


class BadTlsFiles(Exception):
    """Certificates or keys cannot be used. The message names the section, the files and the reason."""


class TlsContext:
    """A TLS context made from files. Creating it blocks. Raises BadTlsFiles if the files cannot be used."""

    def __init__(
        self,
        section: str,
        files: list[str],
        make: Callable[[MemoryFiles], ssl.SSLContext],
        blame: Callable[[], str | None],
    ) -> None:
        """`make` creates the context from copies of the files in memory.

        `blame` checks each file separately and returns the first error, or None.
        """
        self._section = section
        self._blame = blame
        self._files = [Path(file) for file in files]
        self._make = make
        self._log = structlog.get_logger("sluicegate.tls")
        self._following = threading.Lock()
        self._failed: str | None = None
        try:
            self._stamp: _Stamp | None = self._stamp_now()
        except FileUnreadable as error:
            raise BadTlsFiles(f"{section}: {_unresponsive(error)}") from error
        self._context = self._made()

    def current(self) -> ssl.SSLContext:
        """Return the context for the newest usable files that `follow` has found."""
        return self._context

    def follow(self) -> None:
        """Reload the files if they have changed. Blocks, so an event loop must not call it."""
        with self._following:
            try:
                stamp = self._stamp_now()
                if stamp == self._stamp or None in stamp:
                    return
                self._context = self._made()
            except (FileUnreadable, BadTlsFiles) as error:
                self._stamp = None  # retry at the next call; each reason is logged once
                reason = _unresponsive(error) if isinstance(error, FileUnreadable) else str(error)
                if reason != self._failed:
                    self._log.error("changed certificates rejected; previous certificates stay in use", reason=reason)
                self._failed = reason
            else:
                self._stamp, self._failed = stamp, None
                self._log.info("certificates reloaded", section=self._section)

    def _made(self) -> ssl.SSLContext:
        try:
            with MemoryFiles() as copies:
                context = self._make(copies)
            context.minimum_version = ssl.TLSVersion.TLSv1_2  # even if the system allows older versions (RFC 8996)
            # Brokers forbid renegotiation too: in TLS 1.2 it only helps attackers.
            context.options |= ssl.OP_NO_RENEGOTIATION
            return context
        except PasswordUnreadable as error:
            raise BadTlsFiles(str(error)) from error
        except (OSError, ValueError) as error:
            raise BadTlsFiles(self._reason_of(error)) from error

    def _reason_of(self, error: Exception) -> str:
        """Return the first file's error if `blame` finds one.

        Otherwise return all file names and the TLS library's reason.
        """
        blamed = self._blame()
        if blamed is not None:
            return blamed
        names = ", ".join(str(file) for file in self._files)
        if isinstance(error, ssl.SSLError):
            reason = tls_failure_message(error)
        else:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return f"{self._section}: {names} cannot be used: {reason}"

    def _stamp_now(self) -> _Stamp:
        """Return the files' modification times, sizes and inodes.

        Raises FileUnreadable while the file system does not respond.
        """
        return within_deadline(("tls", *self._files), lambda: tuple(_stamp_of(file) for file in self._files))


def context_for_clients(tls: ListenTls, names: "RequestedNames") -> TlsContext:
    """Create the context for connections from clients. Raises BadTlsFiles."""

    def make_context(copies: MemoryFiles) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate, key = copies.copy_of(tls.certificate_file), copies.copy_of(tls.key_file)
        context.load_cert_chain(certificate, key, tls.password_of_key.get())
        context.verify_mode = _CLIENT_AUTH[tls.client_auth]
        if tls.client_ca_file is not None:
            context.load_verify_locations(copies.copy_of(tls.client_ca_file))
        context.sni_callback = names.remember
        return context

    files = _named(tls.certificate_file, tls.key_file, tls.client_ca_file, tls.key_password_file)
    return TlsContext("listen.tls", files, make_context, lambda: first_error(files_for_clients(tls)))


def context_for_brokers(tls: UpstreamTls) -> TlsContext:
    """Create the context for connections to brokers. Raises BadTlsFiles."""

    def make_context(copies: MemoryFiles) -> ssl.SSLContext:
        context = _context_for(tls.ca_file, copies)
        context.check_hostname = tls.verify_hostname
        if tls.certificate_file is not None and tls.key_file is not None:
            certificate, key = copies.copy_of(tls.certificate_file), copies.copy_of(tls.key_file)
            context.load_cert_chain(certificate, key, tls.password_of_key.get())
        return context

    files = _named(tls.ca_file, tls.certificate_file, tls.key_file, tls.key_password_file)
    return TlsContext("upstream.tls", files, make_context, lambda: first_error(files_for_brokers(tls)))


def context_for_server(section: str, tls: ServerTls) -> TlsContext:
    """Create the context for connections to another server (registry, OpenTelemetry).

    `section` is the configuration key of `tls`. Raises BadTlsFiles.
    """

    def make_context(copies: MemoryFiles) -> ssl.SSLContext:
        context = _context_for(tls.ca_file, copies)
        if tls.certificate_file is not None and tls.key_file is not None:
            certificate, key = copies.copy_of(tls.certificate_file), copies.copy_of(tls.key_file)
            context.load_cert_chain(certificate, key, tls.password_of_key(section).get())
        return context

    files = _named(tls.ca_file, tls.certificate_file, tls.key_file, tls.key_password_file)
    return TlsContext(section, files, make_context, lambda: first_error(files_for_server(section, tls)))


def context_for_fleet(certificate_file: str, key_file: str) -> TlsContext:
    """Create the context for browsers that connect to `sluicegate fleet`. Raises BadTlsFiles."""

    def make_context(copies: MemoryFiles) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(copies.copy_of(certificate_file), copies.copy_of(key_file))
        return context

    return TlsContext("--tls-certificate", [certificate_file, key_file], make_context, lambda: None)


def _context_for(authorities: str | None, copies: MemoryFiles) -> ssl.SSLContext:
    """Create a client context that trusts the CAs in a file, or the system's CAs if `authorities` is None."""
    return ssl.create_default_context(cafile=None if authorities is None else copies.copy_of(authorities))


class RequestedNames:
    """The host name that each TLS client requested (SNI), stored for the lifetime of its connection."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[object, str] = WeakKeyDictionary()

    def remember(self, handshake: object, name: str | None, _context: ssl.SSLContext) -> None:
        """Store the name that a handshake requests. The TLS library calls this method."""
        if name is not None:
            self._names[handshake] = name

    def of(self, handshake: object) -> str | None:
        """Return the name that a handshake requested, or None."""
        return self._names.get(handshake)


def tls_failure_message(error: Exception) -> str:
    """Describe a TLS failure in a message that an operator can act on."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason is not None:
        return _REASONS.get(error.reason, error.reason.replace("_", " ").lower())
    if isinstance(error, ConnectionError | EOFError):
        return "the connection was closed during the TLS handshake"
    return str(error) or type(error).__name__


_REASONS = {
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust the CA of our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer rejected our certificate, or requires one and received none",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer reports that our certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer rejected our certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer requires a certificate (certificate_file, key_file)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, which client_auth requires",
    "WRONG_VERSION_NUMBER": "the peer does not use TLS: a plaintext port or client (security.protocol is wrong)",
    "HTTP_REQUEST": "an HTTP request on a TLS port",
    "KEY_VALUES_MISMATCH": "the key does not match the certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "no certificate in the file",
}


def _unresponsive(error: FileUnreadable) -> str:
    return f"{error.filename} cannot be read: {error.strerror}" if error.filename else str(error.strerror)


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    """Return values that change when a file is written or replaced. Return None while it is missing or unreadable."""
    if is_unreadable(file):
        return None
    with suppress(OSError):
        status = stat_now(file)
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


def _named(*files: str | None) -> list[str]:
    return [file for file in files if file is not None]
