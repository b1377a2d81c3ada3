"""The proxy's own login at a broker, with `upstream.sasl`. Clients' credentials are never used."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sluicegate.config.upstream import Sasl
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
    SASL_HANDSHAKE_RESPONSE,
)
from sluicegate.proxy.cluster.own_token import TokenMissing, forget_token, own_token
from sluicegate.proxy.cluster.response_bodies import BrokerResponse, read_response
from sluicegate.proxy.network.daemon_thread import in_daemon_thread

Call = Callable[[ApiKey, int, bytes], Awaitable[BrokerResponse]]
"""Sends one request (API, version, body) and returns the response's body."""

_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 0
# Kafka's default is 4,096; this number takes half a second.
_MAX_ITERATIONS = 1_000_000
_MAX_WORDS = 300


class LoginRejected(Exception):
    """The broker rejected the proxy's own login; the text is the broker's, or describes its invalid response."""


class LoginNotOffered(LoginRejected):
    """The broker accepts no logins at all."""


class LoginNotTried(LoginRejected):
    """The proxy has no token to log in with; the text names the source that gives none."""


async def log_in(call: Call, sasl: Sasl, token_seconds: float) -> None:
    """Log in; a token is awaited for `token_seconds`. Raises LoginRejected and the errors of `call`."""
    body = SASL_HANDSHAKE_REQUEST.build({"mechanism": sasl.mechanism}, _HANDSHAKE_VERSION)
    response = await call(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, body)
    handshake = read_response(SASL_HANDSHAKE_RESPONSE, response, _HANDSHAKE_VERSION)
    if handshake["error_code"]:
        offered = ", ".join(handshake["mechanisms"])[:_MAX_WORDS]
        if not offered:
            raise LoginNotOffered("the broker offers no SASL here; is this the plaintext listener?")
        raise LoginRejected(f"the broker does not offer {sasl.mechanism}, but {offered}")
    if sasl.mechanism == "OAUTHBEARER":
        await _bearer(call, sasl, token_seconds)
        return
    try:
        password = await in_daemon_thread(sasl.current_password.get)
    except PasswordUnreadable as error:
        raise LoginRejected(str(error)) from error
    if sasl.mechanism == "PLAIN":
        await _authenticate(call, f"\0{sasl.username}\0{password}".encode())
    else:
        await _scram(call, sasl, password)


async def _bearer(call: Call, sasl: Sasl, token_seconds: float) -> None:
    """Log in with a token (RFC 7628). A broker that rejects it first sends the reason, and ends the exchange after a
    lone separator.
    """
    try:
        async with asyncio.timeout(token_seconds):
            token = await in_daemon_thread(partial(own_token, sasl, token_seconds))
    except TokenMissing as error:
        raise LoginNotTried(str(error)) from error
    except TimeoutError as error:  # another login waits for the endpoint's response
        where = sasl.token_file if sasl.oauth is None else f"token endpoint {sasl.oauth.token_url}"
        raise LoginNotTried(f"{where}: no response within {token_seconds:g} s") from error
    extensions = "".join(f"\1{name}={value}" for name, value in sasl.extensions.items())
    reason = await _authenticate(call, f"n,,\1auth=Bearer {token.value}{extensions}\1\1".encode())
    if reason:
        forget_token(sasl, token)
        with suppress(LoginRejected):
            await _authenticate(call, b"\1")
        raise LoginRejected(f"the broker does not accept the token: {_shown(reason)}")


def _shown(reason: bytes) -> str:
    return "".join(each if each.isprintable() else "?" for each in reason[:_MAX_WORDS].decode(errors="replace"))


async def _scram(call: Call, sasl: Sasl, password: str) -> None:
    from scramp import ScramClient, ScramException  # noqa: PLC0415  # 6 MB that few proxies need

    try:
        scram = ScramClient([sasl.mechanism], sasl.username, password)
        first = await _authenticate(call, scram.get_client_first().encode())
        scram.set_server_first(first.decode())
        if int(scram.iterations) > _MAX_ITERATIONS:
            raise LoginRejected(f"the broker wants {scram.iterations} hashes of the password, over {_MAX_ITERATIONS}")
        final = await asyncio.to_thread(scram.get_client_final)
        scram.set_server_final((await _authenticate(call, final.encode())).decode())
    except (ScramException, ValueError, LookupError, TypeError) as error:  # any error in the broker's SCRAM message
        raise LoginRejected(f"{sasl.mechanism}: {error}"[:_MAX_WORDS]) from error


async def _authenticate(call: Call, token: bytes) -> bytes:
    body = SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, _AUTHENTICATE_VERSION)
    response = await call(ApiKey.SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, body)
    value: dict[str, Any] = read_response(SASL_AUTHENTICATE_RESPONSE, response, _AUTHENTICATE_VERSION)
    if value["error_code"]:
        raise LoginRejected((value["error_message"] or "the broker gives no reason")[:_MAX_WORDS])
    return bytes(value["auth_bytes"])
