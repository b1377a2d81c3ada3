"""The proxy's own connection to a broker, over which it discovers brokers and reads topic settings.

It logs in with `upstream.sasl` if that is configured (`sluicegate.proxy.cluster.broker_login`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header, read_correlation_id, response_body_at
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.login import LoginNotOffered, SaslAuthenticationFailed
from sluicegate.protocol.messages.schema import MessageSchema, Value
from sluicegate.proxy.cluster.broker_login import LoginNotTried, log_in
from sluicegate.proxy.cluster.response_bodies import BrokerResponse, read_response
from sluicegate.proxy.network.happy_eyeballs import NEXT_BROKER_SECONDS, AllAttemptsFailed, happy_eyeballs
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.network.upstream import HandshakeCutOff, check_address, failure_message, printable

T = TypeVar("T")
_CLIENT_ID = "sluicegate"
_CORRELATION_ID = 1
# A response with the settings of many topics takes about 400 kB. A list of brokers takes 100 bytes per broker.
_MAX_RESPONSE_BYTES = 4 << 20
_MAX_GREETING_BYTES = 64 << 10
_GREETINGS = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
# A thread parses larger responses, because they would block the event loop for too long.
_PARSED_AT_ONCE_BYTES = 16 << 10
_TLS_ALERT = b"\x15\x03"
# Some servers respond to input that is not HTTP with only a page and no status line, as in HTTP/0.9.
_HTTP = (b"HTTP", b"<!DO", b"<htm")
_CLOSE_SECONDS = 2.0


class BrokerClient:
    """One connection for one request at a time, created by `ask_any_broker`.

    `offered` contains the versions of each API that the broker supports. Methods raise OSError, EOFError (the broker
    closed the connection) and SenderError (the peer is not a broker).
    """

    def __init__(
        self, address: HostPort, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, correlation_id: int
    ) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer
        self._correlation_id = correlation_id
        self.offered: dict[int, range] = {}

    async def negotiate(self) -> None:
        """Request the API versions that the broker supports. Raises NotKafka if the peer does not support Produce."""
        response = await self.call(ApiKey.API_VERSIONS, 0, b"")
        offered = (await parse_response(partial(read_response, API_VERSIONS_RESPONSE), response, 0))["api_keys"]
        self.offered = {entry["api_key"]: range(entry["min_version"], entry["max_version"] + 1) for entry in offered}
        if ApiKey.PRODUCE not in self.offered:
            raise NotKafka("is a KRaft controller, not a broker")

    def version_of(self, key: ApiKey) -> int:
        """Return the highest version that both sides support, or a negative number if the broker does not offer the
        API.
        """
        offered = self.offered.get(key)
        return min(offered.stop - 1, APIS[key].max_version) if offered is not None else -1

    async def ask(self, key: ApiKey, request: MessageSchema, response: MessageSchema, body: Value) -> Value:
        """Send one request in the highest version that both sides support, and return the parsed response."""
        received = await self.ask_raw(key, request, body)
        return await parse_response(partial(read_response, response), received, self.version_of(key))

    async def ask_raw(self, key: ApiKey, request: MessageSchema, body: Value) -> BrokerResponse:
        """Send a request like `ask`, but return the response's body as bytes."""
        version = self.version_of(key)
        if version < 0:
            raise SenderError(f"the broker does not support {APIS[key].name}")
        return await self.call(key, version, request.build(body, version))

    async def call(
        self, key: ApiKey, version: int, body: bytes, most_bytes: int = _MAX_RESPONSE_BYTES
    ) -> BrokerResponse:
        """Send an encoded request, and return the response's body of at most `most_bytes` bytes."""
        api = APIS[key]
        header = build_request_header(
            key, version, self._correlation_id, _CLIENT_ID, api.request_header_version(version)
        )
        self._writer.write(frame_of(header, body))
        await self._writer.drain()
        prefix = await self._reader.readexactly(4)
        if prefix.startswith(_TLS_ALERT):
            raise NoKafkaResponse("is a TLS port: set upstream.tls")
        if prefix in _HTTP:
            raise NotKafka("is an HTTP port, not a Kafka listener")
        size = int.from_bytes(prefix, "big", signed=True)
        allowed = _MAX_GREETING_BYTES if key in _GREETINGS else most_bytes
        if not 0 <= size <= allowed:
            raise SenderError(f"a response of {size} bytes to {api.name}; the limit is {allowed}")
        response = await self._reader.readexactly(size)
        body_at = response_body_at(response, api.response_header_version(version))
        if read_correlation_id(response) != self._correlation_id:
            raise SenderError(f"a response to a request other than {api.name}")
        return BrokerResponse(self._address, response[body_at:])

    def close(self) -> None:
        """Close the connection. Unsent data is dropped if the broker does not read it within a few seconds."""
        self._writer.close()
        asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._writer.transport.abort)


async def parse_response(parse: Callable[[BrokerResponse, int], T], response: BrokerResponse, version: int) -> T:
    """Parse a response. A thread parses long responses."""
    if len(response.body) <= _PARSED_AT_ONCE_BYTES:
        return parse(response, version)
    return await asyncio.to_thread(parse, response, version)


class NoKafkaResponse(Exception):
    """A broker closed the connection instead of responding. The message names the probable reason."""


class NotKafka(NoKafkaResponse):
    """The peer responds but is not a broker. The message says what it is."""


class NoBrokerResponses(Exception):
    """No address of the cluster responded. The message gives the reason for each address."""


class NotABroker(NoBrokerResponses):
    """An address responds, but not as a Kafka broker, and no other address responds as one."""


class OwnLoginRejected(NoBrokerResponses):
    """A broker responds but rejects the proxy's own login.

    Clients use their own logins, so the proxy may still serve them. `wants_logins` is true if the broker accepts logins
    at all.
    """

    def __init__(self, reasons: str, address: HostPort, wants_logins: bool) -> None:
        super().__init__(reasons)
        self.address = address
        self.wants_logins = wants_logins


async def ask_any_broker(
    upstream: Upstream,
    tls: TlsContext | None,
    ask: Callable[[BrokerClient], Awaitable[T]],
    correlation_id: int = _CORRELATION_ID,
) -> tuple[HostPort, T]:
    """Ask the bootstrap addresses until one responds. Return that address and its response.

    The attempts start one shortly after the other, and each may last `upstream.connect_timeout_seconds`. Raises
    NoBrokerResponses or one of its subclasses, NotABroker and OwnLoginRejected.
    """

    async def ask_one(address: HostPort) -> tuple[HostPort, T]:
        async with asyncio.timeout(upstream.connect_timeout_seconds):
            return address, await _ask_one(address, upstream, tls, ask, correlation_id)

    attempts = [partial(ask_one, address) for address in upstream.bootstrap]
    try:
        return await happy_eyeballs(attempts, NEXT_BROKER_SECONDS, _forget)
    except AllAttemptsFailed as none:
        raise _failure(upstream, none.errors) from none


def _forget(_result: object) -> None:
    """Drop the response of a second broker."""


def _failure(upstream: Upstream, errors: Sequence[Exception]) -> NoBrokerResponses:
    """Create the error that explains why no address responded."""
    failed = list(zip(upstream.bootstrap, errors, strict=True))
    reasons = "; ".join(f"{printable(address)}: {_reason(error, upstream)}" for address, error in failed)
    for address, error in failed:
        if isinstance(error, SaslAuthenticationFailed):
            return OwnLoginRejected(reasons, address, not isinstance(error, LoginNotOffered))
    no_broker = any(isinstance(error, SenderError | NotKafka) for error in errors)
    return NotABroker(reasons) if no_broker else NoBrokerResponses(reasons)


def _reason(error: Exception, upstream: Upstream) -> str:
    if isinstance(error, TimeoutError):
        return f"no response within {upstream.connect_timeout_seconds} s"
    if isinstance(error, LoginNotTried):
        return f"upstream.sasl provides no token: {error}"
    if isinstance(error, SaslAuthenticationFailed):
        return f"upstream.sasl is rejected: {error}"
    if isinstance(error, NoKafkaResponse):
        return str(error)
    if isinstance(error, OSError):  # a rejected certificate is also a ValueError
        return failure_message(error)
    if isinstance(error, SenderError | EOFError | ValueError | ArithmeticError | LookupError | RecursionError):
        return f"responds, but not as a Kafka broker ({_text_of(error)})"
    return failure_message(error)  # a name or a peer can cause any kind of error


def _text_of(error: Exception) -> str:
    return str(error)[:300] if isinstance(error, SenderError | EOFError) else failure_message(error)


async def _ask_one(
    address: HostPort,
    upstream: Upstream,
    tls: TlsContext | None,
    ask: Callable[[BrokerClient], Awaitable[T]],
    correlation_id: int,
) -> T:
    """Connect, negotiate versions, log in if a login is configured, and send the request."""
    check_address(address)
    context = tls.current() if tls is not None else None
    try:
        streams = await asyncio.open_connection(address.host, address.port, ssl=context)
    except ConnectionResetError as error:
        if context is None:
            raise
        raise HandshakeCutOff from error
    client = BrokerClient(address, *streams, correlation_id)
    try:
        return await _asked(client, upstream, ask)
    finally:
        client.close()


async def _asked(client: BrokerClient, upstream: Upstream, ask: Callable[[BrokerClient], Awaitable[T]]) -> T:
    """Send the request. Raises NoKafkaResponse if the broker closes the connection instead of responding."""
    try:
        await client.negotiate()
    except (EOFError, ConnectionResetError) as error:
        if upstream.tls is not None:
            raise
        raise NoKafkaResponse("closes plaintext connections: if it is a TLS port, set upstream.tls") from error
    if upstream.sasl is not None:
        # The token gets only half of the time. Otherwise a silent token endpoint would make a working broker seem
        # silent.
        await log_in(client.call, upstream.sasl, upstream.connect_timeout_seconds / 2)
        return await ask(client)
    try:
        return await ask(client)
    except (EOFError, ConnectionResetError) as error:
        raise NoKafkaResponse(
            "requires a login: set upstream.sasl (it closed the connection instead of responding)"
        ) from error
