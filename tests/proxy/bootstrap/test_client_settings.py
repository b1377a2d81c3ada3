"""How to come into a cluster, out of what clients are configured with: librdkafka's names and Java's."""

from pathlib import Path

import pytest

from sluicegate.proxy.bootstrap.client_settings import UnusableClientSettings, upstream_from


def read(folder: Path, text: str) -> dict[str, object]:
    file = folder / "client.properties"
    file.write_text(text)
    return upstream_from(file)


def test_librdkafkas_names(tmp_path: Path) -> None:
    told = read(
        tmp_path,
        "# mine\nsecurity.protocol=sasl_ssl\nsasl.mechanisms = SCRAM-SHA-512\nsasl.username=me\nsasl.password=a=b#c\n"
        "ssl.ca.location=/ca.pem\nacks=all\n",
    )

    assert told == {
        "tls": {"ca_file": "/ca.pem"},
        "sasl": {"mechanism": "SCRAM-SHA-512", "username": "me", "password": "a=b#c"},
    }


def test_javas_names(tmp_path: Path) -> None:
    told = read(
        tmp_path,
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\n"
        "ssl.endpoint.identification.algorithm=\n"
        'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n username="me" '
        'password="it is; mine";\n',
    )

    assert told == {
        "tls": {"ca_file": "/ca.pem", "verify_hostname": "false"},
        "sasl": {"mechanism": "PLAIN", "username": "me", "password": "it is; mine"},
    }


def test_mutual_tls_from_one_pem_with_both(tmp_path: Path) -> None:
    told = read(tmp_path, "security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location=/both.pem\n")

    assert told == {"tls": {"certificate_file": "/both.pem", "key_file": "/both.pem"}}


def test_nothing_in_it_is_plaintext(tmp_path: Path) -> None:
    assert read(tmp_path, "bootstrap.servers=h:9092\n") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("security.protocol=TLS", "security.protocol must be one of"),
        ("security.protocol=SSL\nssl.truststore.location=/a.jks", "not a PEM file"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "the proxy's own login supports PLAIN"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password=secret", "sasl.username and sasl.password"),
    ],
)
def test_what_cannot_be_used_is_named_without_its_value(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UnusableClientSettings, match=words) as raised:
        read(tmp_path, text)

    assert "secret" not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnusableClientSettings, match="No such file"):
        upstream_from(tmp_path / "none")
