"""Every mistake at a terminal has a message of a few lines and never a traceback."""

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluicegate.proxy.cli.commands import app
from tests.broker.certificates import Authority
from tests.broker.proxy_process import COMMAND

MINIMAL = "upstream: {bootstrap: 'h:1'}\nlisten: {bootstrap: '127.0.0.1:19092'}\n"


def sluicegate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, because a new process spends a second on imports."""
    done = CliRunner(env=dict.fromkeys(name for name in os.environ if name.startswith("SLUICEGATE__"))).invoke(
        app, arguments
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def sluicegate_process(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the console script in a process, for `run` and for everything that depends on a terminal or on Python's
    start."""
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("SLUICEGATE__")} | environment,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.yaml"


def test_python_m_sluicegate_runs_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sluicegate", "version"], capture_output=True, text=True, check=True)

    assert done.stdout == sluicegate_process("version").stdout


@pytest.mark.long
def test_version_and_help_have_short_and_long_options() -> None:
    assert sluicegate("--version").stdout == sluicegate("version").stdout
    assert sluicegate("--version").stdout.startswith("sluicegate ")
    others = ("demo", "version", "healthcheck", "doctor", "bootstrap", "top", "who")
    commands = ("run", "check", "explain", "try", "test", "schema", *others)
    for command in ((), *((name,) for name in commands)):
        short, long = sluicegate(*command, "-h"), sluicegate(*command, "--help")
        assert (short.returncode, short.stdout) == (0, long.stdout)


@pytest.mark.long
def test_check_accepts_its_file_as_argument_or_option_and_requires_one(file: Path) -> None:
    file.write_text(MINIMAL)

    for arguments in ((str(file),), ("--config", str(file))):
        done = sluicegate("check", *arguments)
        assert (done.returncode, done.stdout) == (0, f"{file}: ok\n")
    assert "specify the file to check" in sluicegate("check").stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "content",
    [
        b"upstream: {bootstrap: {{ .Values.x }}}",
        b"<<: *anchor",
        b"a: !vault x",
        b"topics: [{match: 2026-13-45}]",
        b"\0",
        b"\xff",
        b'topics: [{match: "\\ud800"}]',
        b"[" * 5000,
        b"",
        None,
    ],
)
def test_commands_report_an_unusable_file_in_a_few_lines(content: bytes | None, file: Path) -> None:
    if content is not None:
        file.write_bytes(content)

    for arguments in (("check", str(file)), ("run", "--config", str(file))):
        done = sluicegate_process(*arguments)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith(str(file))
        assert len(done.stderr.splitlines()) <= 4


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_file_names_that_are_not_printable_are_escaped(locale: str, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\x1b[31m.yaml"
    Path(os.fsdecode(name)).write_text(MINIMAL)

    done = sluicegate_process("check", name, LC_ALL=locale, PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert sluicegate_process("check", name + b"x", "--topic", b"\xff").returncode == 1


@pytest.mark.long
def test_invalid_options_of_run_are_errors_that_name_them() -> None:
    done = sluicegate_process("run", "--upstream", "PLAINTEXT://h:1", "--listen", "x")

    assert done.stderr.splitlines() == [
        "--upstream: upstream.bootstrap[0]: leave out PLAINTEXT://; for TLS use upstream.tls",
        "--listen: listen.bootstrap: expected host:port with a port of 0 to 65535, found 'x'",
    ]
    assert sluicegate_process("run").stderr.splitlines()[-1].startswith("specify --config FILE, or --upstream")


@pytest.mark.long
def test_check_examines_the_certificates_that_the_configuration_names(file: Path, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = Authority(tmp_path)
    expired, soon = (authority.sign(n, expires=now + timedelta(days=d)) for n, d in (("expired", -1), ("soon", 5)))
    tls = MINIMAL.replace("19092'", "19092', tls: {certificate_file: CHAIN, key_file: KEY}").replace("}}", "}\n}")
    file.write_text(tls.replace("CHAIN", str(expired.chain)).replace("KEY", str(expired.key)))
    done = sluicegate("check", str(file))
    assert done.returncode == 1
    assert done.stderr.startswith(f"{file}:2: listen.tls.certificate_file: {expired.chain} expired on ")

    file.write_text(tls.replace("CHAIN", str(soon.chain)).replace("KEY", str(soon.key)))
    done = sluicegate("check", str(file))
    assert done.returncode == 0
    assert done.stdout.startswith(f"warning: {file}:2: listen.tls.certificate_file: {soon.chain} expires in ")
    strict = sluicegate("check", str(file), "--strict")
    assert (strict.returncode, strict.stderr) == (1, f"{file}: 1 warning (--strict)\n")


def test_check_strict_accepts_a_configuration_without_warnings(file: Path) -> None:
    file.write_text(MINIMAL)

    assert sluicegate("check", str(file), "--strict").returncode == 0


def test_run_logs_warnings_in_the_configured_format(file: Path) -> None:
    """The proxy ends at a port in use, after its first log lines."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file.write_text(
            "upstream: {bootstrap: ['h:1']}\nlog: {format: json}\n"
            f"listen: {{bootstrap: '127.0.0.1:{taken.getsockname()[1]}'}}\n"
            "defaults: {mode: observe, fix: {timestamp: now}}\n"
        )
        done = sluicegate_process("run", "--config", str(file))

    line = json.loads(done.stderr.splitlines()[0])
    assert (line["event"], line["level"]) == ("configuration warning", "warning")
    assert line["warning"].startswith(f"{file}:4: defaults.fix is never applied")


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("nonsense(value)", "line 1, column 9: undeclared reference to 'nonsense'"),
        ("valeu.amount > 0", "line 1, column 6: undeclared reference to 'valeu.amount'; there are client, headers"),
        ("size(value.items)", "the expression returns int instead of true or false"),
        ("value.amount >", "line 1, column 15: Syntax error"),
        ("timestamp > 'a'", "line 1, column 11: found no matching overload"),
        ("client.user == 'a'", "client has no user; it has id, software, version, principal, address"),
    ],
)
def test_check_names_the_line_of_an_invalid_expression(expression: str, wrong: str, file: Path) -> None:
    rules = "topics:\n  - match: t\n    rules:\n      - name: r\n        mode: observe\n        cel: >-\n          "
    file.write_text(MINIMAL + rules + expression + "\n")
    line = len((MINIMAL + rules).splitlines())

    done = sluicegate("check", str(file))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{file}:{line - 1}: topics[0].rules[0].cel: rule r: {wrong}")


@pytest.mark.long
def test_a_password_file_that_is_missing_ends_check_and_start(file: Path) -> None:
    sasl = "sasl: {mechanism: PLAIN, username: u, password_file: /none/there}"
    file.write_text(MINIMAL.replace("'h:1'", f"'h:1', {sasl}"))
    reason = "upstream.sasl.password_file: /none/there cannot be read: No such file or directory"

    assert sluicegate("check", str(file)).stderr == f"{file}:1: {reason}\n"
    assert sluicegate_process("run", "--config", str(file)).stderr == f"{file}:1: {reason}\n"


def test_check_shows_the_policy_of_a_topic_and_its_lines(file: Path) -> None:
    file.write_text(
        MINIMAL + "defaults:\n  message.timestamp.after.max.ms: 1h\n  message.timestamp.difference.max.ms: 7d\n"
        "topics:\n  - match: compacted.*\n    cleanup.policy: compact\n"
    )

    lines = sluicegate("check", str(file), "--topic", "compacted.users", "--topic", "compacted-users").stdout
    matched, other = lines.split("compacted-users: ", 1)

    assert f"compacted.users: topics[0] decides (match: compacted.*, {file}:7)" in matched
    assert f"compact (null keys are rejected)  ({file}:8, topics[0].cleanup.policy)" in matched
    assert f"3600000  ({file}:4, defaults.message.timestamp.after.max.ms)" in matched
    assert f"604800000  ({file}:5, defaults.message.timestamp.difference.max.ms)" in matched
    assert "the broker's own  (sluicegate default)" in matched
    assert other.startswith("no entry of topics matches; defaults apply")
    assert f"hint: {file}:7: the dot in compacted.* is a literal dot; compacted* would match this topic" in other
    assert "not a valid topic name" in sluicegate("check", str(file), "--topic", "a b").stdout


@pytest.mark.long
def test_explain_shows_the_values_of_a_topic_and_their_files(file: Path, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("topics:\n  - match: orders\n    mode: observe\n")
    file.write_text(MINIMAL + "topic_files: team.yaml\n")

    done = sluicegate("explain", str(file), "orders", "else")

    assert done.returncode == 0
    assert f"observe  ({tmp_path}/team.yaml:3, topics[0].mode)" in done.stdout
    assert "else: no entry of topics matches; defaults apply" in done.stdout
    (tmp_path / "team.yaml").write_text("topics:\n  - match: orders\n    mode: obsrve\n")
    for command in (("explain", str(file), "x"), ("check", str(file)), ("run", "--config", str(file))):
        done = sluicegate_process(*command)
        assert done.returncode == 1
        assert done.stderr.startswith(
            f"{tmp_path}/team.yaml:3: topics[0].mode: expected 'reject', 'observe' or 'mark'; did you"
        )


@pytest.mark.long
def test_try_exits_with_0_1_or_2(file: Path) -> None:
    file.write_text(MINIMAL + "defaults: {message.timestamp.after.max.ms: 1h}\n")

    def run_try(*arguments: str | bytes) -> tuple[int, str]:
        done = sluicegate_process("try", str(file), "--topic", "orders", *arguments)
        return done.returncode, (done.stdout + done.stderr).splitlines()[-1]

    assert run_try("--key", b"\xff", "--value", "v", "--header", "a=b") == (0, "accepted")
    assert run_try("--timestamp", "now+30min") == (0, "accepted")
    assert run_try("--timestamp", "now+2h")[0] == 1
    assert run_try("--timestamp", "now+2h")[1].startswith("rejected: INVALID_TIMESTAMP (32): One or more records")
    assert run_try("--timestamp", "soon")[0] == 2
    assert run_try("--value-file", "/none/there") == (
        2,
        "sluicegate try: --value-file: /none/there cannot be read: No such file or directory",
    )
    assert sluicegate("try", str(file)).returncode == 2
    file.write_text("upstream: {")
    assert run_try()[0] == 2


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("order", "no policy names the topic order; did you mean orders or team.orders?"),
        ("orders", None),
        ("elsewhere", None),
        ("team.order", None),  # an entry with a pattern applies
    ],
)
def test_a_topic_that_resembles_a_configured_name_is_reported(file: Path, topic: str, words: str | None) -> None:
    file.write_text(MINIMAL + "topics: [{match: orders}, {match: team.*}, {match: team.orders}]\n")

    for command in (("explain", str(file), topic), ("try", str(file), "--topic", topic)):
        done = sluicegate(*command, "--offline")
        assert done.returncode == 0
        assert done.stderr == (f"sluicegate {command[0]}: {words}\n" if words else "")


def test_a_file_that_is_missing_is_reported_with_near_names(file: Path) -> None:
    file.write_text(MINIMAL)
    file.with_name("schema.avsc").write_text("{}")
    missing = file.with_suffix(".yml")

    done = sluicegate("explain", str(missing), "orders")
    assert done.stderr == f"{missing}: cannot be read: No such file or directory; did you mean {file.name}?\n"

    schema = "{name: r, value: {schema: {format: avro, file: schemas.avsc}}}"
    file.write_text(f"{MINIMAL}topics: [{{match: orders, rules: [{schema}]}}]\n")
    named = file.with_name("schemas.avsc")
    assert f"{named} cannot be read: No such file or directory; did you mean schema.avsc?" in (
        sluicegate("try", str(file), "--topic", "orders").stderr
    )


def test_schema_is_json_on_standard_output() -> None:
    whole, topics = (json.loads(sluicegate("schema", *more).stdout) for more in ((), ("--topic-files",)))

    assert "upstream" in whole["properties"]
    assert list(topics["properties"]) == ["topics", "exempt", "quotas", "owner"]


def test_check_reports_an_unusable_web_ui_token(file: Path, tmp_path: Path) -> None:
    file.write_text(MINIMAL + f"admin:\n  listen: '0.0.0.0:9650'\n  token_file: {tmp_path}/nowhere\n")
    done = sluicegate("check", str(file))
    assert done.returncode == 1
    assert f"{file}:5: admin.token_file: {tmp_path}/nowhere cannot be read" in done.stderr

    file.write_text(MINIMAL + "admin: {listen: '0.0.0.0:9650', token: open-sesame, token_file: nowhere}\n")
    done = sluicegate("check", str(file))
    assert "admin.token and admin.token_file cannot be combined" in done.stderr
    assert "sesame" not in done.stderr


@pytest.mark.long
def test_top_and_who_report_invalid_addresses_and_token_files(tmp_path: Path) -> None:
    assert "expected host:port" in sluicegate("top", "--once", "nonsense").stderr
    done = sluicegate("top", "--once", "--token-file", str(tmp_path / "nowhere"), "127.0.0.1:1")
    assert (done.returncode, "nowhere cannot be read" in done.stderr) == (2, True)
    done = sluicegate("who", "orders", "--admin", "127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "127.0.0.1:1 does not respond: Connection refused" in done.stderr
    assert "specify a proxy's admin.listen with --admin" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "specify --proxies HOST:PORT"),
        (["--proxies", "a:1", "--dns", "b"], "specify --proxies HOST:PORT"),
        (["--proxies", "nonsense"], "--proxies: nonsense: expected host:port"),
        (["--proxies", "a:1", "--listen", "0.0.0.0:0"], "other machines can reach 0.0.0.0:0: specify --token-file"),
        (["--proxies", "a:1", "--proxy-token-file", "/nowhere"], "/nowhere cannot be read"),
        (["--proxies", "a:1", "--tls-certificate", "c.pem"], "must be given together"),
        (["--proxies", "a:1", "--tls-certificate", "/no.pem", "--tls-key", "/no.key"], "/no.pem"),
    ],
)
def test_fleet_names_an_invalid_option(arguments: list[str], expected: str) -> None:
    done = CliRunner().invoke(app, ["fleet", *arguments])

    assert done.exit_code == 2
    assert expected in " ".join(done.stderr.replace("│", " ").split())
