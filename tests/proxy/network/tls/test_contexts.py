"""Certificate names equal Java's, and TLS contexts follow changes in their files."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sluicegate.config.tls import ListenTls, UpstreamTls
from sluicegate.proxy.network.introduction import certificate_names
from sluicegate.proxy.network.tls.certificate_principal import principal_of
from sluicegate.proxy.network.tls.contexts import (
    BadTlsFiles,
    RequestedNames,
    context_for_brokers,
    context_for_clients,
)
from tests.broker.certificates import Authority, Certificate


def self_signed_certificate(
    folder: Path, *attributes: tuple[x509.ObjectIdentifier, str], also: tuple[x509.GeneralName, ...] = ()
) -> Certificate:
    return certificate_with_name(
        folder, x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes]), also
    )


def certificate_with_name(folder: Path, name: x509.Name, also: tuple[x509.GeneralName, ...] = ()) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if also:
        builder = builder.add_extension(x509.SubjectAlternativeName(also), critical=False)
    made = builder.sign(key, hashes.SHA256())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(folder / "own", made.public_bytes(serialization.Encoding.PEM), pem)


def handshake_in_memory(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None = None) -> ssl.SSLObject:
    """Run a handshake in memory; return the server's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=name),
    ]
    for _ in range(10):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize("who_is_old", ["client", "broker"])
def test_handshakes_below_tls_1_2_are_rejected(who_is_old: str, tmp_path: Path) -> None:
    own = self_signed_certificate(tmp_path, (NameOID.COMMON_NAME, "alice"))
    ends = {
        "broker": context_for_clients(ListenTls(**own.files), RequestedNames()).current(),
        "client": context_for_brokers(UpstreamTls(ca_file=str(own.chain), verify_hostname=False)).current(),
    }
    assert handshake_in_memory(ends["broker"], ends["client"]).version() in ("TLSv1.2", "TLSv1.3")
    old = ends[who_is_old]
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1

    with pytest.raises(ssl.SSLError):
        handshake_in_memory(ends["broker"], ends["client"])


@pytest.mark.parametrize(
    "attributes",
    [
        ((NameOID.COMMON_NAME, "alice"),),
        ((NameOID.COUNTRY_NAME, "SE"), (NameOID.ORGANIZATION_NAME, "A, B + C"), (NameOID.COMMON_NAME, "al\\ice")),
        (
            (NameOID.DOMAIN_COMPONENT, "test"),
            (NameOID.STATE_OR_PROVINCE_NAME, "x"),
            (NameOID.LOCALITY_NAME, "#1 = <best>; yes"),
            (NameOID.ORGANIZATIONAL_UNIT_NAME, " spaces "),
            (NameOID.USER_ID, 'the "one"'),
            (NameOID.COMMON_NAME, "Åsa"),
        ),
        (
            (NameOID.COUNTRY_NAME, "SE"),
            (NameOID.SERIAL_NUMBER, "556016-0680"),
            (NameOID.BUSINESS_CATEGORY, "Private Organization"),
            (NameOID.USER_ID, "etl"),
            (NameOID.COMMON_NAME, "a+b"),
            (NameOID.EMAIL_ADDRESS, "etl@example.com"),
            (NameOID.ORGANIZATION_NAME, "Å" * 60),
            (x509.ObjectIdentifier("1.3.6.1.4.1.99999.7"), "x" * 200),
        ),
    ],
)
def test_certificate_principal_equals_that_of_kafka(
    attributes: tuple[tuple[x509.ObjectIdentifier, str], ...], tmp_path: Path
) -> None:
    own = self_signed_certificate(tmp_path, *attributes)
    tls = ListenTls(**own.files, client_auth="required", client_ca_file=str(own.chain))
    client = context_for_brokers(UpstreamTls(ca_file=str(own.chain), verify_hostname=False, **own.files))

    met = handshake_in_memory(context_for_clients(tls, RequestedNames()).current(), client.current())

    assert principal_of(met) == f"User:{own.subject}"


def test_principal_joins_multi_valued_rdn_as_kafka_does(tmp_path: Path) -> None:
    pair = ((NameOID.COMMON_NAME, "etl"), (NameOID.EMAIL_ADDRESS, "etl@example.com"))
    parts = [[(NameOID.ORGANIZATION_NAME, "o")], [(NameOID.USER_ID, "7"), (NameOID.COMMON_NAME, "x")], pair]
    rdns = [x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in part]) for part in parts]
    own = certificate_with_name(tmp_path, x509.Name(rdns))
    tls = ListenTls(**own.files, client_auth="required", client_ca_file=str(own.chain))
    client = context_for_brokers(UpstreamTls(ca_file=str(own.chain), verify_hostname=False, **own.files))

    met = handshake_in_memory(context_for_clients(tls, RequestedNames()).current(), client.current())

    assert principal_of(met) == f"User:{own.subject}"


def test_certificate_names_are_common_name_and_subject_alternative_names(tmp_path: Path) -> None:
    also = (
        x509.DNSName("billing.example.com"),
        x509.RFC822Name("billing@example.com"),
        x509.UniformResourceIdentifier("spiffe://example.com/billing"),
        x509.IPAddress(IPv4Address("192.0.2.7")),
        x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "not-a-name-of-its-own")])),
    )
    own = self_signed_certificate(
        tmp_path, (NameOID.ORGANIZATION_NAME, "o"), (NameOID.COMMON_NAME, "billing"), also=also
    )
    tls = ListenTls(**own.files, client_auth="required", client_ca_file=str(own.chain))
    client = context_for_brokers(UpstreamTls(ca_file=str(own.chain), verify_hostname=False, **own.files))

    met = handshake_in_memory(context_for_clients(tls, RequestedNames()).current(), client.current())

    uri = "spiffe://example.com/billing"
    assert certificate_names(met) == ("billing", "billing.example.com", "billing@example.com", uri, "192.0.2.7")


def test_requested_server_name_is_known_after_handshake(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    names = RequestedNames()
    server = context_for_clients(ListenTls(**authority.sign("server", "broker-1.test").files), names)
    client = context_for_brokers(UpstreamTls(ca_file=str(authority.file)))

    met = handshake_in_memory(server.current(), client.current(), "broker-1.test")

    assert names.of(met) == "broker-1.test"
    assert principal_of(met) is None
    assert certificate_names(met) == ()


def test_tls_context_is_reloaded_on_file_change_and_kept_if_reload_fails(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = authority.sign("first"), authority.sign("second")
    context = context_for_clients(ListenTls(**first.files), RequestedNames())
    before = context.current()
    context.follow()
    assert context.current() is before

    first.key.write_bytes(second.key.read_bytes())  # only the key changes, which then does not match the certificate
    context.follow()
    assert context.current() is before
    first.chain.write_bytes(second.chain.read_bytes())
    context.follow()

    assert context.current() is not before
    after = context.current()
    context.follow()
    assert context.current() is after


@pytest.mark.parametrize(("name", "reason"), [("missing.pem", "No such file"), ("ca.key", "key does not match")])
def test_unusable_tls_file_error_names_the_file(name: str, reason: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, other = authority.sign("own"), authority.sign("other")
    key = tmp_path / name
    if name == "ca.key":
        key.write_bytes(other.key.read_bytes())

    with pytest.raises(BadTlsFiles, match=reason) as raised:
        context_for_clients(ListenTls(certificate_file=str(own.chain), key_file=str(key)), RequestedNames())

    assert str(key) in str(raised.value)
