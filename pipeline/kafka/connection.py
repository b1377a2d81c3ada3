"""Implements a blocking connection to a broker, with one request at a time. Spark's tasks have no event loop."""

import socket
import ssl

from sluicegate.pipeline.kafka.settings import PROTOCOLS, ClientSettings
from sluicegate.pipeline.kafka.tokens import Bearer, forget_token, token_of
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.fetch_response import VERSION as FETCH_VERSION
from sluicegate.protocol.fetch_response import FetchedPartition, fetched_partition
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header, response_body_at
from sluicegate.protocol.messages.fetch import FETCH_REQUEST
from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from sluicegate.protocol.messages.login import (
    LoginExchange,
    LoginRequest,
    PasswordLogin,
    SaslAuthenticationFailed,
    TokenLogin,
)
from sluicegate.protocol.messages.schema import MessageSchema, Value

_CLIENT_ID = "sluicegate-spark"
_SIZE_BYTES = 4
_FIRST_BUFFER_BYTES = 64 * 1024
_MAX_RESPONSE_BYTES = 1 << 30
_MAX_RESPONSE_BEFORE_LOGIN_BYTES = 1 << 20  # a TLS alert that is parsed as a size means 352 MB
_BEFORE_LOGIN = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)

Address = tuple[str, int]


class BrokerUnreachable(PipelineError):
    """Raised if a broker is unreachable, does not speak Kafka's protocol, or closed the connection. A retry may
    help.
    """


class ClusterLoginRejected(PipelineError):
    """Raised if the broker rejected the login. The message is the broker's."""


class BrokerConnection:
    """A connection, which logs in if the settings require it. Every call may raise BrokerUnreachable."""

    def __init__(self, address: Address, settings: ClientSettings) -> None:
        """Connect and log in. Also raises ClusterLoginRejected, and BadSetting if TLS files cannot be used."""
        self._address = address
        self.timeout_seconds = settings.timeout_seconds
        self._settings = settings
        self._is_logged_in = False
        self._buffer = bytearray(_FIRST_BUFFER_BYTES)
        context = settings.tls_context()
        try:
            connected = socket.create_connection(address, settings.timeout_seconds)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = connected if context is None else context.wrap_socket(connected, server_hostname=address[0])
        except OSError as error:
            is_no_tls = context is not None and isinstance(error, (ssl.SSLError, ConnectionError))
            has_hint = is_no_tls and not isinstance(error, (ssl.SSLCertVerificationError, ConnectionRefusedError))
            raise BrokerUnreachable(f"{self._name}: {error}{self._hint if has_hint else ''}") from error
        try:
            self._offered = self._versions()
            if settings.login is not None:
                self._log_in(settings.login)
        except BaseException:
            self.close()
            raise

    def call(
        self, key: ApiKey, request: MessageSchema, response: MessageSchema, body: Value, at_most: int | None = None
    ) -> Value:
        """Send a request in the highest version that both sides support, at most `at_most`, and return the response."""
        known = [APIS[key].max_version, max(request.versions), *([at_most] if at_most is not None else [])]
        version = min(self._offered.get(key, -1), *known)
        if version < min(request.versions):
            raise BrokerUnreachable(f"{self._name} supports no known version of {APIS[key].name}")
        return self._parsed(response, self._ask(key, version, request.build(body, version)), version)

    def send_raw(self, key: int, version: int, body: bytes) -> memoryview:
        """Send an encoded request body, and return the response's body, which is valid until the next request."""
        return self._ask(key, version, body)

    def highest_version_of(self, key: ApiKey) -> int:
        """Return the highest version of an API that the broker supports; -1 if it does not support the API."""
        return self._offered.get(key, -1)

    def fetch(self, body: Value) -> tuple[int, FetchedPartition | None]:
        """Fetch records of one partition. Return the response's error code and the partition's part of the response.

        The result refers to a buffer that is valid until the next request on this connection.
        """
        if self._offered.get(ApiKey.FETCH, -1) < FETCH_VERSION:
            raise BrokerUnreachable(f"{self._name} is older than Kafka 2.7, the oldest supported release")
        return fetched_partition(self._ask(ApiKey.FETCH, FETCH_VERSION, FETCH_REQUEST.build(body, FETCH_VERSION)))

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    @property
    def _name(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    @property
    def _hint(self) -> str:
        """Return a hint about security.protocol for a connection that ended before the login."""
        if self._is_logged_in:
            return ""
        used = self._settings.security_protocol
        others = ", ".join(protocol for protocol in PROTOCOLS if protocol != used)
        return (
            f"; this client uses security.protocol={used}. If the broker's listener uses another protocol ({others}), "
            f"set it in the file of --config"
        )

    def _versions(self) -> dict[int, int]:
        response = self._parsed(API_VERSIONS_RESPONSE, self._ask(ApiKey.API_VERSIONS, 0, b""), 0)
        return {entry["api_key"]: entry["max_version"] for entry in response["api_keys"]}

    def _parsed(self, schema: MessageSchema, response: memoryview, version: int) -> Value:
        """Parse a response, ignoring bytes after its end, as Kafka's clients do."""
        try:
            return schema.parse_start(response, version)[0]
        except MalformedMessage as error:
            raise self._not_kafka(error) from error

    def _ask(self, key: int, version: int, body: bytes) -> memoryview:
        api = APIS[key]
        header = build_request_header(key, version, 1, _CLIENT_ID, api.request_header_version(version))
        try:
            self._socket.sendall(frame_of(header, body))
            size = int.from_bytes(self._read(_SIZE_BYTES), "big")
            if size > (_MAX_RESPONSE_BEFORE_LOGIN_BYTES if key in _BEFORE_LOGIN else _MAX_RESPONSE_BYTES):
                problem = f"{self._name} does not use Kafka's protocol: a response of {size} bytes"
                raise BrokerUnreachable(f"{problem}{self._hint}")
            response = self._read(size)
            self._is_logged_in |= key not in _BEFORE_LOGIN
        except OSError as error:
            raise BrokerUnreachable(f"{self._name}: {error}{self._hint}") from error
        return response[response_body_at(response, api.response_header_version(version)) :]

    def _read(self, size: int) -> memoryview:
        """Read into a reused buffer, because allocating several MB for each response costs more than reading it."""
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view, filled = memoryview(self._buffer)[:size], 0
        while filled < size:
            count = self._socket.recv_into(view[filled:])
            if count == 0:
                raise BrokerUnreachable(f"{self._name} closed the connection{self._hint}")
            filled += count
        return view

    def _log_in(self, login: PasswordLogin | Bearer) -> None:
        if isinstance(login, Bearer):
            self._log_in_with_token(login)
        else:
            self._exchange(login)

    def _log_in_with_token(self, login: Bearer) -> None:
        from sluicegate.proxy.tokens.cache import TokenMissing  # noqa: PLC0415  # few clusters need it

        try:
            token = token_of(login)
        except TokenMissing as error:
            raise (BrokerUnreachable if error.is_temporary else ClusterLoginRejected)(str(error)) from error
        try:
            self._exchange(TokenLogin(token.value, login.extensions))
        except ClusterLoginRejected:
            forget_token(login, token)
            raise

    def _exchange(self, login: PasswordLogin | TokenLogin) -> None:
        exchange = LoginExchange(login)
        request: LoginRequest | None = exchange.first()
        try:
            while request is not None:
                request = exchange.after(self._ask(request.key, request.version, request.body))
        except SaslAuthenticationFailed as error:
            raise ClusterLoginRejected(f"{self._name}: {error}") from error
        except MalformedMessage as error:
            raise self._not_kafka(error) from error

    def _not_kafka(self, error: MalformedMessage) -> BrokerUnreachable:
        return BrokerUnreachable(f"{self._name} responds, but not as a Kafka broker ({error}){self._hint}")
