"""One record, judged without a cluster: what is said is what a client gets, and where the reason stands."""

import pytest

from sluicegate.protocol.records.writing import NewRecord
from sluicegate.proxy.process.trial import Trial, judge_one
from tests.config.reading import SMALLEST, loaded

NOW = 1_800_000_000_000
HOUR, YEAR = 3_600_000, 365 * 86_400_000
AFTER = "message.timestamp.after.max.ms"


def tried(text: str, record: NewRecord, topic: str = "orders") -> Trial:
    return judge_one(topic, record, loaded(SMALLEST + text), NOW)


def test_a_good_record_is_accepted() -> None:
    trial = tried(f"topics: [{{match: orders, {AFTER}: 1h}}]", NewRecord(NOW))

    assert trial == Trial(
        True,
        (
            "orders: topics[0] decides (match: orders, c.yaml:3)",
            f"  timestamp {NOW} is 0.0 s ago",
            "accepted",
        ),
    )


def test_a_bad_time_is_told_as_to_a_client_with_its_diagnosis_and_its_line() -> None:
    """The texts are those that Kafka 3.9 and 4.3 write."""
    trial = tried(f"defaults: {{{AFTER}: 1h}}", NewRecord(NOW * 1000))

    assert not trial.is_forwarded
    assert trial.lines[0] == "orders: no entry of topics matches; defaults hold"
    assert trial.lines[-2].startswith(
        f"  record 0: Timestamp {NOW * 1000} of message with offset 0 is out of range. The timestamp should be within ["
    )
    assert trial.lines[-2].endswith(
        f"; looks like microseconds: as milliseconds it is 0.0 s ago ({AFTER}: c.yaml:3, defaults.{AFTER})"
    )
    assert trial.lines[-1] == (
        "refused: INVALID_TIMESTAMP (32): One or more records have been rejected due to invalid timestamp"
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
    trial = tried(f"topics:\n  - match: orders\n    {keys}\n", record)

    assert not trial.is_forwarded
    assert f"({key}" in trial.lines[-2]
    assert "c.yaml:5, topics[0]." in trial.lines[-2]
    assert trial.lines[-1].startswith(f"refused: {told}: ")


def test_what_an_observed_topic_would_refuse_is_forwarded_and_told() -> None:
    trial = tried(f"defaults: {{{AFTER}: 1h, mode: observe}}", NewRecord(NOW + 2 * HOUR))

    assert trial.is_forwarded
    assert "is out of range" in trial.lines[-2]
    assert trial.lines[-1] == "forwarded as it is (mode: observe); mode reject would refuse it"


def test_what_is_fixed_is_forwarded_with_its_new_time() -> None:
    trial = tried("defaults: {fix: {timestamp: unit}}", NewRecord((NOW - HOUR) * 1000))

    assert trial.is_forwarded
    assert trial.lines[-1] == f"forwarded with the timestamp {NOW - HOUR}, which is 1.0 h ago (fix)"


def test_bounds_on_trial_say_what_they_would_do() -> None:
    trial = tried(f"defaults:\n  rehearse: {{{AFTER}: [1h, 3h]}}", NewRecord(NOW + 2 * HOUR))

    assert trial.is_forwarded
    assert trial.lines[-3:] == (
        "accepted",
        f"on trial: {AFTER} {HOUR} would refuse it (c.yaml:4, defaults.rehearse)",
        f"on trial: {AFTER} {3 * HOUR} would let it pass (c.yaml:4, defaults.rehearse)",
    )


def test_a_topic_without_checks_and_one_that_cannot_be() -> None:
    assert tried("defaults: {checks: none}", NewRecord(0)).lines[-1] == "forwarded unjudged (checks: none)"
    assert not tried("", NewRecord(NOW), "a b").is_forwarded


RULES = """
topics:
  - match: orders
    rules:
      - {name: keyed, key: {required: true}}
      - {name: tenant, headers: {required: [tenant]}, mode: observe}
requests:
  - {name: small, max_batch_bytes: 200}
"""


def test_every_rule_says_what_it_says() -> None:
    good = tried(RULES, NewRecord(NOW, b"k", None, ((b"tenant", b"a"),)))
    bad = tried(RULES, NewRecord(NOW))
    large = tried(RULES, NewRecord(NOW, b"k", bytes(300)))

    assert (good.is_forwarded, bad.is_forwarded, large.is_forwarded) == (True, False, False)
    assert good.lines[-3:] == ("rule small: keeps it", "rule keyed: keeps it", "rule tenant: keeps it")
    assert bad.lines[-3:] == ("rule small: keeps it", "rule keyed: breaks it", "rule tenant: breaks it")
    assert large.lines[-3:] == ("rule small: breaks it", "rule keyed: is not asked", "rule tenant: is not asked")
    assert any(
        line.startswith("  record 0: rule keyed: ") and "c.yaml:6, topics[0].rules" in line for line in bad.lines
    )


def test_samples_show_the_record_as_events_do_and_are_off_unless_asked_for() -> None:
    record = NewRecord(NOW + 2 * HOUR, None, b"a\x1b\xff")

    shown = tried(f"defaults: {{{AFTER}: 1h, samples: true}}", record).lines
    silent = tried(f"defaults: {{{AFTER}: 1h}}", record).lines

    assert shown[-3:-1] == ("    key is null", r"    value (3 bytes): a\x1b\xff")
    assert [line for line in shown if not line.startswith("    ")] == list(silent)
