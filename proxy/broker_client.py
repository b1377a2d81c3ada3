"""A connection of the proxy's own to a broker, for what no client asks: brokers, and what topics are set to.

It logs in with `upstream.sasl` if that is configured; clients' logins never come here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from config.address import HostPort
from config.model import Sasl, Upstream
from protocol.api import APIS, ApiKey
from protocol.errors import SenderError
from protocol.framing import frame_of
from protocol.headers import build_request_header, response_body_at
from protocol.messages import api_versions, sasl_authenticate, sasl_handshake
from protocol.messages.schema import MessageSchema, Value
from proxy.tls import TlsContext
from proxy.upstream import reason_of

T = TypeVar("T")
_CLIENT_ID = "sluicegate"
_MAX_ANSWER_BYTES = 64 << 20
_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 0


class LoginRefused(Exception):
    """The broker does not let the proxy itself in; the text is the broker's."""


class BrokerClient:
    """One connection, one request at a time. Made by `ask_any_broker`.

    Its calls raise OSError, EOFError (the broker closed the connection) and SenderError (what answers is no broker).
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._offered: dict[int, int] = {}

    async def negotiate(self) -> None:
        """Learn which versions the broker offers."""
        answer = await self._call(ApiKey.API_VERSIONS, 0, b"")
        offered = api_versions.RESPONSE.parse(answer, 0)["api_keys"]
        self._offered = {entry["api_key"]: entry["max_version"] for entry in offered}

    def version_of(self, key: ApiKey) -> int:
        """The highest version that both sides know; -1 when the broker does not offer the API."""
        return min(self._offered.get(key, -1), APIS[key].max_version)

    async def ask(self, key: ApiKey, request: MessageSchema, response: MessageSchema, body: Value) -> Value:
        """One request in the highest version that both sides know."""
        answer = await self.ask_raw(key, request, body)
        return response.parse(answer, self.version_of(key))

    async def ask_raw(self, key: ApiKey, request: MessageSchema, body: Value) -> bytes:
        """The same, with the answer's body as bytes."""
        version = self.version_of(key)
        if version < 0:
            raise SenderError(f"the broker offers no {APIS[key].name}")
        return await self._call(key, version, request.build(body, version))

    async def login(self, sasl: Sasl) -> None:
        """Log in. Raises LoginRefused."""
        body = sasl_handshake.REQUEST.build({"mechanism": sasl.mechanism}, _HANDSHAKE_VERSION)
        answer = await self._call(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, body)
        handshake = sasl_handshake.RESPONSE.parse(answer, _HANDSHAKE_VERSION)
        if handshake["error_code"]:
            offered = ", ".join(handshake["mechanisms"])
            raise LoginRefused(f"the broker does not offer {sasl.mechanism}, but {offered or 'nothing'}")
        password = sasl.password.get_secret_value()
        if sasl.mechanism == "PLAIN":
            await self._authenticate(f"\0{sasl.username}\0{password}".encode())
            return
        from scramp import ScramClient, ScramException  # noqa: PLC0415  # 6 MB that few proxies need

        scram = ScramClient([sasl.mechanism], sasl.username, password)
        try:
            scram.set_server_first((await self._authenticate(scram.get_client_first().encode())).decode())
            scram.set_server_final((await self._authenticate(scram.get_client_final().encode())).decode())
        except ScramException as error:
            raise LoginRefused(str(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def _authenticate(self, token: bytes) -> bytes:
        body = sasl_authenticate.REQUEST.build({"auth_bytes": token}, _AUTHENTICATE_VERSION)
        answer = await self._call(ApiKey.SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, body)
        value: dict[str, Any] = sasl_authenticate.RESPONSE.parse(answer, _AUTHENTICATE_VERSION)
        if value["error_code"]:
            raise LoginRefused(value["error_message"] or "the broker does not say why")
        return bytes(value["auth_bytes"])

    async def _call(self, key: ApiKey, version: int, body: bytes) -> bytes:
        api = APIS[key]
        header = build_request_header(key, version, 1, _CLIENT_ID, api.request_header_version(version))
        self._writer.write(frame_of(header, body))
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        if size > _MAX_ANSWER_BYTES:
            raise SenderError(f"an answer of {size} bytes")
        answer = await self._reader.readexactly(size)
        return answer[response_body_at(answer, api.response_header_version(version)) :]


class NoBrokerAnswers(Exception):
    """No address of the cluster did; the text names each with its reason."""


async def ask_any_broker(
    upstream: Upstream, tls: TlsContext | None, ask: Callable[[BrokerClient], Awaitable[T]]
) -> tuple[HostPort, T]:
    """Ask the first bootstrap address that answers; gives it and its answer. Raises NoBrokerAnswers.

    No address gets more than `upstream.connect_timeout_seconds`.
    """
    reasons: list[str] = []
    for address in upstream.bootstrap:
        try:
            async with asyncio.timeout(upstream.connect_timeout_seconds):
                return address, await _ask_one(address, tls, upstream.sasl, ask)
        except TimeoutError:
            reasons.append(f"{address}: no answer within {upstream.connect_timeout_seconds} s")
        except LoginRefused as error:
            reasons.append(f"{address}: upstream.sasl is refused: {error}")
        except OSError as error:
            reasons.append(f"{address}: {reason_of(error)}")
        except (SenderError, EOFError) as error:
            reasons.append(f"{address}: answers, but not as a Kafka broker ({error})")
    raise NoBrokerAnswers("; ".join(reasons))


async def _ask_one(
    address: HostPort, tls: TlsContext | None, sasl: Sasl | None, ask: Callable[[BrokerClient], Awaitable[T]]
) -> T:
    client = await _connect(address, tls, sasl)
    try:
        return await ask(client)
    finally:
        client.close()


async def _connect(address: HostPort, tls: TlsContext | None, sasl: Sasl | None) -> BrokerClient:
    """Connect, agree on versions, log in if there is a login."""
    context = tls.current() if tls is not None else None
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    client = BrokerClient(reader, writer)
    try:
        await client.negotiate()
        if sasl is not None:
            await client.login(sasl)
    except BaseException:
        client.close()
        raise
    return client
