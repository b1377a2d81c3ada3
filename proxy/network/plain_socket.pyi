import asyncio
import socket

from sluicegate.proxy.network.giving_way import GivingWay
from sluicegate.proxy.session.connection import Connection

class PlainSockets:
    giving_way: GivingWay
    def __init__(self, loop: asyncio.AbstractEventLoop, giving_way: GivingWay) -> None: ...
    def attach(self, plain: socket.socket, connection: Connection) -> None: ...
