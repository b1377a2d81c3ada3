"""Creates the responses to clients whose Produce requests were converted to a newer version."""

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.legacy_produce import report_empty_partitions_as_stored, response_in_older_version
from sluicegate.proxy.responses.produce_responses import max_response_entries
from sluicegate.validation.produce.conversion import ConvertedRequest
from sluicegate.validation.verdict import Accepted


class OlderResponse:
    """The response to a converted request, in the version that the client used.

    A partition without messages gets success if the broker rejects only its stand-in.
    """

    def __init__(self, conversion: ConvertedRequest) -> None:
        request = conversion.request
        self._version = conversion.version
        self._most_entries = max_response_entries(request)
        self._empty = {
            (request.topics[t].name or "", request.topics[t].partitions[p].index)
            for (t, p), verdict in conversion.settled.items()
            if isinstance(verdict, Accepted)
        }

    def report_empty_partitions_as_stored(self, frame: bytearray) -> bytearray:
        """Return the broker's response after setting the results of empty partitions. Raises MalformedMessage."""
        return report_empty_partitions_as_stored(frame, self._empty, self._most_entries) if self._empty else frame

    def for_client(self, parts: Parts) -> Parts:
        """Convert a response to the converted request into the client's response. Raises MalformedMessage."""
        return (response_in_older_version(b"".join(parts), self._version, self._most_entries),)
