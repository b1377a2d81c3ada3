"""Declares the metrics about connections, the reasons for pauses, and the limits that connections reach."""

from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge
from sluicegate.proxy.session.lifecycle import Stage
from sluicegate.proxy.session.pause_reason import PauseReason

_STAGES = tuple(stage.name.lower() for stage in Stage if stage is not Stage.ENDED)
_SIDES = ("client", "broker")
_PAUSES = tuple((side, reason.name.lower()) for side in _SIDES for reason in PauseReason)
_SHARES = (
    "Shares: `small_requests` (up to 1 MiB), `large_requests`, `small_responses`, `large_responses`, "
    "`ordinary_requests` (on the fast path; if it is full, the slow path buffers them), `quarantine` (bad records "
    "that are not stored yet)."
)

CONNECTIONS: tuple[Family, ...] = (
    gauge(
        "sluicegate_open_connections",
        "Open client connections.",
        "Compare with `limits.max_connections`.",
        lambda s: s.counters.connections_opened - s.counters.connections_closed,
    ),
    gauge(
        "sluicegate_connections_by_stage",
        "Client connections by stage, sampled about once a second.",
        "If many are in `connecting`, brokers accept no connections, or clients send no requests. If many are in "
        "`draining` or `half_closed`, brokers do not respond.",
        lambda s: s.gauges.connections,
        ("stage",),
        _STAGES,
    ),
    gauge(
        "sluicegate_paused_connections",
        "Paused connections, by side and reason, sampled about once a second; a connection can have several reasons.",
        "Shows why the proxy does not read from connections. `peer_backpressure`: the peer does not read; "
        "`client_not_reading`: the client does not read its responses; `in_flight`: too many in-flight requests, "
        "`in_flight_total`: of all clients together; `memory`: the budget is exhausted; `validating`: a validation "
        "thread is busy; `settings`, `topic_names`: the proxy waits for topic settings or names from the cluster; "
        "`stored_times`: for the response to earlier batches, whose times `fix: previous` uses; `quarantining`: bad "
        "records are being stored; `fair_share`: other connections are served first; `rejections`: too many "
        "rejections are pending; `unsupported_api`: the client used an API that was not offered; `quota_queue`: a "
        "first request under a quota waits; `quota`: the client exceeded its quota.",
        lambda s: s.gauges.paused,
        ("side", "reason"),
        _PAUSES,
    ),
    gauge(
        "sluicegate_in_flight_requests",
        "Requests without a response.",
        "An increase at constant traffic means that brokers respond more slowly.",
        lambda s: s.in_flight,
    ),
    gauge(
        "sluicegate_buffered_bytes",
        "Memory for requests and responses that are buffered completely, by share of the budget.",
        f"Compare it with `sluicegate_buffered_bytes_limit`. At the limit the proxy pauses clients. {_SHARES}",
        lambda s: s.gauges.buffered_bytes,
        ("share",),
        ("ordinary_requests", "small_requests", "large_requests", "small_responses", "large_responses", "quarantine"),
    ),
    gauge(
        "sluicegate_buffered_bytes_limit",
        "Memory budget by share (limits.max_buffered_bytes, limits.max_quarantined_bytes).",
        "The limit of `sluicegate_buffered_bytes`.",
        lambda s: s.gauges.budget_bytes,
        ("share",),
    ),
    counter(
        "sluicegate_connections",
        "Accepted client connections.",
        "An increase at constant traffic means that clients reconnect.",
        lambda s: s.counters.connections_opened,
    ),
    counter(
        "sluicegate_connections_rejected",
        "Connections rejected by a limit or an access rule.",
        "`limit` is the configuration key: raise the limit, or find the client that opens too many connections. With "
        "a key of `listen`, an unauthorized client tries to connect.",
        lambda s: s.counters.connections_rejected,
        ("limit",),
        (
            "limits.max_connections",
            "limits.max_connections_per_address",
            "limits.max_new_connections_per_second_per_address",
            "listen.allowed_addresses",
            "listen.ssl.principal.mapping.rules",
            "listen.tls.allowed_names",
            "quotas[].connections",
        ),
    ),
    counter(
        "sluicegate_quota_throttles",
        "The number of times a client was throttled because it exceeded its quota, by quota.",
        "The log event `client throttled` names the clients.",
        lambda s: s.counters.throttled,
        ("quota",),
    ),
    counter(
        "sluicegate_quota_throttle_seconds",
        "Throttle time of all clients, in seconds, by quota.",
        "A rate near 1 means that a client exceeds its quota all the time.",
        lambda s: {quota: ms / 1000 for quota, ms in s.counters.throttled_ms.items()},
        ("quota",),
    ),
    counter(
        "sluicegate_connections_delayed",
        "Connections delayed by the limit on new connections.",
        "An increase means that clients reconnect in a loop, or all at once, for example after a restart.",
        lambda s: s.counters.connections_delayed,
        ("limit",),
        ("limits.max_new_connections_per_second",),
    ),
    counter(
        "sluicegate_limits_reached",
        "The number of times a limit rejected or delayed a request, or shortened a response.",
        "`limit` is the configuration key. [limits.md](limits.md) describes the effect of each limit.",
        lambda s: s.counters.limits_reached,
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
        "`limits.max_connection_age_seconds`: ordinary; `limits.handshake_timeout_seconds`: a peer did not finish its "
        "TLS handshake or PROXY protocol header.",
        lambda s: s.counters.closed_by_limit,
        ("limit",),
        (
            "limits.frame_timeout_seconds",
            "limits.max_buffered_bytes",
            "limits.idle_timeout_seconds",
            "limits.max_connection_age_seconds",
            "limits.handshake_timeout_seconds",
        ),
    ),
    counter(
        "sluicegate_protocol_errors",
        "Connections closed because the client violated the protocol.",
        "An increase means that a client uses another protocol, for example TLS on a plaintext port. The log shows the "
        "address.",
        lambda s: s.counters.protocol_errors,
    ),
    counter(
        "sluicegate_unsupported_versions",
        "Requests with an API or version that the proxy does not offer; the connection is closed.",
        "An increase means that a client ignores the ApiVersions response.",
        lambda s: s.counters.unsupported_versions,
        ("api",),
    ),
    counter(
        "sluicegate_internal_errors",
        "Internal errors while handling a request, by outcome.",
        "Any increase is a bug: please report it with the log line. `closed`: the connection was closed; `forwarded`: "
        "the "
        "request was forwarded unvalidated (`on_internal_error`); `revalidated`: the fast path failed, and the slow "
        "path validated the request; `unreported`: a validation is missing in metrics or events; `outage`: a request "
        "to a schema registry failed, and `on_outage` of the rule applied.",
        lambda s: s.counters.internal_errors,
        ("outcome",),
        ("closed", "forwarded", "revalidated", "unreported", "outage"),
    ),
    counter(
        "sluicegate_validations_abandoned",
        "Validations that were abandoned because the client disconnected.",
        "An increase means that clients time out before their large requests are validated.",
        lambda s: s.counters.validations_abandoned,
    ),
)
