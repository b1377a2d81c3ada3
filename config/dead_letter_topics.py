"""What is quarantined goes to a topic that is not quarantined itself, or nobody would ever see the end of it."""

from collections.abc import Sequence

from sluicegate.config.topics import Topic
from sluicegate.config.values.topic_pattern import compiled, exact_name_of, regular_expression_of


def check_dead_letters(topics: Sequence[Topic], events_topic: str | None) -> None:
    """Raises ValueError for a dead-letter topic that the file has quarantined, or that violation events go to."""
    targets = {topic.quarantine: i for i, topic in reversed(list(enumerate(topics))) if topic.quarantine is not None}
    if not targets:
        return
    patterns = [_Pattern(topic.match) for topic in topics]
    for target, i in targets.items():
        decides = next((k for k, pattern in enumerate(patterns) if pattern.matches(target)), None)
        if decides is not None and topics[decides].quarantine is not None:
            raise ValueError(
                f"topics[{i}].quarantine: {target} is quarantined itself, by topics[{decides}] "
                f"({topics[decides].match}): put an entry for {target} before that one, without quarantine"
            )
        if target == events_topic:
            raise ValueError(f"topics[{i}].quarantine: {target} is violations.topic: give each a topic of its own")


class _Pattern:
    def __init__(self, match: str) -> None:
        self._exact = exact_name_of(match)
        self._compiled = compiled(regular_expression_of(match)) if self._exact is None else None

    def matches(self, name: str) -> bool:
        return name == self._exact if self._compiled is None else self._compiled.fullmatch(name) is not None
