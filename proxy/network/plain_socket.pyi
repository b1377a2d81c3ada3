import asyncio
import socket

from sluicegate.proxy.network.giving_way import GivingWay

class PlainSockets:
    giving_way: GivingWay
    def __init__(self, loop: asyncio.AbstractEventLoop, giving_way: GivingWay) -> None: ...
    def attach_client(self, plain: socket.socket, protocol: asyncio.BaseProtocol) -> None: ...
    def attach_broker(self, plain: socket.socket, protocol: asyncio.BaseProtocol) -> None: ...
