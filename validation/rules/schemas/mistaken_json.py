"""Provides a hint for JSON where binary data are expected: the producer probably uses the wrong serializer."""

from typing import Final

_BRACKETS: Final = ((b"{", b"}"), (b"[", b"]"))


def json_hint(data: bytes, encoding: str) -> str:
    """Return the hint for data that are invalid in an encoding; empty if they do not look like JSON.

    The hint is a sentence that follows a question.
    """
    text = data.strip()
    if (text[:1], text[-1:]) not in _BRACKETS:
        return ""
    return f" It looks like JSON, but the topic requires {encoding}: use the serializer for {encoding}"
