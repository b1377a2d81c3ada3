"""The section `limits`: bounds on the memory, time and connections that clients can use."""

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import (
    Bytes,
    FrameBytes,
    OneOrMore,
    RuleMemory,
    Seconds,
)


@section
class Limits:
    """Bounds on the memory, time and connections that clients can use (docs/limits.md)."""

    max_frame_bytes: FrameBytes = described(
        "The maximum size of a request, and of a response that the proxy buffers.", default=104_857_600
    )
    max_buffered_bytes: Bytes = described(
        "The maximum memory for buffered requests and responses of all connections. It must be at least "
        "`max_frame_bytes`.",
        default=536_870_912,
        formerly="max_gathered_bytes",
    )
    max_decompressed_bytes: Bytes = described(
        "The maximum decompressed size of all batches of one Produce request.", default=134_217_728
    )
    max_decompression_ratio: OneOrMore = described(
        "The maximum ratio of a batch's decompressed size to its compressed size. It is checked after 1 MiB of "
        "decompressed data.",
        default=1000,
    )
    max_decompression_window_bytes: Bytes = described(
        "The maximum memory for decompressing one payload: the size of a zstd window, or of a snappy block.",
        default=16_777_216,
    )
    max_request_partitions: OneOrMore = described(
        "The maximum number of partitions in one Produce request.", default=5000
    )
    max_request_records: OneOrMore | None = described(
        "The maximum number of records in one Produce request, by the counts in its batches. Default: no limit "
        "except `max_frame_bytes` and `max_decompressed_bytes`.",
        default=None,
    )
    max_request_headers: OneOrMore | None = described(
        "The maximum number of record headers in one Produce request, if headers are validated. Default: no limit "
        "except `max_frame_bytes` and `max_decompressed_bytes`.",
        default=None,
    )
    max_record_errors: OneOrMore = described(
        "The maximum number of record errors in one response, over all partitions.", default=1000
    )
    max_quarantined_bytes: Bytes = described(
        "The maximum memory for bad records that wait to be written to dead-letter topics, over all connections.",
        default=134_217_728,
    )
    rule_cpu_seconds: Seconds = described(
        "The maximum CPU time that the rules process may use for the records of one Produce request, and for "
        "compiling one schema of a registry ([rules](rules.md#the-rules-process)).",
        default=2,
        formerly="rule_seconds",
    )
    rule_memory_bytes: RuleMemory = described(
        "The maximum memory of the rules process, not counting its libraries. A worker whose rules need the process "
        "has one, and a second one for 30 s after a costly evaluation.",
        default=268_435_456,
        formerly="rule_memory",
    )
    max_in_flight: OneOrMore = described("The maximum number of requests in flight on one connection.", default=1000)
    max_in_flight_total: OneOrMore | None = described(
        "The maximum number of requests in flight on all connections, including one long poll for each consumer. "
        "Default: no limit.",
        default=None,
        formerly="max_in_flight_in_all",
    )
    max_connections: OneOrMore | None = described(
        "The maximum number of client connections. Default: the number that the process's file descriptors allow.",
        default=None,
    )
    max_connections_per_address: OneOrMore | None = described(
        "The maximum number of client connections from one IP address. Default: no limit.", default=None
    )
    max_new_connections_per_second: OneOrMore | None = described(
        "The maximum rate of new connections on all listeners, and the burst after a quiet period. Connections "
        "above the rate are delayed, as with a broker's `max.connection.creation.rate`. Default: no limit.",
        default=None,
    )
    max_new_connections_per_second_per_address: OneOrMore | None = described(
        "The maximum rate of new connections from one IP address, and the burst after a quiet period. Connections "
        "above the rate are closed. Behind a load balancer the address is the one in the PROXY header. Default: no "
        "limit.",
        default=None,
    )
    max_handshakes: OneOrMore = described(
        "The maximum number of TLS handshakes and PROXY protocol headers in progress. Each uses 57 kB.", default=1000
    )
    handshake_timeout_seconds: Seconds = described(
        "The timeout of a TLS handshake or of a PROXY protocol header.", default=30, formerly="handshake_seconds"
    )
    frame_timeout_seconds: Seconds = described(
        "The timeout of a request. It must be complete within this time, unless it arrives at 32 KiB/s or faster.",
        default=30,
        formerly="frame_seconds",
    )
    idle_timeout_seconds: Seconds = described(
        "The time after which a connection without traffic is closed.", default=900, formerly="idle_seconds"
    )
    max_connection_age_seconds: Seconds | None = described(
        "The age at which the proxy closes a client's connection, between two requests. The proxy adds up to a tenth "
        "at random, so that clients reconnect to all replicas and workers. Default: no limit.",
        default=None,
        misnomers={"max_connection_age": "max_connection_age_seconds: {value}"},
    )

    def __post_init__(self) -> None:
        if self.max_buffered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_buffered_bytes must be at least limits.max_frame_bytes")
