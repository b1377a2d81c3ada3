"""Finds user names that are tokens or account keys, and therefore cannot be the principals that brokers use.

It checks the proxy's own login, and the clients that are connected to a running proxy.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.doctor.running_proxy import reachable_address

_ABOUT = "user names"
_SECONDS = 5.0
_MOST_BYTES = 1 << 20
_KIND = "User:"
_OTHER_NAMES = {
    "a token in place of a password": re.compile(r"token|\$accessToken|\$ConnectionString|apikey", re.IGNORECASE),
    "an API key, such as Confluent Cloud's": re.compile(r"(?=.*[0-9])[A-Z0-9]{16}"),
    "an AWS access key": re.compile(r"A(KIA|SIA)[A-Z0-9]{16}"),
    "a user of a tenancy, as in OCI": re.compile(r".+/.+/ocid1\..+"),
    "a UUID": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
}
_ADVICE = (
    "compare an event's principal with the broker's authorizer log; if they differ, remove the mechanism from "
    "listen.user_name_is_principal"
)


def kind_of_secret(user_name: str) -> str | None:
    """Return what kind of secret a user name looks like, or None if it may be a principal."""
    return next((kind for kind, pattern in _OTHER_NAMES.items() if pattern.fullmatch(user_name)), None)


async def _check(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Yield a warning if such names are in use although user names are declared to be principals."""
    config = cluster.config
    if not config.listen.user_name_is_principal:
        return
    sasl = config.upstream.sasl
    names = [] if sasl is None or sasl.username is None else [sasl.username]
    names += await _connected(config)
    odd = {kind: name for name in reversed(names) if (kind := kind_of_secret(name)) is not None}
    if odd:
        found = names_shortened([f"{name} looks like {kind}" for kind, name in odd.items()])
        words = f"{found}: the principal of such a login usually has another name"
        yield CheckResult(_ABOUT, Level.WARNING, words, _ADVICE)


async def _connected(config: Config) -> list[str]:
    """Return the user names of clients that are connected to a running proxy, or none if no proxy is running."""
    if config.admin.listen is None or config.admin.listen.port == 0:
        return []
    at = reachable_address(config.admin.listen)
    body = b""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(at.host, at.port)
            writer.write(b"GET /api/live HTTP/1.0\r\nHost: localhost\r\n\r\n")
            while len(body) < _MOST_BYTES and (read := await reader.read(_MOST_BYTES)):
                body += read
            writer.close()
    return list(_user_names(body.partition(b"\r\n\r\n")[2]))


def _user_names(live: bytes) -> Iterator[str]:
    """Yield the verified user names in the live view, or nothing for any other response."""
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        for each in json.loads(live)["connections"]["listed"]:
            principal = each["principal"]
            if principal is not None and principal.startswith(_KIND):
                yield principal.removeprefix(_KIND)


CHECK = ClusterCheck(17, (), _check)
