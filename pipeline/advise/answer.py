"""What limits would do, in a sentence, and what follows from it."""

from collections.abc import Sequence

from sluicegate.pipeline.advise.advice import Advice
from sluicegate.pipeline.report.answer import Answer, counted, share
from sluicegate.protocol.int64 import LONG_MAX

_MOST_NAMED = 5


def answer(advice: Sequence[Advice]) -> Answer:
    """Of all topics with records."""
    if not advice:
        return Answer("There are no records that limits could be told from.", "Advise again when there are some.")
    records = sum(each.records for each in advice)
    refused = sum(each.behind.refused + each.ahead.refused for each in advice)
    sound = sum(each.behind.sound_refused + each.ahead.sound_refused for each in advice)
    found = (
        f"The tightest limits for {counted(len(advice), 'topic')} would have refused {share(refused, records)} of "
        f"{counted(records, 'record')}, {sound:,} of them sound."
    )
    loose = [each.topic for each in advice if _is_loose(each)]
    named = ", ".join(loose[:_MOST_NAMED]) + (f" and {len(loose) - _MOST_NAMED:,} more" if loose[_MOST_NAMED:] else "")
    more = f" On {named} sound records lie beyond every limit on one side; a larger --at-most finds one."
    return Answer(
        found,
        "Put the configuration below before producers: it reports and rejects nothing (defaults: mode: observe). Look "
        f"at its reports for a while, then enforce it with mode: reject.{more if loose else ''}",
    )


def _is_loose(each: Advice) -> bool:
    return not each.broker_sets_times and LONG_MAX in (each.behind.bound_ms, each.ahead.bound_ms)
