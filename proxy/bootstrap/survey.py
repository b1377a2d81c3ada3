"""Surveys a cluster's brokers and topic settings for a first configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.errors import SenderError
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.cluster.topics import RequestsFailed, all_topics, ask_many_topics, offers_settings
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, context_for_brokers
from sluicegate.proxy.session.opening.loop_detection import new_mark
from sluicegate.validation.cluster_settings import ClusterSettings

MOST_TOPICS = 10_000
"""The maximum number of topics whose settings are read, in alphabetical order."""

_OWN = "__"  # the prefix of internal topics of Kafka and of tools built on it


class SurveyFailed(Exception):
    """The cluster could not be read. The message gives the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class TopicSurvey:
    """The result of surveying a cluster.

    `topics` contains the topics' settings. `left_out` is the number of omitted topics. `complaints` explain why
    settings are missing.
    """

    brokers: Mapping[int, HostPort]
    topics: Mapping[str, ClusterSettings]
    left_out: int
    complaints: tuple[str, ...]


async def survey(upstream: Upstream) -> TopicSurvey:
    """Read the cluster. Raises SurveyFailed."""
    try:
        tls = context_for_brokers(upstream.tls) if upstream.tls is not None else None
        seen = await discover_cluster(upstream, tls, new_mark())
        if seen.answered_by is None or seen.login_rejected is not None:
            raise SurveyFailed(seen.reason or seen.login_rejected or "no broker responds")
        if seen.brokers is None:
            raise SurveyFailed(
                f"{seen.answered_by} requires a login: specify a client's settings with --client-config FILE"
            )
        seen_topics = await all_topics(upstream, tls)
        names = [topic.name for topic in seen_topics if not topic.is_internal and not topic.name.startswith(_OWN)]
        login = _login_of(upstream)
        if login is not None and not seen_topics:
            raise SurveyFailed(_sees_nothing(login, seen.brokers))
        if not await offers_settings(upstream, tls):
            return TopicSurvey(seen.brokers, {}, len(names), ("the brokers do not support DescribeConfigs",))
        described = await ask_many_topics(upstream, tls, names[:MOST_TOPICS])
    except (BadTlsFiles, NoBrokerResponses, SenderError) as error:
        raise SurveyFailed(str(error)) from error
    except RequestsFailed as error:
        raise SurveyFailed(_not_readable(str(error))) from error
    if described.complaints and not described.settings:
        raise SurveyFailed(_not_readable(next(iter(described.complaints.values()))))
    left_out = len(names) - len(described.settings)
    alike = {name: replace(each, set_on_topic=frozenset()) for name, each in described.settings.items()}
    return TopicSurvey(seen.brokers, alike, left_out, tuple(described.complaints.values()))


def _login_of(upstream: Upstream) -> str | None:
    if upstream.sasl is not None:
        return upstream.sasl.username or "the owner of the token"
    return None if upstream.tls is None else upstream.tls.certificate_file


def broker_list(brokers: Mapping[int, HostPort]) -> str:
    """Format the brokers as a list for a message."""
    return ", ".join(f"{node_id} at {address}" for node_id, address in sorted(brokers.items()))


def _sees_nothing(login: str, brokers: Mapping[int, HostPort]) -> str:
    advice = "allow it DESCRIBE and DESCRIBE_CONFIGS on topics"
    return f"found brokers {broker_list(brokers)}, but {login} sees no topic: {advice}"


def _not_readable(reason: str) -> str:
    return f"this login cannot read topics' settings; it needs DESCRIBE_CONFIGS on topics: {reason}"
