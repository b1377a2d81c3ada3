"""Generates the page about reasons for rejections.

`python -m sluicegate.proxy.reporting.events.reasons_reference > docs/reasons.md` writes the page.
"""

import sys
from typing import NamedTuple

from sluicegate.protocol.errors import ErrorCode
from sluicegate.validation.verdict import Reason

_HEAD = """\
# Reasons

The reason for a violation is a code. The same code is in events (`reason`), log lines, the header `sluicegate.reason`
of dead letters and marks, the web UI and the pipeline's tables. It is also the label `rule` of
`sluicegate_violations_total`, except that violations of rules have the rule's name there. Rehearsed bounds have
separate metrics. The column *Kafka error* lists the error that the producer gets if the batch is rejected and no error
of the broker takes precedence.

*Faulty client*: the client library is faulty, or is not a Kafka client. Update it, or report the bug to its
maintainers.
"""
_CORRECT_CLIENT = "Faulty client."
_LIMIT = "Send smaller batches, or raise `{}`."


class ReasonEntry(NamedTuple):
    """The errors with which a batch is rejected for a reason, and the advice for that reason."""

    errors: tuple[ErrorCode, ...]
    remedy: str


_INVALID_RECORD, _UNKNOWN = (ErrorCode.INVALID_RECORD,), (ErrorCode.UNKNOWN_SERVER_ERROR,)
ENTRIES: dict[Reason, ReasonEntry] = {
    Reason.TIMESTAMP_TOO_OLD: ReasonEntry(
        (ErrorCode.INVALID_TIMESTAMP,),
        "Correct the unit or the clock of the producer (the event's `diagnosis` names the likely mistake), or raise "
        "`message.timestamp.before.max.ms` for topics that receive old data.",
    ),
    Reason.TIMESTAMP_IN_FUTURE: ReasonEntry(
        (ErrorCode.INVALID_TIMESTAMP,),
        "Correct the unit or the clock of the producer; the event's `diagnosis` names the likely mistake.",
    ),
    Reason.REHEARSED_BOUND: ReasonEntry(
        (ErrorCode.INVALID_TIMESTAMP,), "Nothing is rejected. Correct the producer before the bound is enforced."
    ),
    Reason.LOG_APPEND_TIME: ReasonEntry(
        (ErrorCode.INVALID_TIMESTAMP,),
        "Use CreateTime in producers; only brokers set LogAppendTime. " + _CORRECT_CLIENT,
    ),
    Reason.NULL_KEY: ReasonEntry(_INVALID_RECORD, "Send a key with each record, or use a topic that is not compacted."),
    Reason.INNER_MAGIC: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.NESTED_COMPRESSION: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.NO_BATCH: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.UNSUPPORTED_MAGIC: ReasonEntry((ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE), _CORRECT_CLIENT),
    Reason.SEVERAL_BATCHES: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.BASE_OFFSET: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.BATCH_TOO_LARGE: ReasonEntry(
        (ErrorCode.MESSAGE_TOO_LARGE,), "Send smaller batches, or raise the topic's `max.message.bytes`."
    ),
    Reason.CRC_MISMATCH: ReasonEntry(
        (ErrorCode.CORRUPT_MESSAGE,),
        "The client retries. If it happens again, check the memory and network of its host.",
    ),
    Reason.UNSUPPORTED_CODEC: ReasonEntry(
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.INVALID_RECORD),
        "Set the producer's `compression.type` to gzip, snappy, lz4 or zstd; zstd requires Kafka clients 2.1 or later.",
    ),
    Reason.DAMAGED_PAYLOAD: ReasonEntry(_UNKNOWN, _CORRECT_CLIENT),
    Reason.DECOMPRESSION_LIMIT: ReasonEntry(_INVALID_RECORD, _LIMIT.format("limits.max_decompressed_bytes")),
    Reason.TOO_MANY_HEADERS: ReasonEntry(
        _INVALID_RECORD, "Send fewer record headers in a request, or raise `limits.max_request_headers`."
    ),
    Reason.RECORD_COUNT: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.CONTROL_BATCH: ReasonEntry(_INVALID_RECORD, "Only brokers write control batches. " + _CORRECT_CLIENT),
    Reason.MISSING_SEQUENCE: ReasonEntry(_INVALID_RECORD, _CORRECT_CLIENT),
    Reason.RECORD_FORMAT: ReasonEntry((ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR), _CORRECT_CLIENT),
    Reason.AMBIGUOUS_FRAMING: ReasonEntry(
        _INVALID_RECORD,
        "Clients would read records that differ from the validated ones ([framing](framing.md)). " + _CORRECT_CLIENT,
    ),
    Reason.UNREADABLE_FRAMING: ReasonEntry(
        _INVALID_RECORD,
        "The batch is forwarded under `framing: safe` and rejected under `strict` ([framing](framing.md)).",
    ),
    Reason.UNKNOWN_TOPIC_ID: ReasonEntry(
        (ErrorCode.UNKNOWN_TOPIC_ID,), "The topic was deleted or recreated. The client looks it up again and retries."
    ),
    Reason.OWN_TOPIC: ReasonEntry(
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.REQUEST_TIMED_OUT),
        "Write to other topics: this one has the [shared state](shared-state.md) of the proxies. Batches for other "
        "topics in the same request get the second error, and the client sends them again.",
    ),
    Reason.RULE_VIOLATED: ReasonEntry(
        _INVALID_RECORD,
        "The event's `rule` and `samples` name the rule and the expected content ([rules](rules.md)).",
    ),
    Reason.REQUEST_RULE_VIOLATED: ReasonEntry(
        (ErrorCode.POLICY_VIOLATION,), "Change the producer's setting that the message names, such as `acks`."
    ),
    Reason.DEPENDENCY_UNAVAILABLE: ReasonEntry(
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.POLICY_VIOLATION),
        "Restore the service that the message names, such as the schema registry. With `on_outage: retriable` the "
        "client retries until then.",
    ),
    Reason.SCHEMA_UNUSABLE: ReasonEntry(
        (ErrorCode.REQUEST_TIMED_OUT,),
        "Correct the schema that the message names. This reason applies with `on_schema_error: retriable` or "
        "`forward`; with `reject`, the record violates its rule.",
    ),
}
"""The errors and the advice for each reason."""


def page() -> str:
    """Return the page."""
    rows = (
        f"| `{reason.value}` | {reason.text} | {_shown(entry.errors)} | {entry.remedy} |\n"
        for reason, entry in ENTRIES.items()
    )
    return f"{_HEAD}\n| code | meaning | Kafka error | what to do |\n|---|---|---|---|\n{''.join(rows)}"


def _shown(errors: tuple[ErrorCode, ...]) -> str:
    return ", ".join(f"{int(error)} {error.name}" for error in errors)


if __name__ == "__main__":
    sys.stdout.write(page())
