"""Requests for topic settings (DescribeConfigs), and how their responses are read.

One topic that makes a broker fail does not affect the others: a failed request is repeated in halves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from sluicegate.config.upstream import Upstream
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import ErrorCode, SenderError, error_name
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker, parsed
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.validation.cluster_settings import KEYS, ClusterSettings, settings_from

TOPICS_AT_ONCE = 500
"""How many one question names."""

_TOPIC_RESOURCE = 2
_MAX_WORDS = 300
# Enough to find one topic among 500 and to ask for the others.
_MAX_QUESTIONS = 20


class QuestionsFailed(Exception):
    """No broker told anything; the text says why."""


@dataclass(slots=True)
class Answers:
    """What was told: topics with their settings, those that are not there, and those of which no settings are told.

    `complaints` say why, of those and of topics of which nothing was told at all: one of them for each reason.
    """

    settings: dict[str, ClusterSettings] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    complaints: dict[str, str] = field(default_factory=dict)

    def add(self, more: "Answers") -> None:
        """What another question has told."""
        self.settings |= more.settings
        self.absent |= more.absent
        self.rejected |= more.rejected
        self.complaints = more.complaints | self.complaints

    def complain(self, reason: str, whose: str | None = None) -> None:
        """Something was not told; `whose` settings they are."""
        self.complaints.setdefault(reason, reason if whose is None else f"{whose}: {reason}")


@dataclass(frozen=True, slots=True)
class _NotTaken:
    """The broker was reached and had no answer to this very question."""

    reason: str


async def ask_topics(upstream: Upstream, tls: TlsContext | None, topics: Sequence[str]) -> Answers:
    """Ask for these topics, on one connection at a time. Raises QuestionsFailed when nothing was told of any."""
    found = Answers()
    waiting = [list(topics)]
    answered = False
    for _ in range(_MAX_QUESTIONS):
        if not waiting:
            break
        asked = waiting.pop()
        try:
            _, answer = await ask_any_broker(upstream, tls, partial(_ask, asked))
        except NoBrokerResponses as error:
            found.complain(str(error))
            break
        if isinstance(answer, _NotTaken):
            found.complain(answer.reason, _shown(asked))
            if len(asked) > 1:
                middle = len(asked) // 2
                waiting += [asked[middle:], asked[:middle]]
        else:
            answered = True
            found.add(answer)
    if not answered:
        raise QuestionsFailed(next(reversed(found.complaints.values())))
    return found


async def ask_many_topics(upstream: Upstream, tls: TlsContext | None, topics: Sequence[str]) -> Answers:
    """`ask_topics` for any number of them, in several questions. Raises QuestionsFailed."""
    found = Answers()
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        found.add(await ask_topics(upstream, tls, topics[first : first + TOPICS_AT_ONCE]))
    return found


async def _ask(topics: Sequence[str], client: BrokerClient) -> Answers | _NotTaken:
    resources = [
        {"resource_type": _TOPIC_RESOURCE, "resource_name": topic, "configuration_keys": list(KEYS)} for topic in topics
    ]
    version = client.version_of(ApiKey.DESCRIBE_CONFIGS)
    if version < 0:
        raise SenderError("the broker offers no DescribeConfigs")
    body = DESCRIBE_CONFIGS_REQUEST.build({"resources": resources}, version)
    try:
        answer = await client.call(ApiKey.DESCRIBE_CONFIGS, version, body)
        return await parsed(partial(_read, topics), answer, version)
    except (EOFError, ConnectionError, SenderError) as error:
        return _NotTaken(str(error)[:_MAX_WORDS])


def _read(asked: Sequence[str], answer: bytes, version: int) -> Answers:
    """Raises MalformedMessage."""
    found = Answers()
    left = dict.fromkeys(asked)
    for result in DESCRIBE_CONFIGS_RESPONSE.parse(answer, version)["results"] or ():
        topic = result["resource_name"]
        if result["resource_type"] != _TOPIC_RESOURCE or topic not in left:
            continue  # nobody asked
        del left[topic]
        complaint = _read_one(topic, result, found)
        if complaint is not None:
            found.rejected.add(topic)
            found.complain(complaint[:_MAX_WORDS], f"topic {topic}")
    if left:
        found.complain("left out of the answer", _shown(list(left)))
    return found


def _read_one(topic: str, result: Value, found: Answers) -> str | None:
    """What is wrong with one topic's entry; None when nothing is."""
    code = result["error_code"]
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        found.absent.add(topic)
        return None
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return f"{error_name(code)}: allow the proxy's principal DescribeConfigs, or set upstream.topic_settings: false"
    if code:
        return f"{error_name(code)}, {result['error_message'] or 'the broker does not say why'}"
    try:
        found.settings[topic] = settings_from({entry["name"]: entry["value"] for entry in result["configs"] or ()})
    except ValueError as error:
        return str(error)
    return None


def _shown(topics: Sequence[str]) -> str:
    return f"topic {topics[0]}" if len(topics) == 1 else f"{len(topics)} topics from {topics[0]} on"
