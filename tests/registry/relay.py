"""Runs a relay like those in front of companies' registries. It terminates TLS, requires a login, and forwards
requests."""

import http.client
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable

from tests.broker.certificates import Authority, Certificate
from tests.registry.stand_in import Answering, StandIn, http_response


def server_context(certificate: Certificate, clients: Authority | None = None) -> ssl.SSLContext:
    """Return a TLS context. With `clients`, only clients with a certificate of this authority may connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    if clients is not None:
        context.load_verify_locations(clients.file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def guarding_relay(
    port: int, login: str | Callable[[], str] | None = None, tls: ssl.SSLContext | None = None
) -> StandIn:
    """Return a relay in front of the registry at `port`. `login`: `user:password`, or a function that returns the valid
    bearer token."""
    return StandIn(relay_with_login(port, login), tls)


def relay_with_login(port: int, login: str | Callable[[], str] | None = None) -> Answering:
    """Return a handler that forwards requests with a valid login to the registry at `port`."""

    def is_authorized(header: bytes) -> bool:
        assert login is not None
        if isinstance(login, str):
            return header == b"Authorization: Basic " + b64encode(login.encode())
        return header == f"Authorization: Bearer {login()}".encode()

    def forward_or_reject(client: socket.socket, head: bytes) -> bool:
        if login is not None and not any(map(is_authorized, head.split(b"\r\n"))):
            client.sendall(http_response("401 Unauthorized", b"", 'WWW-Authenticate: Basic realm="registry"'))
            return True
        method, path, _ = head.split(b" ", 2)
        assert method == b"GET"
        behind = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        behind.request("GET", path.decode())
        found = behind.getresponse()
        body = found.read()
        behind.close()
        client.sendall(
            http_response(f"{found.status} {found.reason}", body, f"Content-Type: {found.headers['Content-Type']}")
        )
        return True

    return forward_or_reject
