"""Generates the page about limits, with each limit's effect and counter.

`python -m sluicegate.proxy.reporting.metrics.limits_reference > docs/limits.md` writes the page.
"""

import sys
from dataclasses import dataclass

from sluicegate.config.keys import each_key_of
from sluicegate.config.limits import Limits

_REACHED, _REJECTED = "sluicegate_limits_reached_total", "sluicegate_connections_rejected_total"
_DELAYED, _CLOSED = "sluicegate_connections_delayed_total", "sluicegate_connections_closed_by_limit_total"
_REJECTS = (
    "The proxy rejects the batch with `INVALID_RECORD` and a message that names the key. The connection stays open"
)
_TOO_COSTLY = (
    'The proxy rejects the record with `INVALID_RECORD` and a message with "too costly to validate" and the key, logs '
    "the event, and delays the next validations of this client. `on_schema_error` applies if compiling a schema "
    "exceeds the limit"
)
_CONNECTION_REJECTED = "The proxy closes the new connection and logs it. Existing connections stay open"
_CONNECTION_CLOSED = "The proxy closes the connection and logs it"
_CLOSED_IN_ORDER = "The proxy closes the connection after the responses to earlier requests, and logs it"


@dataclass(frozen=True, slots=True)
class AtLimit:
    """What happens at a limit.

    `happens` describes the effect, without a final period. `counter` is the metric whose label `limit` contains the
    key.
    """

    happens: str
    counter: str


AT_LIMIT = {
    "limits.max_frame_bytes": AtLimit(
        f"{_CLOSED_IN_ORDER}, as a broker does (`socket.request.max.bytes`). Clients of other protocols, such as HTTP, "
        "also reach this limit, because their first bytes are read as a large size",
        _REACHED,
    ),
    "limits.max_buffered_bytes": AtLimit(
        "The proxy pauses the client until memory is free. While others wait, it closes connections of peers that are "
        "slow or do not read, logs them and counts them in `sluicegate_connections_closed_by_limit_total`",
        _REACHED,
    ),
    "limits.max_decompressed_bytes": AtLimit(_REJECTS, _REACHED),
    "limits.max_decompression_ratio": AtLimit(_REJECTS, _REACHED),
    "limits.max_decompression_window_bytes": AtLimit(_REJECTS, _REACHED),
    "limits.max_request_partitions": AtLimit(_CLOSED_IN_ORDER, _REACHED),
    "limits.max_request_records": AtLimit(_CLOSED_IN_ORDER, _REACHED),
    "limits.max_request_headers": AtLimit(_REJECTS, _REACHED),
    "limits.max_record_errors": AtLimit(
        "The proxy rejects the batch. Its message counts further record errors without listing them",
        _REACHED,
    ),
    "limits.max_quarantined_bytes": AtLimit(
        "The proxy rejects the batch with `REQUEST_TIMED_OUT`, which producers retry, and a message that names the "
        "key. No record of the batch is stored",
        _REACHED,
    ),
    "limits.rule_cpu_seconds": AtLimit(_TOO_COSTLY, _REACHED),
    "limits.rule_memory_bytes": AtLimit(_TOO_COSTLY, _REACHED),
    "limits.max_in_flight": AtLimit("The proxy pauses the client until a response arrives", _REACHED),
    "limits.max_in_flight_total": AtLimit(
        "The proxy pauses clients until other requests have responses, resumes them in order of arrival, and logs this",
        _REACHED,
    ),
    "limits.max_connections": AtLimit(_CONNECTION_REJECTED, _REJECTED),
    "limits.max_connections_per_address": AtLimit(
        f"{_CONNECTION_REJECTED}, as on a broker (`max.connections.per.ip`)", _REJECTED
    ),
    "limits.max_new_connections_per_second": AtLimit(
        "The proxy delays the new connection and logs it. No connection is closed", _DELAYED
    ),
    "limits.max_new_connections_per_second_per_address": AtLimit(
        f"{_CONNECTION_REJECTED}. A broker closes such connections after a delay (`connection_creation_rate` of an IP)",
        _REJECTED,
    ),
    "limits.max_handshakes": AtLimit(
        "When the oldest handshake is a second old, the proxy closes its connection and logs it. Until then the proxy "
        "accepts no new connections",
        _REACHED,
    ),
    "limits.handshake_timeout_seconds": AtLimit(_CONNECTION_CLOSED, _CLOSED),
    "limits.frame_timeout_seconds": AtLimit(_CONNECTION_CLOSED, _CLOSED),
    "limits.idle_timeout_seconds": AtLimit(
        f"{_CONNECTION_CLOSED}, as a broker does (`connections.max.idle.ms`)", _CLOSED
    ),
    "limits.max_connection_age_seconds": AtLimit(
        "The proxy reads no more requests, and closes the connection after the responses to those in flight", _CLOSED
    ),
}
_HEAD = """# Limits

The effect of each key of the section [`limits`](configuration.md#limits), which has the meanings and defaults. The
label `limit` of each counter has the name of the key.

`python -m sluicegate.proxy.reporting.metrics.limits_reference > docs/limits.md` generates this page.
`tests/docs/test_limits.py` names a test at the boundary of each limit.

| key | effect at the limit | counter |
|---|---|---|
"""
_TAIL = """
## Bounds without a key in `limits`

- **Lengths and counts.** A varint of a tagged field or a length has at most five bytes, or ten for 64 bits. The proxy
  compares each count with the remaining bytes before it creates an object.
- **Topic names.** A name that no broker accepts (over 249 bytes, or with other characters than `a-zA-Z0-9._-`) is an
  unknown topic. The proxy neither matches nor remembers such a name, and counts it as `other`.
- **Before a login** a client may send at most 512 KiB, as at a broker. A PROXY protocol header has at most 4 KiB.
- **An API or version that the proxy has not offered.** The proxy closes the connection a tenth of a second later.
- **Headers of a record**: the rule `headers: {max_count: …}`. Without this rule, `max_frame_bytes` and
  `max_decompressed_bytes` limit the headers of a request.
- **Requests to a schema registry**: at most sixteen Produce requests wait for a schema at a time, eight of them of one
  client (an address with its principal). The proxy requests at most twenty unknown ids per second. A look-up,
  including all references of a schema, has ten seconds and 4 MiB.
- **The rules process**: an evaluation of more than 50 ms of CPU time (250 ms for compiling a schema) starts again in a
  second process, which ends after 30 s without work. A client waits at most 50 ms of CPU time for the evaluation of
  another client, and at most 100 ms if its rules run inline. A client with costly records waits for other clients with
  costly records, and a request with more than 1 MiB in one record for other such requests.
- **Policy files**: `topic_files` may match at most 1,000 files of 16 MiB in total. If a check of the files takes longer
  than 50 ms, the next pause is twenty times as long, up to 10 s.
- **Queue of violation events**: `violations.queue_size`. `sluicegate_violation_events_dropped_total` counts the dropped
  events, and `sluicegate_violation_topic_events_dropped_total` those for `violations.topic`.
- **Metrics** have labels for at most 500 topics, all of which the cluster has listed. Other topics count as `other`.
- **Traffic in the web UI**: 1000 topics and 500 clients with 3 kB each, so 4.5 MB in each worker. A new topic or client
  replaces the least recently active one.
"""


def page() -> str:
    """Return the page as Markdown. Consecutive keys with the same effect and counter share a row."""
    rows: list[tuple[list[str], AtLimit]] = []
    for key in each_key_of(Limits):
        at = AT_LIMIT[f"limits.{key.name}"]
        if rows and rows[-1][1] == at:
            rows[-1][0].append(f"`{key.name}`")
        else:
            rows.append(([f"`{key.name}`"], at))
    return _HEAD + "".join(f"| {', '.join(keys)} | {at.happens}. | `{at.counter}` |\n" for keys, at in rows) + _TAIL


if __name__ == "__main__":
    sys.stdout.write(page())
