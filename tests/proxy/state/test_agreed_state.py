"""Changes are stored as records. The records' order determines the state, whether the topic is compacted or not."""

import json
import random
from dataclasses import replace

import pytest

from sluicegate.proxy.state import agreed_state
from sluicegate.proxy.state.agreed_state import AgreedState, StateFull
from sluicegate.proxy.state.change import (
    Actor,
    Operation,
    ResumeEnforcement,
    StateChange,
    SuspendEnforcement,
    UnreadableChange,
    decode,
    encode,
    key_of,
)

NOON_MS = 1_795_780_800_000  # 2026-11-27T12:00:00Z
HOUR_MS = 3_600_000
ADMIN = Actor("an administrator", "10.1.2.3")


def change(operation: Operation, time_ms: int = NOON_MS) -> StateChange:
    return StateChange("a1", time_ms, ADMIN, "gate-1:19092", operation)


def suspension(topic: str | None, until_ms: int = NOON_MS + HOUR_MS) -> SuspendEnforcement:
    return SuspendEnforcement(topic, "incident 7", until_ms)


def state_after(*operations: Operation) -> AgreedState:
    state = AgreedState()
    for offset, operation in enumerate(operations):
        state = state.after(change(operation), offset)
    return state


def suspended(state: AgreedState) -> set[str | None]:
    return {each.topic for each in state.suspensions}


def test_suspension_text_names_its_actor_and_applies_to_all_proxies() -> None:
    (found,) = state_after(suspension("orders")).suspensions

    assert str(found) == (
        "enforcement is suspended for orders until 2026-11-27T13:00:00Z: incident 7 "
        "(all proxies, by an administrator at 10.1.2.3)"
    )


def test_resuming_one_topic_keeps_other_suspensions_and_resuming_all_ends_all() -> None:
    both = (suspension("orders"), suspension(None))

    assert suspended(state_after(*both)) == {"orders", None}
    assert suspended(state_after(*both, ResumeEnforcement("orders"))) == {None}
    assert suspended(state_after(*both, ResumeEnforcement(None))) == set()
    assert suspended(state_after(*both, ResumeEnforcement(None), suspension("orders"))) == {"orders"}


def test_a_later_suspension_of_a_topic_replaces_the_earlier_one() -> None:
    state = state_after(suspension("orders"), suspension("orders", NOON_MS + 2 * HOUR_MS))

    assert [each.until_ms for each in state.suspensions] == [NOON_MS + 2 * HOUR_MS]


def test_compacted_topic_gives_the_same_state_as_the_complete_topic() -> None:
    """Compaction keeps the last record of each key, in order."""
    choose = random.Random(65)
    for _ in range(500):
        topics = [choose.choice(["a", "b", "c", None]) for _ in range(12)]
        operations = [
            choose.choice([suspension(topic), suspension(topic), ResumeEnforcement(topic)]) for topic in topics
        ]
        last = {key_of(operation): i for i, operation in enumerate(operations)}
        kept = [operation for i, operation in enumerate(operations) if last[key_of(operation)] == i]

        assert suspended(state_after(*kept)) == suspended(state_after(*operations)), operations


def test_the_state_keeps_a_bounded_number_of_suspensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreed_state, "MAX_SUSPENSIONS", 2)
    state = state_after(suspension("a"), suspension("b"))

    with pytest.raises(StateFull):
        state.after(change(suspension("c")), 2)
    assert suspended(state.after(change(suspension("b")), 2)) == {"a", "b"}
    assert suspended(state.after(change(suspension("c"), NOON_MS + HOUR_MS), 2)) == {"c"}  # the others are over


@pytest.mark.parametrize(
    "operation", [suspension("orders"), suspension(None), ResumeEnforcement("orders"), ResumeEnforcement(None)]
)
def test_state_change_round_trips_through_its_record(operation: Operation) -> None:
    assert decode(encode(change(operation))) == change(operation)


def test_record_key_is_the_subject_of_the_operation() -> None:
    assert key_of(suspension("orders")) == key_of(ResumeEnforcement("orders")) == b"suspension/orders"
    assert key_of(suspension(None)) == b"suspension/*"
    assert key_of(ResumeEnforcement(None)) == b"resumption/*"  # kept in addition to a later suspension of all topics


def _with(**content: object) -> bytes:
    return json.dumps({**json.loads(encode(change(suspension("orders")))), **content}).encode()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no value"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 10_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b" " * 200_000, "200000 bytes, but only 163840 are allowed"),
        (_with(version=2), "version 2, but this proxy reads 1: it may need an upgrade"),
        (_with(version="\x1b[31m"), "version \\x1b[31m, but"),
        (_with(operation="format"), "operation"),
        (_with(topic="no/topic"), "topic"),
        (_with(topic=7), "topic"),
        (_with(until_ms="soon"), "until_ms"),
        (_with(until_ms=10**30), "until_ms"),
        (_with(until_ms=True), "until_ms"),
        (_with(time_ms=-1), "time_ms"),
        (_with(reason="a" * 1001), "reason"),
        (_with(actor="root"), "actor"),
        (b"{}", "version None"),
    ],
)
def test_unreadable_records_are_rejected_with_a_reason(value: bytes | None, reason: str) -> None:
    with pytest.raises(UnreadableChange) as raised:
        decode(value)

    assert reason in str(raised.value)


def test_texts_of_a_record_are_shown_without_control_characters() -> None:
    found = decode(encode(replace(change(suspension("orders")), actor=Actor("\x1b[31mroot", "10.1.2.3"))))

    assert found.actor.name == "\\x1b[31mroot"
