"""Connecting to the cluster: try the addresses in turn, say which failed and why."""

import asyncio
from collections.abc import Sequence

from config.address import HostPort


class UpstreamUnreachable(Exception):
    """No address took a connection; the text names each with its reason."""


async def connect(addresses: Sequence[HostPort], protocol: asyncio.BaseProtocol, timeout_seconds: float) -> None:
    """Connect `protocol` to the first address that answers. Raises UpstreamUnreachable."""
    loop = asyncio.get_running_loop()
    reasons = []
    for address in addresses:
        try:
            async with asyncio.timeout(timeout_seconds):
                await loop.create_connection(lambda: protocol, address.host, address.port)
            return
        except TimeoutError:
            reasons.append(f"{address}: no answer within {timeout_seconds} s")
        except OSError as error:
            reasons.append(f"{address}: {reason_of(error)}")
    raise UpstreamUnreachable("; ".join(reasons) or "no address is known")


def reason_of(error: OSError) -> str:
    """An operating system's error in its own words, without numbers and addresses around them."""
    return error.strerror or str(error)
