"""A cluster's topics, learned from Metadata responses, with the topic ids of Produce v13 (KIP-516).

Only topics that brokers name are stored, so the cluster limits their number.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.headers import build_request_header, response_body_at
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.response_walks import topics_in
from sluicegate.protocol.topic_name import is_legal_topic_name

MAX_REQUESTED_IDS = 1000
_MAX_KNOWN = 100_000
_MAX_UNKNOWN_IDS = 10_000
_UNKNOWN_MS = 1000
_METADATA_VERSION = 12  # the first version that accepts topic ids without names
_CLIENT_ID = "sluicegate"
_NO_NAME_NO_TAGS = b"\0\0"
# The request neither creates topics nor asks for authorized operations, and has no tagged fields.
_AFTER_TOPICS = b"\0\0\0"


class TopicNames:
    """One cluster's topic names and ids. All connections share them, because a topic id never changes its meaning.

    Any thread may read `by_id`. At the limit, the oldest entries are dropped.
    """

    def __init__(self) -> None:
        self.by_id: OrderedDict[bytes, str] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._unknown_until: OrderedDict[bytes, int] = OrderedDict()

    def learn(self, topics: Iterable[tuple[bytes | None, str]]) -> None:
        """Store topics that a broker named, as pairs of an id (or None) and a name."""
        for topic_id, name in topics:
            if name in self._known:
                self._known.move_to_end(name)
            elif is_legal_topic_name(name):
                self._known[name] = None
            else:
                continue
            if topic_id is None:
                continue
            if topic_id in self.by_id:
                self.by_id.move_to_end(topic_id)
            else:
                self.by_id[topic_id] = name
        _drop_beyond(_MAX_KNOWN, self._known)
        _drop_beyond(_MAX_KNOWN, self.by_id)

    def is_known(self, name: str) -> bool:
        """Return whether a broker has named this topic."""
        return name in self._known

    def missing(self, topic_ids: Iterable[bytes], now_ms: int) -> list[bytes]:
        """Return the unknown ids to request, at most MAX_REQUESTED_IDS.

        Ids that were recently reported as unknown are omitted.
        """
        found: dict[bytes, None] = {}
        for topic_id in topic_ids:
            if topic_id in self.by_id or self._unknown_until.get(topic_id, now_ms) > now_ms:
                continue
            found[topic_id] = None
            if len(found) == MAX_REQUESTED_IDS:
                break
        return list(found)

    def note_requested(self, topic_ids: Iterable[bytes], now_ms: int) -> None:
        """Record that a broker was asked for these ids.

        Ids that remain without a name are not requested again for a second.
        """
        for topic_id in topic_ids:
            if topic_id not in self.by_id:
                self._unknown_until[topic_id] = now_ms + _UNKNOWN_MS
                self._unknown_until.move_to_end(topic_id)
        _drop_beyond(_MAX_UNKNOWN_IDS, self._unknown_until)

    def sweep(self, now_ms: int) -> None:
        """Drop expired entries. Called every few seconds."""
        while self._unknown_until and next(iter(self._unknown_until.values())) <= now_ms:
            self._unknown_until.popitem(last=False)


def _drop_beyond(bound: int, memory: OrderedDict[Any, Any]) -> None:
    while len(memory) > bound:
        memory.popitem(last=False)


def metadata_request(topic_ids: list[bytes], correlation_id: int) -> bytes:
    """Return a Metadata request (a frame without its size) for these ids."""
    header_version = APIS[ApiKey.METADATA].request_header_version(_METADATA_VERSION)
    header = build_request_header(ApiKey.METADATA, _METADATA_VERSION, correlation_id, _CLIENT_ID, header_version)
    topics = b"".join(topic_id + _NO_NAME_NO_TAGS for topic_id in topic_ids)
    return header + unsigned_varint(len(topic_ids) + 1) + topics + _AFTER_TOPICS


def names_in(frame: bytearray) -> list[tuple[bytes | None, str]]:
    """Return the (id, name) pairs in the response to `metadata_request`. Raises MalformedMessage."""
    header_version = APIS[ApiKey.METADATA].response_header_version(_METADATA_VERSION)
    return topics_in(frame, _METADATA_VERSION, response_body_at(frame, header_version))[0]
