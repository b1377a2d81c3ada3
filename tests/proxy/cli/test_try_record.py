"""`sluicegate try` prints the error that a client gets, and the line in the configuration that causes it."""

import pytest

from sluicegate.protocol.records.writing import NewRecord
from sluicegate.proxy.cli.try_record import TrialResult, validate_one
from sluicegate.proxy.cluster.topics import SETTINGS_OFF, SettingsRead
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.policy import TimestampType
from tests.broker.ports import free_ports
from tests.config.reading import SMALLEST, load_text

NOW = 1_800_000_000_000
HOUR, YEAR = 3_600_000, 365 * 86_400_000
AFTER = "message.timestamp.after.max.ms"


def trial_of(text: str, record: NewRecord, topic: str = "orders") -> TrialResult:
    return validate_one(topic, record, load_text(SMALLEST + text), NOW)


def test_try_accepts_valid_record() -> None:
    trial = trial_of(f"topics: [{{match: orders, {AFTER}: 1h}}]", NewRecord(NOW))

    assert trial == TrialResult(
        True,
        (
            "orders: topics[0] decides (match: orders, c.yaml:3)",
            f"  timestamp {NOW} is 0.0 s ago",
            "  the cluster's settings of this topic were not read (the cluster was not queried): a running proxy "
            "applies those that are stricter",
            "accepted",
        ),
    )


def test_try_prints_the_clients_error_the_diagnosis_and_the_line() -> None:
    """The texts are those that Kafka 3.9 and 4.3 write."""
    trial = trial_of(f"defaults: {{{AFTER}: 1h}}", NewRecord(NOW * 1000))

    assert not trial.is_forwarded
    assert trial.lines[0] == "orders: no entry of topics matches; defaults apply"
    assert trial.lines[-2].startswith(
        f"  record 0: Timestamp {NOW * 1000} of message with offset 0 is out of range. The timestamp should be within ["
    )
    assert trial.lines[-2].endswith(
        f"; looks like microseconds: as milliseconds it is 0.0 s ago ({AFTER}: c.yaml:3, defaults.{AFTER})"
    )
    assert trial.lines[-1] == (
        "rejected: INVALID_TIMESTAMP (32): One or more records have been rejected due to invalid timestamp"
    )


@pytest.mark.parametrize(
    ("keys", "record", "told", "key"),
    [
        ("cleanup.policy: compact", NewRecord(NOW, None, b"v"), "INVALID_RECORD (87)", "cleanup.policy"),
        ("max.message.bytes: 100", NewRecord(NOW, b"k", bytes(200)), "MESSAGE_TOO_LARGE (10)", "max.message.bytes"),
        (f"{AFTER}: 1h", NewRecord(NOW + HOUR + 1), "INVALID_TIMESTAMP (32)", AFTER),
        ("message.timestamp.before.max.ms: 1h", NewRecord(1), "INVALID_TIMESTAMP (32)", "message.timestamp.before."),
    ],
)
def test_every_check_names_the_key_that_it_comes_from(keys: str, record: NewRecord, told: str, key: str) -> None:
    trial = trial_of(f"topics:\n  - match: orders\n    {keys}\n", record)

    assert not trial.is_forwarded
    assert f"({key}" in trial.lines[-2]
    assert "c.yaml:5, topics[0]." in trial.lines[-2]
    assert trial.lines[-1].startswith(f"rejected: {told}: ")


def test_try_on_an_observed_topic_forwards_and_says_what_reject_would_do() -> None:
    trial = trial_of(f"defaults: {{{AFTER}: 1h, mode: observe}}", NewRecord(NOW + 2 * HOUR))

    assert trial.is_forwarded
    assert "is out of range" in trial.lines[-2]
    assert trial.lines[-1] == "forwarded unchanged (mode: observe); mode: reject would reject it"


def test_try_prints_the_fixed_timestamp() -> None:
    trial = trial_of("defaults: {fix: {timestamp: unit}}", NewRecord((NOW - HOUR) * 1000))

    assert trial.is_forwarded
    assert trial.lines[-1] == f"forwarded with the timestamp {NOW - HOUR}, which is 1.0 h ago (fix)"


def test_try_prints_the_result_of_each_rehearsed_bound() -> None:
    trial = trial_of(f"defaults:\n  rehearse: {{{AFTER}: [1h, 3h]}}", NewRecord(NOW + 2 * HOUR))

    assert trial.is_forwarded
    assert trial.lines[-3:] == (
        "accepted",
        f"rehearsed bound: {AFTER} {HOUR} would reject it (c.yaml:4, defaults.rehearse)",
        f"rehearsed bound: {AFTER} {3 * HOUR} would accept it (c.yaml:4, defaults.rehearse)",
    )


def test_try_forwards_without_checks_and_rejects_impossible_topic_names() -> None:
    assert trial_of("defaults: {checks: none}", NewRecord(0)).lines[-1] == "forwarded unvalidated (checks: none)"
    assert not trial_of("", NewRecord(NOW), "a b").is_forwarded


RULES = """
topics:
  - match: orders
    rules:
      - {name: keyed, key: {required: true}}
      - {name: tenant, headers: {required: [tenant]}, mode: observe}
requests:
  - {name: small, max_batch_bytes: 200}
"""


def test_try_prints_the_violation_of_every_rule() -> None:
    good = trial_of(RULES, NewRecord(NOW, b"k", None, ((b"tenant", b"a"),)))
    bad = trial_of(RULES, NewRecord(NOW))
    large = trial_of(RULES, NewRecord(NOW, b"k", bytes(300)))

    assert (good.is_forwarded, bad.is_forwarded, large.is_forwarded) == (True, False, False)
    assert good.lines[-3:] == ("rule small: passed", "rule keyed: passed", "rule tenant: passed")
    assert bad.lines[-3:] == ("rule small: passed", "rule keyed: violated", "rule tenant: violated")
    assert large.lines[-3:] == ("rule small: violated", "rule keyed: not evaluated", "rule tenant: not evaluated")
    assert any(
        line.startswith("  record 0: rule keyed: ") and "(rules: c.yaml:7, topics[0].rules[0])" in line
        for line in bad.lines
    )


def test_try_prints_record_samples_only_when_requested() -> None:
    record = NewRecord(NOW + 2 * HOUR, None, b"a\x1b\xff")

    shown = trial_of(f"defaults: {{{AFTER}: 1h, samples: true}}", record).lines
    silent = trial_of(f"defaults: {{{AFTER}: 1h}}", record).lines

    assert shown[-3:-1] == ("    key is null", r"    value (3 bytes): a\x1b\xff")
    assert [line for line in shown if not line.startswith("    ")] == list(silent)


LOG_APPEND = f"topics: [{{match: orders, message.timestamp.type: LogAppendTime, {AFTER}: 1h}}]"


def test_try_prints_the_timestamp_types_of_file_and_cluster() -> None:
    """A running proxy takes message.timestamp.type from the cluster, so with CreateTime there the record is
    rejected.
    """
    trial = trial_of(LOG_APPEND, NewRecord(NOW + 2 * HOUR))

    assert trial.lines[3] == (
        "  if message.timestamp.type is CreateTime on the cluster, not LogAppendTime as in the file: "
        "rejected: INVALID_TIMESTAMP (32): One or more records have been rejected due to invalid timestamp"
    )
    assert trial.lines[-1] == "accepted, with the time of the broker (message.timestamp.type: LogAppendTime)"
    assert len(trial_of(LOG_APPEND, NewRecord(NOW)).lines) == 4


def test_try_uses_the_file_alone_if_topic_settings_are_off() -> None:
    text = SMALLEST.replace("upstream: {", "upstream: {topic_settings: false, ")

    read = SettingsRead(reason=SETTINGS_OFF)
    trial = validate_one("orders", NewRecord(NOW + 2 * HOUR), load_text(text + LOG_APPEND), NOW, lambda _: read)

    assert trial.is_forwarded
    assert trial.lines[2] == "  the cluster's settings do not apply: upstream.topic_settings is off"
    assert len(trial.lines) == 4


@pytest.mark.parametrize(
    ("settings", "is_forwarded", "source"),
    [
        (ClusterSettings(after_max_ms=HOUR // 6, set_on_topic=frozenset({AFTER})), False, "cluster topic setting"),
        (ClusterSettings(after_max_ms=HOUR // 6), False, "cluster default"),
        (ClusterSettings(after_max_ms=2 * HOUR), True, ""),
        (ClusterSettings(TimestampType.LOG_APPEND_TIME, after_max_ms=HOUR // 6), True, ""),
    ],
)
def test_try_applies_stricter_of_file_and_cluster_settings(
    settings: ClusterSettings, is_forwarded: bool, source: str
) -> None:
    """The record is 20 minutes ahead; the file allows 2 hours."""
    text = SMALLEST + f"defaults: {{{AFTER}: 2h}}"

    trial = validate_one("orders", NewRecord(NOW + HOUR // 3), load_text(text), NOW, lambda _: SettingsRead(settings))

    assert trial.is_forwarded is is_forwarded
    assert trial.lines[2] == "  the cluster's settings of this topic were read: the stricter value applies"
    if source:
        expected = f"({AFTER}: {source}, instead of {2 * HOUR} in c.yaml:3, defaults.{AFTER})"
        assert trial.lines[-2].endswith(expected)


@pytest.mark.parametrize("mode", ["reject", "observe"])
@pytest.mark.parametrize(
    ("outage", "is_forwarded", "told"),
    [
        ("forward", True, "forwarded; a rule was not evaluated: its dependency does not respond (on_outage"),
        ("retriable", False, "rejected: REQUEST_TIMED_OUT (7): "),
    ],
)
def test_try_prints_the_effect_of_an_outage_in_each_mode(mode: str, outage: str, is_forwarded: bool, told: str) -> None:
    port = free_ports(1)
    schema = "{schema: {registry: r}}"
    text = (
        f"registries: {{r: {{url: 'http://127.0.0.1:{port}'}}}}\n"
        f"topics: [{{match: orders, mode: {mode}, rules: [{{name: s, on_outage: {outage}, value: {schema}}}]}}]"
    )

    trial = trial_of(text, NewRecord(NOW, None, bytes(4) + b"\1{}"))

    if mode == "observe" and outage == "retriable":
        is_forwarded, told = True, "forwarded unchanged (mode: observe); mode: reject would reject it"
    assert trial.is_forwarded is is_forwarded
    assert any(line.startswith(told) for line in trial.lines)
    assert trial.lines[-1] == "rule s: no result"


def test_a_client_outside_gradual_enforcement_is_observed() -> None:
    """Rules in mode observe reject nothing under full enforcement either."""
    rules = "rules: [{name: keyed, key: {required: true}, mode: observe}]"
    text = SMALLEST + f"defaults: {{{AFTER}: 1h}}\ntopics: [{{match: orders, enforce: {{clients: team-a}}, {rules}}}]"

    def last_printed_line(client_id: str, record: NewRecord) -> str:
        lines = validate_one("orders", record, load_text(text), NOW, client_id=client_id).lines
        return [line for line in lines if not line.startswith("rule ")][-1]

    late = NewRecord(NOW + 2 * HOUR, b"k")
    assert last_printed_line("team-a", late).startswith("rejected: INVALID_TIMESTAMP (32): ")
    assert (
        last_printed_line("team-b", late)
        == "forwarded unchanged (enforce: clients team-a); full enforcement would reject it"
    )
    assert last_printed_line("team-b", NewRecord(NOW)).startswith("forwarded unchanged (mode: observe")


def test_an_exempt_client_is_not_validated() -> None:
    text = (
        SMALLEST + "exempt: [{client_id: all}, {client_id: some, topics: orders}]\ndefaults: {cleanup.policy: compact}"
    )

    def last_printed_line(topic: str, client_id: str) -> str:
        return validate_one(topic, NewRecord(NOW), load_text(text), NOW, client_id=client_id).lines[-1]

    found = {
        (topic, client): last_printed_line(topic, client)
        for topic in ("orders", "else")
        for client in ("all", "some", "x")
    }
    exempt = {key for key, line in found.items() if line == "forwarded unvalidated (the client is exempt)"}
    assert exempt == {("orders", "all"), ("else", "all"), ("orders", "some")}


def test_try_forwards_violations_of_an_observing_rule() -> None:
    text = "topics: [{match: orders, rules: [{name: keyed, key: {required: true}, mode: observe}]}]"

    trial = trial_of(text, NewRecord(NOW))

    assert trial.is_forwarded
    assert "forwarded unchanged (the rule has mode: observe); mode: reject would reject it" in trial.lines
