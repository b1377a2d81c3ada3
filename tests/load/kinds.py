"""What crowds do, by name: so many clients, `amount` of something, so many a second, until the time is up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.bounds import hostile_batches as hostile
from tests.bounds.frames import good_batch, produce, request
from tests.load.client import ENDS, Client, Told, Where
from tests.load.waits import waits_of

_RECEIVE_BYTES = 4096
_SIPS_BYTES = 1024
_SIP_SECONDS = 0.1
_WINDOW = 100
_FETCH = request(1, 11, b"\xff" * 4 + b"\x7f\xff\xff\xff" + b"\0\0\0\1" + b"\0" * 26)
_HELLO_BEGINS = b"\x16\x03\x01\x02\x00\x01"


@dataclass(frozen=True, slots=True)
class Size:
    """How many, how much, how many a second, and for how long (s)."""

    connections: int
    amount: int = 1
    a_second: float = 500
    seconds: float = 10


class Crowd:
    """One of a kind, of this size. `begins` waits until it may come, and says where to and until when."""

    def __init__(self, size: Size, begins: Callable[[], Awaitable[Where]]) -> None:
        self.size = size
        self.told = Told()
        self._begins = begins
        self._where: Where | None = None

    @property
    def where(self) -> Where:
        assert self._where is not None, "it has not begun"
        return self._where

    async def begin(self) -> None:
        """All is prepared."""
        self._where = await self._begins()

    def client(self, receive_bytes: int | None = None) -> Client:
        return Client(self.where, self.told, receive_bytes)

    def proper_client(self) -> Client:
        """Speaks TLS where that is spoken."""
        return Client(self.where, self.told, trusting=self.where.trusting)

    async def each(self, one: Callable[[int], Awaitable[None]]) -> None:
        """All of them, as fast as they are to come, until the time is up."""
        if self._where is None:
            await self.begin()

        async def comes(number: int) -> None:
            await asyncio.sleep(number / self.size.a_second)
            try:
                async with asyncio.timeout(self.where.left):
                    await one(number)
            except TimeoutError:
                return
            except ENDS as error:
                self.told.failures.append(repr(error))

        await asyncio.gather(*(comes(number) for number in range(self.size.connections)))


Kind = Callable[[Crowd], Coroutine[Any, Any, None]]


def small(client_id: bytes = b"crowd", size: int = 100, acks: int = 1) -> bytes:
    return produce(9, {b"loaded": [(0, good_batch(hostile.now(), size))]}, acks, client_id=client_id)


async def ask_now_and_then(crowd: Crowd) -> None:
    """One small Produce each, and again every two seconds."""
    asked = small()

    async def one(_number: int) -> None:
        async with crowd.client() as client:
            while True:
                await client.ask(asked)
                await asyncio.sleep(2)

    await crowd.each(one)
    waits, came = waits_of(crowd.told.seconds), waits_of(crowd.told.came)
    crowd.told.remark = (
        f"{len(crowd.told.came):,} came (p99 {came['p99'] * 1000:.0f} ms), {crowd.told.answers:,} answers "
        f"(p99 {waits['p99'] * 1000:.0f} ms)"
    )


async def say_nothing(crowd: Crowd) -> None:
    async def one(_number: int) -> None:
        async with crowd.client() as client:
            await client.until_closed()

    await crowd.each(one)
    crowd.told.remark = f"{crowd.told.closed:,} closed meanwhile"


async def begin_handshakes(crowd: Crowd) -> None:
    """Half of them with the first bytes of one, the others with nothing."""

    async def one(number: int) -> None:
        async with crowd.client() as client:
            if number % 2:
                client.writer.write(_HELLO_BEGINS)
            await client.until_closed()

    await crowd.each(one)
    crowd.told.remark = f"{crowd.told.closed:,} closed meanwhile"


async def trickle(crowd: Crowd) -> None:
    """A byte a second of a legal request."""
    asked = small(size=1000)

    async def one(_number: int) -> None:
        async with crowd.client() as client:
            closed = asyncio.create_task(client.until_closed())
            for byte in asked:
                client.writer.write(bytes([byte]))
                if (await asyncio.wait([closed], timeout=1))[0]:
                    return

    await crowd.each(one)
    crowd.told.remark = f"{crowd.told.closed:,} closed meanwhile"


async def pipeline_unread(crowd: Crowd) -> None:
    """So many requests that have answers, and not one of these is read."""
    asked = request(3, 9, b"\2\7loaded\0\1\0\0\0") * crowd.size.amount

    async def one(_number: int) -> None:
        async with crowd.client(_RECEIVE_BYTES) as client:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for at in range(0, len(asked), 1 << 16):
                client.writer.write(asked[at : at + (1 << 16)])
                await client.writer.drain()
                crowd.told.bytes += len(asked[at : at + (1 << 16)])
            await asyncio.sleep(crowd.where.left)

    await crowd.each(one)
    crowd.told.remark = f"{crowd.told.bytes / 1e6:.1f} MB taken off them"


async def produce_giants(crowd: Crowd) -> None:
    """Legal ones, of `amount` bytes, as fast as they are answered."""
    asked = small(size=crowd.size.amount)

    async def one(_number: int) -> None:
        async with crowd.client() as client:
            while True:
                await client.ask(asked)

    await crowd.each(one)
    waits = waits_of(crowd.told.seconds)
    crowd.told.remark = f"{crowd.told.answers:,} stored, {crowd.told.bytes / 1e6:,.0f} MB (p50 {waits['p50']:.1f} s)"


def bomb(codec: str) -> Kind:
    """A batch that becomes `amount` bytes, again and again as soon as it is answered or rejected."""

    async def explode(crowd: Crowd) -> None:
        batch = hostile.bomb(hostile.COMPRESSED[codec])(crowd.size.amount)
        asked = produce(9, {b"loaded": [(0, batch)]})

        async def one(_number: int) -> None:
            async with crowd.client() as client:
                while True:
                    await client.ask(asked)

        await crowd.each(one)
        took = waits_of(crowd.told.seconds)["p50"]
        crowd.told.remark = (
            f"{crowd.told.answers:,} of {len(batch) / 1000:,.0f} kB, each answered after {took * 1000:.0f} ms"
        )

    return explode


async def use_new_names(crowd: Crowd) -> None:
    """`amount` requests, each with a client id that nobody has used."""
    share = crowd.size.amount // crowd.size.connections
    before, behind = small(b"client-??????").split(b"??????")

    async def one(number: int) -> None:
        mine = number * share
        async with crowd.client() as client:
            for first in range(mine, mine + share, _WINDOW):
                asked = [before + b"%06d" % i + behind for i in range(first, min(first + _WINDOW, mine + share))]
                client.writer.write(b"".join(asked))
                await client.writer.drain()
                for _ in asked:
                    await client.answer()

    await crowd.each(one)
    crowd.told.remark = f"{crowd.told.answers:,} of {crowd.size.amount:,} answered"
    if crowd.told.answers < crowd.size.amount:
        crowd.told.failures.append(crowd.told.remark)


def at_full_speed(acks: int) -> Kind:
    """Batches of 10 kB, one behind the other, as fast as they are taken."""

    async def race(crowd: Crowd) -> None:
        asked = small(size=10_000, acks=acks) * _WINDOW

        async def one(_number: int) -> None:
            async with crowd.proper_client() as client, _reading_all(client):
                while True:
                    client.writer.write(asked)
                    await client.writer.drain()
                    crowd.told.bytes += len(asked)

        await crowd.each(one)
        crowd.told.remark = f"{crowd.told.bytes / 1e6 / crowd.size.seconds:,.0f} MB a second"

    return race


@asynccontextmanager
async def _reading_all(client: Client) -> AsyncIterator[None]:
    reading = asyncio.create_task(client.until_closed())
    try:
        yield
    finally:
        reading.cancel()


async def read_slowly_beside_others(crowd: Crowd) -> None:
    """All read what they fetch as fast as they can; from half the time on, one more reads a kilobyte every 0.1 s."""
    await crowd.begin()
    half = crowd.where.until - crowd.size.seconds / 2

    async def fast(_number: int) -> None:
        async with crowd.client() as client:
            while True:
                await client.ask(_FETCH)

    async def slow() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(crowd.where.left), Client(crowd.where, Told(), _RECEIVE_BYTES) as client:
                client.writer.write(_FETCH * 20)
                while await client.reader.read(_SIPS_BYTES):  # noqa: ASYNC110  # it waits to be slow
                    await asyncio.sleep(_SIP_SECONDS)

    async def then_slow() -> list[float]:
        await asyncio.sleep(half - asyncio.get_running_loop().time())
        before, crowd.told.seconds = crowd.told.seconds, []
        await slow()
        return before

    _, before = await asyncio.gather(crowd.each(fast), then_slow())
    alone, beside = waits_of(before), waits_of(crowd.told.seconds)
    crowd.told.remark = (
        f"{crowd.told.answers:,} fetches by the fast ones: p99 {alone['p99'] * 1000:.1f} ms, with the slow one "
        f"{beside['p99'] * 1000:.1f} ms"
    )


KINDS: dict[str, Kind] = {
    "ask now and then": ask_now_and_then,
    "say nothing": say_nothing,
    "begin handshakes": begin_handshakes,
    "trickle": trickle,
    "pipeline unread": pipeline_unread,
    "giants": produce_giants,
    "new names": use_new_names,
    "at full speed": at_full_speed(acks=1),
    "at full speed, acks=0": at_full_speed(acks=0),
    "read slowly": read_slowly_beside_others,
    **{f"bomb: {codec}": bomb(codec) for codec in hostile.COMPRESSED},
}
