"""Which names a topic can have at any broker (Kafka: org.apache.kafka.common.internals.Topic)."""

import re

MAX_CHARACTERS = 249
LEGAL_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_CHARACTERS}}}")


def is_legal_topic_name(name: str) -> bool:
    """Whether a broker could have a topic of this name."""
    return _LEGAL.fullmatch(name) is not None and name not in {".", ".."}
