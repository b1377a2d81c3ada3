"""One HTTP request and its response (RFC 9112), parsed with h11. The connection closes afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

import h11

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.webui.responses import HttpResponse, text_response

_MAX_HEAD_BYTES = 8192
_READ_BYTES = 4096
_LINGER_SECONDS = 1.0
_MESSAGE_SECONDS = 10.0


class Request(NamedTuple):
    """A request's head as text. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]


class HttpExchange:
    """One exchange, which belongs to one event loop. Its creator limits its duration and closes the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)

    async def request(self) -> Request | None:
        """Return the request's head, or None if the client has disconnected. Raises h11.RemoteProtocolError."""
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                if event.http_version > b"1.1":
                    raise h11.RemoteProtocolError("this endpoint supports HTTP/1.0 and HTTP/1.1")
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
                return Request(event.method.decode("latin-1"), event.target.decode("latin-1"), headers)
            if event is not h11.NEED_DATA:
                return None
            self._http.receive_data(await self._reader.read(_READ_BYTES))

    async def respond(self, response: HttpResponse, without_body: bool) -> None:
        """Send the response and wait briefly for the client to read it, because closing early would truncate it."""
        headers = [*response.headers, ("Content-Length", str(len(response.body))), ("Connection", "close")]
        reason = HTTPStatus(response.status).phrase
        # h11 does not write responses here, because it sends nothing after a protocol error or to another HTTP version.
        lines = [f"HTTP/1.1 {response.status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
        head = "\r\n".join(lines).encode("latin-1")
        await self._send(head if without_body else head + response.body)
        async with asyncio.timeout(_LINGER_SECONDS):
            if self._writer.can_write_eof():
                self._writer.write_eof()
                while await self._reader.read(_READ_BYTES):
                    pass
            else:  # the connection uses TLS
                self._writer.close()
                await self._writer.wait_closed()

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def stream(self, headers: tuple[tuple[str, str], ...], messages: AsyncIterator[bytes]) -> None:
        """Send `messages` as they arrive.

        Stop when the client disconnects, or takes more than ten seconds to read a message.
        """
        lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in headers), "Connection: close", "", ""]
        await self._send("\r\n".join(lines).encode("latin-1"))
        sending = self._loop.create_task(self._send_each(messages))
        leaving = self._loop.create_task(self._has_left())
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait([sending, leaving])

    async def _send_each(self, messages: AsyncIterator[bytes]) -> None:
        with suppress(OSError, TimeoutError):
            async for message in messages:
                async with asyncio.timeout(_MESSAGE_SECONDS):
                    await self._send(message)

    async def _has_left(self) -> None:
        with suppress(OSError):
            while await self._reader.read(_READ_BYTES):
                pass


def rejection_of(error: h11.RemoteProtocolError) -> HttpResponse:
    """Return the response to an invalid request."""
    return text_response(error.error_status_hint, f"the request is invalid: {cut(str(error))}")
