"""The proxy's own login to a broker with `upstream.sasl`. It never uses clients' credentials."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from sluicegate.config.upstream import Sasl
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.login import (
    LoginExchange,
    PasswordLogin,
    SaslAuthenticationFailed,
    TokenLogin,
    TokenNotAccepted,
)
from sluicegate.proxy.cluster.response_bodies import BrokerResponse
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.tokens.cache import TokenMissing
from sluicegate.proxy.tokens.own_token import Token, forget_token, own_token

Call = Callable[[ApiKey, int, bytes], Awaitable[BrokerResponse]]
"""Sends one request (API, version, body) and returns the response."""


class LoginNotTried(SaslAuthenticationFailed):
    """The proxy has no token for the login. The message names the source that provided none."""


async def log_in(call: Call, sasl: Sasl, token_seconds: float) -> None:
    """Log in. Wait at most `token_seconds` for a token.

    Raises SaslAuthenticationFailed, MalformedMessage and the errors of `call`.
    """
    if sasl.mechanism != "OAUTHBEARER":
        try:
            password = await in_daemon_thread(sasl.current_password.get)
        except PasswordUnreadable as error:
            raise SaslAuthenticationFailed(str(error)) from error
        await _exchange(call, PasswordLogin(sasl.mechanism, sasl.username or "", password))
        return
    token = await _token(sasl, token_seconds)
    try:
        await _exchange(call, TokenLogin(token.value, tuple(sasl.extensions.items())))
    except TokenNotAccepted:
        forget_token(sasl, token)
        raise


async def _token(sasl: Sasl, seconds: float) -> Token:
    try:
        async with asyncio.timeout(seconds):
            return await in_daemon_thread(partial(own_token, sasl, seconds))
    except TokenMissing as error:
        raise LoginNotTried(str(error)) from error
    except TimeoutError as error:  # another login is still waiting for the endpoint
        where = sasl.token_file if sasl.oauth is None else f"token endpoint {sasl.oauth.token_url}"
        raise LoginNotTried(f"{where}: no response within {seconds:g} s") from error


async def _exchange(call: Call, login: PasswordLogin | TokenLogin) -> None:
    exchange = LoginExchange(login)
    request = exchange.first()
    while True:
        response = await call(request.key, request.version, request.body)
        following = await asyncio.to_thread(exchange.after, response.body)  # hashing the password for SCRAM takes long
        if following is None:
            return
        request = following
