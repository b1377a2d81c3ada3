"""What a first configuration is made of: the brokers, and what every topic is set to. Only asks."""

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.errors import SenderError
from sluicegate.proxy.cluster.all_topics import all_topics
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.cluster.topic_configs import RequestsFailed, ask_many_topics
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, context_for_brokers
from sluicegate.proxy.session.opening.loop_detection import new_mark
from sluicegate.validation.cluster_settings import ClusterSettings

MOST_TOPICS = 10_000
"""So many are asked for, by their names' order."""

_OWN = "__"  # what Kafka and what stands on it keep for themselves


class ClusterUnseen(Exception):
    """The cluster could not be asked; the text says what was seen, and what to do."""


@dataclass(frozen=True, slots=True)
class Survey:
    """`topics`: what each is set to; `left_out`: how many more there are; `complaints`: why some are not told."""

    brokers: Mapping[int, HostPort]
    topics: Mapping[str, ClusterSettings]
    left_out: int
    complaints: tuple[str, ...]


async def survey(upstream: Upstream) -> Survey:
    """Ask. Raises ClusterUnseen."""
    try:
        tls = context_for_brokers(upstream.tls) if upstream.tls is not None else None
        seen = await discover_cluster(upstream, tls, new_mark())
        if seen.answered_by is None or seen.login_rejected is not None:
            raise ClusterUnseen(seen.reason or seen.login_rejected or "no broker answers")
        if seen.brokers is None:
            raise ClusterUnseen(f"{seen.answered_by} wants a login: name a client's settings, --client-config FILE")
        shown = await all_topics(upstream, tls)
        names = [topic.name for topic in shown if not topic.is_internal and not topic.name.startswith(_OWN)]
        asked = names[:MOST_TOPICS]
        told = await ask_many_topics(upstream, tls, asked)
    except (BadTlsFiles, NoBrokerResponses, SenderError) as error:
        raise ClusterUnseen(str(error)) from error
    except RequestsFailed as error:
        raise ClusterUnseen(_not_told(str(error))) from error
    if told.complaints and not told.settings:
        raise ClusterUnseen(_not_told(next(iter(told.complaints.values()))))
    left_out = len(names) - len(told.settings)
    return Survey(seen.brokers, told.settings, left_out, tuple(told.complaints.values()))


def _not_told(reason: str) -> str:
    return f"topics' settings are not told to this login, which needs DESCRIBE_CONFIGS on topics: {reason}"
