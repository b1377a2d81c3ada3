"""The connection to a cluster is derived from the settings of clients, with librdkafka's and Java's names."""

import time
from pathlib import Path

import pytest

from sluicegate.proxy.bootstrap.client_settings import UnusableClientSettings, upstream_from


def read(folder: Path, text: str) -> dict[str, object]:
    file = folder / "client.properties"
    file.write_text(text)
    return upstream_from(file)


def test_reads_librdkafka_properties(tmp_path: Path) -> None:
    told = read(
        tmp_path,
        "# mine\nsecurity.protocol=sasl_ssl\nsasl.mechanisms = SCRAM-SHA-512\nsasl.username=me\nsasl.password=a=b#c\n"
        "ssl.ca.location=/ca.pem\nacks=all\n",
    )

    assert told == {
        "tls": {"ca_file": "/ca.pem"},
        "sasl": {"mechanism": "SCRAM-SHA-512", "username": "me", "password": "a=b#c"},
    }


def test_reads_java_client_properties(tmp_path: Path) -> None:
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


SSL = "security.protocol=SASL_SSL\n"
OAUTH = SSL + "sasl.mechanism=OAUTHBEARER\n"
URL = "sasl.oauthbearer.token.endpoint.url"
MODULE = "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "


@pytest.mark.parametrize(
    ("text", "sasl"),
    [
        (
            f"sasl.oauthbearer.method=OIDC\nsasl.oauthbearer.client.id=me\nsasl.oauthbearer.client.secret=s=#1\n{URL}="
            "HTTPS://login/token\nsasl.oauthbearer.scope=a b\nsasl.oauthbearer.extensions=pool=a, cluster=lkc-1\n"
            "https.ca.location=/login.pem\n",
            {
                "oauth": {
                    "token_url": "HTTPS://login/token",
                    "client_id": "me",
                    "client_secret": "s=#1",
                    "scope": "a b",
                    "tls": {"ca_file": "/login.pem"},
                },
                "extensions": {"pool": "a", "cluster": "lkc-1"},
            },
        ),
        (
            f"{URL}=https://login/token\nsasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer."
            f'secured.OAuthBearerLoginCallbackHandler\n{MODULE}\\\n  clientId=me clientSecret="it is scope=mine;" \\\n'
            "  extension_pool='a' ssl.truststore.type=PEM ssl.truststore.location=\"/login.pem\";\n",
            {
                "oauth": {
                    "token_url": "https://login/token",
                    "client_id": "me",
                    "client_secret": "it is scope=mine;",
                    "tls": {"ca_file": "/login.pem"},
                },
                "extensions": {"pool": "a"},
            },
        ),
        (
            f"{URL}=http://login/token\nsasl.oauthbearer.client.credentials.client.id=me\nsasl.oauthbearer.client."
            "credentials.client.secret=s\nsasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security."
            "oauthbearer.ClientCredentialsJwtRetriever\nhttps.ca.location=probe\n",
            {"oauth": {"token_url": "http://login/token", "client_id": "me", "client_secret": "s"}},
        ),
        (f"{URL}=file:///var/run/a%20token\n{MODULE};\n", {"token_file": "/var/run/a token"}),
    ],
    ids=["librdkafka", "java", "java-4.1", "java-token-file"],
)
def test_reads_oauthbearer_properties_of_librdkafka_and_java(
    tmp_path: Path, text: str, sasl: dict[str, object]
) -> None:
    assert read(tmp_path, OAUTH + text)["sasl"] == {"mechanism": "OAUTHBEARER", **sasl}


def test_a_pem_keystore_is_used_as_certificate_and_key(tmp_path: Path) -> None:
    told = read(tmp_path, "security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location=/both.pem\n")

    assert told == {"tls": {"certificate_file": "/both.pem", "key_file": "/both.pem"}}


def test_properties_without_security_settings_mean_plaintext(tmp_path: Path) -> None:
    assert read(tmp_path, "bootstrap.servers=h:9092\n") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("security.protocol=TLS", "security.protocol must be one of"),
        ("security.protocol=SSL\nssl.truststore.location=/a.jks", "not a PEM file"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM", "the proxy's own login supports PLAIN"),
        (OAUTH, f"{URL} is required: .* not tokens that a client makes without a signature"),
        (f"{OAUTH}sasl.oauthbearer.method=default", "sasl.oauthbearer.method: .* only take over oidc"),
        (f"{OAUTH}{MODULE}unsecuredLoginStringClaim_sub=planted;", "with unsecuredLogin… options cannot be taken over"),
        (f"{OAUTH}sasl.oauthbearer.config=principal=planted", "sasl.oauthbearer.config cannot be taken over"),
        (
            f"{OAUTH}sasl.login.callback.handler.class=com.planted.Handler",
            r"sasl.login.callback.handler.class: .* only take over org.apache.kafka\S*CallbackHandler or",
        ),
        (
            f"{OAUTH}sasl.oauthbearer.grant.type=urn:ietf:params:oauth:grant-type:jwt-bearer",
            "grant.type: .* only take over client_credentials",
        ),
        (f"{OAUTH}sasl.oauthbearer.assertion.private.key.pem=planted", "assertion.\\* cannot be taken over"),
        (f"{OAUTH}https.ca.pem=planted\n{URL}=https://login/token", "https.ca.pem cannot be taken over"),
        (f"{OAUTH}{URL}=https://me:planted@login/token", "token.endpoint.url: expected a URL without a user"),
        (f"{OAUTH}{URL}=file://[planted/token", "expected the file with the token as file:///absolute/path"),
        (f"{OAUTH}{URL}=file://planted/token", "expected the file with the token as file:///absolute/path"),
        (
            f"{OAUTH}{URL}=https://login/token\n{MODULE}clientId=me;",
            "client.id and .* are required, or sasl.jaas.config",
        ),
        (
            f'{OAUTH}{MODULE}clientSecret="planted scope=1;',
            r"line 3: sasl.jaas.config does not end with a semicolon, or a quotation mark is not closed",
        ),
        (f"{OAUTH}{URL}=https://login/t\nsasl.oauthbearer.extensions=planted", "extensions: expected name=value"),
        (
            f"{OAUTH}{URL}=https://login/t\n{MODULE}clientId=me clientSecret=planted ssl.keystore.location=a.jks;",
            "ssl.keystore.location is not a PEM file",
        ),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password=planted", "sasl.username and sasl.password"),
    ],
)
def test_unusable_settings_are_named_without_their_values(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UnusableClientSettings, match=words) as raised:
        read(tmp_path, text)

    assert "planted" not in str(raised.value)


@pytest.mark.parametrize("text", ["a" * 1_000_000, "a =" * 300_000, "a= " * 300_000, " " * 1_000_000, "a='" * 300_000])
def test_long_login_module_is_parsed_quickly(tmp_path: Path, text: str) -> None:
    began = time.process_time()

    with pytest.raises(UnusableClientSettings):
        read(tmp_path, f"{OAUTH}{MODULE}{text}")

    assert time.process_time() - began < 5


def test_a_missing_settings_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnusableClientSettings, match="No such file"):
        upstream_from(tmp_path / "none")
