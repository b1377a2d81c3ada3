"""Entries in the history contain texts and records, and several proxies' records form one entry."""

import json
from dataclasses import replace

import pytest

from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.change import Actor, ResumeEnforcement, StateChange, SuspendEnforcement, UnreadableChange
from sluicegate.proxy.state.history_entry import (
    ChangeEffect,
    Entry,
    Taken,
    decode,
    encode,
    entry_of,
    entry_of_reload,
    merged,
)
from sluicegate.proxy.watching.change_history import lines_of

NOON_MS = 1_795_780_800_000  # 2026-11-27T12:00:00Z
ADMIN = Actor("an administrator", "10.1.2.3")
SUSPENDED = StateChange(
    "a1", NOON_MS, ADMIN, "gate-1:19092", SuspendEnforcement("orders", "incident 7", NOON_MS + 3_600_000)
)
RESUMED = StateChange("a2", NOON_MS + 60_000, ADMIN, "gate-2:19092", ResumeEnforcement("orders"))


def taken(proxy: str, seconds: float) -> Taken:
    return Taken(proxy, NOON_MS + round(seconds * 1000))


def entry(proxy: str = "gate-1:19092", seconds: float = 0.1) -> Entry:
    return entry_of(SUSPENDED, AgreedState(), taken(proxy, seconds))


def test_entry_lines_describe_the_previous_state_and_what_is_looser() -> None:
    before = AgreedState().after(SUSPENDED, 0)

    assert entry().lines == (
        (ChangeEffect.LOOSER, "enforcement of orders is suspended until 2026-11-27T13:00:00Z: incident 7"),
        (ChangeEffect.LOOSER, "before: not suspended"),
    )
    resumed = entry_of(RESUMED, before, taken("gate-1:19092", 60.1))
    assert resumed.what == "resume orders"
    assert resumed.lines[0] == (ChangeEffect.STRICTER, "enforcement of orders is resumed")
    assert resumed.lines[1][1].startswith("before: enforcement is suspended for orders until")


def test_records_of_several_proxies_merge_into_one_entry_in_order_of_adoption() -> None:
    later = entry_of(RESUMED, AgreedState(), taken("gate-1:19092", 60.2))
    records = [entry("gate-2:19092", 0.3), later, entry("gate-1:19092", 0.1), entry("gate-2:19092", 9.0)]

    found = merged(decode(encode(each)) for each in records)

    assert [each.id for each in found] == ["a2", "a1"]
    assert found[1].taken == (taken("gate-1:19092", 0.1), taken("gate-2:19092", 0.3))


def test_reload_entry_has_a_bounded_number_of_lines() -> None:
    actor = Actor("policy files", "/etc/sluicegate/orders.yaml")
    changes = {"stricter": ["orders: mode: observe -> reject"], "looser": [f"t{i}: x" for i in range(100)]}
    found = entry_of_reload("b1", NOON_MS, actor, changes, "gate-1:19092")

    assert found.lines[0] == (ChangeEffect.STRICTER, "orders: mode: observe -> reject")
    assert len(found.lines) == 21
    assert found.lines[-1] == (ChangeEffect.CHANGED, "and 81 more")
    assert decode(encode(found)) == found


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"garbage",
        b"{}",
        b'{"version": 2}',
        b" " * 100_000,
        json.dumps({**json.loads(encode(entry())), "taken": []}).encode(),
        json.dumps({**json.loads(encode(entry())), "changes": [{"effect": "worse", "text": "a"}]}).encode(),
        json.dumps({**json.loads(encode(entry())), "changes": 7}).encode(),
    ],
)
def test_foreign_records_are_rejected_as_entries(value: bytes | None) -> None:
    with pytest.raises(UnreadableChange):
        decode(value)


def test_history_listing_shows_its_start_and_escapes_control_characters() -> None:
    strange = replace(entry(), actor=Actor("\x1b[31mroot", "10.1.2.3"))
    (one,) = merged([strange, entry("b", 2.1)])

    assert list(lines_of({"since_ms": NOON_MS, "is_complete": False, "changes": [one.as_json()]})) == [
        "1 changes since 2026-11-27T12:00:00Z; not all changes could be read in time: request fewer days",
        "",
        "2026-11-27T12:00:00Z suspend orders, by \\x1b[31mroot (10.1.2.3)",
        "  looser: enforcement of orders is suspended until 2026-11-27T13:00:00Z: incident 7",
        "  looser: before: not suspended",
        "  taken by gate-1:19092 (+0.1 s), b (+2.1 s)",
    ]
