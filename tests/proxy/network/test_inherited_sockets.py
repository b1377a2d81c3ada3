"""Inherited sockets are used as described in sd_listen_fds(3). The tests use a separate process with descriptors 3 and
4."""

import json
import os
import socket
import subprocess
import sys

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.inherited_sockets import InheritedSockets, inherited_sockets
from sluicegate.proxy.network.listeners import bind
from tests.broker.proxy_process import HAND_OVER

_LOOK = """import json, os, sys
from sluicegate.proxy.network.inherited_sockets import BadSocket, inherited_sockets
try:
    found = inherited_sockets(os.environ, os.getpid())
except BadSocket as error:
    sys.exit(str(error))
print(json.dumps([found.addresses, [each.get_inheritable() for each in found.sockets], "LISTEN_FDS" in os.environ]))"""


def _handed_over(*sockets: socket.socket) -> subprocess.CompletedProcess[str]:
    descriptors = [each.fileno() for each in sockets]
    command = [sys.executable, "-c", HAND_OVER, ",".join(map(str, descriptors)), sys.executable, "-c", _LOOK]
    return subprocess.run(command, pass_fds=descriptors, capture_output=True, text=True, check=False)


def test_handed_over_sockets_are_found_and_not_inherited_further() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        done = _handed_over(one, other)
        ports = [each.getsockname()[1] for each in (one, other)]

    addresses, are_inheritable, is_said = json.loads(done.stdout)
    assert addresses == [f"127.0.0.1:{port}" for port in ports]
    assert (are_inheritable, is_said) == ([False, False], False)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_handed_over_socket_that_does_not_listen_is_an_error_with_advice(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as idle:
        done = _handed_over(idle)

    assert done.returncode == 1
    assert done.stderr.startswith("inherited descriptor 3 does not listen for TCP: use only ListenStream=")


@pytest.mark.parametrize("said", [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "2"}, {"LISTEN_FDS": "2"}])
def test_ignores_inherited_sockets_meant_for_another_process(said: dict[str, str]) -> None:
    environment = {"PATH": "/bin", "LISTEN_FDNAMES": "a:b", **said}

    found = inherited_sockets(environment, os.getpid())

    assert (found.sockets, environment) == ((), {"PATH": "/bin"})


def test_an_address_that_was_not_handed_over_is_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        address = HostPort("127.0.0.1", there.getsockname()[1])
        bind_it = InheritedSockets((there,)).inherited_or_bind(bind)

        with bind_it(address) as same, bind_it(HostPort("127.0.0.1", 0)) as new:
            assert same.getsockname() == there.getsockname()
            assert new.getsockname() != there.getsockname()
