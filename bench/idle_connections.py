"""What one more idle connection costs a proxy: resident memory with many, less that with few, divided."""

import socket
import time

from bench.small_requests import connect
from bench.targets import Target


def bytes_for_one(target: Target, few: int, many: int) -> float:
    """Both sides of a connection together, in bytes. Waits until the proxy has taken all of them."""
    sockets: list[socket.socket] = []
    try:
        sockets += connect(target, few)
        with_few = _settled(target)
        sockets += connect(target, many - few)
        return (_settled(target) - with_few) / (many - few)
    finally:
        for each in sockets:
            each.close()


def _settled(target: Target) -> int:
    """Resident bytes once they no longer move."""
    before = -1
    while (now := target.usage().resident_bytes) != before:
        before = now
        time.sleep(2)  # accepting goes on for a while behind the last connect
    return now
