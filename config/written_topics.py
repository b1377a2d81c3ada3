"""Checks that each topic that the proxy itself writes has only one purpose."""

from collections.abc import Iterator, Sequence

from sluicegate.config.files.source import Path
from sluicegate.config.mistakes import Mistake
from sluicegate.config.state import StateTopics
from sluicegate.config.topics import Topic
from sluicegate.config.values.topic_pattern import compile_expression, exact_name_of, regular_expression_of


def mistakes_in_written_topics(
    topics: Sequence[Topic], events_topic: str | None, state: StateTopics | None
) -> Iterator[Mistake]:
    """Yield each topic with two purposes, and each dead-letter topic that has a dead-letter topic itself.

    `events_topic` is `violations.topic`, or None if it is not set. The topics in `state` must have no other purpose: a
    client that can write to them could control all policies, and clients do write to dead-letter topics.
    """
    purposes: dict[str, str] = {}
    for path, name in _named(events_topic, state):
        key = ".".join(map(str, path))
        if name in purposes:
            yield path, f"{name} is {purposes[name]} too: give each a topic of its own"
        purposes.setdefault(name, key)
    targets = {topic.quarantine: i for i, topic in reversed(list(enumerate(topics))) if topic.quarantine is not None}
    patterns = [_NameMatcher(topic.match) for topic in topics] if targets else []
    for target, i in targets.items():
        path = ("topics", i, "quarantine")
        decides = next((k for k, pattern in enumerate(patterns) if pattern.matches(target)), None)
        if target in purposes:
            yield path, f"{target} is {purposes[target]} too: give each a topic of its own"
        elif decides is not None and topics[decides].quarantine is not None:
            pattern = topics[decides].match
            words = f"put an entry for {target} before that one, without quarantine"
            yield path, f"{target} is quarantined itself, by topics[{decides}] ({pattern}): {words}"


def _named(events_topic: str | None, state: StateTopics | None) -> Iterator[tuple[Path, str]]:
    if state is not None:
        yield ("state", "topic"), state.topic
        yield ("state", "history_topic"), state.history
        yield ("state", "presence_topic"), state.presence
    if events_topic is not None:
        yield ("violations", "topic"), events_topic


class _NameMatcher:
    def __init__(self, match: str) -> None:
        self._exact = exact_name_of(match)
        self._compiled = compile_expression(regular_expression_of(match)) if self._exact is None else None

    def matches(self, name: str) -> bool:
        return name == self._exact if self._compiled is None else self._compiled.fullmatch(name) is not None
