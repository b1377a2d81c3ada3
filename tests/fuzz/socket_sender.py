"""Sends mutated frames from many connections, in a separate process, and reconnects after a close."""

import asyncio
import random
import struct
import time
from collections import Counter

import uvloop

from tests.bounds.side_process import report, settings_from_arguments
from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import seed_requests

_FROM = "127.0.0.2"
_BURST = 2
_WAIT_SECONDS = 0.05
_ROUNDS = 60
_CONNECT_SECONDS = 20


class Sender:
    def __init__(self, host: str, port: int, seed: int, frames: int) -> None:
        self.host, self.port = host, port
        self.seed = seed
        self.left = frames
        self.counts: Counter[str] = Counter()
        self.requests = seed_requests()

    async def connection(self, number: int) -> None:
        chance = random.Random(self.seed * 1000 + number)
        while self.left > 0:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    reader, writer = await asyncio.open_connection(self.host, self.port, local_addr=(_FROM, 0))
            except (OSError, TimeoutError) as error:
                self.counts[f"not connected: {error!r}"[:60]] += 1
                await asyncio.sleep(0.05)
                continue
            self.counts["connections"] += 1
            try:
                await self._talk(chance, reader, writer)
            except (OSError, RuntimeError):  # uvloop raises RuntimeError for a closed transport
                self.counts["cut off"] += 1
            finally:
                writer.transport.abort()

    async def _talk(self, chance: random.Random, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(_ROUNDS):
            if self.left <= 0:
                return
            writer.write(b"".join(self._frame(chance) for _ in range(_BURST)))
            self.left -= _BURST
            self.counts["frames"] += _BURST
            try:
                async with asyncio.timeout(_WAIT_SECONDS):
                    while part := await reader.read(1 << 16):
                        self.counts["bytes received"] += len(part)
                        if chance.getrandbits(1):
                            break
                    else:
                        self.counts["closed"] += 1
                        return
            except TimeoutError:
                self.counts["without a response for a while"] += 1

    def _frame(self, chance: random.Random) -> bytes:
        """Return the frame, mostly with its correct size, so that the damage is within it."""
        frame = chance.choice(self.requests)
        if chance.getrandbits(2):
            frame = bytes(mutate(frame, chance, self.requests))
        size = len(frame)
        if not chance.getrandbits(6):
            size = chance.choice((size + 1, size - 1, 0, -1, 100_000, 2**31 - 1, 104_857_600))
        return struct.pack(">i", size) + frame


async def main() -> None:
    settings = settings_from_arguments()
    sender = Sender(settings["host"], settings["port"], settings["seed"], settings["frames"])
    report()
    begun = time.monotonic()
    await asyncio.gather(*(sender.connection(number) for number in range(settings["connections"])))
    report(seconds=time.monotonic() - begun, counts=dict(sender.counts))


if __name__ == "__main__":
    uvloop.run(main())
