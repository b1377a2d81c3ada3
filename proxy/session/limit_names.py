"""The configuration keys of limits on connections, as log lines and metrics show them."""

from sluicegate.protocol.errors import FrameSizeError, RequestTooLarge, SenderError, TooManyRecords

ALLOWED_NAMES = "listen.tls.allowed_names"
MAPPING_RULES = "listen.ssl.principal.mapping.rules"
CONNECTION_AGE = "limits.max_connection_age_seconds"
CONNECTIONS = "limits.max_connections"
CONNECTIONS_PER_ADDRESS = "limits.max_connections_per_address"
FRAME_BYTES = "limits.max_frame_bytes"
FRAME_SECONDS = "limits.frame_timeout_seconds"
GATHERED_BYTES = "limits.max_buffered_bytes"
IDLE_SECONDS = "limits.idle_timeout_seconds"
IN_FLIGHT = "limits.max_in_flight"
IN_FLIGHT_TOTAL = "limits.max_in_flight_total"
QUOTA_CONNECTIONS = "quotas[].connections"
REQUEST_PARTITIONS = "limits.max_request_partitions"
REQUEST_RECORDS = "limits.max_request_records"


def limit_of(error: SenderError) -> str | None:
    """Return the configuration key of the limit that the peer exceeded, or None if the error has another reason."""
    if isinstance(error, RequestTooLarge):
        return REQUEST_PARTITIONS
    if isinstance(error, TooManyRecords):
        return REQUEST_RECORDS
    return FRAME_BYTES if isinstance(error, FrameSizeError) and error.size > 0 else None
