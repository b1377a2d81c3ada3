"""Metrics of connections, why they are paused, and the limits they reach."""

from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge
from sluicegate.proxy.session.lifecycle import Stage
from sluicegate.proxy.session.pause_reason import PauseReason

_STAGES = tuple(stage.name.lower() for stage in Stage if stage is not Stage.ENDED)
_SIDES = ("client", "broker")
_HOLDS = tuple((side, hold.name.lower()) for side in _SIDES for hold in PauseReason)
_SHARES = (
    "Shares: `small_requests` (up to 1 MiB), `large_requests`, `small_responses`, `large_responses`, "
    "`ordinary_requests` "
    "(begun on the fast path; where it is full the slow path gathers them), `quarantine` (bad records until they are "
    "stored)."
)

CONNECTIONS: tuple[Family, ...] = (
    gauge(
        "sluicegate_open_connections",
        "Client connections open now.",
        "Against `limits.max_connections`.",
        lambda s: s.tally.connections_opened - s.tally.connections_closed,
    ),
    gauge(
        "sluicegate_connections_by_stage",
        "Client connections by how far they have come, as a look about once a second saw them.",
        "Many in `connecting`: brokers take none, or clients connect and ask nothing. Many in `draining` or `leaving`: "
        "brokers do not answer.",
        lambda s: s.gauges.connections,
        ("stage",),
        _STAGES,
    ),
    gauge(
        "sluicegate_paused_connections",
        "Connections that are not read for a while, by side and by why, as a look about once a second saw them; one "
        "may be held for several reasons.",
        "What sessions wait for. `other_side_full`: the broker, or the client, does not take what it is sent; "
        "`responses_unread`: the client reads no answers; `in_flight`: too many requests without an answer, "
        "`in_flight_in_all`: of all clients together; `memory`: "
        "the budget is spent; `validating`: the validating thread; `settings`, `asking`: the cluster is asked "
        "about a topic; "
        "`quarantining`: bad records are being stored; `turn_over`: others go first; `rejections`: too many "
        "answers are "
        "kept; `turned_away`: a client that asks for what was not offered; "
        "`quota_turn`: a first request under a quota waits until nothing is owed; "
        "`quota`: a client that has sent more than its quota allows.",
        lambda s: s.gauges.paused,
        ("side", "reason"),
        _HOLDS,
    ),
    gauge(
        "sluicegate_in_flight_requests",
        "Requests without their answer yet.",
        "A rise with the same traffic: brokers answer slower.",
        lambda s: s.in_flight,
    ),
    gauge(
        "sluicegate_buffered_bytes",
        "Memory that is held for requests and answers which are gathered whole, by share.",
        f"Against `sluicegate_buffered_bytes_limit`: at the limit clients wait. {_SHARES}",
        lambda s: s.gauges.buffered_bytes,
        ("share",),
        ("ordinary_requests", "small_requests", "large_requests", "small_responses", "large_responses", "quarantine"),
    ),
    gauge(
        "sluicegate_buffered_bytes_limit",
        "What may be held, by share (limits.max_buffered_bytes, limits.max_quarantined_bytes).",
        "The bound of the one above.",
        lambda s: s.gauges.budget_bytes,
        ("share",),
    ),
    counter(
        "sluicegate_connections",
        "Client connections accepted.",
        "A rise without more traffic: clients that connect again and again.",
        lambda s: s.tally.connections_opened,
    ),
    counter(
        "sluicegate_connections_rejected",
        "Connections not taken because of a limit, or of who may connect.",
        "Any rise: `limit` is the key to raise, or somebody opens too many. `listen.…`: somebody tries "
        "who may not connect.",
        lambda s: s.tally.connections_rejected,
        ("limit",),
        (
            "limits.max_connections",
            "limits.max_connections_per_address",
            "limits.max_new_connections_per_second_per_address",
            "listen.allowed_addresses",
            "listen.tls.allowed_names",
            "quotas[].connections",
        ),
    ),
    counter(
        "sluicegate_quota_throttles",
        "How often a client was made to wait because it had sent more than its quota allows, by quota.",
        "The log has the clients (`client throttled`).",
        lambda s: s.tally.throttled,
        ("quota",),
    ),
    counter(
        "sluicegate_quota_throttle_seconds",
        "For how long, all clients together, by quota.",
        "Near the number of seconds that pass: somebody always sends more than it may.",
        lambda s: {quota: ms / 1000 for quota, ms in s.tally.throttled_ms.items()},
        ("quota",),
    ),
    counter(
        "sluicegate_connections_delayed",
        "Connections that waited before they were taken, because too many were new.",
        "Any rise: clients that connect again and again, or all of them come at once, as after a restart.",
        lambda s: s.tally.connections_delayed,
        ("limit",),
        ("limits.max_new_connections_per_second",),
    ),
    counter(
        "sluicegate_limits_reached",
        "Times that a limit was reached which ends or delays a request, or shortens its answer.",
        "Any rise: `limit` is the key. [limits.md](limits.md) says what happens at each.",
        lambda s: s.tally.limits_reached,
        ("limit",),
        (
            "limits.max_frame_bytes",
            "limits.max_buffered_bytes",
            "limits.max_decompressed_bytes",
            "limits.max_decompression_ratio",
            "limits.max_decompression_window_bytes",
            "limits.max_request_partitions",
            "limits.max_request_records",
            "limits.max_request_headers",
            "limits.max_record_errors",
            "limits.max_quarantined_bytes",
            "limits.rule_cpu_seconds",
            "limits.rule_memory_bytes",
            "limits.max_in_flight",
            "limits.max_in_flight_total",
            "limits.max_handshakes",
        ),
    ),
    counter(
        "sluicegate_connections_closed_by_limit",
        "Connections closed because of a limit or a timeout.",
        "`limits.frame_timeout_seconds`: a peer stopped in the middle of a frame; `limits.max_buffered_bytes`: a slow "
        "peer made others wait; `limits.idle_timeout_seconds`: nothing was sent, which is ordinary; "
        "`limits.handshake_timeout_seconds`: a peer did not finish its TLS handshake or PROXY protocol header.",
        lambda s: s.tally.closed_by_limit,
        ("limit",),
        (
            "limits.frame_timeout_seconds",
            "limits.max_buffered_bytes",
            "limits.idle_timeout_seconds",
            "limits.handshake_timeout_seconds",
        ),
    ),
    counter(
        "sluicegate_protocol_errors",
        "Connections closed because of what the client sent.",
        "A rise: somebody speaks another protocol, TLS on a plain port for instance; the log has the address.",
        lambda s: s.tally.protocol_errors,
    ),
    counter(
        "sluicegate_unsupported_versions",
        "Requests of an API or version that was not offered; the connection was closed.",
        "A rise: a client that goes by no ApiVersions answer.",
        lambda s: s.tally.unsupported_versions,
        ("api",),
    ),
    counter(
        "sluicegate_internal_errors",
        "Faults of sluicegate's own on the way of a request, by what was done.",
        "Any rise is a bug: the log has it, please report it. `closed`: the connection; `forwarded`: the request went "
        "on unvalidated (`on_internal_error`); `validated anew`: the fast path failed over one, and the slow "
        "path validated "
        "it; `not told`: what was validated is missing in counts or events; `as an outage`: a schema registry "
        "could not "
        "be asked, and its rules' `on_outage` held.",
        lambda s: s.tally.internal_errors,
        ("outcome",),
        ("closed", "forwarded", "revalidated", "unreported", "outage"),
    ),
    counter(
        "sluicegate_validations_abandoned",
        "Validations given up: their client had left.",
        "A rise: clients time out before large requests are validated.",
        lambda s: s.tally.validations_abandoned,
    ),
)
