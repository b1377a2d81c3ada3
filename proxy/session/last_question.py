"""What is asked on a TLS connection to a broker before it is closed.

TLS cannot be closed in one direction, and closing both may throw away what the broker has not read yet. A broker takes
the requests of a connection in turn, so when it has answered this one it has dealt with everything before it.
"""

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.headers import build_request_header

LAST_CORRELATION_ID = -2
_VERSION = 0  # has no body


def last_question() -> bytes:
    """An ApiVersions request (a frame without its size)."""
    header_version = APIS[ApiKey.API_VERSIONS].request_header_version(_VERSION)
    return build_request_header(ApiKey.API_VERSIONS, _VERSION, LAST_CORRELATION_ID, "sluicegate", header_version)
