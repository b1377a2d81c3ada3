import asyncio
import socket

from sluicegate.proxy.session.connection import Connection

class PlainSockets:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def attach(self, plain: socket.socket, connection: Connection) -> None: ...
