"""Adds sluicegate's settings to a broker's response to DescribeConfigs."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sluicegate.config.setting_keys import PREFIX, SETTING_KEYS
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.described_settings import (
    DescribedSetting,
    Describing,
    encode_setting,
    read_describing,
    with_settings,
)
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import response_body_at
from sluicegate.proxy.session.settings.pieces import in_pieces
from sluicegate.proxy.session.topic_settings import TopicSettings

GiveWay = Callable[[], None]
_UNKNOWN_TYPE = 0


def listed_settings(stored: TopicSettings, topic: str, values: Mapping[str, str]) -> Iterator[DescribedSetting]:
    """Yield the settings that a topic has, with `values`, then those that it may have."""
    for name, value in values.items():
        key = SETTING_KEYS.get(name)
        kind, description = (_UNKNOWN_TYPE, None) if key is None else (key.type, key.description)
        yield DescribedSetting(name, value, kind, description)
    for key in stored.keys_of(topic):
        if key.name not in values:
            yield DescribedSetting(key.name, None, key.type, key.description)


def asked_topics(
    version: int, frame: bytes | bytearray, body_at: int, stored: TopicSettings, give_way: GiveWay
) -> Describing:
    """Parse a request. Return only topics with settings. Raises MalformedMessage."""
    return read_describing(frame, version, body_at, lambda topic: bool(stored.settings_of(topic)), PREFIX, give_way)


def described(version: int, response: bytearray, asked: Describing, stored: TopicSettings, give_way: GiveWay) -> Parts:
    """Return the client's response, in parts. Raises MalformedMessage."""
    body_at = response_body_at(response, APIS[ApiKey.DESCRIBE_CONFIGS].response_header_version(version))
    added = _Added(version, asked, stored).of_topic
    return in_pieces(with_settings(response, version, body_at, added, give_way), give_way)


class _Added:
    """The encoded settings to add. Defaults, which are the same for many topics, are encoded once."""

    def __init__(self, version: int, asked: Describing, stored: TopicSettings) -> None:
        self._version = version
        self._asked = asked
        self._mentions = {topic: iter(names) for topic, names in asked.topics.items()}
        self._stored = stored
        self._encoded: dict[DescribedSetting, bytes] = {}

    def of_topic(self, topic: str) -> Sequence[bytes]:
        """Return the settings for the next mention of a topic."""
        if topic not in self._mentions:
            return ()
        names = next(self._mentions[topic], None)
        values = self._stored.settings_of(topic)
        settings = listed_settings(self._stored, topic, values) if values else ()
        return [self._encode(each) for each in settings if names is None or each.name in names]

    def _encode(self, setting: DescribedSetting) -> bytes:
        found = self._encoded.get(setting)
        if found is None:
            found = encode_setting(
                setting, self._version, self._asked.include_synonyms, self._asked.include_documentation
            )
            if setting.value is None:
                self._encoded[setting] = found
        return found
