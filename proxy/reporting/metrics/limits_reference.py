"""The page of what happens at each limit, and which counter tells that it was reached.

`python -m sluicegate.proxy.reporting.metrics.limits_reference > docs/limits.md` writes it.
"""

import sys
from dataclasses import dataclass

from sluicegate.config.keys import each_key_of
from sluicegate.config.limits import Limits

_REACHED, _REJECTED = "sluicegate_limits_reached_total", "sluicegate_connections_rejected_total"
_DELAYED, _CUT_OFF = "sluicegate_connections_delayed_total", "sluicegate_connections_closed_by_limit_total"
_REJECTS = "the batch is rejected with `INVALID_RECORD` and a message that names the key; the connection stays"
_TOO_COSTLY = (
    'the record is rejected with `INVALID_RECORD`, "too costly to validate" and the key; where compiling its schema '
    "takes more, `on_schema_error` decides; its client waits for others for a while, with a log line"
)
_TURNED_AWAY = "the new connection is closed, with a log line; the others stay"


@dataclass(frozen=True, slots=True)
class AtLimit:
    """`happens`: what the client sees. `counter`: the metric whose label `limit` is the key."""

    happens: str
    counter: str


AT_LIMIT = {
    "limits.max_frame_bytes": AtLimit(
        "the connection is closed behind the answers to what came before, with a log line, as a broker does "
        "(socket.request.max.bytes); so does who speaks something else, as HTTP, whose first bytes claim much",
        _REACHED,
    ),
    "limits.max_buffered_bytes": AtLimit(
        "the client is read no further until others have given memory back; who is slow or reads nothing while others "
        "wait is closed with a log line (`sluicegate_connections_closed_by_limit_total` counts that)",
        _REACHED,
    ),
    "limits.max_decompressed_bytes": AtLimit(_REJECTS, _REACHED),
    "limits.max_decompression_ratio": AtLimit(_REJECTS, _REACHED),
    "limits.max_decompression_window_bytes": AtLimit(_REJECTS, _REACHED),
    "limits.max_request_partitions": AtLimit(
        "the connection is closed behind the answers to what came before, with a log line", _REACHED
    ),
    "limits.max_request_records": AtLimit(
        "the connection is closed behind the answers to what came before, with a log line", _REACHED
    ),
    "limits.max_request_headers": AtLimit(_REJECTS, _REACHED),
    "limits.max_record_errors": AtLimit(
        "the batch is rejected as it would be; further record errors are counted in its message and not listed",
        _REACHED,
    ),
    "limits.max_quarantined_bytes": AtLimit(
        "the batch is rejected with `REQUEST_TIMED_OUT`, which producers send again, and a message that names the key; "
        "nothing of it is stored",
        _REACHED,
    ),
    "limits.rule_cpu_seconds": AtLimit(_TOO_COSTLY, _REACHED),
    "limits.rule_memory_bytes": AtLimit(_TOO_COSTLY, _REACHED),
    "limits.max_in_flight": AtLimit("the client is read no further until an answer has come", _REACHED),
    "limits.max_in_flight_total": AtLimit(
        "the client is read no further until there is room again, in the order in which clients came, with a log line",
        _REACHED,
    ),
    "limits.max_connections": AtLimit(_TURNED_AWAY, _REJECTED),
    "limits.max_connections_per_address": AtLimit(
        f"{_TURNED_AWAY}, as a broker does (max.connections.per.ip)", _REJECTED
    ),
    "limits.max_new_connections_per_second": AtLimit(
        "the new connection waits for its turn, with a log line; nobody is closed", _DELAYED
    ),
    "limits.max_new_connections_per_second_per_address": AtLimit(
        f"{_TURNED_AWAY}, as a broker does behind a delay (connection_creation_rate of an address)", _REJECTED
    ),
    "limits.max_handshakes": AtLimit(
        "the handshake that began first is given up, with a log line, once it has had a second; until then new ones "
        "wait to be taken",
        _REACHED,
    ),
    "limits.handshake_timeout_seconds": AtLimit("the connection is closed, with a log line", _CUT_OFF),
    "limits.frame_timeout_seconds": AtLimit("the connection is closed, with a log line", _CUT_OFF),
    "limits.idle_timeout_seconds": AtLimit(
        "the connection is closed, with a log line, as a broker does (connections.max.idle.ms)", _CUT_OFF
    ),
}
_HEAD = """# Limits

What happens where a limit of `limits` is reached, never written by hand:
`python -m sluicegate.proxy.reporting.metrics.limits_reference > docs/limits.md`. What each key bounds is in
[configuration.md](configuration.md#limits), what a run measured in [reliability.md](reliability.md). A counter's label
`limit` is the key. Each key has a test that stands at its edge (`tests/docs/test_limits.py` names it).

| key | bounds | default | at the limit | counter |
|---|---|---|---|---|
"""
_TAIL = """
## Bounds without a key of their own here

- Headers of a request: by `max_frame_bytes` and `max_decompressed_bytes`. Each costs two bytes at least, and none
  becomes an object unless a rule asks for it; the rule `headers: {max_count: …}` bounds those of a record.
- The queue of violation events: `violations.queue_size`, counted in `sluicegate_violation_events_dropped_total`
  and, for `violations.topic`, in `sluicegate_violation_topic_events_dropped_total`. No client waits for it.
"""


def page() -> str:
    """The whole page."""
    rows = []
    for key in each_key_of(Limits):
        default = "none" if key.default is None else f"`{key.default}`"
        at = AT_LIMIT[f"limits.{key.name}"]
        rows.append(f"| `{key.name}` | {key.description} | {default} | {at.happens} | `{at.counter}` |\n")
    return _HEAD + "".join(rows) + _TAIL


if __name__ == "__main__":
    sys.stdout.write(page())
