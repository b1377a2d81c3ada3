"""Addresses of what is asked over HTTP."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

_NOT_IN_A_PATH = re.compile(r"[^!-~]")


def url_like(example: str) -> Callable[[str], str]:
    """Takes what can be asked, below which paths are put. What it makes raises ValueError, which names the example."""

    def can_be_asked(url: str) -> str:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError(f"expected a URL, as {example}") from None
        if "@" in parts.netloc:  # what stands before it may be a secret
            raise ValueError("expected a URL without a user or password; they have keys of their own")
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.query or parts.fragment:
            raise ValueError(f"expected a URL, as {example}, http or https, without ? and #")
        if _NOT_IN_A_PATH.search(parts.path):
            raise ValueError("expected a URL whose path has ASCII letters alone; write others as %20")
        return url

    return can_be_asked
