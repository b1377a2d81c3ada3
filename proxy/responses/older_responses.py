"""Creates the responses to clients whose Produce requests were converted to a newer version."""

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.legacy_produce import in_older_version, with_successes
from sluicegate.proxy.responses.produce_responses import most_entries
from sluicegate.validation.produce.conversion import ConvertedRequest
from sluicegate.validation.verdict import Accepted


class OlderResponse:
    """The response to a converted request, in the version that the client used.

    A partition without messages gets success if the broker rejects only its stand-in.
    """

    def __init__(self, conversion: ConvertedRequest) -> None:
        request = conversion.request
        self._version = conversion.version
        self._most_entries = most_entries(request)
        self._empty = {
            (request.topics[t].name or "", request.topics[t].partitions[p].index)
            for (t, p), verdict in conversion.settled.items()
            if isinstance(verdict, Accepted)
        }

    def with_successes(self, frame: bytearray) -> bytearray:
        """Return the broker's response after setting the results of empty partitions. Raises MalformedMessage."""
        return with_successes(frame, self._empty, self._most_entries) if self._empty else frame

    def for_client(self, parts: Parts) -> Parts:
        """Convert a response to the converted request into the client's response. Raises MalformedMessage."""
        return (in_older_version(b"".join(parts), self._version, self._most_entries),)
