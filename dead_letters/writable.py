"""Finds records that librdkafka would change when it writes them."""

from collections.abc import Sequence


def why_unwritable(timestamp: int, headers: Sequence[tuple[bytes, bytes | None]]) -> str | None:
    """Return why librdkafka would change the record, or None if it would not.

    librdkafka treats a timestamp of 0 as no timestamp, and header names as UTF-8 C strings.
    """
    if timestamp == 0:
        return "client libraries cannot write a timestamp of 0"
    if not all(_is_writable_name(name) for name, _ in headers):
        return "client libraries cannot write a header name that is not UTF-8 or contains a zero byte"
    return None


def _is_writable_name(name: bytes) -> bool:
    try:
        return "\0" not in name.decode()
    except UnicodeDecodeError:
        return False
