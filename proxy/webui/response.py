"""An answer of the admin endpoint."""

from collections.abc import Callable
from dataclasses import dataclass

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Response:
    """A status and what goes with it."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", TEXT),)


Slow = Callable[[], Response]
"""Makes a page, and may take a while: not for an event loop."""


def text_response(status: int, text: str, *headers: tuple[str, str]) -> Response:
    """A line for a person."""
    return Response(status, f"{text}\n".encode(), (("Content-Type", TEXT), *headers))
