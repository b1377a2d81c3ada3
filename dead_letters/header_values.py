"""Reads strings and numbers from a letter's headers. Headers are untrusted, so every reader limits what it accepts."""

from collections.abc import Mapping

Values = Mapping[bytes, bytes | None]
"""The last value of each header name, as Kafka's clients return it."""

_NAME_BYTES = 1024
_TEXT_BYTES = 4096
_DIGITS = 20
_LONG_BYTES = 8


def text_of(values: Values, name: bytes | None, most_bytes: int = _NAME_BYTES) -> str | None:
    """Return the beginning of a string; None if the header is absent or null, or if the format has no such header."""
    value = None if name is None else values.get(name)
    return None if value is None else value[:most_bytes].decode(errors="replace")


def long_text_of(values: Values, name: bytes | None) -> str:
    """Return the beginning of an error message, or an empty string if the header is absent or null."""
    return text_of(values, name, _TEXT_BYTES) or ""


def number_of(values: Values, name: bytes | None) -> int | None:
    """Return an int64 that is written in decimal, or None for anything else."""
    value = None if name is None else values.get(name)
    if value is None or not 0 < len(value) <= _DIGITS or not value.removeprefix(b"-").isdigit():
        return None
    found = int(value)
    return found if -(2**63) <= found < 2**63 else None


def big_endian_of(values: Values, name: bytes, size: int) -> int | None:
    """Return a signed big-endian integer of exactly `size` bytes, or None for anything else."""
    value = values.get(name)
    return None if value is None or len(value) != size else int.from_bytes(value, "big", signed=True)


def number_in_bytes(values: Values, name: bytes | None) -> int | None:
    """Return a signed big-endian integer of one to eight bytes, or None for anything else."""
    value = None if name is None else values.get(name)
    return None if not value or len(value) > _LONG_BYTES else int.from_bytes(value, "big", signed=True)
