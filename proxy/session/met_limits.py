"""Which limit a connection has met, as the configuration names it."""

from sluicegate.protocol.errors import FrameSizeError, RequestTooLarge, SenderError, TooManyRecords

FRAME_BYTES = "limits.max_frame_bytes"
GATHERED_BYTES = "limits.max_gathered_bytes"
REQUEST_PARTITIONS = "limits.max_request_partitions"
REQUEST_RECORDS = "limits.max_request_records"
IN_FLIGHT = "limits.max_in_flight"


def limit_met_by(error: SenderError) -> str | None:
    """Of what a peer has sent; None: it is wrong for another reason."""
    if isinstance(error, RequestTooLarge):
        return REQUEST_PARTITIONS
    if isinstance(error, TooManyRecords):
        return REQUEST_RECORDS
    return FRAME_BYTES if isinstance(error, FrameSizeError) and error.size > 0 else None
