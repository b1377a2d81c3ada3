"""Secrets are used exactly as written, may come from files that change, and appear in no message."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import ConfigError, load
from sluicegate.config.values.password import Password, PasswordUnreadable
from tests.config.reading import SMALLEST, load_text, problems_of_text

LOGIN = (
    "upstream:\n  bootstrap: ['h:1']\n  sasl:\n    mechanism: PLAIN\n    username: u\n    {}\n"
    "listen: {{bootstrap: '127.0.0.1:2'}}\n"
)
SECRET = "S3CRET"


@given(st.text(min_size=1).filter(lambda text: "\0" not in text and text.encode(errors="ignore").decode() == text))
@example("abc #def")
@example("0123456")
@example("2026-13-45")
@example("2026-01-01")
@example("{s3cret}")
@example("!vault")
@example("*x")
@example("null")
@example("true")
@example("1:30")
@example(" a ")
@example("[")
def test_a_password_from_the_environment_stays_unchanged(password: str) -> None:
    found = load(read_yaml(LOGIN.format("password: x"), "c"), {"SLUICEGATE__UPSTREAM__SASL__PASSWORD": password})

    assert found.config.upstream.sasl is not None
    assert found.config.upstream.sasl.current_password.get() == password


@pytest.mark.parametrize("password", ["0123456", "2026-13-45", "2026-01-01", "true", "1:30", "1e3", ".inf", "12_3"])
def test_an_unquoted_password_in_a_file_stays_unchanged(password: str) -> None:
    sasl = load_text(LOGIN.format(f"password: {password}")).config.upstream.sasl

    assert sasl is not None
    assert sasl.current_password.get() == password


@pytest.mark.parametrize(
    "line",
    [
        f"password: {{{SECRET}}}",
        f"password: [{SECRET}]",
        f"password: {{a: {SECRET}}}",
        f"password: *{SECRET}",
        f"password: &{SECRET}",
        f"password: !{SECRET}",
        f"password: !{SECRET}!x",
        f"password: !<{SECRET}> x",
        f"password: %{SECRET}",
        f"password: @{SECRET}",
        f'password: "{SECRET}',
        f'password: "\\{SECRET}"',
        f"password: |{SECRET}",
        f"password: a: {SECRET}",
        f"password: &{SECRET} x\n    username: &{SECRET} y",
        f"password: {{{{ {SECRET} }}}}",
        f"pasword: {SECRET}",
        f"password: {SECRET}\n    password: {SECRET}2",
        f"password: {SECRET}\n    password_file: f",
        f"password: {SECRET}\n    mechanism: x",
        f'password: "{SECRET}\\0"',
        f'password: "{SECRET}\\ud800"',
        f"password: {SECRET}\n    x: 1",
    ],
)
def test_configuration_file_errors_do_not_reveal_secrets(line: str) -> None:
    said = problems_of_text(LOGIN.format(line))

    assert said
    assert SECRET not in " ".join(said)


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        (f"sasl: {SECRET}", {}),
        (f"sasl: [{SECRET}]", {}),
        (f"tls: {SECRET}", {}),
        (f"tls: {{certificate_file: c, key_file: k, key_password: [{SECRET}]}}", {}),
        (f"tls: {{key_pasword: {SECRET}}}", {}),
        ("", {"SASL": SECRET}),
        ("", {"SASL": f"{{{SECRET}}}"}),
        ("", {"SASL": f"{{password: {SECRET}, mechanism: PLAIN"}),
        ("", {"SASL": f"{{password: {SECRET}}}"}),
        ("", {"SASL__PASSWORD": f"{SECRET}\0"}),
        ("", {"SASL__PASSWORD": SECRET}),
        ("", {"SASL__PASWORD": SECRET}),
        ("", {"SASL__PASSWORD__X": SECRET}),
        ("", {"TLS__KEY_PASSWORD": SECRET, "TLS__CERTIFICATE_FILE": "c"}),
        (f"brokers: {{1: 'SASL://u:{SECRET}@h:1'}}", {}),
    ],
)
def test_section_and_environment_errors_do_not_reveal_secrets(text: str, environment: dict[str, str]) -> None:
    source = f"upstream:\n  bootstrap: h:1\n  {text}\nlisten: {{bootstrap: '127.0.0.1:2'}}\n"
    said = problems_of_text(source, **{f"SLUICEGATE__UPSTREAM__{name}": value for name, value in environment.items()})

    assert said
    assert SECRET not in " ".join(said)


def test_address_errors_do_not_reveal_credentials() -> None:
    (problem,) = problems_of_text(SMALLEST, SLUICEGATE__UPSTREAM__BOOTSTRAP=f"SASL_SSL://user:{SECRET}@host:9092")

    assert SECRET not in problem
    assert "upstream.sasl" in problem


def test_repr_of_a_loaded_configuration_does_not_reveal_secrets() -> None:
    found = load_text(LOGIN.format(f"password: {SECRET}"))

    assert SECRET not in repr(found) + str(found.config) + repr(found.source)


def test_password_file_is_reread_each_time_without_its_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" old one\n")
    sasl = load_text(LOGIN.format(f"password_file: {file}")).config.upstream.sasl
    assert sasl is not None
    assert sasl.current_password.get() == " old one"

    file.write_bytes("né #1\r\n".encode())

    assert sasl.current_password.get() == "né #1"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"a\0b", "does not contain a password"),
        (b"a" * 100_000, "does not contain a password"),
    ],
)
def test_unusable_password_file_is_reported_with_key_and_path(
    content: bytes | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(PasswordUnreadable) as raised:
        Password("upstream.sasl.password_file", None, str(file)).get()

    assert str(raised.value) == f"upstream.sasl.password_file: {file} {reason}"


@pytest.mark.parametrize(
    "tls", ["upstream: {bootstrap: h:1, tls: {X}}\nlisten: {bootstrap: '127.0.0.1:2'}", SMALLEST[:-2] + ", tls: {X}}"]
)
def test_tls_key_password_can_be_read_from_a_file(tls: str) -> None:
    files = "certificate_file: c, key_file: k, key_password_file: p"
    config = load_text(tls.replace("X", files)).config
    section = config.upstream.tls or config.listen.tls

    assert section is not None
    assert section.password_of_key.file == "p"
    with pytest.raises(ConfigError, match="key_password and key_password_file cannot be combined"):
        load_text(tls.replace("X", files + ", key_password: x"))


def test_login_requires_either_password_or_password_file() -> None:
    (neither,) = problems_of_text(LOGIN.format(""))
    (both,) = problems_of_text(LOGIN.format("password: x\n    password_file: y"))

    assert "password or password_file is required" in neither
    assert "password and password_file cannot be combined" in both
