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
    """Bounds on the memory, time and connections that clients can use (docs/reliability.md)."""

    max_frame_bytes: FrameBytes = described("size of a request, or of a response that is buffered", default=104_857_600)
    max_buffered_bytes: Bytes = described(
        "memory for buffered requests and responses of all connections; at least `max_frame_bytes`",
        default=536_870_912,
        formerly="max_gathered_bytes",
    )
    max_decompressed_bytes: Bytes = described(
        "decompressed size of all batches of one Produce request", default=134_217_728
    )
    max_decompression_ratio: OneOrMore = described(
        "ratio of a batch's decompressed to its compressed size; checked above 1 MiB", default=1000
    )
    max_decompression_window_bytes: Bytes = described(
        "memory for decompressing one payload: a zstd window, a snappy block", default=16_777_216
    )
    max_request_partitions: OneOrMore = described("partitions in one Produce request", default=5000)
    max_request_records: OneOrMore | None = described(
        "records in one Produce request, by the counts in its batches. Default: no limit but `max_frame_bytes` and "
        "`max_decompressed_bytes`",
        default=None,
    )
    max_request_headers: OneOrMore | None = described(
        "record headers in one Produce request, if they are validated. Default: no limit but `max_frame_bytes` and "
        "`max_decompressed_bytes`",
        default=None,
    )
    max_record_errors: OneOrMore = described("record errors in one response, of all partitions", default=1000)
    max_quarantined_bytes: Bytes = described(
        "memory for bad records until they are written to dead-letter topics, of all connections", default=134_217_728
    )
    rule_cpu_seconds: Seconds = described(
        "CPU time of the rules process for the records of one Produce request, and for compiling one schema of a "
        "registry ([policies](policies.md#the-rules-process))",
        default=2,
        formerly="rule_seconds",
    )
    rule_memory_bytes: RuleMemory = described(
        "memory of the rules process beyond its libraries; each worker has one such process if its rules need one, and "
        "a second one for 30 s after a costly evaluation",
        default=268_435_456,
        formerly="rule_memory",
    )
    max_in_flight: OneOrMore = described("requests in flight on one connection", default=1000)
    max_in_flight_total: OneOrMore | None = described(
        "requests in flight on all connections, long polls included (one for each consumer). Default: no bound",
        default=None,
        formerly="max_in_flight_in_all",
    )
    max_connections: OneOrMore | None = described(
        "client connections. Default: as many as the process has file descriptors for", default=None
    )
    max_connections_per_address: OneOrMore | None = described(
        "client connections from one IP address. Default: no bound", default=None
    )
    max_new_connections_per_second: OneOrMore | None = described(
        "rate of new connections on all listeners, and the burst after a quiet period; connections above it are "
        "delayed, as with a broker's `max.connection.creation.rate`. Default: no bound",
        default=None,
    )
    max_new_connections_per_second_per_address: OneOrMore | None = described(
        "rate of new connections from one IP address (behind a load balancer: the address in the PROXY header), and "
        "the burst after a quiet period; connections above it are closed. Default: no bound",
        default=None,
    )
    max_handshakes: OneOrMore = described(
        "TLS handshakes and PROXY protocol headers in progress (57 kB each)", default=1000
    )
    handshake_timeout_seconds: Seconds = described(
        "timeout of a TLS handshake or a PROXY protocol header", default=30, formerly="handshake_seconds"
    )
    frame_timeout_seconds: Seconds = described(
        "timeout of a request: it must be complete within this time, or bring at least 32 KiB/s",
        default=30,
        formerly="frame_seconds",
    )
    idle_timeout_seconds: Seconds = described(
        "timeout of a connection without traffic", default=900, formerly="idle_seconds"
    )
    max_connection_age_seconds: Seconds | None = described(
        "age at which a client's connection is closed between two requests, plus up to a tenth of it at random, so "
        "that clients connect anew to all replicas and workers. Default: no bound",
        default=None,
        misnomers={"max_connection_age": "max_connection_age_seconds: {value}"},
    )

    def __post_init__(self) -> None:
        if self.max_buffered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_buffered_bytes must be at least limits.max_frame_bytes")
