"""Advised limits follow from the number of records that they would reject."""

from pathlib import Path

import yaml

from sluicegate.config.loading import load_file
from sluicegate.pipeline.jobs.advise.job import BoundCount, advise, as_yaml
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.pipeline.jobs.profile.cells import LADDER_MS
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.rules.rule import Mode

HOUR = 3_600_000


def bound_counts(topic: str, side: str, valid: dict[int, int], damaged: int, of: int) -> list[BoundCount]:
    """Return counts for each bound. `valid`: the number of valid records by their distance (ms). Records with invalid
    timestamps are beyond every bound.
    """
    total = of - damaged
    found = []
    for bound in LADDER_MS:
        beyond = sum(count for away, count in valid.items() if away > bound)
        found.append(BoundCount(topic, side, bound, beyond + damaged, of, beyond, total, beyond + damaged))
    return found


def test_advises_the_tightest_limit_that_rejects_no_valid_record() -> None:
    given = bound_counts("t", "ahead", {100: 900, 250_000: 50}, 50, 1000) + bound_counts(
        "t", "behind", {70_000: 950}, 50, 1000
    )

    (found,) = advise(given, 0)

    assert (found.ahead.bound_ms, found.ahead.rejected, found.ahead.valid_rejected) == (300_000, 50, 0)
    assert (found.behind.bound_ms, found.behind.rejected) == (120_000, 50)
    assert (found.kafka_4.bound_ms, found.kafka_4.rejected) == (HOUR, 50)


def test_advises_a_tighter_limit_if_some_valid_records_may_be_rejected() -> None:
    given = bound_counts("t", "ahead", {100: 990, 250_000: 10}, 0, 1000) + bound_counts(
        "t", "behind", {0: 1000}, 0, 1000
    )

    # No bound is below a minute, because append times are only estimated to the minute.
    assert advise(given, 0.01)[0].ahead.bound_ms == 60_000
    assert advise(given, 0.009)[0].ahead.bound_ms == 300_000


def test_advises_no_limit_if_valid_records_exceed_all_candidates() -> None:
    given = bound_counts("t", "ahead", {100: 10}, 0, 10) + bound_counts(
        "t", "behind", {20 * 365 * 24 * HOUR: 10}, 0, 10
    )

    assert advise(given, 0)[0].behind.bound_ms == LONG_MAX


def test_the_advised_configuration_can_be_loaded(tmp_path: Path) -> None:
    given = bound_counts("orders.v1", "ahead", {100: 10}, 0, 10) + bound_counts("orders.v1", "behind", {100: 10}, 0, 10)
    file = tmp_path / "sluicegate.yaml"

    file.write_text(as_yaml(advise(given, 0), ["127.0.0.1:9092"]))

    loaded = load_file(file, {})
    (topic,) = loaded.config.topics
    assert (topic.match, topic.before_max_ms, topic.after_max_ms) == ("orders.v1", 60_000, 60_000)
    policies = policies_of(loaded.config, {}).rulebook()
    assert (policies.policy_of("orders.v1").mode, policies.policy_of("another").mode) == (Mode.OBSERVE, Mode.OBSERVE)
    assert yaml.safe_load(file.read_text())["upstream"]["bootstrap"] == ["127.0.0.1:9092"]


def test_advises_no_limit_if_the_broker_sets_the_timestamps() -> None:
    given = bound_counts("t", "ahead", {100: 10}, 5, 15) + bound_counts("t", "behind", {0: 10}, 5, 15)

    (found,) = advise(given, 0, frozenset({"t"}))

    assert (found.ahead.bound_ms, found.behind.bound_ms) == (LONG_MAX, LONG_MAX)
    assert (found.ahead.rejected, found.behind.rejected, found.kafka_4.rejected) == (0, 0, 0)
