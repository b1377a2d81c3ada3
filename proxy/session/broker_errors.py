"""Counts the error codes that brokers send to a client.

A whole response's error code has a fixed position, and `sluicegate.protocol.api` declares where the partitions' codes
are. Handlers that rewrite a response report its codes (`sluicegate.proxy.responses.rewriting`). If a response is
forwarded in pieces, only its first 4 KiB are read, because a partition with an error has no records. Reading the codes
in a forwarded response takes 0.3 us for a Produce response before v10 with one partition, and 0.16 us per partition of
a Fetch response.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, response_body_at
from sluicegate.protocol.response_walks import code_at, codes_in
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import WALKED, InFlightRequest
from sluicegate.proxy.session.reports import BrokerErrorSink

_CODE_BYTES = 2
_MOST_WALKED_BYTES = 4096


def expect_code(in_flight: InFlightRequest, api_key: int, version: int) -> InFlightRequest:
    """Make the proxy read the error codes in the response to `in_flight`, and return `in_flight`."""
    in_flight.api_key = api_key
    in_flight.version = version
    in_flight.code_at = code_position(api_key, version)
    return in_flight


@cache
def code_position(api_key: int, version: int) -> int:
    """Return the byte position of the error code in a response's frame.

    The result is WALKED if the response has several codes, and 0 if none is read.
    """
    if APIS[api_key].codes:
        return WALKED
    if api_key == ApiKey.FIND_COORDINATOR:
        return 0  # the code that rewrites the response reports them
    at = code_at(api_key, version)
    return 0 if at is None else CORRELATION_ID_BYTES + APIS[api_key].response_header_version(version) + at


class BrokerErrors:
    """Counts the errors that one session's broker returns. Never raises."""

    __slots__ = ("_counts", "_identity")

    def __init__(self, identity: ClientIdentity, counts: BrokerErrorSink) -> None:
        self._identity = identity
        self._counts = counts

    def responded(self, api_key: int, code: int) -> None:
        """Count an error code."""
        self._counts.broker_error(self._identity, api_key, code)

    def read(self, in_flight: InFlightRequest, frame: bytes | bytearray | memoryview) -> None:
        """Count the error codes in a response, or in the beginning of a response. `frame` has no size prefix."""
        at = in_flight.code_at
        if at > 0:
            code = (
                int.from_bytes(frame[at : at + _CODE_BYTES], "big", signed=True)
                if len(frame) >= at + _CODE_BYTES
                else 0
            )
            if code != 0:
                self.responded(in_flight.api_key, code)
        elif at == WALKED:
            api_key, version = in_flight.api_key, in_flight.version
            head = frame if isinstance(frame, bytearray) else bytes(frame[:_MOST_WALKED_BYTES])
            with suppress(MalformedMessage):  # the handler of this response rejects it
                body_at = response_body_at(head, APIS[api_key].response_header_version(version))
                self.count_codes(api_key, codes_in(api_key, version, head, body_at))

    def count_codes(self, api_key: int, codes: Iterable[int]) -> None:
        """Count a response's distinct error codes, except 0 (no error)."""
        for code in codes:
            if code != 0:
                self.responded(api_key, code)
