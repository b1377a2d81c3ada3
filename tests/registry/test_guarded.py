"""A real registry behind TLS and a login accepts logins, and each rejection has its message."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load, read_section
from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.http import RegistryFailed
from sluicegate.proxy.registry.registries import Registries, http_of
from sluicegate.proxy.reload.config_check import flaws_in
from sluicegate.validation.rules.rule import Outage, StepBudget
from tests.broker.certificates import Authority, Certificate
from tests.broker.eventually import eventually
from tests.broker.proxy_process import COMMAND
from tests.pipeline.bearers import CLIENT, token_endpoint
from tests.pipeline.bearers import SECRET as CLIENT_SECRET
from tests.registry.apicurio import Apicurio
from tests.registry.relay import guarding_relay, server_context

SECRET = "swordfish"


@pytest.fixture(scope="module")
def known_schema_id(apicurio: Apicurio) -> int:
    """Return the id of a registered schema."""
    return apicurio.register("guarded-value", '"long"')


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.sign("registry")


def look_up_result(url: str, schema_id: int, **keys: Any) -> str:
    """Look a schema up with these keys of the section `registries`; return "found" or the text of the outage."""
    section = read_section(Registry, {"url": f"{url}/apis/ccompat/v7", **keys})
    registry = Registries().by_name({"main": section})["main"]
    with closing(registry):
        try:
            assert registry.schema(schema_id).content.fault(b"\x02", StepBudget()) is None
            assert registry.is_registered_under(schema_id, "guarded-value")
        except Outage as outage:
            assert SECRET not in str(outage)
            return str(outage)
        return "found"


def test_accepts_registry_certificate_of_a_configured_ca(
    apicurio: Apicurio, known_schema_id: int, authority: Authority, certificate: Certificate
) -> None:
    with guarding_relay(apicurio.port, None, server_context(certificate)) as there:
        assert look_up_result(there.url, known_schema_id, tls={"ca_file": str(authority.file)}) == "found"


def test_each_registry_certificate_error_has_a_distinct_message(
    apicurio: Apicurio, known_schema_id: int, authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    trusted = {"ca_file": str(authority.file)}
    with guarding_relay(apicurio.port, None, server_context(certificate)) as there:
        stranger = Authority(tmp_path, "stranger")
        for tls in ({"ca_file": str(stranger.file)}, None):
            said = look_up_result(there.url, known_schema_id, tls=tls)
            assert "the certificate is not accepted: unable to get local issuer certificate" in said
            assert "name its CA in tls.ca_file" in said
        assert "the server closed the connection without a response" in look_up_result(
            there.url.replace("https", "http"), known_schema_id
        )
    other = authority.sign("elsewhere", "registry.internal")
    with guarding_relay(apicurio.port, None, server_context(other)) as there:
        said = look_up_result(there.url, known_schema_id, tls=trusted)
        assert "IP address mismatch, certificate is not valid for '127.0.0.1'" in said
        said = look_up_result(there.url.replace("127.0.0.1", "localhost"), known_schema_id, tls=trusted)
        assert "Hostname mismatch, certificate is not valid for 'localhost'" in said
    old = authority.sign("old", expires=datetime.now(UTC) - timedelta(days=1))
    with guarding_relay(apicurio.port, None, server_context(old)) as there:
        assert "the certificate is not accepted: certificate has expired" in look_up_result(
            there.url, known_schema_id, tls=trusted
        )
    assert "the server does not use TLS: write http: in the url" in look_up_result(
        f"https://127.0.0.1:{apicurio.port}", known_schema_id, tls=trusted
    )


def encrypt_key(certificate: Certificate, file: Path) -> str:
    """Write the certificate's key with a password and return the file name."""
    key = serialization.load_pem_private_key(certificate.key.read_bytes(), None)
    under = serialization.BestAvailableEncryption(SECRET.encode())
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, under))
    return str(file)


def test_sends_client_certificate_to_registry_that_requires_it(
    apicurio: Apicurio, known_schema_id: int, authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    own, strangers = authority.sign("sluicegate"), Authority(tmp_path, "strangers").sign("nobody")
    trusted = {"ca_file": str(authority.file)}
    with guarding_relay(apicurio.port, None, server_context(certificate, authority)) as there:
        assert look_up_result(there.url, known_schema_id, tls=trusted | own.files) == "found"
        key = {"key_file": encrypt_key(own, tmp_path / "own.key"), "key_password": SECRET}
        assert look_up_result(there.url, known_schema_id, tls=trusted | own.files | key) == "found"
        # The error depends on whether the server's alert arrives before the connection ends.
        closed = (
            "the server closed the TLS connection: it may require another client certificate",
            "the server closed the connection without a response",
        )
        said = look_up_result(there.url, known_schema_id, tls=trusted)
        assert any(words in said for words in ("requires a certificate", *closed)), said
        said = look_up_result(there.url, known_schema_id, tls=trusted | strangers.files)
        assert any(words in said for words in ("the peer does not trust the CA of our certificate", *closed)), said


def test_uses_renewed_certificate_and_new_ca_without_a_restart(
    apicurio: Apicurio, known_schema_id: int, authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Authority(tmp_path, "before").file.read_bytes())
    with guarding_relay(apicurio.port, None, server_context(certificate)) as there:
        section = read_section(Registry, {"url": f"{there.url}/apis/ccompat/v7", "tls": {"ca_file": str(trusted)}})
        now = [100.0]
        registry = Registries(now=lambda: now[0]).by_name({"main": section})["main"]
        with closing(registry):
            with pytest.raises(Outage, match="not accepted"):
                registry.schema(known_schema_id)
            trusted.write_bytes(authority.file.read_bytes())
            now[0] += 2

            def is_found() -> bool:
                with suppress(Outage):
                    return registry.schema(known_schema_id).content.fault(b"\x02", StepBudget()) is None
                return False

            eventually(is_found)


def test_rejected_registry_login_error_does_not_reveal_the_password(
    apicurio: Apicurio, known_schema_id: int, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    with guarding_relay(apicurio.port, f"me:{SECRET}") as there:
        assert look_up_result(there.url, known_schema_id, username="me", password_file=str(file)) == "found"
        assert look_up_result(there.url, known_schema_id, username="me", password=SECRET) == "found"
        assert "the registry requires a login (HTTP 401): set username, token_file or oauth" in look_up_result(
            there.url, known_schema_id
        )
        assert "the registry rejects the login (HTTP 401)" in look_up_result(
            there.url, known_schema_id, username="you", password_file=str(file)
        )


def test_a_bearer_token_is_read_from_its_file_for_each_request(
    apicurio: Apicurio, known_schema_id: int, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("a.token\n")
    valid = ["a.token"]
    with guarding_relay(apicurio.port, lambda: valid[0]) as there:
        assert look_up_result(there.url, known_schema_id, token_file=str(file)) == "found"
        assert look_up_result(there.url, known_schema_id, token="a.token") == "found"
        valid[0] = "another"
        assert "the registry rejects the login (HTTP 401): check token_file" in look_up_result(
            there.url, known_schema_id, token_file=str(file)
        )
        file.write_text("another")
        assert look_up_result(there.url, known_schema_id, token_file=str(file)) == "found"
        file.write_text("not\na token")
        assert "registries.main.token_file has no valid token" in look_up_result(
            there.url, known_schema_id, token_file=str(file)
        )


def test_oauth_tokens_for_the_registry_are_used_and_renewed(
    apicurio: Apicurio, known_schema_id: int, authority: Authority, certificate: Certificate
) -> None:
    with token_endpoint(certificate) as issuer, guarding_relay(apicurio.port, lambda: issuer.given[-1]) as there:
        oauth = {
            "token_url": issuer.url,
            "client_id": CLIENT,
            "client_secret": CLIENT_SECRET,
            "tls": {"ca_file": str(authority.file)},
        }
        assert look_up_result(there.url, known_schema_id, oauth=oauth) == "found"
        assert len(issuer.given) == 1  # one token for all requests
        section = read_section(Registry, {"url": f"{there.url}/apis/ccompat/v7", "oauth": oauth})
        http = http_of("main", section)
        with closing(http):
            http.get("/subjects")
            issuer.given.append("the one before is revoked")
            with pytest.raises(RegistryFailed, match="the registry rejects the login"):
                http.get("/subjects")
            assert http.get("/subjects").status == 200
        said = look_up_result(there.url, known_schema_id, oauth=oauth | {"client_secret": SECRET})
        assert f"token endpoint {issuer.url}: the endpoint grants no token (HTTP 401, invalid_client)" in said


def test_check_reports_errors_in_registry_credential_files(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    old = authority.sign("past", expires=datetime.now(UTC) - timedelta(days=1))
    locked = encrypt_key(certificate, tmp_path / "locked.key")
    other = authority.sign("another")
    cases: dict[str, dict[str, str]] = {
        "ca_file: /nowhere.pem cannot be read: No such file or directory": {"ca_file": "/nowhere.pem"},
        "key_file: " + locked + " is encrypted: set key_password_file": certificate.files | {"key_file": locked},
        "cannot be decrypted": certificate.files | {"key_file": locked, "key_password": "perch"},
        "the key does not match the first certificate": certificate.files | {"key_file": str(other.key)},
        "past.crt expired on": old.files,
    }
    for words, tls in cases.items():
        text = {
            "upstream": {"bootstrap": ["kafka:9092"]},
            "listen": {"bootstrap": "127.0.0.1:9292"},
            "registries": {"main": {"url": "https://registry:8081", "tls": tls}},
        }
        found = [str(each) for each in flaws_in(load(read_yaml(yaml.safe_dump(text), "x.yaml"), {}).config)]
        assert [each for each in found if each.startswith("registries.main.tls.") and words in each], (words, found)
        assert "perch" not in str(found)


@pytest.fixture
def configured_file(apicurio: Apicurio, tmp_path: Path) -> Iterator[Path]:
    """Yield a configuration with a login that the registry rejects."""
    with guarding_relay(apicurio.port, "me:another") as there:
        file = tmp_path / "sluicegate.yaml"
        file.write_text(
            yaml.safe_dump(
                {
                    "upstream": {"bootstrap": ["kafka:9092"]},
                    "listen": {"bootstrap": "127.0.0.1:9292"},
                    "topics": [
                        {"match": "orders", "rules": [{"name": "b", "value": {"schema": {"registry": "main"}}}]}
                    ],
                    "registries": {"main": {"url": there.url, "username": "me", "password": SECRET}},
                }
            )
        )
        yield file


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["explain", "FILE", "orders"],
        ["try", "FILE", "--topic", "orders", "--value-file", "VALUE"],
    ],
    ids=lambda each: each[0],
)
def test_no_command_reveals_the_registry_password(configured_file: Path, command: list[str]) -> None:
    value = configured_file.with_name("value")
    value.write_bytes(b"\0\0\0\0\x07\x02")
    given = [{"FILE": str(configured_file), "VALUE": str(value)}.get(each, each) for each in command]
    if command[0] == "check":
        given += ["--config", str(configured_file)]
    done = subprocess.run([COMMAND, *given], capture_output=True, text=True, check=False, timeout=120)
    assert SECRET not in done.stdout + done.stderr
    if command[0] == "try":
        assert "the registry rejects the login (HTTP 401)" in done.stdout + done.stderr
    else:
        assert done.returncode == 0, done.stderr
