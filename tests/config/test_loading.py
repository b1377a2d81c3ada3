"""Reads configurations: the README's example, defaults, overrides, and errors with their places."""

from pathlib import Path

import pytest

from sluicegate.config.files.source import Source
from sluicegate.config.loading import ConfigError, Option, load, load_file
from sluicegate.config.values.address import HostPort, parse_host_port
from sluicegate.protocol.integers import LONG_MAX
from tests.config.reading import SMALLEST, load_text, problems_of_text

ROOT = Path(__file__).parents[2]


def test_the_example_configuration_is_valid() -> None:
    config = load_file(ROOT / "sluicegate.yaml", {}).config

    assert config.upstream.bootstrap == (HostPort("127.0.0.1", 9092),)
    assert config.listen.port_of(3) == 19103
    assert config.admin.listen == HostPort("127.0.0.1", 9650)
    assert (config.defaults.before_max_ms, config.defaults.after_max_ms) == (86_400_000, 3_600_000)
    assert (config.topics[0].match, config.topics[0].before_max_ms) == ("orders*", LONG_MAX)
    assert config.violations.file == "violations.jsonl"


def test_the_readme_explains_every_line_of_the_example() -> None:
    example = (ROOT / "sluicegate.yaml").read_text().split("\n", 1)[1]
    readme = (ROOT / "README.md").read_text()
    assert all(line in readme for line in example.splitlines())


def test_missing_configuration_keys_get_the_documented_defaults() -> None:
    config = load_text(SMALLEST).config

    assert config.listen.host_for_clients == "127.0.0.1"
    assert config.listen.port_of(0) == 3
    assert config.admin.listen is None
    assert config.limits.max_frame_bytes == 104_857_600
    assert config.drain_timeout_seconds == 30


@pytest.mark.parametrize(
    ("variable", "value", "path", "expected"),
    [
        ("SLUICEGATE__ADMIN__LISTEN", "127.0.0.1:9650", "admin.listen", HostPort("127.0.0.1", 9650)),
        ("SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_AFTER_MAX_MS", "5", "defaults.after_max_ms", 5),
        (
            "SLUICEGATE__UPSTREAM__BOOTSTRAP",
            "['a:1', 'b:2']",
            "upstream.bootstrap",
            (HostPort("a", 1), HostPort("b", 2)),
        ),
        ("SLUICEGATE__UPSTREAM__BROKERS__4", "h:9", "upstream.brokers", {4: HostPort("h", 9)}),
        ("SLUICEGATE__DRAIN_TIMEOUT_SECONDS", "1.5", "drain_timeout_seconds", 1.5),
        ("SLUICEGATE__TOPICS__0__MATCH", "x", "topics.0.match", "x"),
        ("SLUICEGATE__TOPICS__0__CLEANUP_POLICY", "compact", "topics.0.cleanup_policy", "compact"),
    ],
)
def test_every_configuration_key_can_be_set_by_an_environment_variable(
    variable: str, value: str, path: str, expected: object
) -> None:
    found: object = load_text(SMALLEST + "topics: [{match: orders}]\n", **{variable: value}).config
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)

    assert found == expected


def test_unknown_key_error_reports_line_and_nearest_known_key() -> None:
    text = (
        SMALLEST
        + "defalts:\n  x: 1\nlimits:\n  max_frame_bites: 5\ntopics:\n  - match: t\n    cleanup.polici: compact\n"
    )

    assert set(problems_of_text(text)) == {
        "c.yaml:3: defalts: no such key; did you mean defaults?",
        "c.yaml:6: limits.max_frame_bites: no such key; did you mean max_frame_bytes?",
        "c.yaml:9: topics[0].cleanup.polici: no such key; did you mean cleanup.policy?",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SMALLEST.replace("upstream", "upstraem"), {"c.yaml:1: upstraem: no such key; did you mean upstream?"}),
        (
            SMALLEST.replace("bootstrap", "boostrap", 1),
            {"c.yaml:1: upstream.boostrap: no such key; did you mean bootstrap?"},
        ),
        (
            SMALLEST + "topics:\n  - {mach: a}\n  - {mode: observe}",
            {
                "c.yaml:4: topics[0].mach: no such key; did you mean match?",
                "c.yaml:5: topics[1].match: this key is required",
            },
        ),
    ],
)
def test_a_misspelled_key_is_not_also_reported_as_missing(text: str, found: set[str]) -> None:
    assert set(problems_of_text(text)) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("listen: {bootstrap: 'h:1'}", "c.yaml: upstream: this key is required"),
        (
            SMALLEST + "drain_timeout_seconds: 0",
            "c.yaml:3: drain_timeout_seconds: input should be greater than 0; found 0",
        ),
        (
            SMALLEST + "defaults:\n  message.timestamp.after.max.ms: -1",
            "c.yaml:4: defaults.message.timestamp.after.max.ms: ",
        ),
        (SMALLEST + "defaults:\n  message.timestamp.after.max.ms: 9223372036854775808", "c.yaml:4: defaults."),
        (
            SMALLEST + "drain_timeout_seconds: 1\ndrain_timeout_seconds: 2",
            "c.yaml:4: drain_timeout_seconds: duplicate key, first at c.yaml:3",
        ),
        (SMALLEST + "topics:\n  - match: '/(/'", "c.yaml:4: topics[0].match: not a regular expression"),
        (
            SMALLEST + "topics:\n  - match: '/(?!test).*/'",
            "c.yaml:4: topics[0].match: not a regular expression that RE2",
        ),
        ("a: [", "c.yaml:1: not YAML"),
        ("just text", "c.yaml:1: expected keys at the top"),
        (SMALLEST.replace("127.0.0.1:2", "0.0.0.0:2"), "c.yaml:2: listen: listen.advertised_host is required"),
    ],
)
def test_invalid_configuration_value_is_reported_with_its_key(text: str, problem: str) -> None:
    assert any(found.startswith(problem) for found in problems_of_text(text)), problems_of_text(text)


def test_error_in_an_environment_variable_names_the_variable() -> None:
    assert problems_of_text(SMALLEST, SLUICEGATE__ADMIN__LISTN="x:1") == [
        "environment SLUICEGATE__ADMIN__LISTN: no key 'LISTN' here; did you mean LISTEN?"
    ]
    (bad_value,) = problems_of_text(SMALLEST, SLUICEGATE__ADMIN__LISTEN="nonsense")
    assert bad_value.startswith("environment SLUICEGATE__ADMIN__LISTEN: admin.listen: expected host:port")


@pytest.mark.parametrize(
    ("variable", "value", "key"),
    [
        ("UPSTREAM__BOOTSTRAP", "nohost", "upstream.bootstrap[0]"),
        ("UPSTREAM__BOOTSTRAP", "['h:1', nohost]", "upstream.bootstrap[1]"),
        ("UPSTREAM__BOOTSTRAP__0", "nohost", "upstream.bootstrap[0]"),
        ("TOPICS", "[{match: a, mode: x}]", "topics[0].mode"),
        ("TOPICS__0", "{match: a, mode: x}", "topics[0].mode"),
        ("DEFAULTS", "{mode: x}", "defaults.mode"),
    ],
)
def test_error_in_overridden_list_or_section_names_the_environment_variable(
    variable: str, value: str, key: str
) -> None:
    file = SMALLEST + "topics:\n  - match: a\n    mode: observe\ndefaults:\n  mode: observe\n"

    (problem,) = problems_of_text(file, **{f"SLUICEGATE__{variable}": value})

    assert problem.startswith(f"environment SLUICEGATE__{variable}: {key}: ")


def test_error_in_overridden_list_names_the_command_line_option() -> None:
    (problem,) = problems_of_text(SMALLEST, Option("--upstream", ("upstream", "bootstrap"), "nohost"))

    assert problem.startswith("--upstream: upstream.bootstrap[0]: ")


@pytest.mark.parametrize(
    ("text", "key", "current"),
    [
        ("drain_seconds: 1", "drain_seconds", "drain_timeout_seconds"),
        ("topics_from: a.yaml", "topics_from", "topic_files"),
        ("on.internal.error: close", "on.internal.error", "on_internal_error"),
        ("admin: {page: true}", "admin.page", "web_ui"),
        ("limits: {max_gathered_bytes: 1GiB}", "limits.max_gathered_bytes", "max_buffered_bytes"),
        (
            "topics: [{match: a, rules: [{name: r, cel: 'true', on.outage: forward}]}]",
            "topics[0].rules[0].on.outage",
            "on_outage",
        ),
    ],
)
def test_rejects_renamed_configuration_key_with_its_new_name(text: str, key: str, current: str) -> None:
    assert problems_of_text(SMALLEST + text) == [f"c.yaml:3: {key}: no such key; it was renamed to {current}"]


def test_rejects_renamed_environment_variable_with_its_new_name() -> None:
    assert problems_of_text(SMALLEST, SLUICEGATE__DRAIN_SECONDS="5") == [
        "environment SLUICEGATE__DRAIN_SECONDS: no key 'DRAIN_SECONDS' here; did you mean DRAIN_TIMEOUT_SECONDS?"
    ]


def test_rejects_renamed_configuration_value_with_its_new_name() -> None:
    (problem,) = problems_of_text(SMALLEST + "defaults: {mode: refuse}")
    assert "expected 'reject', 'observe' or 'mark'; refuse was renamed to reject" in problem


def test_accepts_deprecated_timestamp_difference_key_with_a_warning() -> None:
    found = load_text(SMALLEST + "defaults:\n  message.timestamp.difference.max.ms: 5\n")

    assert found.config.defaults.difference_max_ms == 5
    (warning,) = found.warnings
    assert warning.startswith("c.yaml:4: defaults.message.timestamp.difference.max.ms is deprecated (KIP-937)")


def test_missing_configuration_file_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        load_file(tmp_path / "none.yaml", {})


def test_a_configuration_can_be_loaded_without_a_file() -> None:
    data = {"upstream": {"bootstrap": ["h:1"]}, "listen": {"bootstrap": "h:2"}}
    assert load(Source("command line", data), {}).config.listen.port_of(0) == 3


@pytest.mark.parametrize(
    ("text", "host", "port"), [("h:1", "h", 1), ("[::1]:9092", "::1", 9092), ("10.0.0.1:0", "10.0.0.1", 0)]
)
def test_valid_host_port_addresses_round_trip(text: str, host: str, port: int) -> None:
    assert parse_host_port(text) == HostPort(host, port)
    assert str(parse_host_port(text)) == text


@pytest.mark.parametrize("text", ["h", "h:", "h:x", "h:70000", "::1:9092", 9092, None, "h:-1"])
def test_rejects_addresses_without_a_host_and_a_port(text: object) -> None:
    with pytest.raises(ValueError, match=r"host:port|brackets"):
        parse_host_port(text)


@pytest.mark.parametrize(
    ("listen", "message"),
    [
        ("broker_host: 'b-{node_id}.x'", "listen.broker_host needs listen.tls"),
        ("broker_host: 'b.x', tls: {certificate_file: c, key_file: k}", "expected a host name with {node_id} in it"),
        (
            "broker_host: 'b-{node_id}.x', broker_port_base: 5, tls: {certificate_file: c, key_file: k}",
            "cannot be combined",
        ),
        ("tls: {certificate_file: c, key_file: k, client_auth: required}", "client_auth required needs client_ca_file"),
        ("tls: {certificate_file: c}", "listen.tls.key_file: this key is required"),
    ],
)
def test_rejects_inconsistent_listener_tls_keys(listen: str, message: str) -> None:
    (problem,) = problems_of_text(f"upstream: {{bootstrap: ['h:1']}}\nlisten: {{bootstrap: '127.0.0.1:2', {listen}}}\n")

    assert message in problem


def test_upstream_tls_and_sasl_are_loaded_with_a_password_from_the_environment() -> None:
    text = SMALLEST.replace(
        "{bootstrap: ['h:1']}",
        "{bootstrap: ['h:1'], topic_settings: true, tls: {ca_file: ca.pem}, "
        "sasl: {mechanism: SCRAM-SHA-256, username: u, password: p}}",
    )
    upstream = load_text(text, SLUICEGATE__UPSTREAM__SASL__PASSWORD="from the environment").config.upstream

    assert upstream.tls is not None
    assert upstream.tls.verify_hostname
    assert upstream.sasl is not None
    assert upstream.sasl.password.get_secret_value() == "from the environment"
    assert "from the environment" not in repr(upstream)
    (problem,) = problems_of_text(SMALLEST.replace("'h:1']", "'h:1'], tls: {certificate_file: c}"))
    assert "certificate_file and key_file must be set together" in problem


@pytest.mark.parametrize(("all_together", "each"), [(1_000, 250), (3, 1), (None, None)])
def test_connection_and_handshake_limits_are_divided_among_workers(all_together: int | None, each: int | None) -> None:
    keys = (
        "max_new_connections_per_second",
        "max_new_connections_per_second_per_address",
        "max_handshakes",
        "max_in_flight_total",
    )
    given = {} if all_together is None else dict.fromkeys(keys, all_together)
    config = load_text(SMALLEST + f"limits: {given}\nworkers: 4\n").config

    limits = config.of_one_worker(config.listen.bootstrap).limits

    assert (limits.max_new_connections_per_second, limits.max_new_connections_per_second_per_address) == (each, each)
    assert limits.max_in_flight_total == each
    assert limits.max_handshakes == (each or 250)
