"""Lists the only permitted differences between a response through sluicegate and a broker's response, each with its
reason.

Everything else must be equal. docs/differences.md shows this list.
"""

import re
from typing import Any

_DIAGNOSIS = re.compile(r"(should be within \[[^]]*\]); (?:is|looks like) [^;]*$")

NULL_RECORDS = (
    "Null records (no client sends a null field there): a broker fails without a response, and the client waits "
    "for its timeout. sluicegate responds with INVALID_RECORD for that partition."
)

LOG_START = "The log_start_offset of a rejected partition may be one second old."

RECORD_ERRORS = (
    "A response lists at most the first `limits.max_record_errors` (1,000) record errors of a request. The "
    "message has the total number."
)

FRAMING = (
    "`framing: safe` (the default) rejects batches that consumers read differently from brokers, and reports "
    "those that some clients cannot read ([framing](framing.md)). A broker stores both."
)

DIAGNOSIS = (
    "The message of a record error about a timestamp ends with a diagnosis (`…; looks like nanoseconds: as "
    "milliseconds it is 0.2 s ago`)."
)


def without_diagnosis(text: str) -> str:
    """Return a record error's text without the diagnosis."""
    return _DIAGNOSIS.sub(r"\1", text)


def is_old_log_start(expected: Any, found: Any) -> bool:
    """Return whether the only difference is a log start offset that has moved."""
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
