"""Free ports on the loopback, so that suites side by side do not meet."""

import random
import socket

_LOW, _HIGH = 20_000, 32_000  # below the range from which the system gives out ports by itself
_chance = random.SystemRandom()


def free_ports(count: int) -> int:
    """The first of `count` adjacent free ports."""
    while True:
        first = _chance.randrange(_LOW, _HIGH - count)
        if all(_is_free(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
