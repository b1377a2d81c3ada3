"""Connecting to the cluster: try the addresses in turn, say which failed and why."""

import asyncio
import ssl
from collections.abc import Sequence

from config.address import HostPort
from proxy.tls import TlsContext, words_of


class UpstreamUnreachable(Exception):
    """No address took a connection; the text names each with its reason."""


async def connect(
    addresses: Sequence[HostPort], protocol: asyncio.BaseProtocol, tls: TlsContext | None, timeout_seconds: float
) -> None:
    """Connect `protocol` to the first address that answers. Raises UpstreamUnreachable."""
    loop = asyncio.get_running_loop()
    reasons = []
    for address in addresses:
        try:
            async with asyncio.timeout(timeout_seconds):
                context = tls.current() if tls is not None else None
                await loop.create_connection(lambda: protocol, address.host, address.port, ssl=context)
            return
        except TimeoutError:
            reasons.append(f"{address}: no answer within {timeout_seconds} s")
        except OSError as error:
            reasons.append(f"{address}: {reason_of(error)}")
    raise UpstreamUnreachable("; ".join(reasons) or "no address is known")


def reason_of(error: OSError) -> str:
    """An error in its own words, without numbers and addresses around them."""
    return words_of(error) if isinstance(error, ssl.SSLError) else error.strerror or str(error)
