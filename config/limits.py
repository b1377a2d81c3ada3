"""What any client can make the proxy hold or do: the section `limits`."""

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
    """Bounds on what any client can make the proxy hold or do (docs/reliability.md)."""

    max_frame_bytes: FrameBytes = described("largest request or gathered answer", default=104_857_600)
    max_buffered_bytes: Bytes = described(
        "all requests that are being gathered, of all connections together; at least `max_frame_bytes`",
        default=536_870_912,
        formerly="max_gathered_bytes",
    )
    max_decompressed_bytes: Bytes = described(
        "what the compressed batches of one request may become, all together", default=134_217_728
    )
    max_decompression_ratio: OneOrMore = described(
        "how many times its size a compressed batch may become (above 1 MiB)", default=1000
    )
    max_decompression_window_bytes: Bytes = described(
        "what may have to be held at once to read a payload: a zstd window, a snappy block", default=16_777_216
    )
    max_request_partitions: OneOrMore = described("partitions in one Produce request", default=5000)
    max_request_records: OneOrMore | None = described(
        "records in one Produce request, as its batches say; none: any number that fits `max_frame_bytes` and "
        "`max_decompressed_bytes`",
        default=None,
    )
    max_request_headers: OneOrMore | None = described(
        "headers of all records of one Produce request that are validated; none: any number that fits the same",
        default=None,
    )
    max_record_errors: OneOrMore = described(
        "record errors that are listed in one answer, all partitions together", default=1000
    )
    max_quarantined_bytes: Bytes = described(
        "what bad records that are being quarantined may take, of all connections together", default=134_217_728
    )
    rule_cpu_seconds: Seconds = described(
        "CPU time that the rules process may spend for the records of one Produce request, and for compiling one "
        "schema of a registry ([policies](policies.md#the-rules-process))",
        default=2,
        formerly="rule_seconds",
    )
    rule_memory_bytes: RuleMemory = described(
        "memory of the rules process beyond what its libraries take; each worker has one such process, if its rules "
        "need one",
        default=268_435_456,
        formerly="rule_memory",
    )
    max_in_flight: OneOrMore = described("requests of one connection without an answer", default=1000)
    max_in_flight_total: OneOrMore | None = described(
        "requests of all connections together without an answer, long polls included (each consumer has one); none: "
        "any number",
        default=None,
        formerly="max_in_flight_in_all",
    )
    max_connections: OneOrMore | None = described(
        "connections of all clients; none: as many as the process may have descriptors for", default=None
    )
    max_connections_per_address: OneOrMore | None = described(
        "connections from one address; none: no bound of its own", default=None
    )
    max_new_connections_per_second: OneOrMore | None = described(
        "new connections a second, on all listeners together, and as many at once after a quiet time; who comes "
        "faster waits, as with `max.connection.creation.rate` of a broker; none: no bound",
        default=None,
    )
    max_new_connections_per_second_per_address: OneOrMore | None = described(
        "new connections a second from one address, and as many at once after a quiet time; what comes faster is "
        "closed; where a load balancer tells who the client is, that address counts; none: no bound",
        default=None,
    )
    max_handshakes: OneOrMore = described(
        "TLS handshakes and PROXY protocol headers that are under way at once (57 kB each)", default=1000
    )
    handshake_timeout_seconds: Seconds = described(
        "how long a TLS handshake, or a PROXY protocol header, may take", default=30, formerly="handshake_seconds"
    )
    frame_timeout_seconds: Seconds = described(
        "how long a request may take to arrive", default=30, formerly="frame_seconds"
    )
    idle_timeout_seconds: Seconds = described(
        "how long a connection may say nothing", default=900, formerly="idle_seconds"
    )

    def __post_init__(self) -> None:
        if self.max_buffered_bytes < self.max_frame_bytes:
            raise ValueError("limits.max_buffered_bytes must be at least limits.max_frame_bytes")
