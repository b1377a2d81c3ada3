"""Messages about mistakes contain the key, the place, and what to write."""

import pytest

from sluicegate.config.loading import Option
from tests.config.reading import SMALLEST, problems_of_text

LISTEN = "listen: {bootstrap: '127.0.0.1:2'}\n"
AT = "c.yaml:1: upstream.bootstrap"


@pytest.mark.parametrize(
    ("upstream", "expected"),
    [
        ("bootstrap: ['a:1,b:2']", [f'{AT}[0]: one address for each item: ["a:1", "b:2"]']),
        ("bootstrap: ['PLAINTEXT://h:1']", [f"{AT}[0]: leave out PLAINTEXT://; for TLS use upstream.tls"]),
        ("bootstrap: 'SSL://h:1'", [f"{AT}[0]: leave out SSL://; for TLS use upstream.tls"]),
        ("bootstrap: []", [f'{AT}: expected at least one address, such as ["127.0.0.1:9092"]']),
        ("bootstrap: {h: 1}", [f"{AT}: expected a list"]),
        ("bootstrap: [h: 1]", [f'{AT}[0]: expected host:port in quotes, such as "127.0.0.1:9092"; found a section']),
        ("bootstrap: ':1'", [f"{AT}[0]: a host is missing before :1"]),
        ("bootstrap: 'h:0'", [f"{AT}[0]: clients cannot connect to port 0; found 'h:0'"]),
        (
            "bootstrap: h:1, sasl: {mechanism: PLAIN, username: u, pasword: p}",
            [
                "c.yaml:1: upstream.sasl.pasword: no such key; did you mean password?",
            ],
        ),
        (
            "bootstrap: h:1, tls: {cafile: p}",
            ["c.yaml:1: upstream.tls.cafile: no such key; did you mean ca_file?"],
        ),
        (
            "bootstrap: h:1, sasl: {mechanism: PLIAN, username: u, password: p}",
            [
                "c.yaml:1: upstream.sasl.mechanism: expected 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512' or "
                "'OAUTHBEARER'; did you mean PLAIN?; found 'PLIAN'"
            ],
        ),
        (
            "bootstrap: h:1, brokers: {-1: 'h:1'}",
            [
                "c.yaml:1: upstream.brokers.-1: expected a broker's id of 0 to 2147483647; found -1",
            ],
        ),
        ("bootstrap: h:1, brokers: ['h:1']", ['c.yaml:1: upstream.brokers: expected {node id: "host:port"}']),
        (
            "bootstrap: h:1, topic_settings: perhaps",
            ["c.yaml:1: upstream.topic_settings: expected true or false; found"],
        ),
    ],
)
def test_upstream_errors_include_the_key_and_the_remedy(upstream: str, expected: list[str]) -> None:
    found = problems_of_text(f"upstream: {{{upstream}}}\n{LISTEN}")

    assert len(found) == len(expected), found
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "defaults:\n  retention.ms: 5",
            "c.yaml:4: defaults.retention.ms: no such key; known keys: message.timestamp.type, ",
        ),
        (
            "defaults:\n  message:\n    timestamp:\n      type: CreateTime",
            "c.yaml:4: defaults.message: no such key; dots are part of key names, write message.timestamp.type: …; "
            "known keys: message.timestamp.type, ",
        ),
        ("topics:\n  match: x", "c.yaml:3: topics: expected a list, each item beginning with `- match:`"),
        ("topics:\n  - orders", "c.yaml:4: topics[0]: expected a section; write - match: orders"),
        ("admin: 127.0.0.1:9650", 'c.yaml:3: admin: expected a section; write admin: {listen: "127.0.0.1:9650"}'),
        ("admin: {listen: 'http://h:1'}", "c.yaml:3: admin.listen: leave out http://; for TLS use listen.tls"),
        (
            "limits:\n  max_frame_bytes: 1",
            "c.yaml:4: limits.max_frame_bytes: expected bytes or a size with a unit, at least 1024",
        ),
        (
            "limits:\n  max_frame_bytes: 10 MX",
            "c.yaml:4: limits.max_frame_bytes: expected bytes or a size with a unit, such as",
        ),
        (
            "log: {level: DEBUG}",
            "c.yaml:3: log.level: expected 'debug', 'info', 'warning' or 'error'; did you mean debug?",
        ),
        ("workers: 65", "c.yaml:3: workers: expected a whole number of 1 to 64; found 65"),
        ("violations: {file: ''}", "c.yaml:3: violations.file: the text is empty; omit the key instead"),
        ("violations: {file: [x]}", "c.yaml:3: violations.file: expected a text; found a list"),
    ],
)
def test_section_errors_include_the_key_and_the_remedy(text: str, expected: str) -> None:
    (found,) = problems_of_text(SMALLEST + text)

    assert found.startswith(expected), found


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("advertised_host: 'kafka.example.com:9092'", "without :9092; the port is that of the listener"),
        ("advertised_host: '[::1]:9092'", "without :9092"),
        ("advertised_host: 'SSL://kafka.example.com'", "leave out SSL://"),
        ("advertised_host: 0.0.0.0", "clients cannot connect to '0.0.0.0'"),
        ("advertised_host: '::'", "clients cannot connect to '::'"),
        ("advertised_host: '[::]'", "clients cannot connect to '::'"),
        ("advertised_host: ''", "clients cannot connect to ''"),
        ("advertised_host: 'a b'", "expected a host's name or address; found 'a b'"),
        ("advertised_host: 'a..b'", "expected a host's name or address; found 'a..b'"),
        (
            "broker_host: 'b-{node_id}.x:9092', tls: {certificate_file: c, key_file: k}",
            "without :9092; the port is that of the listener",
        ),
    ],
)
def test_advertised_name_errors_include_a_correction(listen: str, expected: str) -> None:
    (found,) = problems_of_text(
        f"upstream: {{bootstrap: h:1}}\nlisten: {{bootstrap: '0.0.0.0:9092', {listen}}}".replace(
            "0.0.0.0:9092", "127.0.0.1:9092"
        )
    )

    assert expected in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "topics:\n  - match: *.orders",
            "c.yaml:4: not YAML: put a value that begins with * in quotes, also a pattern",
        ),
        ("topics:\n  - match: *orders", "c.yaml:4: not YAML: put a value that begins with * in quotes, also"),
        ("topics:\n  - match: *", "c.yaml:4: not YAML: put a value that begins with * in quotes, also"),
        ("a: !vault x", "c.yaml:3: tags (!…) are not supported: a value that begins with ! needs quotes"),
        ("a: {{ .Values.x }}", "c.yaml:3: was a template {{ … }} not filled in?"),
        ("a: @x", "c.yaml:3: not YAML: put a value that begins with %, @ or ` in quotes"),
        ("a: b: c", "c.yaml:3: not YAML: a value that contains a colon and a space needs quotes"),
        ("---\na: b", "c.yaml:3: not YAML: the file has more than one document"),
    ],
)
def test_invalid_yaml_is_reported_as_a_single_error(text: str, expected: str) -> None:
    (found,) = problems_of_text("upstream: {}\nx: 1\n" + text)

    assert found.startswith(expected), found


def test_invalid_command_line_option_is_reported_by_name() -> None:
    upstream = Option("--upstream", ("upstream", "bootstrap"), "nonsense")
    listen = Option("--listen", ("listen", "bootstrap"), "h:99999")

    assert problems_of_text("", upstream, listen) == [
        "--upstream: upstream.bootstrap[0]: expected host:port with a port of 0 to 65535, found 'nonsense'",
        "--listen: listen.bootstrap: expected host:port with a port of 0 to 65535, found 'h:99999'",
    ]
