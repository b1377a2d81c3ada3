"""The bounds that people set, and what lies beyond them."""

_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
LADDER_MS = (
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 3, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 3, 7, 14, 30, 90, 365, 3650)),
)
KAFKA_4_AFTER_MAX_MS = _HOUR
"""What Kafka 4 sets where nobody else does (KIP-937)."""


def in_words(milliseconds: int) -> str:
    """As `1 h` or `30 s`."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
