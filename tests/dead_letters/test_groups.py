"""Letters with the same cause form one group, and the memory of a group is bounded."""

import pytest

from sluicegate.dead_letters import LetterGroups
from sluicegate.dead_letters.groups import MOST_GROUPS, OTHERS, ids_of
from tests.dead_letters.letters import CONNECT, SLUICEGATE, letter, streams_letter

# A person who read the messages of real libraries found that each pair has the same cause.
SAME = [
    (
        "Size of data received by LongDeserializer is not 8, but 3",
        "Size of data received by LongDeserializer is not 8, but 12",
    ),
    ("Error retrieving schema for id 17", "Error retrieving schema for id 100042"),
    ("no order 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "no order 7d444840-9dc0-11d1-b245-5ffdce74fad2"),
    ("timeout after 2026-11-30T12:00:00.123Z", "timeout after 2026-12-01T07:10:00.001Z"),
    ("com.acme.Order@1b28cdfa is invalid", "com.acme.Order@7f31245a is invalid"),
    ("Connection to 10.0.0.1:5432 refused", "Connection to 10.0.13.7:5432 refused"),
    ("bad checksum 0xdeadbeef", "bad checksum 0x01"),
    ("first line 1\n\tat com.acme.A", "first line 2\n\tat com.acme.B"),
]
DIFFERENT = [
    ("missing field 'tenant'", "missing field 'amount'"),
    ("Unknown magic byte!", "Error deserializing Avro message"),
    ("timeout", "connection refused"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_messages_that_differ_in_data_are_one_group(one: str, other: str) -> None:
    groups = LetterGroups()
    groups.add(streams_letter(one))
    groups.add(streams_letter(other))

    assert [group.count for group in groups.ordered()] == [2]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_messages_of_different_causes_are_different_groups(one: str, other: str) -> None:
    groups = LetterGroups()
    groups.add(streams_letter(one))
    groups.add(streams_letter(other))

    assert [group.count for group in groups.ordered()] == [1, 1]


def test_texts_in_quotes_that_always_differ_are_one_group() -> None:
    groups = LetterGroups()
    for i in range(100):
        groups.add(streams_letter(f"Unrecognized token '{chr(97 + i % 26)}{'x' * i}': was expecting JSON", i))

    (group,) = groups.ordered()
    assert group.count == 100
    assert group.example.record.offset == 0
    assert group.id in ids_of(streams_letter("Unrecognized token 'new': was expecting JSON"))


def test_groups_differ_by_error_rule_and_stage() -> None:
    groups = LetterGroups()
    for headers in (
        CONNECT,
        tuple((name, b"TASK_PUT" if name.endswith(b".stage") else value) for name, value in CONNECT),
        SLUICEGATE,
        (*SLUICEGATE, (b"sluicegate.rule", b"has-tenant")),
    ):
        groups.add(letter(headers))

    assert len({group.id for group in groups.ordered()}) == 4


def test_a_group_has_its_times_topics_clients_and_schemas() -> None:
    groups = LetterGroups()
    groups.add(letter(SLUICEGATE, b"\0\0\0\0\x07x", time=7_200_000))
    groups.add(letter(SLUICEGATE, b"{}", time=3_600_001))

    (group,) = groups.ordered()
    assert (group.first, group.last) == (3_600_001, 7_200_000)
    assert dict(group.topics) == {"orders": 2}
    assert dict(group.clients) == {"shop": 2}
    assert dict(group.schemas) == {"7": 1}
    assert dict(group.hours) == {"7200000": 1, "3600000": 1}


def test_hostile_letters_need_bounded_memory() -> None:
    groups = LetterGroups()
    words = [f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}q" for i in range(3 * MOST_GROUPS)]
    for i, word in enumerate(words):
        headers = ((b"__streams.errors.topic", word.encode()), (b"__streams.errors.message", word.encode()))
        groups.add(letter(headers, offset=i))

    found = groups.ordered()
    assert len(found) == MOST_GROUPS + 1
    assert found[0].cause.error == OTHERS
    assert found[0].count == 2 * MOST_GROUPS
    assert len(found[0].topics) == 51
