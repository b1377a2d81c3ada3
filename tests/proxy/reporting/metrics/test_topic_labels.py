"""Metric labels contain only existing topics, in a bounded number, and their sums never decrease."""

from collections import Counter

from sluicegate.config.files.source import Source
from sluicegate.config.loading import load
from sluicegate.proxy.reporting.metrics.batch_events import BatchCounts, BatchEvent
from sluicegate.proxy.reporting.metrics.counters import OTHER, Counters, total_of
from sluicegate.proxy.reporting.metrics.topic_labels import (
    MAX_TOPICS,
    TopicLabels,
    exact_names,
    topics_of_one,
    with_few_topics,
)
from sluicegate.proxy.responses.topic_names import TopicNames

REJECTED, REJECTED_RECORDS = "sluicegate_rejected_batches", "sluicegate_rejected_records"
FUTURE = "sluicegate_future_timestamp_batches"


def every_topic_known(_: str) -> bool:
    return True


def no_topic_known(_: str) -> bool:
    return False


def test_topic_names_known_only_from_clients_are_counted_as_other() -> None:
    counters = Counters()
    labels = TopicLabels(counters, {"payments"}.__contains__, ["configured"])

    for i in range(10_000):
        labels.count(BatchEvent.REJECTED, f"invented-{i}", "c", "INVALID_TIMESTAMP", 1)
    for topic in ("payments", "configured", None, OTHER):
        labels.count(BatchEvent.REJECTED, topic, "c", "INVALID_TIMESTAMP", 2)

    assert counters.batch_counts[REJECTED] == {
        (OTHER, "INVALID_TIMESTAMP"): 10_002,
        ("payments", "INVALID_TIMESTAMP"): 1,
        ("configured", "INVALID_TIMESTAMP"): 1,
    }
    assert counters.batch_counts[REJECTED_RECORDS] == {
        (OTHER, "INVALID_TIMESTAMP"): 10_004,
        ("payments", "INVALID_TIMESTAMP"): 2,
        ("configured", "INVALID_TIMESTAMP"): 2,
    }


def test_a_topic_of_a_new_configuration_gets_a_label_and_keeps_it() -> None:
    counters = Counters()
    labels = TopicLabels(counters, no_topic_known, ["before"])
    for names in (["before"], ["orders"], []):
        labels.configure(names)
        for topic in ("before", "orders", "late"):
            labels.count(BatchEvent.FUTURE_TIMESTAMP, topic, "c")

    assert counters.batch_counts[FUTURE] == {"before": 3, "orders": 2, OTHER: 4}


def test_a_topic_known_from_a_broker_gets_a_label() -> None:
    counters = Counters()
    names = TopicNames()
    labels = TopicLabels(counters, names.is_known, [])
    labels.count(BatchEvent.FUTURE_TIMESTAMP, "orders", "c")
    names.learn([(None, "orders")])
    labels.count(BatchEvent.FUTURE_TIMESTAMP, "orders", "c")

    assert counters.batch_counts[FUTURE] == {OTHER: 1, "orders": 1}


def test_least_recently_counted_topic_loses_its_label_and_totals_never_decrease() -> None:
    counters = Counters()
    labels = TopicLabels(counters, every_topic_known, [], max_topics=2)
    sums = []
    for topic in ("a", "b", "a", "c", "d", "a", "b"):
        labels.count(BatchEvent.REJECTED, topic, "c", "X", 3)
        labels.count(BatchEvent.REJECTED, topic, "c", "Y", 1)
        labels.count(BatchEvent.FUTURE_TIMESTAMP, topic, "c")
        sums.append(tuple(counters.batch_counts[name].total() for name in (REJECTED, REJECTED_RECORDS, FUTURE)))

    assert sums == [(2 * n, 4 * n, n) for n in range(1, 8)]
    assert counters.batch_counts[REJECTED_RECORDS] == {
        (OTHER, "X"): 15,
        (OTHER, "Y"): 5,
        ("a", "X"): 3,
        ("a", "Y"): 1,
        ("b", "X"): 3,
        ("b", "Y"): 1,
    }
    assert counters.batch_counts[REJECTED] == {
        (OTHER, "X"): 5,
        (OTHER, "Y"): 5,
        ("a", "X"): 1,
        ("a", "Y"): 1,
        ("b", "X"): 1,
        ("b", "Y"): 1,
    }


def test_topic_labels_are_limited_to_500() -> None:
    counters = Counters()
    labels = TopicLabels(counters, every_topic_known, [])
    for i in range(5000):
        labels.count(BatchEvent.REJECTED, f"topic-{i}", "c", "X", 1)

    assert len(counters.batch_counts[REJECTED]) == MAX_TOPICS + 1
    assert counters.batch_counts[REJECTED].total() == 5000
    assert ("topic-4999", "X") in counters.batch_counts[REJECTED]


def test_client_with_many_topics_does_not_displace_labels_of_other_clients() -> None:
    counters = Counters()
    labels = TopicLabels(counters, every_topic_known, [])
    sums = []
    for i in range(20_000):
        labels.count(BatchEvent.REJECTED, f"flood-{i}", "10.0.0.1", "X", 1)
        if i >= 10_000 and i % 100 == 0:
            for topic in ("payments", "orders"):
                labels.count(BatchEvent.REJECTED, topic, "User:shop", "X", 1)
            sums.append(counters.batch_counts[REJECTED]["payments", "X"])

    assert sums == list(range(1, 101)), "a series that is not displaced never decreases"
    assert counters.batch_counts[REJECTED]["orders", "X"] == 100
    assert len(counters.batch_counts[REJECTED]) == MAX_TOPICS + 1
    assert counters.batch_counts[REJECTED].total() == 20_200


def test_topic_labels_are_shared_equally_by_clients_with_many_topics() -> None:
    counters = Counters()
    labels = TopicLabels(counters, every_topic_known, [])
    for i in range(3000):
        for owner in range(5):
            labels.count(BatchEvent.REJECTED, f"topic-{owner}-{i}", f"10.0.0.{owner}", "X", 1)

    placed = Counter(topic.split("-")[1] for topic, _ in counters.batch_counts[REJECTED] if topic != OTHER)
    assert set(placed.values()) == {MAX_TOPICS // 5}


def test_topic_first_counted_for_flooding_client_keeps_label_for_its_producer() -> None:
    counters = Counters()
    labels = TopicLabels(counters, every_topic_known, [])
    labels.count(BatchEvent.REJECTED, "payments", "10.0.0.1", "X", 1)
    for i in range(MAX_TOPICS - 1):
        labels.count(BatchEvent.REJECTED, f"flood-{i}", "10.0.0.1", "X", 1)
    labels.count(BatchEvent.REJECTED, "payments", "User:shop", "X", 1)
    for i in range(20_000):
        labels.count(BatchEvent.REJECTED, f"flood-{i}", "10.0.0.1", "X", 1)

    assert counters.batch_counts[REJECTED]["payments", "X"] == 2


def test_copied_counters_are_independent() -> None:
    counters = Counters(produce_requests=3)
    labels = TopicLabels(counters, every_topic_known, [])
    labels.count(BatchEvent.REJECTED, "t", "c", "X", 1)
    copy = labels.counted()
    labels.count(BatchEvent.REJECTED, "t", "c", "X", 1)

    assert (copy.produce_requests, copy.batch_counts[REJECTED]) == (3, {("t", "X"): 1})


def test_topic_label_limit_is_divided_among_workers() -> None:
    several = [Counters() for _ in range(4)]
    for number, counters in enumerate(several):
        labels = TopicLabels(counters, every_topic_known, [], topics_of_one(4))
        for i in range(1000):
            labels.count(BatchEvent.REJECTED, f"topic-{number}-{i}", "c", "X", 1)

    total = total_of(several)

    assert total.batch_counts[REJECTED].total() == 4000
    assert len(total.batch_counts[REJECTED_RECORDS]) <= MAX_TOPICS + 1


def test_counts_of_ended_workers_are_bounded() -> None:
    ended = Counters(
        batch_counts=BatchCounts(
            {REJECTED: Counter({(f"t-{i}", "X"): 1 for i in range(501)}), REJECTED_RECORDS: Counter({("t-1", "X"): 4})}
        ),
        produce_requests=9,
    )

    kept = with_few_topics(ended)

    assert kept.produce_requests == 9
    assert kept.batch_counts[REJECTED] == {(OTHER, "X"): 501}
    assert kept.batch_counts[REJECTED_RECORDS] == {(OTHER, "X"): 4}
    few = Counters(batch_counts=BatchCounts({REJECTED: Counter({("t", "X"): 1})}))
    assert with_few_topics(few) is few


def test_exact_names_exclude_topic_patterns() -> None:
    topics = [{"match": match} for match in ("payments", "orders.*", "/a|b/", "lo?s", "[ab]", "with.dots")]
    data = {"upstream": {"bootstrap": ["b:1"]}, "listen": {"bootstrap": "127.0.0.1:2"}, "topics": topics}

    assert exact_names(load(Source("test", data), {}).config) == ["payments", "with.dots"]
