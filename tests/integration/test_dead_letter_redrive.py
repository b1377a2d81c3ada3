"""`sluicegate dead-letters redrive` writes each record once, whatever ends it, and a rejected record does not stop
others."""

import time
from pathlib import Path

import pytest

from sluicegate.dead_letters.cluster import Cluster
from sluicegate.dead_letters.marks import Mark, MarkState, mark_of
from sluicegate.dead_letters.transactional_writer import Fenced, TransactionalWriter
from tests.dead_letters.desk import configuration, letters_for, new_topic, planned, run, run_json, stored, write
from tests.dead_letters.letters import OWN


def test_redrives_each_record_once_and_as_planned(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead", 2)
    of_original = (*OWN, *letters_for(original, 2))
    write(kafka_bootstrap, dead, [(b"a", b"1", of_original), (b"b", b"2", of_original)])
    write(kafka_bootstrap, dead, [(b"c", None, of_original), (b"d", b"4", letters_for("gone")), (b"e", b"5", OWN)], 1)
    write(kafka_bootstrap, dead, [(b"f", b"6", letters_for(original, 3))], 1)
    file = configuration(tmp_path, kafka_bootstrap)

    apply, plan = planned(dead, file)
    assert stored(kafka_bootstrap, original) == [], "a plan writes nothing"
    result = run_json(*apply)
    again = run_json(*apply)
    _, later = planned(dead, file)

    assert plan["redrive"] == {original: 3}
    remaining = {"no_such_topic": 1, "not_a_dead_letter": 1, "no_such_partition": 1}
    assert plan["remain"] == remaining
    assert (result["written"], again["written"]) == (3, 0)
    records = stored(kafka_bootstrap, original)
    assert [(each.partition(), each.key(), each.value()) for each in records] == [
        (2, b"a", b"1"),
        (2, b"b", b"2"),
        (2, b"c", None),
    ]
    own = [(name.decode(), value) for name, value in OWN]
    assert all(each.headers() == [*own, ("sluicegate.redrive.attempts", b"1")] for each in records)
    times = {each.key(): each.timestamp()[1] for each in stored(kafka_bootstrap, dead)}
    assert all(each.timestamp()[1] == times[each.key()] for each in records)
    assert (later["redrive"], later["remain"]) == ({}, {**remaining, "already_redriven": 3})


def test_a_plan_that_changed_since_its_review_is_not_applied(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original))] * 2)
    file = configuration(tmp_path, kafka_bootstrap)
    apply, plan = planned(dead, file)

    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original))])
    output = run("redrive", dead, "--config", file, "--apply", plan["digest"], code=1)

    assert "the plan has changed" in output
    assert stored(kafka_bootstrap, original) == []
    assert run_json(*apply)["written"] == 2, "with its offsets the plan is the same"


def test_only_selected_letters_are_redriven(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    other = tuple((name, b"other" if name.endswith(b".message") else text) for name, text in letters_for(original))
    write(
        kafka_bootstrap, dead, [(b"a", b"1", letters_for(original)), (b"b", b"2", other), (b"c", b"3", (*OWN, *other))]
    )
    file = configuration(tmp_path, kafka_bootstrap)
    groups = {each["text"]: each["id"] for each in run_json("show", dead, "--config", file)["groups"]}

    counts = {
        options: sum(planned(dead, file, *options)[1]["redrive"].values())
        for options in (
            ("--group", groups["other"]),
            ("--key", "a"),
            ("--header", "trace=7"),
            ("--until", "2026-01-01"),
            ("--since", "2026-01-01"),
            ("--offsets", "0:1-2"),
        )
    }

    assert list(counts.values()) == [2, 1, 1, 0, 3, 1]


def test_invalid_records_remain_unless_they_are_fixed(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original)), (b"b", b"no JSON", letters_for(original))])
    rules = [{"name": "json", "value": {"json": {}}}]
    topics = [{"match": original, "message.timestamp.before.max.ms": "1ms", "rules": rules}]
    file = configuration(tmp_path, kafka_bootstrap, topics=topics)

    _, plan = planned(dead, file)
    apply, fixed = planned(dead, file, "--fix", "now")
    before = time.time_ns() // 1_000_000
    run_json(*apply)

    assert plan["remain"] == {"timestamp_too_old": 2}
    assert (fixed["redrive"], fixed["remain"]) == ({original: 1}, {"rule json": 1})
    (record,) = stored(kafka_bootstrap, original)
    assert record.value() == b"1"
    assert before <= record.timestamp()[1]


def test_records_that_the_broker_rejects_are_given_up_and_the_others_are_written(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    original = new_topic(kafka_bootstrap, "orders", cleanup_policy="compact")
    dead = new_topic(kafka_bootstrap, "dead")
    keys = [None if i in (3, 40, 41) else f"{i % 7}".encode() for i in range(100)]
    write(kafka_bootstrap, dead, [(key, f"{i}".encode(), letters_for(original)) for i, key in enumerate(keys)])
    upstream = {
        "bootstrap": [kafka_bootstrap],
        "topic_settings": False,
    }  # the policy does not require keys, but the topic does
    file = configuration(tmp_path, kafka_bootstrap, upstream=upstream)

    apply, _ = planned(dead, file)
    stopped = run(*apply, "--stop-after", "1", code=1)
    run(*apply, code=1)
    _, later = planned(dead, file)

    assert "stopped by --stop-after" in stopped
    values = [each.value() for each in stored(kafka_bootstrap, original)]
    assert values == [f"{i}".encode() for i, key in enumerate(keys) if key is not None]
    assert later["remain"] == {"already_redriven": 97, "given_up": 3}


def test_a_record_that_returns_to_the_dead_letter_topic_repeatedly_is_not_redriven(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"1", letters_for(original))])
    file = configuration(tmp_path, kafka_bootstrap)

    for attempt in (1, 2):
        apply, _ = planned(dead, file, "--max-attempts", "2")
        assert run_json(*apply)["written"] == 1
        record = stored(kafka_bootstrap, original)[-1]
        assert record.headers()[-1] == ("sluicegate.redrive.attempts", str(attempt).encode())
        own = tuple((name.encode(), value) for name, value in record.headers())
        write(kafka_bootstrap, dead, [(b"a", b"1", (*own, *letters_for(original)))])  # the record fails again
    _, plan = planned(dead, file, "--max-attempts", "2")

    assert (plan["redrive"], plan["remain"]) == ({}, {"already_redriven": 2, "attempts_exceeded": 1})


def test_a_second_redrive_fences_the_first(kafka_bootstrap: str) -> None:
    cluster, marks = Cluster({"bootstrap.servers": kafka_bootstrap}), new_topic(kafka_bootstrap, "marks")
    mark = Mark("dead", "id", 0, ((0, 1),), MarkState.REDRIVEN, "plan", "me", 1)
    first = TransactionalWriter(cluster, "fenced", marks)
    assert first.write((), [mark]) is None

    TransactionalWriter(cluster, "fenced", marks)

    with pytest.raises(Fenced):
        first.write((), [mark])
    assert [mark_of(each.value()) for each in stored(kafka_bootstrap, marks)] == [mark]
