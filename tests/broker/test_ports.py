"""Ports are not reserved twice before the first caller has bound them."""

import socket
import subprocess
import sys

from tests.broker.ports import free_ports
from tests.oracle.kafka_java import ROOT

_ASKS_ELSEWHERE = "from tests.broker.ports import free_ports; print(*(free_ports(2) for _ in range(1000)))"


def test_another_caller_does_not_get_ports_that_are_not_bound_yet() -> None:
    mine = {port for first in (free_ports(4) for _ in range(16)) for port in range(first, first + 4)}

    output = subprocess.run(
        [sys.executable, "-c", _ASKS_ELSEWHERE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    theirs = {port for first in map(int, output.split()) for port in (first, first + 1)}

    assert len(mine) == 64
    assert not theirs & mine


def test_reserved_ports_can_be_bound() -> None:
    first = free_ports(2)
    for port in (first, first + 1):
        with socket.create_server(("127.0.0.1", port)):
            pass
