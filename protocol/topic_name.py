"""Checks topic names as Kafka does (org.apache.kafka.common.internals.Topic)."""

import re

MAX_CHARACTERS = 249
LEGAL_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

_LEGAL = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_CHARACTERS}}}")


def is_legal_topic_name(name: str) -> bool:
    """Return whether a broker accepts this name for a topic."""
    return _LEGAL.fullmatch(name) is not None and name not in {".", ".."}
