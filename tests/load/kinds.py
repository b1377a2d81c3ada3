"""Defines the kinds of crowds, by name. Each has a number of clients, an `amount`, a rate and a duration."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from tests.bounds import hostile_batches as hostile
from tests.bounds.frames import good_batch, sized_produce_request, sized_request
from tests.load.client import ENDS, Client, CrowdResult, LoadTarget
from tests.load.waits import waits_of

_RECEIVE_BYTES = 4096
_SIPS_BYTES = 1024
_SIP_SECONDS = 0.1
_WINDOW = 100
_PATIENCE_SECONDS = 60
_FETCH = sized_request(1, 11, b"\xff" * 4 + b"\x7f\xff\xff\xff" + b"\0\0\0\1" + b"\0" * 26)
_HELLO_BEGINS = b"\x16\x03\x01\x02\x00\x01"


@dataclass(frozen=True, slots=True)
class CrowdSize:
    """Number of connections, amount, connections a second, and duration (s)."""

    connections: int
    amount: int = 1
    a_second: float = 500
    seconds: float = 10


class MinimumStay(Enum):
    """The minimum stay of a client. On a busy machine the time may be over before the client has received anything."""

    ITS_TIME = "until the crowd's time is up"
    FIRST_RESPONSE = "until it has a response, too"
    WHOLE_AMOUNT = "until it has done everything"


class Crowd:
    """One crowd of a kind. `begins` waits for the start and returns the address and the end."""

    def __init__(self, size: CrowdSize, begins: Callable[[], Awaitable[LoadTarget]]) -> None:
        self.size = size
        self.result = CrowdResult()
        self._begins = begins
        self._where: LoadTarget | None = None

    @property
    def target(self) -> LoadTarget:
        assert self._where is not None, "begin() was not called"
        return self._where

    async def begin(self) -> None:
        """Wait for the start; the crowd is prepared."""
        self._where = await self._begins()

    def client(self, receive_bytes: int | None = None) -> Client:
        return Client(self.target, self.result, receive_bytes)

    def proper_client(self) -> Client:
        """Return a client that uses TLS if the address does."""
        return Client(self.target, self.result, trusting=self.target.trusting)

    async def run_clients(
        self, run_client: Callable[[int], Awaitable[None]], stays: MinimumStay = MinimumStay.ITS_TIME
    ) -> None:
        """Run all clients, started at the crowd's rate, until the time is up; see Stays."""
        if self._where is None:
            await self.begin()

        async def connect_in_turn(number: int) -> None:
            await asyncio.sleep(number / self.size.a_second)
            me, patience = asyncio.current_task(), 0 if stays is MinimumStay.ITS_TIME else _PATIENCE_SECONDS
            try:
                async with asyncio.timeout(self.target.seconds_left + patience) as limit:
                    if stays is MinimumStay.FIRST_RESPONSE:
                        self.result.waiting[me] = limit
                    await run_client(number)
            except TimeoutError:
                if self.result.waiting.pop(me, None) is not None:
                    self.result.failures.append(f"no response within {patience} s")
            except ENDS as error:
                self.result.failures.append(repr(error))

        await asyncio.gather(*(connect_in_turn(number) for number in range(self.size.connections)))


Kind = Callable[[Crowd], Coroutine[Any, Any, None]]


def small_request(client_id: bytes = b"crowd", size: int = 100, acks: int = 1) -> bytes:
    return sized_produce_request(9, {b"loaded": [(0, good_batch(hostile.now(), size))]}, acks, client_id=client_id)


async def produce_now_and_then(crowd: Crowd) -> None:
    """Each client sends a small Produce every two seconds."""
    asked = small_request()

    async def run_client(_number: int) -> None:
        async with crowd.client() as client:
            while True:
                await client.ask(asked)
                await asyncio.sleep(2)

    await crowd.run_clients(run_client, MinimumStay.FIRST_RESPONSE)
    waits, arrived = waits_of(crowd.result.seconds), waits_of(crowd.result.arrived)
    crowd.result.remark = (
        f"{len(crowd.result.arrived):,} arrived (p99 {arrived['p99'] * 1000:.0f} ms), "
        f"{crowd.result.responses:,} responses (p99 {waits['p99'] * 1000:.0f} ms)"
    )


async def stay_silent(crowd: Crowd) -> None:
    async def run_client(_number: int) -> None:
        async with crowd.client() as client:
            await client.until_closed()

    await crowd.run_clients(run_client)
    crowd.result.remark = f"{crowd.result.closed:,} closed by the proxy"


async def begin_handshakes(crowd: Crowd) -> None:
    """Half of the clients send the first bytes of a handshake, the others nothing."""

    async def run_client(number: int) -> None:
        async with crowd.client() as client:
            if number % 2:
                client.writer.write(_HELLO_BEGINS)
            await client.until_closed()

    await crowd.run_clients(run_client)
    crowd.result.remark = f"{crowd.result.closed:,} closed by the proxy"


async def trickle_requests(crowd: Crowd) -> None:
    """Each client sends a valid request at one byte a second."""
    asked = small_request(size=1000)

    async def run_client(_number: int) -> None:
        async with crowd.client() as client:
            closed = asyncio.create_task(client.until_closed())
            for byte in asked:
                client.writer.write(bytes([byte]))
                if (await asyncio.wait([closed], timeout=1))[0]:
                    return

    await crowd.run_clients(run_client)
    crowd.result.remark = f"{crowd.result.closed:,} closed by the proxy"


async def pipeline_unread(crowd: Crowd) -> None:
    """Each client sends `amount` requests and reads no response."""
    asked = sized_request(3, 9, b"\2\7loaded\0\1\0\0\0") * crowd.size.amount

    async def run_client(_number: int) -> None:
        async with crowd.client(_RECEIVE_BYTES) as client:
            cast("asyncio.Transport", client.writer.transport).pause_reading()
            for at in range(0, len(asked), 1 << 16):
                client.writer.write(asked[at : at + (1 << 16)])
                await client.writer.drain()
                crowd.result.bytes += len(asked[at : at + (1 << 16)])
            await asyncio.sleep(crowd.target.seconds_left)

    await crowd.run_clients(run_client)
    crowd.result.remark = f"{crowd.result.bytes / 1e6:.1f} MB read from them"


async def produce_giants(crowd: Crowd) -> None:
    """Each client sends valid batches of `amount` bytes, one after the other."""
    asked = small_request(size=crowd.size.amount)

    async def run_client(_number: int) -> None:
        async with crowd.client() as client:
            while True:
                await client.ask(asked)

    await crowd.run_clients(run_client, MinimumStay.FIRST_RESPONSE)
    waits = waits_of(crowd.result.seconds)
    crowd.result.remark = (
        f"{crowd.result.responses:,} stored, {crowd.result.bytes / 1e6:,.0f} MB (p50 {waits['p50']:.1f} s)"
    )


def send_decompression_bombs(codec: str) -> Kind:
    """Each client repeats a batch that decompresses to `amount` bytes, after each response."""

    async def send_bombs(crowd: Crowd) -> None:
        batch = hostile.decompression_bomb(hostile.COMPRESSED[codec])(crowd.size.amount)
        asked = sized_produce_request(9, {b"loaded": [(0, batch)]})

        async def run_client(_number: int) -> None:
            async with crowd.client() as client:
                while True:
                    await client.ask(asked)

        await crowd.run_clients(run_client, MinimumStay.FIRST_RESPONSE)
        took = waits_of(crowd.result.seconds)["p50"]
        crowd.result.remark = (
            f"{crowd.result.responses:,} of {len(batch) / 1000:,.0f} kB, response time {took * 1000:.0f} ms (p50)"
        )

    return send_bombs


async def use_new_names(crowd: Crowd) -> None:
    """The clients send `amount` requests, each with a new client id."""
    share = crowd.size.amount // crowd.size.connections
    before, behind = small_request(b"client-??????").split(b"??????")

    async def run_client(number: int) -> None:
        mine = number * share
        async with crowd.client() as client:
            for first in range(mine, mine + share, _WINDOW):
                asked = [before + b"%06d" % i + behind for i in range(first, min(first + _WINDOW, mine + share))]
                client.writer.write(b"".join(asked))
                await client.writer.drain()
                for _ in asked:
                    await client.response()

    await crowd.run_clients(run_client, MinimumStay.WHOLE_AMOUNT)
    crowd.result.remark = f"{crowd.result.responses:,} of {crowd.size.amount:,} responses"
    if crowd.result.responses < crowd.size.amount:
        crowd.result.failures.append(crowd.result.remark)


def at_full_speed(acks: int) -> Kind:
    """Each client sends batches of 10 kB as fast as the proxy reads them."""

    async def send_at_full_speed(crowd: Crowd) -> None:
        asked = small_request(size=10_000, acks=acks) * _WINDOW

        async def run_client(_number: int) -> None:
            async with crowd.proper_client() as client, _reading_all(client):
                while True:
                    client.writer.write(asked)
                    await client.writer.drain()
                    crowd.result.bytes += len(asked)

        await crowd.run_clients(run_client)
        crowd.result.remark = f"{crowd.result.bytes / 1e6 / crowd.size.seconds:,.0f} MB a second"

    return send_at_full_speed


@asynccontextmanager
async def _reading_all(client: Client) -> AsyncIterator[None]:
    reading = asyncio.create_task(client.until_closed())
    try:
        yield
    finally:
        reading.cancel()


async def read_slowly_beside_others(crowd: Crowd) -> None:
    """All clients fetch as fast as they can; in the second half one more reads a kilobyte every 0.1 s."""
    await crowd.begin()
    half = crowd.target.until - crowd.size.seconds / 2

    async def read_fast(_number: int) -> None:
        async with crowd.client() as client:
            while True:
                await client.ask(_FETCH)

    async def read_slowly() -> None:
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(crowd.target.seconds_left),
                Client(crowd.target, CrowdResult(), _RECEIVE_BYTES) as client,
            ):
                client.writer.write(_FETCH * 20)
                while await client.reader.read(_SIPS_BYTES):  # noqa: ASYNC110  # the pause makes it slow
                    await asyncio.sleep(_SIP_SECONDS)

    async def measure_small_client() -> list[float]:
        await asyncio.sleep(half - asyncio.get_running_loop().time())
        before, crowd.result.seconds = crowd.result.seconds, []
        await read_slowly()
        return before

    _, before = await asyncio.gather(crowd.run_clients(read_fast, MinimumStay.FIRST_RESPONSE), measure_small_client())
    alone, beside = waits_of(before), waits_of(crowd.result.seconds)
    crowd.result.remark = (
        f"{crowd.result.responses:,} fetches by the fast ones: p99 {alone['p99'] * 1000:.1f} ms, with the slow one "
        f"{beside['p99'] * 1000:.1f} ms"
    )


KINDS: dict[str, Kind] = {
    "produce every 2 s": produce_now_and_then,
    "silent": stay_silent,
    "begin handshakes": begin_handshakes,
    "trickle": trickle_requests,
    "pipeline unread": pipeline_unread,
    "giants": produce_giants,
    "new names": use_new_names,
    "at full speed": at_full_speed(acks=1),
    "at full speed, acks=0": at_full_speed(acks=0),
    "read slowly": read_slowly_beside_others,
    **{f"bomb: {codec}": send_decompression_bombs(codec) for codec in hostile.COMPRESSED},
}
