"""The only ways in which an answer through sluicegate may differ from a broker's own, each with its reason.

What is not here must be equal.
"""

from typing import Any

LOG_START_OFFSET = (
    "log_start_offset of a refused partition is -1 through the proxy: only the broker knows the real one, and it is "
    "not asked for a batch that never reaches it"
)

NULL_RECORDS = (
    "null records: a broker never answers such a request (4.3.1 and 3.9.1, v3 and later: the client waits until its "
    "timeout), sluicegate answers INVALID_RECORD for that partition"
)

ALLOWED = (LOG_START_OFFSET, NULL_RECORDS)


def without_allowed(answer: Any) -> Any:
    """The answer with what may differ taken out."""
    if isinstance(answer, str):
        return answer
    for topic in answer["responses"]:
        for entry in topic["partition_responses"]:
            if entry["error_code"] != 0:
                entry.pop("log_start_offset", None)
    return answer
