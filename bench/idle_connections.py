"""Measures how much resident memory each additional idle connection costs a proxy.

The result is the difference between many and few connections, divided by their number.
"""

import socket
import time
from dataclasses import dataclass

from bench.small_requests import connect
from bench.targets import Target


@dataclass(frozen=True, slots=True)
class Idle:
    """A proxy with silent `connections`: its resident bytes, and the cost of each connection, including both sides."""

    connections: int
    resident_bytes: int
    bytes_for_one: float


def measure(target: Target, few: int, many: int) -> Idle:
    """Open the connections and wait until the proxy has accepted all of them."""
    sockets: list[socket.socket] = []
    try:
        sockets += connect(target, few)
        with_few = _settled(target)
        sockets += connect(target, many - few)
        with_many = _settled(target)
    finally:
        for each in sockets:
            each.close()
    return Idle(many, with_many, (with_many - with_few) / (many - few))


def _settled(target: Target) -> int:
    """Return the resident bytes when they no longer change."""
    before = -1
    while (now := target.usage().resident_bytes) != before:
        before = now
        time.sleep(2)  # the proxy still accepts connections for a while after the last connect
    return now
