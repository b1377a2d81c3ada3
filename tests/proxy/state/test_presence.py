"""The proxies' announcements together describe the fleet, at a bounded cost."""

import json
from dataclasses import replace

import pytest

from sluicegate.proxy.state.bounded_read import TimedValue
from sluicegate.proxy.state.change import UnreadableChange
from sluicegate.proxy.state.fleet_view import FleetView, fleet_of
from sluicegate.proxy.state.presence import EVERY_SECONDS, Presence, decode, encode
from sluicegate.proxy.watching.fleet_listing import lines_of

NOW = 1_800_000_000_000
ONE = Presence(
    name="gate-1.example.com:19092",
    instance="a" * 32,
    started_ms=NOW - 3_600_000,
    time_ms=NOW,
    admin="10.1.2.3:9650",
    version="0.1.0",
    policies="0123456789ab",
    state="needs attention",
    conditions=("enforcement_suspended", "registry_unreachable"),
    counters={"connections": 1200, "produce_requests": 10**9, "accepted_records": 10**10, "violations": 10**6},
)
TWO = replace(ONE, name="gate-2.example.com:19092", instance="b" * 32, state="serving", conditions=())


def stored_record(presence: Presence, at_ms: int | None = None, by_broker: bool = True) -> TimedValue:
    return TimedValue(encode(presence), presence.time_ms if at_ms is None else at_ms, by_broker)


def view_of(*records: TimedValue, own: str = "", now_ms: int = NOW) -> FleetView:
    return fleet_of(records, own, now_ms)


def findings_of(view: FleetView) -> list[tuple[str, str]]:
    return [(each.code.value, each.text) for each in view.findings]


def test_announcement_round_trips_through_its_record() -> None:
    assert decode(encode(ONE)) == ONE


def test_thousand_proxies_write_at_most_200_records_and_150_kb_per_second() -> None:
    records = 1000 / EVERY_SECONDS
    assert records == 200
    assert records * (len(encode(ONE)) + 100) < 150_000  # with a batch's own header, a key and no compression


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\x00", b"[]", b"x" * 5000, b'{"version": 2}'])
def test_malformed_announcement_is_rejected_and_ignored(value: bytes | None) -> None:
    with pytest.raises(UnreadableChange):
        decode(value)
    assert view_of(TimedValue(value, NOW, True), stored_record(ONE)).members[0].presence == ONE


def test_a_proxy_is_stale_after_15_s_and_forgotten_after_10_min() -> None:
    view = view_of(stored_record(ONE), stored_record(TWO), now_ms=NOW + 15_000)
    assert [view.is_stale(each) for each in view.members] == [False, False]
    later = view_of(stored_record(ONE), stored_record(replace(TWO, time_ms=NOW + 1)), now_ms=NOW + 15_001)
    assert [later.is_stale(each) for each in later.members] == [True, False]
    assert view_of(stored_record(ONE), now_ms=NOW + 600_001).members == ()


def test_clock_of_the_reader_is_corrected_by_its_own_announcement() -> None:
    """Its clock is an hour ahead of the broker's; nobody is stale for that."""
    ahead = replace(ONE, time_ms=NOW + 3_600_000)
    view = view_of(stored_record(ahead, NOW), stored_record(TWO), own=ONE.instance, now_ms=NOW + 3_600_000 + 2000)

    assert view.now_ms == NOW + 2000
    assert [view.is_stale(each) for each in view.members] == [False, False]
    assert findings_of(view) == [("clock_off", "the clock of gate-1.example.com:19092 is +3600 s off the broker's")]


def test_different_versions_and_policies_are_reported_with_their_proxies() -> None:
    view = view_of(stored_record(ONE), stored_record(replace(TWO, version="0.2.0", policies="ba9876543210")))

    assert findings_of(view) == [
        ("versions_differ", "2 versions: 0.1.0: gate-1.example.com:19092; 0.2.0: gate-2.example.com:19092"),
        (
            "policies_differ",
            "2 policies: 0123456789ab: gate-1.example.com:19092; ba9876543210: gate-2.example.com:19092",
        ),
    ]


def test_stale_proxies_are_ignored_in_findings() -> None:
    assert (
        view_of(
            stored_record(ONE), stored_record(replace(TWO, version="0.2.0", time_ms=NOW + 20_000)), now_ms=NOW + 20_000
        ).findings
        == ()
    )


def test_name_used_by_two_running_proxies_is_reported() -> None:
    again = replace(ONE, instance="c" * 32, admin="10.1.2.4:9650")
    records = [stored_record(replace(each, time_ms=NOW + i)) for i, each in enumerate((ONE, again, ONE, again))]

    view = view_of(*records)

    text = "gate-1.example.com:19092 is the name of 2 running proxies: 10.1.2.3:9650, 10.1.2.4:9650"
    assert findings_of(view) == [("name_used_twice", text)]


def test_restarted_proxy_is_listed_once() -> None:
    """The new process announced itself after the last announcement of the old one."""
    again = replace(ONE, instance="c" * 32, time_ms=NOW + 3000)

    view = view_of(stored_record(ONE), stored_record(again))

    assert [each.presence for each in view.members] == [again]
    assert view.findings == ()


def test_rates_are_counter_increases_between_two_announcements() -> None:
    later = replace(ONE, time_ms=NOW + 5000, counters={**ONE.counters, "violations": 10**6 + 20, "connections": 7})

    (member,) = view_of(stored_record(ONE), stored_record(later), now_ms=NOW + 5000).members

    assert member.rates == {"produce_requests": 0, "accepted_records": 0, "violations": 4}
    assert view_of(stored_record(ONE)).members[0].rates == {}


def test_clock_offset_is_unknown_without_broker_timestamps() -> None:
    view = view_of(stored_record(replace(ONE, time_ms=NOW - 9000), NOW, by_broker=False))
    assert (view.members[0].clock_off_ms, view.findings) == (None, ())


def test_fleet_listing_shows_findings_stale_proxies_and_conditions() -> None:
    view = view_of(stored_record(ONE), stored_record(replace(TWO, version="0.2.0", time_ms=NOW - 20_000)))

    assert list(lines_of(json.loads(json.dumps(view.as_json())))) == [
        "2 proxies, 1 of them stale",
        "gate-1.example.com:19092: needs attention (enforcement_suspended, registry_unreachable); admin 10.1.2.3:9650, "
        "sluicegate 0.1.0, policies 0123456789ab; 1200 connections, 1000000000 produce requests, 10000000000 accepted "
        "records, 1000000 violations",
        "gate-2.example.com:19092: stale since 2027-01-15T07:59:40Z; admin 10.1.2.3:9650, sluicegate 0.2.0, policies "
        "0123456789ab; 1200 connections, 1000000000 produce requests, 10000000000 accepted records, 1000000 violations",
    ]
