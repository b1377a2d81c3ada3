"""Checks that the certificate for clients covers the host names that the proxy advertises.

Clients compare the certificate with the name to which they connect (RFC 9525, and Kafka's
`ssl.endpoint.identification.algorithm=https`). If the certificate does not cover a name, every connection to that name
fails.
"""

from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from cryptography import x509
from cryptography.x509.oid import NameOID

from sluicegate.config.listen import NODE_ID
from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.network.tls.certificates import first_certificate

_ABOUT = "certificate names"


def check(config: Config, brokers: Iterable[int]) -> Iterator[CheckResult]:
    """Yield the advertised names that the certificate does not cover. `brokers` contains the known node ids."""
    listen = config.listen
    certificate = first_certificate(listen.tls.certificate_file) if listen.tls is not None else None
    if certificate is None:
        return
    ids = sorted(brokers)
    if listen.broker_host is None:
        yield _result(certificate, "listen.advertised_host", [listen.host_for_clients], Level.FAILURE)
        return
    if listen.advertised_host is not None:  # only used for bootstrap, because responses contain the names of brokers
        yield _result(certificate, "listen.advertised_host", [listen.advertised_host], Level.WARNING)
    if ids:
        hosts = [listen.broker_host.replace(NODE_ID, str(node_id)) for node_id in ids]
        yield _result(certificate, "listen.broker_host", hosts, Level.FAILURE)
    else:
        yield CheckResult(
            _ABOUT, Level.NOT_CHECKED, "the names of listen.broker_host are unknown, because no broker is known"
        )


def _result(certificate: x509.Certificate, key: str, hosts: list[str], level: Level) -> CheckResult:
    missing = [host for host in hosts if not covers(certificate, host)]
    if not missing:
        return CheckResult(_ABOUT, Level.OK, f"covers {names_shortened(hosts)} ({key})")
    covered = names_shortened(_names_of(certificate), 5) or "none"
    found = f"does not cover {names_shortened(missing)} ({key}); names in the certificate: {covered}"
    return CheckResult(_ABOUT, level, found, f"use a certificate with subject alternative names for {key}")


def covers(certificate: x509.Certificate, host: str) -> bool:
    """Return whether a client that connects to `host` accepts the names in the certificate."""
    names = _alternative_names(certificate)
    try:
        address = ip_address(host)
    except ValueError:
        dns = names.get_values_for_type(x509.DNSName) if names is not None else []
        return any(_matches(name, host) for name in dns or _common_names(certificate))
    return names is not None and address in names.get_values_for_type(x509.IPAddress)


def _matches(name: str, host: str) -> bool:
    """Return whether the names match. A wildcard matches exactly one label, the first."""
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    if name.startswith("*."):
        first, dot, rest = host.partition(".")
        return bool(first and dot) and "." in rest and rest == name[2:]
    return name == host


def _alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def _common_names(certificate: x509.Certificate) -> list[str]:
    """Return the common names, which clients use if the certificate has no alternative name of type DNS."""
    return [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]


def _names_of(certificate: x509.Certificate) -> list[str]:
    names = _alternative_names(certificate)
    if names is None:
        return _common_names(certificate)
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return [*(names.get_values_for_type(x509.DNSName) or _common_names(certificate)), *addresses]
