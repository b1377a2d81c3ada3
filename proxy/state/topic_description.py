"""Describes the cluster's topics with librdkafka's admin client and the proxy's own login."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.tls.contexts import MemoryFiles
from sluicegate.proxy.writing.topic_writer import client_settings

REQUEST_SECONDS = 3.0


class TopicUnavailable(Exception):
    """A topic cannot be described or created now.

    The message gives the reason. `is_missing` is true if the topic does not exist, and `is_denied` if the proxy's login
    may not describe it.
    """

    def __init__(self, why: str, is_missing: bool = False, is_denied: bool = False) -> None:
        super().__init__(why)
        self.is_missing = is_missing
        self.is_denied = is_denied


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic in the cluster. `replicas` is the smallest number of replicas of any of its partitions."""

    topic_id: str
    partitions: int
    replicas: int


def connected(upstream: Upstream, make: Callable[[dict[str, Any]], Any]) -> Any:
    """Call `make` with librdkafka's settings for `upstream`, and return its result. Raises TopicUnavailable."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    try:
        with MemoryFiles() as copies:
            return make(client_settings(upstream, copies))
    except (PasswordUnreadable, OSError, ValueError) as error:
        raise TopicUnavailable(str(error)) from None
    except confluent_kafka.KafkaException as error:
        raise TopicUnavailable(str(error.args[0].str())) from None


def admin_client(upstream: Upstream) -> Any:
    """Create an admin client. Raises TopicUnavailable."""
    from confluent_kafka import admin  # noqa: PLC0415  # the extra `topic`

    return connected(upstream, admin.AdminClient)


def result_of(future: "Future[Any]") -> Any:
    """Return the result of a request to the cluster. Blocks for up to a few seconds. Raises TopicUnavailable."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    try:
        return future.result(REQUEST_SECONDS + 1)
    except confluent_kafka.KafkaException as error:
        code, kinds = error.args[0].code(), confluent_kafka.KafkaError
        is_missing, is_denied = code == kinds.UNKNOWN_TOPIC_OR_PART, code == kinds.TOPIC_AUTHORIZATION_FAILED
        raise TopicUnavailable(str(error.args[0].str()), is_missing, is_denied) from None
    except TimeoutError:
        raise TopicUnavailable(f"no broker responded within {REQUEST_SECONDS:.0f} s") from None


def describe(client: Any, name: str) -> TopicDescription:
    """Return a topic's description. Never creates the topic. Raises TopicUnavailable."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    asked = client.describe_topics(confluent_kafka.TopicCollection([name]), request_timeout=REQUEST_SECONDS)
    found = result_of(asked[name])
    replicas = min((len(partition.replicas) for partition in found.partitions), default=0)
    return TopicDescription(str(found.topic_id), len(found.partitions), replicas)


def settings_of(client: Any, name: str) -> dict[str, str]:
    """Return a topic's settings. Raises TopicUnavailable."""
    from confluent_kafka import admin  # noqa: PLC0415  # the extra `topic`

    resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, name)
    (described,) = client.describe_configs([resource], request_timeout=REQUEST_SECONDS).values()
    return {key: entry.value for key, entry in result_of(described).items()}
