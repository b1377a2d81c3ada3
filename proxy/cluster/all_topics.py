"""List every topic that the proxy's own login can see, with the operations it may perform.

For commands that inspect a whole cluster; a running proxy asks only for topics that clients write to.
"""

import asyncio
from dataclasses import dataclass

from sluicegate.config.upstream import Upstream
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE, NO_OPERATIONS
from sluicegate.proxy.cluster.broker_client import BrokerClient, ask_any_broker
from sluicegate.proxy.network.tls.contexts import TlsContext

# Enough for 10,000 topics with some hundred partitions each.
_MAX_RESPONSE_BYTES = 256 << 20
_MAX_ELEMENTS = 50_000_000
_ALL_TOPICS_SINCE = 1
_OPERATIONS_SINCE = 8


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic in a Metadata response. `operations`: a bit for each of Kafka's AclOperation codes that the login may
    perform; None if the broker does not report them.
    """

    name: str
    is_internal: bool
    operations: int | None


async def all_topics(upstream: Upstream, tls: TlsContext | None) -> list[ListedTopic]:
    """Return the topics by name. Raises NoBrokerResponses, and SenderError for an invalid response."""
    _, (response, version) = await ask_any_broker(upstream, tls, _ask)
    return await asyncio.to_thread(_read, response, version)


async def _ask(client: BrokerClient) -> tuple[bytes, int]:
    version = max(client.version_of(ApiKey.METADATA), _ALL_TOPICS_SINCE)
    body = METADATA_REQUEST.build(
        {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": version >= _OPERATIONS_SINCE,
        },
        version,
    )
    return await client.call(ApiKey.METADATA, version, body, _MAX_RESPONSE_BYTES), version


def _read(response: bytes, version: int) -> list[ListedTopic]:
    topics = METADATA_RESPONSE.parse(response, version, _MAX_ELEMENTS)["topics"]
    return sorted(
        (
            ListedTopic(topic["name"], topic["is_internal"], _known_operations(topic["topic_authorized_operations"]))
            for topic in topics
            if not topic["error_code"] and topic["name"]
        ),
        key=lambda topic: topic.name,
    )


def _known_operations(operations: int) -> int | None:
    return None if operations == NO_OPERATIONS else operations
