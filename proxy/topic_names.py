"""Topic ids and their names, learnt from Metadata answers; Produce v13 names topics by id alone (KIP-516)."""

from collections.abc import Iterable

from protocol.api import APIS, ApiKey
from protocol.errors import MalformedMessage
from protocol.headers import build_request_header, response_body_at
from protocol.messages import metadata

_MAX_KNOWN = 100_000
_ASKED_VERSION = 12  # the first that answers for ids alone
_CLIENT_ID = "sluicegate"


class TopicNames:
    """Shared by all connections: a topic id means the same everywhere in a cluster, for ever."""

    def __init__(self) -> None:
        self.by_id: dict[bytes, str] = {}

    def learn(self, pairs: Iterable[tuple[bytes, str]]) -> None:
        """Remember names; the oldest are forgotten beyond a bound."""
        for topic_id, name in pairs:
            self.by_id.setdefault(topic_id, name)
        while len(self.by_id) > _MAX_KNOWN:
            self.by_id.pop(next(iter(self.by_id)))

    def missing(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Those that are not known yet, each once."""
        return [topic_id for topic_id in dict.fromkeys(topic_ids) if topic_id not in self.by_id]


def question(topic_ids: Iterable[bytes], correlation_id: int) -> bytes:
    """A Metadata request (a frame without its size) for these ids."""
    header_version = APIS[ApiKey.METADATA].request_header_version(_ASKED_VERSION)
    header = build_request_header(ApiKey.METADATA, _ASKED_VERSION, correlation_id, _CLIENT_ID, header_version)
    topics = [{"topic_id": topic_id, "name": None} for topic_id in topic_ids]
    return header + metadata.REQUEST.build({"topics": topics, "allow_auto_topic_creation": False}, _ASKED_VERSION)


def names_in(frame: bytearray) -> list[tuple[bytes, str]]:
    """(id, name) of the topics in the answer to `question`. Raises MalformedMessage."""
    header_version = APIS[ApiKey.METADATA].response_header_version(_ASKED_VERSION)
    value = metadata.RESPONSE.parse(frame[response_body_at(frame, header_version) :], _ASKED_VERSION)
    if value["topics"] is None:
        raise MalformedMessage("a Metadata answer without topics")
    return [(t["topic_id"], t["name"]) for t in value["topics"] if t["error_code"] == 0 and t["name"]]
