"""Why a damaged record is left as it is, and what to say where one is not."""

from typing import Any

from sluicegate.pipeline.jobs.profile.damage import Damage
from sluicegate.pipeline.jobs.profile.kinds import UNITS
from sluicegate.pipeline.jobs.repair.correction import Rules
from sluicegate.validation.odd_units import likely_unit


def why_left(row: dict[str, Any], rules: Rules) -> str | None:
    """Of a row of the before-and-after table; None where its records change."""
    if row["solved"]:
        return None
    damage = row["damage"]
    if damage in rules.keep:
        return f"left as it is: --keep {damage}"
    if damage == Damage.IMPLAUSIBLE:
        unit = likely_unit(row["example_before"], rules.now_ms)
        guess = f"the example is perhaps {unit}" if unit else "no unit fits the example"
        return f"left as it is: before --epoch, {guess}; --rewrite {damage} makes it the time of append"
    if row["may_be_sound"]:
        return f"left as it is: not ahead of the moment of reading, so it may be sound; --rewrite {damage} changes it"
    if damage in {unit.value for unit in UNITS.values()}:
        return "left as it is: even converted it lies ahead of the moment of reading"
    return "left as it is: nothing tells what it should be; --assume-ms MS gives a time"


def first_lines(summary: dict[str, Any]) -> list[str]:
    """What changes and what does not, in sentences: the sound-looking ones first."""
    topics = summary["topics"].values()
    sound = _sound_looking(summary)
    records = sum(topic["records"] for topic in topics)
    would = "have changed" if summary["applied"] else "would change"
    repaired, left = added_up(topics, "repaired"), added_up(topics, "undiagnosed")
    return [
        remarks(summary)[0],
        f"{sum(repaired.values()) - sound:,} damaged ones {would}, of {records:,} records in all{_in_words(repaired)}.",
        *(
            [f"{sum(left.values()):,} damaged ones are left as they are{_in_words(left)}; the table says why."]
            if left
            else ()
        ),
        *remarks(summary)[1:],
    ]


def remarks(summary: dict[str, Any]) -> list[str]:
    """How many sound-looking records change, what to know of the clean topics, and what stops the writing of them."""
    sound = _sound_looking(summary)
    would = "have changed" if summary["applied"] else "would change"
    why = " (their times are not ahead of the moment of reading; --rewrite asks for it)" if sound else ""
    return [
        f"{sound:,} sound-looking records {would}{why}.",
        *(f"Warning: {warning}." for warning in summary["warnings"]),
        *(f"This would stop --apply: {obstacle}" for obstacle in summary["obstacles"]),
    ]


def _sound_looking(summary: dict[str, Any]) -> int:
    return sum(topic["sound_looking"] for topic in summary["topics"].values())


def added_up(topics: Any, what: str) -> dict[str, int]:
    """Return counts by damage, over all topics of a summary. `what`: `repaired` or `undiagnosed`."""
    found: dict[str, int] = {}
    for topic in topics:
        for damage, count in topic[what].items():
            found[damage] = found.get(damage, 0) + count
    return found


def _in_words(counts: dict[str, int]) -> str:
    return ": " + ", ".join(f"{damage} {count:,}" for damage, count in sorted(counts.items())) if counts else ""
