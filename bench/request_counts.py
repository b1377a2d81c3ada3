"""Counts connections and requests in a relay, which are the cost of a client to a broker apart from bytes."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from sluicegate.protocol.api import APIS

_READ_BYTES = 256 * 1024


@dataclass(slots=True)
class Counts:
    """The number of connections, and the number of requests by the name of their API."""

    connections: int = 0
    requests: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """Reset the counts."""
        self.connections = 0
        self.requests.clear()


@contextmanager
def counting_relay(listen: int, upstream: int) -> Iterator[Counts]:
    """Relay between two ports of this machine in a thread while the block runs."""
    counts, loop = Counts(), asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counts.connections += 1
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", upstream)
        back = asyncio.ensure_future(_copy(broker_reader, writer))
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                prefix = await reader.readexactly(4)
                frame = await reader.readexactly(int.from_bytes(prefix, "big"))
                counts.requests[APIS[int.from_bytes(frame[:2], "big")].name] += 1
                broker_writer.write(prefix + frame)
                await broker_writer.drain()
        broker_writer.close()
        await back

    started = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", listen))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield counts
    finally:
        loop.call_soon_threadsafe(started.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
