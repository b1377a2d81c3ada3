"""Looks up the ids of topics in the cluster, with the proxy's own login."""

import base64
from collections.abc import Iterable
from typing import Any

from sluicegate.proxy.state.topic_description import REQUEST_SECONDS, TopicUnavailable, result_of

_AT_ONCE = 1000


def text_of_id(topic_id: bytes) -> str:
    """Format an id as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def ids_of(client: Any, names: Iterable[str]) -> dict[str, str | None]:
    """Return the id of each topic, or None for a topic that does not exist.

    Topics that the login may not describe are omitted. `client` is librdkafka's admin client. Blocks for up to a few
    seconds. Raises TopicUnavailable if no broker responds.
    """
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    found: dict[str, str | None] = {}
    every = list(names)
    for first in range(0, len(every), _AT_ONCE):
        topics = confluent_kafka.TopicCollection(every[first : first + _AT_ONCE])
        for name, future in client.describe_topics(topics, request_timeout=REQUEST_SECONDS).items():
            try:
                found[name] = str(result_of(future).topic_id).translate({43: 45, 47: 95}).rstrip("=")
            except TopicUnavailable as error:
                if error.is_missing:
                    found[name] = None
                elif not error.is_denied:
                    raise
    return found
