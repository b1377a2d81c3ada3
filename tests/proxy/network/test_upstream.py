"""Whatever a broker calls itself, connecting to it ends in words."""

import asyncio
from typing import cast

import pytest
import uvloop

from sluicegate.config.address import HostPort
from sluicegate.proxy.network.native_sockets import native_sockets
from sluicegate.proxy.network.upstream import Dialler
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import UpstreamUnreachable
from tests.broker.ports import free_ports

IMPOSSIBLE = [
    HostPort("a..b", 9092),
    HostPort("a" * 70, 9092),
    HostPort("a" * 70 + ".example", 9092),
    HostPort("x." * 15_000, 9092),
    HostPort("\ud800", 9092),
    HostPort("a\0b", 9092),
    HostPort("", 9092),
    HostPort(".", 9092),
    HostPort("127.0.0.1", 0),
    HostPort("127.0.0.1", -1),
    HostPort("127.0.0.1", 65536),
    HostPort("127.0.0.1", 2**31 - 1),
]


async def reach(addresses: tuple[HostPort, ...]) -> None:
    """By native sockets where there are any."""
    nobody = cast(Connection, asyncio.Protocol())
    await Dialler(None, 2, native_sockets(asyncio.get_running_loop())).connect(addresses, nobody)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("address", IMPOSSIBLE, ids=lambda address: str(ascii(str(address)[:20])))
def test_an_address_that_cannot_be(address: HostPort, run: object) -> None:
    nobody = HostPort("127.0.0.1", free_ports(1))

    with pytest.raises(UpstreamUnreachable) as raised:
        run(reach((address, nobody)))  # type: ignore[operator]

    reasons = str(raised.value).split("; ")
    assert len(reasons) == 2  # the next address was tried
    assert len(str(raised.value)) < 600
    assert str(raised.value).isprintable()
