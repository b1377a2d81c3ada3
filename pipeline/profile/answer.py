"""What a profile has found, in a sentence, and what follows from it."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.profile.damage import Damage
from sluicegate.pipeline.report.answer import Answer, counted, in_words, share

_REPAIRED = frozenset(damage.value for damage in Damage if damage != Damage.PAST)


def answer(summary: Mapping[str, Any]) -> Answer:
    """Of all topics, and of the worst producer."""
    topics = summary["topics"]
    records = sum(topic["records"] for topic in topics.values())
    where = next(iter(topics)) if len(topics) == 1 else counted(len(topics), "topic")
    if not records:
        return Answer(f"{where} holds no records." if len(topics) == 1 else f"{where} hold no records.", "Nothing.")
    kinds = {d.value: sum(topic["damage"][d.value] for topic in topics.values()) for d in Damage}
    damaged = sum(kinds.values())
    if not damaged:
        return Answer(
            f"All timestamps of {counted(records, 'record')} in {where} are sound.",
            "Nothing needs repair. sluicegate-spark advise names the limits that would keep it so.",
        )
    name, producer = max(
        ((name, producer) for name, topic in topics.items() for producer in topic["producers"]),
        key=lambda found: sum(found[1]["damage"].values()),
    )
    its = sum(producer["damage"].values())
    of = f" on {name}" if len(topics) > 1 else ""
    found = (
        f"{share(damaged, records)} of {counted(records, 'record')} in {where} have a wrong timestamp "
        f"({in_words(kinds)}); {share(its, damaged)} of those come from one producer{of}, {producer_name(producer)}."
    )
    mended = "" if not any(kinds[kind] for kind in _REPAIRED) else ", repair shows what a clean copy would be"
    return Answer(
        found,
        "Mend that producer first: clients' names are not stored with records, but the proxy's violation events name "
        f"them. advise names limits that keep such records out{mended}.",
    )


def producer_name(producer: Mapping[str, Any]) -> str:
    """As far as what is stored tells: clients' names are not."""
    who = f"producer id {producer['producer_id']}" if producer["producer_id"] >= 0 else "without a producer id"
    return f"{who}, {'not compressed' if producer['codec'] == 'none' else producer['codec']}"


def worst_first(topics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Topics by how many of their records are damaged, then by how many they have."""
    return sorted(topics, key=lambda name: (-sum(topics[name]["damage"].values()), -topics[name]["records"], name))
