"""Runs a load balancer for several proxies with one name. It forwards each connection to the next proxy that accepts
it.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

_CHUNK = 65536


class Balancer:
    """Listens at `host` on each of `ports` and forwards to the same port of one of `behind`, in turn.

    It skips proxies that reject the connection. When one side closes, it closes the other.
    """

    def __init__(self, host: str, ports: Sequence[int], behind: Sequence[str]) -> None:
        self._host = host
        self._ports = ports
        self._behind = list(behind)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._ready = threading.Event()
        self.led = dict.fromkeys(behind, 0)
        """The number of connections to each proxy."""
        self.turned_away = 0
        """The number of connections that no proxy accepted."""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    # -- in its thread --------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        servers = [await asyncio.start_server(self._lead, self._host, port, backlog=1024) for port in self._ports]
        self._ready.set()
        await self._ended.wait()
        for server in servers:
            server.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        self._behind.append(self._behind.pop(0))
        for host in list(self._behind):
            with suppress(ConnectionError):
                other_reader, other_writer = await asyncio.open_connection(host, port)
                self.led[host] += 1
                try:
                    await asyncio.gather(_pass_on(reader, other_writer), _pass_on(other_reader, writer))
                finally:  # the balancer may stop before its clients
                    other_writer.close()
                    writer.close()
                return
        self.turned_away += 1
        writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                writer.write(data)
                await writer.drain()
    finally:  # also when the balancer stops
        writer.close()
