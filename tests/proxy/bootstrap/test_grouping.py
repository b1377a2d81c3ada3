"""Topics with equal settings share an entry, and no pattern matches a topic with other settings."""

import time

import hypothesis.strategies as st
from hypothesis import given

from sluicegate.proxy.bootstrap.grouping import MOST_ENTRIES, GroupedTopics, grouped
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.topic_patterns import TopicPatterns

USUAL, HOUR, DAY = (ClusterSettings(after_max_ms=bound) for bound in (2**63 - 1, 3_600_000, 86_400_000))


def settings_of_first_match(found: GroupedTopics, name: str) -> ClusterSettings:
    """Return the settings of a topic as the proxy finds them in the entries."""
    place = TopicPatterns([entry.match for entry in found.entries]).first_match(name)
    return found.usual if place is None else found.entries[place].settings


def test_topics_with_equal_settings_and_a_common_prefix_become_a_glob() -> None:
    topics = {f"pay.{letter}": HOUR for letter in "abc"} | {f"t{i}": USUAL for i in range(9)}

    found = grouped(topics)

    assert (found.usual, found.usual_count) == (USUAL, 9)
    assert [(entry.match, entry.count) for entry in found.entries] == [("pay.*", 3)]
    mixed = grouped(topics | {"pay.d": USUAL})
    assert [entry.match for entry in mixed.entries] == ["/pay[.]a|pay[.]b|pay[.]c/"]


def test_grouping_no_topics_returns_no_entries() -> None:
    assert grouped({}).entries == ()


@given(st.dictionaries(st.text("ab.-_", min_size=1, max_size=6), st.sampled_from([USUAL, HOUR, DAY]), max_size=40))
def test_grouped_entries_give_every_topic_its_own_settings(drawn: dict[str, ClusterSettings]) -> None:
    topics = {name: settings for name, settings in drawn.items() if name not in {".", ".."}}

    found = grouped(topics)

    assert {name: settings_of_first_match(found, name) for name in topics} == topics
    assert sum(entry.count for entry in found.entries) + found.usual_count == len(topics)


def test_ten_thousand_different_topics_give_a_bounded_number_of_entries() -> None:
    started = time.monotonic()

    found = grouped({f"t{i}": ClusterSettings(max_message_bytes=i) for i in range(10_000)})

    assert len(found.entries) == MOST_ENTRIES
    assert found.without_entry == 10_000 - 1 - MOST_ENTRIES
    assert time.monotonic() - started < 10
