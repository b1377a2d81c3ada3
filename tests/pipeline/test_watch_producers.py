"""A watch reports changes in a producer's invalid timestamps and distance from batch to batch."""

import json
from dataclasses import replace
from typing import Any

from sluicegate.pipeline.jobs.watch.findings import finding_line, finding_row
from sluicegate.pipeline.jobs.watch.producers import DistanceCounts, FindingSubject, Occurrence, Producers

HOUR, MINUTE = 3_600_000, 60_000
QUIET = 6 * HOUR


def invalid_timestamps(what: str, hour: int, records: int = 40, producer: int = 7) -> Occurrence:
    return Occurrence("orders", producer, FindingSubject.INVALID_TIMESTAMP, what, records, *(hour * HOUR,) * 4)


def distance_counts(counts: dict[int, int], hour: int) -> DistanceCounts:
    return DistanceCounts("orders", 7, FindingSubject.BEHIND, counts, hour * HOUR)


def finding_lines(producers: Producers, *seen: Occurrence, distances: tuple[DistanceCounts, ...] = ()) -> list[str]:
    return [
        finding_line(finding_row(each, "b", 0)).removeprefix("orders: ") for each in producers.take(seen, distances)
    ]


def restored_producers(producers: Producers) -> Producers:
    """Return the producers as a restarted run reads them."""
    return Producers.of_rows(json.loads(json.dumps(producers.rows())), QUIET)


def test_a_watch_reports_when_invalid_timestamps_begin_change_and_end() -> None:
    known = Producers(QUIET)

    assert finding_lines(known, invalid_timestamps("seconds", 10)) == [
        "producer 7: damage seconds began, 40 records, 1970-01-01 10:00"
    ]
    known = restored_producers(known)
    assert finding_lines(known, invalid_timestamps("seconds", 11)) == []
    assert finding_lines(known, invalid_timestamps("zero", 12)) == [
        "producer 7: damage changed from seconds to zero, 40 records, 1970-01-01 12:00"
    ]
    known = restored_producers(known)
    assert finding_lines(known, invalid_timestamps("zero", 17)) == []
    assert finding_lines(known, invalid_timestamps("zero", 18)) == [
        "producer 7: damage seconds has ended, 1970-01-01 11:00"
    ]
    assert finding_lines(known, distances=(distance_counts({0: 40}, 25),)) == [
        "producer 7: damage zero has ended, 1970-01-01 18:00"
    ]
    assert finding_lines(known, invalid_timestamps("zero", 26)) == [
        "producer 7: damage zero began, 40 records, 1970-01-02 02:00"
    ]


def test_invalid_timestamps_of_an_unknown_hour_are_not_reported_as_ended() -> None:
    """In the first batch of the topic all times are equal, so the invalid records may have been written at its end."""
    known = Producers(QUIET)
    going_on = replace(invalid_timestamps("seconds", 2), first_until=40 * HOUR, last_until=40 * HOUR)

    began = finding_lines(known, going_on, distances=(distance_counts({0: 40}, 30),))

    when = "between 1970-01-01 02:00 and 1970-01-02 16:00"
    assert began == [f"producer 7: damage seconds began, 40 records, {when}"]
    assert finding_lines(known, distances=(distance_counts({0: 40}, 46),)) == []
    assert finding_lines(known, distances=(distance_counts({0: 40}, 47),)) == [
        "producer 7: damage seconds has ended, 1970-01-02 16:00"
    ]


def test_producers_without_an_id_share_one_finding() -> None:
    known = Producers(QUIET)

    first = finding_lines(known, invalid_timestamps("zero", 1), invalid_timestamps("zero", 1, producer=-1))
    again = finding_lines(
        restored_producers(known),
        invalid_timestamps("zero", 1),
        invalid_timestamps("zero", 1, producer=-1),
        invalid_timestamps("zero", 1, producer=8),
    )

    assert [line.split(":")[0] for line in first] == ["producers without an id", "producer 7"]
    assert again == ["producer 8: damage zero began, 40 records, 1970-01-01 01:00"]


def test_a_distance_at_a_bound_is_not_reported_repeatedly() -> None:
    known, message = Producers(QUIET), list[str]()

    for step in (5 * MINUTE, 10 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE):
        message += finding_lines(known, distances=(distance_counts({step: 30, 0: 10}, 1),))

    words = "producer 7: half of the valid records are more than"
    assert message == [
        f"{words} 5 min behind their append, 40 records, 1970-01-01 01:00",
        f"{words} 15 min behind their append, was more than 5 min, 40 records, 1970-01-01 01:00",
    ]


def test_distance_is_reported_only_with_enough_records_and_above_one_minute() -> None:
    known = Producers(QUIET)

    assert finding_lines(known, distances=(distance_counts({30_000: 40}, 1),)) == []
    assert finding_lines(known, distances=(distance_counts({HOUR: 9}, 1),)) == []
    assert finding_lines(known, distances=(distance_counts({HOUR: 19, 0: 21}, 1),)) == []


def test_repeated_batch_gives_a_finding_the_same_id() -> None:
    def finding_rows() -> list[dict[str, Any]]:
        return [
            finding_row(each, "abc-00000001", 5) for each in Producers(QUIET).take([invalid_timestamps("zero", 1)], [])
        ]

    assert finding_rows() == finding_rows()
    assert (
        finding_rows()[0]["id"]
        != finding_row(Producers(QUIET).take([invalid_timestamps("zero", 1)], [])[0], "abc-00000002", 5)["id"]
    )


def test_keeps_only_the_latest_producers_up_to_the_limit() -> None:
    known = Producers(QUIET, most=100)

    known.take([invalid_timestamps("zero", n, producer=n) for n in range(250)], [])

    assert [producer for _, producer, *_ in known.rows()] == list(range(150, 250))
    known.take([invalid_timestamps("zero", 250 + 31 * 24, producer=1)], [])
    assert [producer for _, producer, *_ in known.rows()] == [1]
