"""HTTP headers in one text, as OTEL_EXPORTER_OTLP_HEADERS has them: `name=value,name=value`, values as in URLs."""

import re
from urllib.parse import unquote

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~]([ !-~]*[!-~])?")
# What belongs to the request itself.
_OWN = frozenset({"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection"})
_MOST = 20


def headers_in(text: str) -> dict[str, str]:
    """Raises ValueError, whose text holds nothing of `text`: it may be a secret."""
    headers: dict[str, str] = {}
    for number, part in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        name, equals, value = (found.strip() for found in part.partition("="))
        value = unquote(value)
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in headers:
            raise ValueError(
                f"headers: number {number} is none, or one that was there before: write name=value,name=value, with "
                "%2C for a comma in a value"
            )
        if name.lower() in _OWN:
            raise ValueError(f"headers: number {number} is one that the proxy sets by itself: leave it out")
        headers[name.lower()] = value
    if not headers or len(headers) > _MOST:
        raise ValueError(f"headers: expected 1 to {_MOST}, as name=value,name=value")
    return headers
