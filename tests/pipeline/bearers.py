"""Runs a broker that requires bearer tokens, and an endpoint that grants them.

The tokens are unsecured (RFC 7515, A.5). Kafka's own validator accepts them if it is configured to do so.
"""

import json
import ssl
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.broker.certificates import Certificate
from tests.broker.kafka import Kafka
from tests.broker.security import bearer_login, security_settings
from tests.oracle.kafka_java import KAFKA_NEW

CLIENT, SECRET = "spark client", "planted:secret/1+%"


def unsecured_token(subject: str = "spark", lasts_seconds: float = 3600, **claims: Any) -> str:
    """Return a token that a broker with the unsecured validator accepts."""
    now = time.time()
    held = {"sub": subject, "iat": now, "exp": now + lasts_seconds, **claims}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, held))
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


@dataclass
class ScriptedTokenEndpoint:
    """A token endpoint with one known client. `made` makes the tokens; `response`, if set, replaces all responses."""

    url: str = ""
    made: Callable[..., str] = unsecured_token
    lasts_seconds: float = 3600
    response: tuple[int, dict[str, str], bytes] | None = None
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)

    def reply(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(form)
        if self.response is not None:
            return self.response
        if b64decode(authorization.removeprefix("Basic ")).decode() != f"{CLIENT}:{SECRET}":
            failure = {"error": "invalid_client", "error_description": "no such client"}
            return 401, {}, json.dumps(failure).encode()
        self.given.append(self.made(lasts_seconds=self.lasts_seconds, number=len(self.given)))
        response = {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.lasts_seconds}
        return 200, {}, json.dumps(response).encode()


@contextmanager
def token_endpoint(
    certificate: Certificate | None = None, made: Callable[..., str] = unsecured_token
) -> Iterator[ScriptedTokenEndpoint]:
    """Serve a token endpoint on a free port, with HTTPS if there is a certificate."""
    endpoint = ScriptedTokenEndpoint(made=made)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, headers, body = endpoint.reply(self.headers.get("Authorization", ""), form)
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.chain, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    endpoint.url = f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_address[1]}/token"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def bearer_broker(folder: Path, session_ms: int = 3_600_000) -> Kafka:
    """Return a broker to start. It closes a connection when its token expires, or after `session_ms` without a new
    login."""
    return Kafka(
        KAFKA_NEW,
        folder,
        settings=security_settings("SASL_PLAINTEXT", "OAUTHBEARER", oauthbearer=bearer_login())
        | {"connections.max.reauth.ms": str(session_ms)},
    )
