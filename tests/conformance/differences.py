"""The only ways in which an answer through sluicegate may differ from a broker's own, each with its reason.

What is not here must be equal; docs/differences.md shows this list.
"""

import re
from typing import Any

_DIAGNOSIS = re.compile(r"(should be within \[[^]]*\]); (?:is|looks like) [^;]*$")

NULL_RECORDS = (
    "Null records (a field that no client leaves null): a broker fails over them without ever answering, so that the "
    "client waits for its timeout and its connection is stuck; sluicegate answers INVALID_RECORD for that partition."
)

LOG_START = (
    "log_start_offset of a rejected partition may be one second old: the broker is asked for it once a second for each "
    "partition, however many bad batches there are."
)

RECORD_ERRORS = (
    "At most limits.max_record_errors (1,000) record errors are listed in the answer to one request, the first ones; a "
    "broker lists all of them. Code and message are a broker's, and the message has their true number."
)

FRAMING = (
    "Batches that brokers store and that consumers read otherwise are rejected with 87 by default, and those that some "
    "clients cannot read are reported (`framing: safe`). With `framing: broker` both are forwarded, as a broker stores "
    "them."
)

DIAGNOSIS = (
    "What a record error says of a time ends with what that time looks like (`…; looks like nanoseconds: as "
    "milliseconds it is 0.2 s ago`). Up to there it is a broker's, and so is the partition's message."
)


def without_diagnosis(text: str) -> str:
    """A record error's text up to what a broker does not say."""
    return _DIAGNOSIS.sub(r"\1", text)


def is_old_log_start(expected: Any, found: Any) -> bool:
    """Whether nothing differs but a log start offset that has moved on since."""
    if isinstance(expected, str) or isinstance(found, str):
        return False
    if _without_log_starts(expected) != _without_log_starts(found):
        return False
    pairs = zip(_log_starts(expected), _log_starts(found), strict=True)
    return all(0 <= old < new for new, old in pairs if new != old)


def _log_starts(answer: Any) -> list[int]:
    return [
        entry.get("log_start_offset", -1) for topic in answer["responses"] for entry in topic["partition_responses"]
    ]


def _without_log_starts(answer: Any) -> Any:
    topics = [
        {**topic, "partition_responses": [{**e, "log_start_offset": 0} for e in topic["partition_responses"]]}
        for topic in answer["responses"]
    ]
    return {**answer, "responses": topics}
