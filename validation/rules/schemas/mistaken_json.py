"""A hint for data of a binary encoding that are JSON: their producer has probably the wrong serializer."""

from typing import Final

_BRACKETS: Final = ((b"{", b"}"), (b"[", b"]"))


def json_hint(data: bytes, encoding: str) -> str:
    """Return the hint for invalid data of an encoding, a sentence after a question; empty if they look like no JSON."""
    text = data.strip()
    if (text[:1], text[-1:]) not in _BRACKETS:
        return ""
    return f" It looks like JSON, but the topic requires {encoding}: use the serializer for {encoding}"
