"""The names that a certificate covers are recognized. OpenSSL, through Python's ssl, shows which names a client
accepts."""

import ssl
from pathlib import Path

import pytest
from cryptography.x509 import load_pem_x509_certificate

from sluicegate.proxy.doctor.certificate_names import check, covers
from sluicegate.proxy.doctor.check_result import Level
from tests.broker.certificates import Authority
from tests.config.reading import load_text

NAMES = {
    "plain": ("kafka.example.com",),
    "wildcard": ("*.kafka.example.com", "kafka.example.com"),
    "address": ("127.0.0.1", "::1"),
    "several": ("broker-1.test", "BROKER-2.test", "10.0.0.1"),
}
HOSTS = [
    "kafka.example.com",
    "KAFKA.example.com",
    "broker-1.kafka.example.com",
    "a.b.kafka.example.com",
    "example.com",
    "broker-1.test",
    "broker-2.test",
    "127.0.0.1",
    "127.0.0.2",
    "::1",
    "10.0.0.1",
    "localhost",
]


def is_accepted(authority: Authority, chain: Path, key: Path, host: str) -> bool:
    """Return whether a TLS client that connects to `host` accepts the certificate."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=authority.file)
    server.load_cert_chain(chain, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLCertVerificationError:
            return False
    return True


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_certificate_covers_exactly_names_that_clients_accept(names: tuple[str, ...], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = authority.sign("proxy", *names)
    certificate = load_pem_x509_certificate(made.chain.read_bytes())

    covered = {host: covers(certificate, host) for host in HOSTS}

    assert covered == {host: is_accepted(authority, made.chain, made.key, host) for host in HOSTS}


def results_for_brokers(listen: str, brokers: list[int], tmp_path: Path, *names: str) -> list[tuple[Level, str]]:
    own = Authority(tmp_path).sign("proxy", *names).files
    tls = f"{{certificate_file: '{own['certificate_file']}', key_file: '{own['key_file']}'}}"
    text = f"upstream: {{bootstrap: ['h:1']}}\nlisten: {{bootstrap: '127.0.0.1:2', tls: {tls}, {listen}}}\n"
    return [(result.level, result.found) for result in check(load_text(text).config, brokers)]


def test_an_advertised_host_that_the_certificate_lacks_is_a_failure(tmp_path: Path) -> None:
    ((level, message),) = results_for_brokers("advertised_host: kafka.test", [1], tmp_path, "localhost")

    assert level is Level.FAILURE
    assert message == "does not cover kafka.test (listen.advertised_host); names in the certificate: localhost"


def test_each_brokers_name_must_be_covered(tmp_path: Path) -> None:
    host = "broker_host: 'broker-{node_id}.test', advertised_host: kafka.test"

    missing = results_for_brokers(host, [1, 2, 3], tmp_path, "kafka.test", "broker-2.test")
    covered = results_for_brokers(
        host, [1, 2, 3], tmp_path, "kafka.test", "broker-1.test", "broker-2.test", "broker-3.test"
    )
    unknown = results_for_brokers(host, [], tmp_path, "kafka.test")

    assert [level for level, _ in missing] == [Level.OK, Level.FAILURE]
    assert "does not cover broker-1.test, broker-3.test (listen.broker_host)" in missing[1][1]
    assert [level for level, _ in covered] == [Level.OK, Level.OK]
    assert [level for level, _ in unknown] == [Level.OK, Level.NOT_CHECKED]
