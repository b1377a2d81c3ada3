"""Reserves free ports on the loopback address, without conflicts between parallel suites."""

import os
import random
import socket
from collections import deque
from collections.abc import Iterable

_LOW, _HIGH = 20_000, 32_000  # below the range of ephemeral ports
_chance = random.SystemRandom()
# A caller binds its ports a moment later. Until then, the UDP ports with the same numbers, which no test uses, are
# bound, so that no other caller in this or another process gets these numbers.
_RESERVED_AT_ONCE = 16
_reserved: deque[list[int]] = deque()  # descriptors


def free_ports(count: int) -> int:
    """Return the first of `count` adjacent free ports."""
    while True:
        first = _chance.randrange(_LOW, _HIGH - count)
        ports = range(first, first + count)
        if _reserve(ports):
            if all(_is_free(port) for port in ports):
                return first
            _give_back(_reserved.pop())


def _reserve(ports: Iterable[int]) -> bool:
    if len(_reserved) >= _RESERVED_AT_ONCE:
        _give_back(_reserved.popleft())
    taken: list[int] = []
    for port in ports:
        with socket.socket(type=socket.SOCK_DGRAM) as reserving:
            try:
                reserving.bind(("127.0.0.1", port))
            except OSError:
                _give_back(taken)
                return False
            taken.append(reserving.detach())
    _reserved.append(taken)
    return True


def _give_back(taken: list[int]) -> None:
    for descriptor in taken:
        os.close(descriptor)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
