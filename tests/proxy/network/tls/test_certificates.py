"""`check` and the start report flaws in certificates and keys."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from sluicegate.config.loading import config_of
from sluicegate.config.model import Config
from sluicegate.config.tls import ListenTls, UpstreamTls
from sluicegate.config.values.password import SecretText
from sluicegate.proxy.network.tls.certificates import (
    Expiry,
    OwnExpiries,
    Severity,
    all_expiries_of,
    expiries_of,
    files_for_brokers,
    files_for_clients,
    first_error,
    flaws_of,
    own_expiries,
)
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, RequestedNames, context_for_clients
from tests.broker.certificates import Authority, Certificate

NOW = datetime.now(UTC)


def flaw_levels_and_texts(tls: ListenTls, now: datetime = NOW) -> list[tuple[Severity, str]]:
    return [(flaw.level, str(flaw)) for flaw in flaws_of(files_for_clients(tls), now)]


def encrypt_key(own: Certificate, password: str) -> Path:
    key = serialization.load_pem_private_key(own.key.read_bytes(), None)
    how = serialization.BestAvailableEncryption(password.encode())
    own.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))
    return own.key


def test_valid_certificates_have_no_flaws(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.sign("own", expires=NOW + timedelta(days=400))

    assert (
        flaw_levels_and_texts(ListenTls(**own.files, client_auth="required", client_ca_file=str(authority.file))) == []
    )


@pytest.mark.parametrize(
    ("days", "level", "words"),
    [
        (-1, Severity.EXPIRED, "expired on "),
        (10.5, Severity.WARNING, "expires in 10 days, on "),
        (29.5, Severity.WARNING, "expires in 29 days, on "),
    ],
)
def test_expired_or_soon_expiring_certificate_is_reported_as_flaw(
    days: float, level: Severity, words: str, tmp_path: Path
) -> None:
    own = Authority(tmp_path).sign("own", expires=NOW + timedelta(days=days))

    ((found, said),) = flaw_levels_and_texts(ListenTls(**own.files))

    assert found is level
    assert said.startswith(f"listen.tls.certificate_file: {own.chain} {words}")


def test_certificate_not_yet_valid_is_reported_as_warning(tmp_path: Path) -> None:
    own = Authority(tmp_path).sign("own", expires=NOW + timedelta(days=400))

    ((level, said),) = flaw_levels_and_texts(ListenTls(**own.files), datetime(1990, 1, 1, tzinfo=UTC))

    assert level is Severity.WARNING
    assert "is not valid before" in said


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("chain", None, "listen.tls.certificate_file: FILE cannot be read: No such file or directory"),
        ("chain", b"", "listen.tls.certificate_file: no PEM certificate in FILE; it is empty"),
        ("chain", b"\x30\x82der", "listen.tls.certificate_file: no PEM certificate in FILE"),
        (
            "chain",
            b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "listen.tls.certificate_file: FILE contains a damaged PEM certificate",
        ),
        ("key", None, "listen.tls.key_file: FILE cannot be read: No such file or directory"),
        ("key", b"nonsense", "listen.tls.key_file: no PEM key in FILE"),
        (
            "key",
            b"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
            "listen.tls.key_file: FILE contains a damaged PEM key",
        ),
    ],
)
def test_unusable_certificate_or_key_file_is_reported_with_its_configuration_key(
    file: str, content: bytes | None, words: str, tmp_path: Path
) -> None:
    own = Authority(tmp_path).sign("own")
    path = own.chain if file == "chain" else own.key
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    tls = ListenTls(**own.files)
    expected = words.replace("FILE", str(path))

    assert first_error(files_for_clients(tls)) == expected
    with pytest.raises(BadTlsFiles) as raised:
        context_for_clients(tls, RequestedNames())
    assert str(raised.value) == expected


def test_swapped_certificate_and_key_files_are_reported(tmp_path: Path) -> None:
    own = Authority(tmp_path).sign("own")
    found = flaw_levels_and_texts(ListenTls(certificate_file=str(own.key), key_file=str(own.chain)))

    assert [said.rpartition("; ")[2] for _, said in found] == ["it contains a key", "it contains a certificate"]


def test_mismatched_key_and_unordered_chain_are_errors(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, other = authority.sign("own"), authority.sign("other")

    assert "the key does not match the first certificate" in str(
        first_error(files_for_clients(ListenTls(certificate_file=str(own.chain), key_file=str(other.key))))
    )
    own.chain.write_bytes(authority.file.read_bytes() + own.chain.read_bytes())
    assert ("but it matches certificate 2, which must be the first") in str(
        first_error(files_for_clients(ListenTls(**own.files)))
    )


def test_encrypted_key_is_reloaded_when_its_password_file_changes(tmp_path: Path) -> None:
    own = Authority(tmp_path).sign("own", expires=NOW + timedelta(days=400))
    encrypt_key(own, "old")
    password = tmp_path / "password"
    password.write_text("old\n")
    tls = ListenTls(**own.files, key_password_file=str(password))
    context = context_for_clients(tls, RequestedNames())
    before = context.current()
    assert flaw_levels_and_texts(tls) == []

    Authority(tmp_path, "second").sign("own")
    encrypt_key(own, "new")
    context.follow()
    assert context.current() is before  # the new password is not there yet
    password.write_text("new\n")
    context.follow()

    assert context.current() is not before
    assert "key_password is wrong" in str(
        first_error(files_for_clients(ListenTls(**own.files, key_password=SecretText("wrong"))))
    )
    assert "is encrypted: set key_password_file" in str(first_error(files_for_clients(ListenTls(**own.files))))
    missing = ListenTls(**own.files, key_password_file=str(tmp_path / "none"))
    assert str(first_error(files_for_clients(missing))).startswith("listen.tls.key_password_file: ")


def test_flaws_of_ca_files_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    (flaw,) = flaws_of(files_for_brokers(UpstreamTls(ca_file=str(file))), NOW)
    assert str(flaw) == f"upstream.tls.ca_file: no PEM certificate in {file}"

    expired = Authority(tmp_path).sign("old", expires=NOW - timedelta(days=1)).chain.read_bytes()
    file.write_bytes(expired + Authority(tmp_path, "new").file.read_bytes())
    ended = list(flaws_of(files_for_brokers(UpstreamTls(ca_file=str(file))), NOW))
    assert [flaw.level for flaw in ended] == [Severity.WARNING]


def test_expiry_returns_days_until_certificate_expires(tmp_path: Path) -> None:
    own = Authority(tmp_path).sign("own", expires=NOW + timedelta(days=12))
    config = config_of(
        {
            "upstream": {"bootstrap": "h:1", "tls": {"certificate_file": "none", "key_file": "none"}},
            "listen": {"bootstrap": "h:1", "tls": own.files},
        }
    )

    (expiry,) = expiries_of(config)

    assert (expiry.key, expiry.file) == ("listen.tls.certificate_file", str(own.chain))
    assert expiry.days_left(NOW) == pytest.approx(12, abs=0.01)


def test_expiry_metric_covers_chains_and_cas_of_every_section(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    own = authority.sign("own", expires=NOW + timedelta(days=12))
    both = tmp_path / "both.pem"
    both.write_bytes(authority.file.read_bytes() + other.file.read_bytes())
    many = tmp_path / "many.pem"
    many.write_bytes(authority.file.read_bytes() * 21)
    config = config_of(
        {
            "upstream": {"bootstrap": "h:1", "tls": {"ca_file": str(many)}},
            "listen": {"bootstrap": "h:1", "tls": own.files | {"client_ca_file": str(both)}},
            "registries": {"main": {"url": "https://h:1", "tls": {"ca_file": str(authority.file)}}},
        }
    )

    found = [(each.key, each.subject) for each in all_expiries_of(config)]

    assert {key for key, _ in found} == {
        "listen.tls.certificate_file",
        "listen.tls.client_ca_file",
        "registries.main.tls.ca_file",
    }
    assert len(set(found)) == len(found)


def config_with(folder: Path, section: str, expires: datetime) -> tuple[Config, str]:
    """Return a configuration with a certificate in one section, and the certificate's file."""
    own = Authority(folder).sign("own", expires=expires)
    sections: dict[str, Any] = {"upstream": {"bootstrap": "h:1"}, "listen": {"bootstrap": "h:1"}}
    if section == "registries.main":
        sections["registries"] = {"main": {"url": "https://h:1", "tls": own.files}}
    else:
        sections[section]["tls"] = own.files
    return config_of(sections), str(own.chain)


@pytest.mark.parametrize("section", ["listen", "upstream", "registries.main"])
def test_certificate_expires_soon_within_fourteen_days_of_expiry(tmp_path: Path, section: str) -> None:
    ends = datetime(2030, 6, 15, 12, tzinfo=UTC)
    config, file = config_with(tmp_path, section, ends)
    key = f"{section}.tls.certificate_file"

    assert own_expiries(config, ends - timedelta(days=14, seconds=1)) == OwnExpiries(None, {})
    said = f"{key}: {file} expires on 2030-06-15 12:00 UTC: renew it"
    assert own_expiries(config, ends - timedelta(days=14)) == OwnExpiries(None, {key: said})
    ended = said.replace(" expires on ", " expired on ")
    is_for_clients = section == "listen"
    assert own_expiries(config, ends) == OwnExpiries(
        ended if is_for_clients else None, {} if is_for_clients else {key: ended}
    )


def test_seven_day_certificate_expires_soon_in_last_fifth_of_its_validity() -> None:
    begins = datetime(2030, 6, 1, tzinfo=UTC)
    week = Expiry("listen.tls.certificate_file", "own.crt", begins + timedelta(days=7), "CN=own", begins)

    assert not week.expires_soon(begins + timedelta(days=5))  # cert-manager renews it after two thirds
    assert week.expires_soon(begins + timedelta(days=6))
