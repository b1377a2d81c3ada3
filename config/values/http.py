"""Parses HTTP addresses and HTTP headers.

Headers have the form of OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`, URL-encoded.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~]([ !-~]*[!-~])?")
# Headers that the HTTP client itself sets.
_OWN = frozenset({"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection"})
_MOST = 20


def headers_in(text: str) -> dict[str, str]:
    """Return the headers. Raises ValueError; its message never quotes `text`, which may be secret."""
    headers: dict[str, str] = {}
    for number, part in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        name, equals, value = (found.strip() for found in part.partition("="))
        value = unquote(value)
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in headers:
            raise ValueError(
                f"header {number} is malformed or a duplicate: write name=value,name=value, with %2C for a comma in a "
                f"value"
            )
        if name.lower() in _OWN:
            raise ValueError(f"header {number} is one that the proxy itself sets: leave it out")
        headers[name.lower()] = value
    if not headers or len(headers) > _MOST:
        raise ValueError(f"headers: expected 1 to {_MOST} headers in the form name=value,name=value")
    return headers


def is_https(url: str) -> bool:
    """Return whether a URL requires TLS. A scheme may be in capital letters (RFC 3986, 3.1)."""
    return urlsplit(url).scheme == "https"


_NOT_IN_A_PATH = re.compile(r"[^!-~]")


def url_like(example: str) -> Callable[[str], str]:
    """Return a validator of base URLs. It raises ValueError with `example` in the message."""

    def can_be_asked(url: str) -> str:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError(f"expected a URL such as {example}") from None
        if "@" in parts.netloc:  # the part before it may be a secret
            raise ValueError("expected a URL without a user or password; they have keys of their own")
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.query or parts.fragment:
            raise ValueError(f"expected a URL such as {example}, http or https, without ? and #")
        if _NOT_IN_A_PATH.search(parts.path):
            raise ValueError("expected a URL with only ASCII characters in its path; encode others, for example as %20")
        return url

    return can_be_asked
